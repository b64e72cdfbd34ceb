package image

import (
	"crypto/sha256"
	"encoding/hex"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

const zeros = "0000000000000000000000000000000000000000000000000000000000000000"

// withExtra is an archive, and a folder that adds the package htop.
func withExtra(t *testing.T) archive {
	t.Helper()
	a := newArchive(t)
	a.write(t, "site/packages", "# for who debugs\nhtop\n")
	a.extra = "site"
	return a
}

// The image's packages count as installed, so what is pinned is what a site adds to them.
func TestWhatASiteAddsIsPinnedAboveTheImage(t *testing.T) {
	a := withExtra(t)
	a.write(t, "site/sources", "deb http://mirror.example.com/debian bullseye main\n")
	a.write(t, "uris", "'http://x/htop_3.2.2-2_amd64.deb' htop_3.2.2-2_amd64.deb 1 SHA256:"+zeros+"\n"+
		"'http://x/libnl_3%3a7_amd64.deb' libnl_3%3a7_amd64.deb 1 SHA256:"+zeros+"\n")
	if out, err := a.run("pin.sh", "extra"); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	of := sha256.Sum256([]byte("deb image probe 1.0 all " + a.package1 + "\n"))
	want := "of " + hex.EncodeToString(of[:]) + "\ndeb image htop 3.2.2-2 amd64 " + zeros + "\ndeb image libnl 3:7 amd64 " + zeros + "\n"
	if got := read(t, filepath.Join(a.dir, "site/manifest")); !strings.HasSuffix(got, want) {
		t.Errorf("the manifest is %q, want it to end with %q", got, want)
	}
	if status := read(t, filepath.Join(a.dir, "status")); !strings.Contains(status,
		"Package: probe\nStatus: install ok installed\n") {
		t.Errorf("apt takes for installed: %q", status)
	}
	list := filepath.Join(a.dir, "cache/images/apt/bookworm/debian.list")
	if got := read(t, list); got != "deb http://mirror.example.com/debian bookworm main\n" {
		t.Errorf("apt's sources are %q", got)
	}
}

func TestWhatASiteAddsMayNotExchangeThePackagesOfTheImage(t *testing.T) {
	a := withExtra(t)
	a.write(t, "uris", "'http://x/probe_2.0_all.deb' probe_2.0_all.deb 1 SHA256:"+zeros+"\n")
	out, err := a.run("pin.sh", "extra")
	if err == nil || !strings.Contains(out, "run images/master/pin.sh first. Newer: probe 2.0") {
		t.Errorf("%v: %s", err, out)
	}
	if _, err := os.Stat(filepath.Join(a.dir, "site/manifest")); !os.IsNotExist(err) {
		t.Errorf("a manifest is written all the same: %v", err)
	}
}

func TestAFolderThatIsNotThereIsNamed(t *testing.T) {
	a := withExtra(t)
	a.extra = "elsewhere"
	for _, args := range [][]string{{"pin.sh", "extra"}, {"fetch.sh", "image", "out"}} {
		if out, err := a.run(args[0], args[1:]...); err == nil || !strings.Contains(out,
			"QUORATE_EXTRA is 'elsewhere': want a folder") {
			t.Errorf("%s: %v: %s", args[0], err, out)
		}
	}
	a.extra = ""
	if out, err := a.run("pin.sh", "extra"); err == nil || !strings.Contains(out, "want a folder with the file packages") {
		t.Errorf("no folder: %v: %s", err, out)
	}
}

// What a site pins is fetched with the image's own packages.
func TestWhatASiteAddsIsFetched(t *testing.T) {
	a := withExtra(t)
	a.write(t, "site/manifest", "of "+zeros+"\ndeb image htop 9 amd64 "+zeros+"\n")
	if text, _, err := a.fetch(t); err == nil || !strings.Contains(text, "htop 9 (amd64, sha256 "+zeros) {
		t.Errorf("%v: %s", err, text)
	}
	a.extra = ""
	if text, _, err := a.fetch(t); err != nil {
		t.Errorf("without the folder: %v: %s", err, text)
	}
}
