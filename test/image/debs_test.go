package image

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// debian is a machine with real apt and dpkg in a folder, and an archive that has gone on from the manifest's pins:
// tool, which needs libtool in its own version, and that libbase; libfree may be any.
type debian struct{ archive }

var (
	pins    = []string{"tool 1", "libtool 1", "libbase 1", "libfree 1", "clock 1", "site 1", "libsite 1"}
	updates = []string{"tool 2", "libtool 2", "libbase 2", "libfree 2", "site 2", "libsite 2"}
)

// fields are what the control file of a package has besides, by its name; VERSION is its own.
var fields = map[string]string{
	"tool":     "Depends: libfree (>= 1), libtool (= VERSION)\n",
	"libtool":  "Pre-Depends: libbase (= VERSION)\n",
	"clock":    "Conflicts: time-daemon\nProvides: time-daemon\n",
	"oldclock": "Provides: time-daemon\n",
	"site":     "Depends: libsite (= VERSION) | libother\n",
	"user":     "Depends: libbase (= VERSION)\n",
}

func newDebian(t *testing.T) debian {
	t.Helper()
	if os.Getuid() != 0 {
		t.Skip("dpkg needs root")
	}
	d := debian{newArchive(t)}
	d.write(t, "images/master/packages", "suite system bookworm\nmaster tool\nmaster clock\n")
	d.extra = "site"
	d.write(t, "site/packages", "site\n")
	manifests := map[string]string{}
	for _, name := range pins {
		path, of := d.build(t, name), "images/master/manifest"
		if strings.Contains(name, "site") {
			of = "site/manifest"
		}
		sum := sha256.Sum256([]byte(read(t, path)))
		hash := hex.EncodeToString(sum[:])
		manifests[of] += fmt.Sprintf("deb image %s all %s\n", name, hash)
		d.write(t, "cache/images/debs/"+hash, read(t, path))
	}
	for name, text := range manifests {
		d.write(t, name, text)
	}
	var index strings.Builder
	for _, name := range updates {
		path := d.build(t, name)
		fmt.Fprintf(&index, "%sFilename: ./%s\nSize: %d\nSHA256: %x\n\n", run(t, "dpkg-deb", "-f", path),
			filepath.Base(path), len(read(t, path)), sha256.Sum256([]byte(read(t, path))))
	}
	d.write(t, "Packages", index.String())
	for _, folder := range []string{"etc/apt/apt.conf.d", "etc/apt/preferences.d", "var/lib/dpkg/updates",
		"var/lib/dpkg/info", "var/lib/apt/lists/partial", "var/cache/apt/archives/partial", "var/log/apt"} {
		d.write(t, "root/"+folder+"/.keep", "")
	}
	d.write(t, "root/var/lib/dpkg/status", "")
	d.write(t, "root/etc/apt/sources.list", "deb [trusted=yes] copy:"+d.dir+" ./\n")
	d.write(t, "machine.conf", fmt.Sprintf("Dir %q;\nDir::State::status %q;\nDPkg::Path %q;\n"+
		"APT::Sandbox::User \"root\";\nDPkg::Options { \"--force-unsafe-io\"; };\n"+
		"Dir::Bin::methods \"/usr/lib/apt/methods\";\n",
		d.root(), d.root()+"/var/lib/dpkg/status", os.Getenv("PATH")+":/usr/sbin:/sbin"))
	return d
}

func (d debian) root() string { return filepath.Join(d.dir, "root") }

// build makes the package of a name and a version.
func (d debian) build(t *testing.T, name string) string {
	t.Helper()
	name, version, _ := strings.Cut(name, " ")
	folder := "build/" + name + version
	d.write(t, folder+"/DEBIAN/control", "Package: "+name+"\nVersion: "+version+"\nArchitecture: all\n"+
		"Maintainer: nobody\nDescription: probe\n"+strings.ReplaceAll(fields[name], "VERSION", version))
	path := filepath.Join(d.dir, name+"_"+version+"_all.deb")
	run(t, "dpkg-deb", "-b", filepath.Join(d.dir, folder), path)
	return path
}

