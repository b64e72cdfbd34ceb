// Package disk keeps data disks as files: attached to loop devices, frozen, torn, fenced, copied, full, corrupt.
package disk

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/quorate/quorate/internal/localgce/host"
)

// Ensure makes the sparse image if it is absent, and has a file system made in it if it is blank.
func Ensure(ctx context.Context, image string, size int64) error {
	if err := EnsureImage(image, size); err != nil {
		return err
	}
	blank, err := isBlank(ctx, image)
	if err != nil || !blank {
		return err
	}
	_, err = host.Run(ctx, "mkfs.ext4", "-q", "-F", "-E", "lazy_itable_init=1,lazy_journal_init=1,nodiscard", image)
	return err
}

// EnsureImage makes the sparse image if it is absent.
func EnsureImage(image string, size int64) error {
	if err := os.MkdirAll(filepath.Dir(image), 0o755); err != nil {
		return fmt.Errorf("make the folder of the disks: %w", err)
	}
	f, err := os.OpenFile(image, os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return fmt.Errorf("make data disk: %w", err)
	}
	defer f.Close()
	info, err := f.Stat()
	if err == nil && info.Size() == 0 {
		err = f.Truncate(size)
	}
	if err != nil {
		return fmt.Errorf("make data disk: %w", err)
	}
	return nil
}

// isBlank says whether the image holds no signature that blkid knows. blkid exits with 2 then.
func isBlank(ctx context.Context, image string) (bool, error) {
	_, err := host.Run(ctx, "blkid", "-p", image)
	if exit := (*exec.ExitError)(nil); errors.As(err, &exit) && exit.ExitCode() == 2 {
		return true, nil
	}
	return false, err
}

// Loop is a data disk that is attached to the machine.
type Loop struct {
	Device string // /dev/loopN
	shown  string // the image's path as the kernel shows it
	hold   *os.File
}

// Attach binds the image to a free loop device. The device frees itself when its last user is gone (autoclear), so
// that nobody's death leaves one behind; hold keeps it until the VM has mounted it.
func Attach(image string) (*Loop, error) {
	control, err := os.OpenFile("/dev/loop-control", os.O_RDWR, 0)
	if err != nil {
		return nil, fmt.Errorf("attach data disk: %w", err)
	}
	defer control.Close()
	backing, err := os.OpenFile(image, os.O_RDWR, 0)
	if err != nil {
		return nil, fmt.Errorf("attach data disk: %w", err)
	}
	defer backing.Close()
	for range 50 { // another project may take the free device first
		l, err := configure(control, backing, image)
		if !errors.Is(err, unix.EBUSY) {
			return l, err
		}
	}
	return nil, fmt.Errorf("attach data disk %s: no loop device stays free", image)
}

func configure(control, backing *os.File, image string) (*Loop, error) {
	n, err := unix.IoctlRetInt(int(control.Fd()), unix.LOOP_CTL_GET_FREE)
	if err != nil {
		return nil, fmt.Errorf("find a free loop device: %w", err)
	}
	device := fmt.Sprintf("/dev/loop%d", n)
	hold, err := os.OpenFile(device, os.O_RDWR, 0)
	if err != nil {
		return nil, fmt.Errorf("open loop device: %w", err)
	}
	c := unix.LoopConfig{Fd: uint32(backing.Fd())}
	c.Info.Flags = unix.LO_FLAGS_AUTOCLEAR
	copy(c.Info.File_name[:len(c.Info.File_name)-1], image)
	if err := unix.IoctlLoopConfigure(int(hold.Fd()), &c); err != nil {
		hold.Close()
		return nil, fmt.Errorf("attach %s to %s: %w", image, device, err)
	}
	shown, err := os.ReadFile(backingFile(device))
	if err != nil {
		hold.Close()
		return nil, fmt.Errorf("attach %s to %s: %w", image, device, err)
	}
	return &Loop{Device: device, shown: strings.TrimSpace(string(shown)), hold: hold}, nil
}

// Detach lets the device go and waits until the kernel has: the unmount of a dead VM's disk, which also writes what was
// not yet written, takes a moment.
func (l *Loop) Detach() error {
	l.hold.Close()
	return WaitDetached(func(device, file string) bool { return device == filepath.Base(l.Device) && file == l.shown })
}

// backingFile is where the kernel shows the path of the file that is attached to a device, also as a pattern for all.
func backingFile(device string) string {
	return filepath.Join("/sys/block", filepath.Base(device), "loop/backing_file")
}

// WaitDetached waits until no loop device fits.
func WaitDetached(fits func(device, file string) bool) error {
	const limit = 20 * time.Second // a slow machine may have much to write
	for deadline := time.Now().Add(limit); ; time.Sleep(5 * time.Millisecond) {
		busy := ""
		files, _ := filepath.Glob(backingFile("loop*"))
		for _, f := range files {
			device := filepath.Base(filepath.Dir(filepath.Dir(f)))
			if b, err := os.ReadFile(f); err == nil && fits(device, strings.TrimSpace(string(b))) {
				busy = device
			}
		}
		if busy == "" {
			return nil
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("detach %s: it is still in use after %s", busy, limit)
		}
	}
}

// Fence leaves one sector of the device, in which no file system has anything. All I/O behind it fails at once and for
// good, with EIO, while the device stays in use; where ext4 looks for a folder that is not in memory it says ENOMEM. A
// file system that is shut down (TearDisk) would also refuse what is in memory, which a fenced disk's does not.
func (l *Loop) Fence() error {
	info, err := unix.IoctlLoopGetStatus64(int(l.hold.Fd()))
	if err == nil {
		info.Sizelimit = 512
		err = unix.IoctlLoopSetStatus64(int(l.hold.Fd()), info)
	}
	if err != nil {
		return fmt.Errorf("fence %s: %w", l.Device, err)
	}
	return nil
}
