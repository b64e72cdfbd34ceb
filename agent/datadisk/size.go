package datadisk

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// Size is how large the data disk is, in bytes. Its JSON keys are stable.
type Size struct {
	// Device is the disk itself; 0: the kernel does not say it, as of a file system without a disk of its own.
	Device int64 `json:"bytes,omitempty"`
	// FileSystem is what its file system has for files, and Free what of that may still be written.
	FileSystem int64 `json:"fileSystemBytes"`
	Free       int64 `json:"freeBytes"`
}

// NotGrown says that the file system has not grown to its disk. It needs some of it for itself: ext4 a fortieth of
// large ones, and a tenth of 1 GiB.
func (s Size) NotGrown() bool { return s.Device-s.FileSystem > s.Device/8 }

// Size is how large the disk was at most roomPeriod ago; nil: it was not measured yet. It asks nobody, so a disk that
// hangs does not hold it up.
func (d *Disk) Size() *Size {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.size
}

func (d *Disk) note(s Size) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.size = &s
}

// deviceOf is the size of the disk that a folder is on; 0: it is not known.
func (p places) deviceOf(dir string) int64 {
	var st unix.Stat_t
	if err := unix.Stat(dir, &st); err != nil {
		return 0
	}
	name := fmt.Sprintf("%d:%d", unix.Major(st.Dev), unix.Minor(st.Dev))
	text, err := os.ReadFile(filepath.Join(p.devices, name, "size"))
	if err != nil {
		return 0
	}
	const sector = 512 // whatever the disk's own is
	sectors, err := strconv.ParseInt(strings.TrimSpace(string(text)), 10, 64)
	if err != nil {
		return 0
	}
	return sectors * sector
}
