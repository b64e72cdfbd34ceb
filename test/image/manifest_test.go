package image

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

const master = "../../images/master/"

func read(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// words are the lines of a file of pins, without comments.
func words(t *testing.T, path string) (lines [][]string) {
	t.Helper()
	for line := range strings.Lines(read(t, path)) {
		if fields := strings.Fields(line); len(fields) > 0 && fields[0] != "#" {
			lines = append(lines, fields)
		}
	}
	return lines
}

var (
	hash    = regexp.MustCompile(`^[0-9a-f]{64}$`)
	version = regexp.MustCompile(`^[0-9][A-Za-z0-9.+~:-]*$`)
)

func TestTheManifestPinsEachPackageByVersionAndHash(t *testing.T) {
	for arch, manifest := range manifests {
		t.Run(arch, func(t *testing.T) { pinsEachPackage(t, arch, manifest) })
	}
}

func pinsEachPackage(t *testing.T, arch, manifest string) {
	pinned, of := map[string]bool{}, "amd64"
	for _, line := range words(t, manifest) {
		if line[0] == "architecture" {
			of = line[1]
		}
		if line[0] != "deb" {
			continue
		}
		if line[1] == "image" && line[4] != arch && line[4] != "all" {
			t.Errorf("%s is of %s", line[2], line[4])
		}
		if len(line) != 6 || !version.MatchString(line[3]) || !hash.MatchString(line[5]) {
			t.Errorf("no version or no hash: %v", line)
			continue
		}
		if name := line[1] + " " + line[2]; pinned[name] {
			t.Errorf("%s is pinned twice", name)
		} else {
			pinned[name] = true
		}
	}
	if of != arch {
		t.Errorf("it says that it is of %s", of)
	}
	for _, line := range words(t, master+"packages") {
		role := map[string]string{"system": "image", "master": "image", "tools": "tools", "stub": "tools"}[line[0]]
		if line[0] == "suite" || len(line) > 2 && line[2] != arch {
			continue
		}
		if !pinned[role+" "+line[1]] {
			t.Errorf("%s of images/master/packages is not in the manifest: run images/master/pin.sh", line[1])
		}
	}
}

// A module's go.mod and go.sum pin all of its sources; the manifest pins these two.
func TestTheManifestPinsTheProgramsModules(t *testing.T) {
	for arch, manifest := range manifests {
		t.Run(arch, func(t *testing.T) { pinsModules(t, manifest) })
	}
}

func pinsModules(t *testing.T, manifest string) {
	dirs := map[string]string{"kubernetes": "../../images/kubernetes", "etcd": "../../images/etcd",
		"coredns": "../../images/coredns", "quorate": "../.."}
	for _, line := range words(t, manifest) {
		if line[0] != "program" {
			continue
		}
		dir := dirs[line[1]]
		sum := sha256.Sum256([]byte(read(t, filepath.Join(dir, "go.mod")) + read(t, filepath.Join(dir, "go.sum"))))
		if line[4] != hex.EncodeToString(sum[:]) {
			t.Errorf("%s has another go.mod or go.sum: run images/master/pin.sh programs", line[1])
		}
		delete(dirs, line[1])
	}
	if len(dirs) > 0 {
		t.Errorf("not in the manifest: %v", dirs)
	}
}

// archive is a tree with fetch.sh and a manifest of one package, an archive that fakeApt serves, and a cache.
type archive struct {
	dir, package1 string
	extra         string // the folder of what a site adds, below dir
	arch          string // ARCH
}

const fakeApt = `#!/bin/sh
case "$1" in
show) [ -f "$ARCHIVE/probe.deb" ] && printf 'Package: probe\nVersion: 1.0\n\n' ;;
install) cat "$ARCHIVE/uris" 2>/dev/null; cp "$APT_CONFIG" "$ARCHIVE/apt.conf"
  cp "$(sed -n 's/^Dir::State::status "\(.*\)";/\1/p' "$APT_CONFIG")" "$ARCHIVE/status" ;;
download) echo download >>"$ARCHIVE/log"
  sed -n 's/^APT::Architecture "\(.*\)";/\1/p' "$APT_CONFIG" >>"$ARCHIVE/architectures"
  cp "$ARCHIVE/probe.deb" probe_1.0_all.deb ;;
esac
exit 0
`

func newArchive(t *testing.T) archive {
	t.Helper()
	for _, program := range []string{"dpkg-deb", "apt-get"} {
		if _, err := exec.LookPath(program); err != nil {
			t.Skipf("%s is not installed", program)
		}
	}
	a := archive{dir: t.TempDir()}
	a.write(t, "deb/DEBIAN/control", "Package: probe\nVersion: 1.0\nArchitecture: all\n"+
		"Maintainer: nobody\nDescription: probe\n")
	if out, err := exec.Command("dpkg-deb", "-b", filepath.Join(a.dir, "deb"), a.deb()).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	sum := sha256.Sum256([]byte(read(t, a.deb())))
	a.package1 = hex.EncodeToString(sum[:])
	for _, name := range []string{"debs.sh", "failures.sh", "fetch.sh", "lib.sh", "pin.sh"} {
		a.write(t, "images/master/"+name, read(t, master+name))
	}
	a.write(t, "images/master/packages", "suite system bookworm\nmaster probe\n")
	a.write(t, "images/master/manifest", "deb image probe 1.0 all "+a.package1+"\n")
	a.write(t, "bin/apt-get", fakeApt)
	a.write(t, "bin/apt-cache", fakeApt)
	a.write(t, "sources", "deb x bookworm main\n")
	return a
}

func (a archive) deb() string { return filepath.Join(a.dir, "probe.deb") }

func (a archive) write(t *testing.T, name, text string) {
	t.Helper()
	path := filepath.Join(a.dir, name)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o755); err != nil {
		t.Fatal(err)
	}
}

