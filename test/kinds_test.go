package test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/quorate/quorate/internal/localgce"
)

// vmKind is what the VMs of all scenarios are. With QUORATE_VM=systemd they boot a baked image, and what they run of it
// is systemd's; the programs are those under test, as in the other kind.
var vmKind = func() localgce.Kind {
	if kind := localgce.Kind(os.Getenv("QUORATE_VM")); kind != "" {
		return kind
	}
	return localgce.ProcessVMs
}()

// imageTree is the tree of a baked image, in the folder that QUORATE_IMAGE names. Without one the test is skipped: an
// image that a bake left behind long ago is not what is under test.
func imageTree(t *testing.T) string {
	t.Helper()
	folder := os.Getenv("QUORATE_IMAGE")
	if folder == "" {
		t.Skip("needs a baked image: make cases-systemd, or QUORATE_IMAGE=FOLDER")
	}
	path, err := filepath.Abs(filepath.Join(folder, "root.tar"))
	if err == nil {
		_, err = os.Stat(path)
	}
	if err != nil {
		t.Fatalf("QUORATE_IMAGE=%s: %v", folder, err)
	}
	return path
}

// bootImage makes a project's VMs boot a baked image. Clusters that are about their members alone have no kubelet:
// nothing that it could speak to runs there.
func (c *cluster) bootImage(t *testing.T, conf *localgce.Config) {
	t.Helper()
	if c.machine != nil {
		t.Skip("a machine with a clock of its own needs process VMs")
	}
	c.must(t, conf.BootImage(imageTree(t)))
	if c.bare || c.noKubelet {
		conf.Masked = localgce.KubeletUnits()
	}
}

// onlyProcessVMs ends a test that goes by what localgce's own init prints.
func onlyProcessVMs(t *testing.T) {
	t.Helper()
	if vmKind != localgce.ProcessVMs {
		t.Skip("from here on it reads what localgce's own init prints")
	}
}
