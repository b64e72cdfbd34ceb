package disk_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/quorate/quorate/internal/localgce/disk"
)

// A file that is open still when the disk is unmounted stands for a child between fork and exec, which has a copy of
// every open file of its parent.
func TestAnOpenFileKeepsNoDiskMounted(t *testing.T) {
	image := filepath.Join(t.TempDir(), "disk.img")
	if err := disk.Ensure(t.Context(), image, 16<<20); err != nil {
		t.Fatal(err)
	}
	l, err := disk.Attach(image)
	if err != nil {
		t.Fatal(err)
	}
	var open *os.File
	err = disk.WithMount(filepath.Join(t.TempDir(), "aside"), l.Device, func(folder string) (err error) {
		open, err = os.Create(filepath.Join(folder, "file"))
		return err
	})
	if err != nil {
		t.Error(err)
	}
	open.Close()
	if err := l.Detach(); err != nil {
		t.Error(err)
	}
}
