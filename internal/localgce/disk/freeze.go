package disk

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"

	"github.com/quorate/quorate/internal/localgce/host"
)

// The requests of ioctl that golang.org/x/sys/unix does not name: linux/fs.h.
const (
	freezeFS = 0xc0045877 // FIFREEZE
	thawFS   = 0xc0045878 // FITHAW
)

// Stall is a mounted file system that takes no writes: who writes or syncs waits. Its descriptor keeps the file system
// mounted.
type Stall struct {
	root  *os.File
	timer *time.Timer
	off   bool
}

// Freeze freezes the file system that is mounted at a folder, after its own sync.
func Freeze(folder string) (*Stall, error) {
	root, err := os.Open(folder)
	if err != nil {
		return nil, fmt.Errorf("freeze file system: %w", err)
	}
	if err := unix.IoctlSetInt(int(root.Fd()), freezeFS, 0); err != nil {
		root.Close()
		return nil, fmt.Errorf("freeze file system: %w", err)
	}
	return &Stall{root: root}, nil
}

// EndAfter calls do after a while, unless the stall has ended before.
func (s *Stall) EndAfter(limit time.Duration, do func()) { s.timer = time.AfterFunc(limit, do) }

// End lets the writes go on.
func (s *Stall) End() error {
	if s.timer != nil {
		s.timer.Stop()
	}
	var err error
	if !s.off {
		err = unix.IoctlSetInt(int(s.root.Fd()), thawFS, 0)
	}
	s.off = true
	s.root.Close()
	if err != nil && !errors.Is(err, unix.EINVAL) { // EINVAL: somebody in the VM has thawed it
		return fmt.Errorf("thaw file system: %w", err)
	}
	return nil
}

// CutPower makes the writes that wait fail, so that none of them reaches the disk, and lets the writers go: they could
// not be killed.
func (s *Stall) CutPower() {
	if s.off {
		return
	}
	// the thaw alone is right enough: writes that waited then reach the disk, as if the power had stayed
	_ = Shut(s.root)
	_ = unix.IoctlSetInt(int(s.root.Fd()), thawFS, 0)
	s.off = true
}

// Thaw thaws what a dead project left frozen; aside is where it may mount. Nobody may have the file system mounted any
// more, and still it holds its loop device: a second mount of the device finds it.
func (n Place) Thaw(aside string) {
	files, _ := filepath.Glob(backingFile("loop*"))
	for _, f := range files {
		if b, err := os.ReadFile(f); err == nil && n.Holds(string(b)) {
			device := "/dev/" + filepath.Base(filepath.Dir(filepath.Dir(f)))
			// a mount fails where the device has gone meanwhile
			_ = WithMount(aside, device, func(folder string) error {
				root, err := os.Open(folder)
				if err != nil {
					return err
				}
				defer root.Close()
				return unix.IoctlSetInt(int(root.Fd()), thawFS, 0)
			})
		}
	}
}

// WithMount calls f with a data disk mounted at a folder, where only f's thread sees it. f must not hand work to other
// goroutines. A project that dies meanwhile leaves nothing: the mount goes with the thread.
func WithMount(folder, device string, f func(folder string) error) error {
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return err
	}
	return host.OnOwnThread(func() error { return mountAside(device, folder, f) })
}

func mountAside(device, folder string, f func(string) error) error {
	if err := unix.Unshare(unix.CLONE_NEWNS); err != nil {
		return fmt.Errorf("make mount namespace: %w", err)
	}
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
		return fmt.Errorf("make mounts private: %w", err)
	}
	if err := host.Mount(device, folder, "ext4", 0, "noinit_itable"); err != nil {
		return err
	}
	// Detached, because a child of ours that stands between fork and exec has a copy of every open file for a moment,
	// and holds the mount busy with it. Whoever needs the disk to be free waits for that (Loop.Detach).
	return errors.Join(f(folder), unix.Unmount(folder, unix.MNT_DETACH))
}

const (
	shutFS = 0x8004587d // FS_IOC_SHUTDOWN of ext4, which golang.org/x/sys/unix does not name
	// withoutLog (FS_SHUTDOWN_FLAGS_NOLOGFLUSH) writes nothing more, not even the journal: what was synced is on the
	// disk, the rest is not.
	withoutLog = 2
)

// Shut makes every later access fail, and writes nothing more.
func Shut(root *os.File) error {
	if err := unix.IoctlSetPointerInt(int(root.Fd()), shutFS, withoutLog); err != nil {
		return fmt.Errorf("shut file system: %w", err)
	}
	return nil
}