// run runs a script of images/master with that apt.
func (a archive) run(script string, args ...string) (string, error) {
	cmd := exec.Command(filepath.Join(a.dir, "images/master", script), args...)
	cmd.Dir = a.dir
	cmd.Env = append(os.Environ(), "PATH="+filepath.Join(a.dir, "bin")+":"+os.Getenv("PATH"), "ARCHIVE="+a.dir,
		"QUORATE_CACHE="+filepath.Join(a.dir, "cache"), "QUORATE_APT_SOURCES="+filepath.Join(a.dir, "sources"),
		"QUORATE_EXTRA="+a.extra, "ARCH="+a.arch)
	out, err := cmd.CombinedOutput()
	return string(out), err
}

// fetch runs fetch.sh and says what it printed, how often apt downloaded so far, and the error.
func (a archive) fetch(t *testing.T) (text string, downloads int, err error) {
	t.Helper()
	out, err := a.run("fetch.sh", "image", filepath.Join(a.dir, "out"))
	log, logErr := os.ReadFile(filepath.Join(a.dir, "log"))
	if logErr != nil && !os.IsNotExist(logErr) {
		t.Fatal(logErr)
	}
	return out, bytes.Count(log, []byte("download")), err
}

func TestAPackageIsDownloadedOnceAndThenTakenFromTheCache(t *testing.T) {
	a := newArchive(t)
	for range 2 {
		if text, downloads, err := a.fetch(t); err != nil || downloads != 1 {
			t.Fatalf("%d downloads, %v: %s", downloads, err, text)
		}
	}
	if index := read(t, filepath.Join(a.dir, "out/Packages")); !strings.Contains(index, "SHA256: "+a.package1) {
		t.Errorf("the repository's index is %q", index)
	}
	a.write(t, filepath.Join("cache/images/debs", a.package1), "damaged")
	if text, downloads, err := a.fetch(t); err != nil || downloads != 2 {
		t.Errorf("damaged in the cache: %d downloads, %v: %s", downloads, err, text)
	}
	if err := os.Remove(a.deb()); err != nil {
		t.Fatal(err)
	}
	if text, _, err := a.fetch(t); err != nil {
		t.Errorf("gone from the archive, but in the cache: %v: %s", err, text)
	}
}

func TestAPackageThatIsGoneIsNamed(t *testing.T) {
	a := newArchive(t)
	if err := os.Remove(a.deb()); err != nil {
		t.Fatal(err)
	}
	if text, _, err := a.fetch(t); err == nil || !strings.Contains(text, "probe 1.0 (all, sha256 "+a.package1) {
		t.Errorf("%v: %s", err, text)
	}
}

func TestAPackageWithAnotherContentIsRefused(t *testing.T) {
	a := newArchive(t)
	a.write(t, "deb/DEBIAN/conffiles", "")
	if out, err := exec.Command("dpkg-deb", "-b", filepath.Join(a.dir, "deb"), a.deb()).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	text, downloads, err := a.fetch(t)
	if err == nil || downloads != 1 || !strings.Contains(text, "probe 1.0") {
		t.Errorf("%d downloads, %v: %s", downloads, err, text)
	}
	if _, err := os.Stat(filepath.Join(a.dir, "out/probe.deb")); !os.IsNotExist(err) {
		t.Error(fmt.Sprint("it is in the repository: ", err))
	}
}

// The tools run on the builder, but for the one whose code is in the image. Both come from one archive.
func TestAPackageIsDownloadedAsOneOfItsArchitecture(t *testing.T) {
	a := newArchive(t)
	a.arch = "arm64"
	a.write(t, "images/master/packages", "suite tools trixie\n")
	for _, c := range []struct{ pinned, want string }{{"amd64", "amd64\n"}, {"all", "amd64\n"}, {"arm64", "arm64\n"}} {
		a.write(t, "images/master/manifest.arm64", "deb tools probe 1.0 "+c.pinned+" "+a.package1+"\n")
		a.write(t, "architectures", "")
		if err := os.RemoveAll(filepath.Join(a.dir, "cache/images/debs")); err != nil {
			t.Fatal(err)
		}
		if out, err := a.run("fetch.sh", "tools", filepath.Join(a.dir, "out")); err != nil {
			t.Fatalf("%s: %v: %s", c.pinned, err, out)
		}
		if got := read(t, filepath.Join(a.dir, "architectures")); got != c.want {
			t.Errorf("what is pinned for %s is downloaded for %q, want %q", c.pinned, got, c.want)
		}
	}
}

func TestAnArchitectureWithoutPinsIsRefused(t *testing.T) {
	a := newArchive(t)
	a.arch = "riscv64"
	for _, args := range [][]string{{"fetch.sh", "image", "out"}, {"pin.sh"}, {"pin.sh", "extra"}} {
		out, err := a.run(args[0], args[1:]...)
		if err == nil || !strings.Contains(out, "ARCH is 'riscv64': want amd64 or arm64") {
			t.Errorf("%v: %v: %s", args, err, out)
		}
	}
	for _, command := range []string{"images/deps.sh guest", "images/master/in_tools.sh / out true",
		"images/build.sh etcd out", "make help"} {
		cmd := exec.Command("sh", "-c", "exec "+command)
		cmd.Dir, cmd.Env = "../..", append(os.Environ(), "ARCH=riscv64")
		out, err := cmd.CombinedOutput()
		if err == nil || !strings.Contains(string(out), "ARCH is 'riscv64': want amd64 or arm64") {
			t.Errorf("%s: %v: %s", command, err, out)
		}
	}
}
