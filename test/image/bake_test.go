package image

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// scratch is a folder for some gigabytes, beside the image: /tmp may be small.
func scratch(t *testing.T, image string) string {
	t.Helper()
	dir, err := os.MkdirTemp(filepath.Dir(image), "image-test-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := os.RemoveAll(dir); err != nil {
			t.Error(err)
		}
	})
	return dir
}

// A second bake has another host name, umask, time zone, language, number of cores and folder, and its builder can
// neither pack nor compress.
func TestTwoBakesOfOneCommitAreTheSame(t *testing.T) {
	image := baked(t)
	want := read(t, filepath.Join(image, "SHA256SUMS"))
	dir, fail := scratch(t, image), t.TempDir()
	// dpkg-deb calls tar to unpack.
	for program, unless := range map[string]string{"gzip": "", "tar": `case " $* " in *" -c"*) ;; *) exec ` +
		strings.TrimSpace(run(t, "which", "tar")) + ` "$@" ;; esac; `} {
		script := "#!/bin/sh\n" + unless + "echo the " + program + " of who bakes is called: \"$@\" >&2\nexit 1\n"
		if err := os.WriteFile(filepath.Join(fail, program), []byte(script), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	cmd := exec.Command("unshare", "--uts", "bash", "-c",
		`hostname elsewhere && umask 0077 && exec taskset -c "$1" images/bake.sh "$2"`,
		"bash", "0", filepath.Join(dir, "again"))
	cmd.Dir = "../.."
	cmd.Env = append(os.Environ(), "TZ=Asia/Kathmandu", "LC_ALL=C", "PATH="+fail+":"+os.Getenv("PATH"))
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	if got := read(t, filepath.Join(dir, "again/SHA256SUMS")); got != want {
		t.Errorf("the first bake:\n%sthe second:\n%s", want, got)
	}
}

// packed is the archive for GCE of a disk of 16 MiB, the first of which have no hole: three texts among zeros.
func packed(t *testing.T, full int64) string {
	t.Helper()
	dir := t.TempDir()
	disk, err := os.Create(filepath.Join(dir, "disk.raw"))
	if err != nil {
		t.Fatal(err)
	}
	defer disk.Close()
	if err := disk.Truncate(16 << 20); err != nil {
		t.Fatal(err)
	}
	if _, err := disk.Write(make([]byte, full<<20)); err != nil {
		t.Fatal(err)
	}
	for _, at := range []int64{1 << 20, 3<<20 + 512, 9 << 20} {
		if _, err := disk.WriteAt([]byte("a file"), at); err != nil {
			t.Fatal(err)
		}
	}
	run(t, master+"gce.sh", dir, "1795455178")
	return filepath.Join(dir, "quorate-master.tar.gz")
}

// One file system keeps zeros that were written, another does not.
func TestTheArchiveForGCEIsTheSameHoweverManyHolesTheDiskHas(t *testing.T) {
	archive := packed(t, 0)
	for _, full := range []int64{1, 8} {
		if read(t, archive) != read(t, packed(t, full)) {
			t.Errorf("the archive is another one where %d MiB of the disk are no hole", full)
		}
	}
	content := []byte(run(t, "tar", "-xzOf", archive))
	if len(content) != 16<<20 || string(bytes.Trim(content[3<<20:9<<20], "\x00")) != "a file" ||
		string(bytes.Trim(content[9<<20:], "\x00")) != "a file" {
		t.Errorf("the disk is not what was packed: %d bytes", len(content))
	}
}

// tar packs a file that is not sparse as it is.
func TestADiskWithoutAHoleIsNotPacked(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "disk.raw"), bytes.Repeat([]byte("x"), 1<<20), 0o600); err != nil {
		t.Fatal(err)
	}
	out, err := exec.Command(master+"gce.sh", dir, "1795455178").CombinedOutput()
	if err == nil || !strings.Contains(string(out), "a file system that has sparse files") {
		t.Errorf("%v: %s", err, out)
	}
}

// A command may fail without a word, as one in a pipe whose complaint nobody wants. Its script says where.
func TestABakeThatFailsSaysWhere(t *testing.T) {
	const script = `set -euo pipefail
. "$1"
if ! x=$(false); then y=$(false) || true; fi
manifest() { cat "$1/nowhere" 2>/dev/null | sort; }
z=$(manifest "$2")
echo not reached`
	out, err := exec.Command("bash", "-c", script, "bake", master+"failures.sh", t.TempDir()).CombinedOutput()
	if text := string(out); err == nil || !strings.Contains(text, "bake: line 5: exit code 1 of: z=$(manifest") ||
		strings.Contains(text, "line 3:") {
		t.Errorf("%v: %s", err, out)
	}
}