// machine runs a program with the packages of that machine.
func (d debian) machine(args ...string) (string, error) {
	cmd := exec.Command(args[0], args[1:]...)
	cmd.Dir = d.dir
	cmd.Env = append(os.Environ(), "PATH="+os.Getenv("PATH")+":/usr/sbin:/sbin", "APT_CONFIG="+d.dir+"/machine.conf",
		"DPKG_ROOT="+d.root(), "QUORATE_CACHE="+d.dir+"/cache", "QUORATE_EXTRA="+d.extra, "ARCH="+d.arch)
	out, err := cmd.CombinedOutput()
	return string(out), err
}

// has installs packages.
func (d debian) has(t *testing.T, names ...string) {
	t.Helper()
	args := []string{"dpkg", "-i"}
	for _, name := range names {
		args = append(args, d.build(t, name))
	}
	if out, err := d.machine(args...); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
}

// install installs those of a master.
func (d debian) install() (string, error) {
	return d.machine(filepath.Join(d.dir, "images/master/debs.sh"), filepath.Join(d.dir, "debs"))
}

func (d debian) check(t *testing.T, want map[string]string) {
	t.Helper()
	if got := versions(t, d.root()); !maps.Equal(got, want) {
		t.Errorf("the machine has %v, want %v", got, want)
	}
}

// asPinned has libfree as the archive or the machine has it.
func asPinned(libfree string) map[string]string {
	return map[string]string{"tool": "1", "libtool": "1", "libbase": "1", "libfree": libfree, "clock": "1", "site": "1",
		"libsite": "1"}
}

func TestWhatAPinnedPackageWantsInOneVersionAloneIsInstalledInThat(t *testing.T) {
	d := newDebian(t)
	for range 2 {
		if out, err := d.install(); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
		d.check(t, asPinned("2"))
	}
}

// Updates that came before are taken back, as far as the master is to be the image's.
func TestWhatIsNewerOnTheMachineIsExchangedForThePinned(t *testing.T) {
	d := newDebian(t)
	d.has(t, "libfree 2", "libbase 2")
	d.has(t, "libtool 2")
	d.has(t, "tool 2")
	if out, err := d.install(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	d.check(t, asPinned("2"))
}

func TestWhatNeedsTheNewerVersionIsNotRemovedButNamed(t *testing.T) {
	for _, setting := range []string{"", "APT::Get::Purge \"true\";\n"} { // apt has another word for it then
		d := newDebian(t)
		d.write(t, "machine.conf", read(t, filepath.Join(d.dir, "machine.conf"))+setting)
		d.has(t, "libbase 2", "user 2", "oldclock 1")
		before := versions(t, d.root())
		out, err := d.install()
		if err == nil || !strings.Contains(out, "with the pinned versions apt would remove user: remove that by hand") {
			t.Errorf("%q: %v: %s", setting, err, out)
		}
		d.check(t, before)
	}
}

func TestAnotherDaemonThatSetsTheClockGivesWay(t *testing.T) {
	d := newDebian(t)
	d.has(t, "oldclock 1")
	if out, err := d.install(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	d.check(t, asPinned("2"))
}

// apt names it among its output, not among its errors.
func TestWhatStandsAgainstThePinnedVersionsIsPrinted(t *testing.T) {
	d := newDebian(t)
	d.write(t, "images/master/manifest", strings.ReplaceAll(read(t, filepath.Join(d.dir, "images/master/manifest")),
		"deb image libbase 1 ", "deb image libbase 3 "))
	out, err := d.install()
	if err == nil || !strings.Contains(out, "libtool : PreDepends: libbase (= 1)") {
		t.Errorf("%v: %s", err, out)
	}
	d.check(t, map[string]string{})
}
