package image

import (
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

// A second bake has another host name, umask, time zone, language, number of cores and folder.
func TestTwoBakesOfOneCommitAreTheSame(t *testing.T) {
	image := baked(t)
	want := read(t, filepath.Join(image, "SHA256SUMS"))
	dir := scratch(t, image)
	cmd := exec.Command("unshare", "--uts", "bash", "-c",
		`hostname elsewhere && umask 0077 && exec taskset -c "$1" images/bake.sh "$2"`,
		"bash", "0", filepath.Join(dir, "again"))
	cmd.Dir = "../.."
	cmd.Env = append(os.Environ(), "TZ=Asia/Kathmandu", "LC_ALL=C")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	if got := read(t, filepath.Join(dir, "again/SHA256SUMS")); got != want {
		t.Errorf("the first bake:\n%sthe second:\n%s", want, got)
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
