package disk

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"os/exec"

	"golang.org/x/sys/unix"

	"github.com/quorate/quorate/internal/localgce/host"
)

// Grown has the kernel notice that the image has become larger.
func (l *Loop) Grown() error {
	if err := unix.IoctlSetInt(int(l.hold.Fd()), unix.LOOP_SET_CAPACITY, 0); err != nil {
		return fmt.Errorf("enlarge %s: %w", l.Device, err)
	}
	return nil
}

// GrowFileSystem grows the ext4 of an image that nobody has mounted to the image's size, where that is larger.
func GrowFileSystem(ctx context.Context, image string) error {
	smaller, err := isSmaller(image)
	if err != nil || !smaller {
		return err
	}
	// resize2fs wants it checked. Exit code 1: there was something to correct, such as a journal to be replayed.
	_, err = host.Run(ctx, "e2fsck", "-fp", image)
	if exit := (*exec.ExitError)(nil); errors.As(err, &exit) && exit.ExitCode() == 1 {
		err = nil
	}
	if err == nil {
		_, err = host.Run(ctx, "resize2fs", image)
	}
	return err
}

// isSmaller reads an ext4's superblock: whether the file system is smaller than its image, by more than what mkfs.ext4
// may have left over. What is none is not.
func isSmaller(image string) (bool, error) {
	f, err := os.Open(image)
	if err != nil {
		return false, fmt.Errorf("read data disk: %w", err)
	}
	defer f.Close()
	super := make([]byte, 1024)
	if _, err := f.ReadAt(super, 1024); err != nil {
		return false, fmt.Errorf("read data disk: %w", err)
	}
	info, err := f.Stat()
	if err != nil || binary.LittleEndian.Uint16(super[56:]) != unix.EXT4_SUPER_MAGIC {
		return false, err
	}
	blocks, size := int64(binary.LittleEndian.Uint32(super[4:])), int64(1024)<<binary.LittleEndian.Uint32(super[24:])
	return blocks*size < info.Size()-info.Size()/16, nil
}
