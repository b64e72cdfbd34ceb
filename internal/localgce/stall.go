package localgce

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"
)

// The requests of ioctl that golang.org/x/sys/unix does not name: linux/fs.h.
const (
	freezeFS = 0xc0045877 // FIFREEZE
	thawFS   = 0xc0045878 // FITHAW
)

// MaxStall is how long a data disk may take no writes at most.
const MaxStall = 10 * time.Minute

// stall is a mounted file system that takes no writes: who writes or syncs waits. Its descriptor keeps the file system
// mounted.
type stall struct {
	root  *os.File
	timer *time.Timer
	off   bool
}

// freezeMount freezes the file system that is mounted at a folder, after its own sync.
func freezeMount(folder string) (*stall, error) {
	root, err := os.Open(folder)
	if err != nil {
		return nil, fmt.Errorf("freeze file system: %w", err)
	}
	if err := unix.IoctlSetInt(int(root.Fd()), freezeFS, 0); err != nil {
		root.Close()
		return nil, fmt.Errorf("freeze file system: %w", err)
	}
	return &stall{root: root}, nil
}

// end lets the writes go on.
func (s *stall) end() error {
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

// cutPower makes the writes that wait fail, so that none of them reaches the disk, and lets the writers go: they could
// not be killed.
func (s *stall) cutPower() {
	if s.off {
		return
	}
	// the thaw alone is right enough: writes that waited then reach the disk, as if the power had stayed
	_ = shutFileSystem(s.root)
	_ = unix.IoctlSetInt(int(s.root.Fd()), thawFS, 0)
	s.off = true
}

// dataFolder is where the host sees the data disk of a VM that runs.
func (p *Project) dataFolder(v *vm) string {
	return fmt.Sprintf("/proc/%d/root%s", v.machine.cmd.Process.Pid, mountPoint)
}

// FreezeDisk makes all writes to a VM's data disk wait (fsfreeze), until ThawDisk or for the given time, 1 ms to
// MaxStall.
func (p *Project) FreezeDisk(name string, limit time.Duration) error {
	if limit < time.Millisecond || limit > MaxStall {
		return fmt.Errorf("freeze the disk of %s: %s: 1ms to %s are allowed", name, limit, MaxStall)
	}
	return p.operate(name, statusRunning, func(v *vm) error {
		m := v.machine
		if m.stall != nil {
			return fmt.Errorf("freeze the disk of %s: it is frozen already", name)
		}
		s, err := freezeMount(p.dataFolder(v))
		if err != nil {
			return fmt.Errorf("the disk of %s: %w", name, err)
		}
		s.timer = time.AfterFunc(limit, func() { p.endStall(v, m, s) })
		m.stall = s
		p.conf.Log.Info("disk is frozen", "vm", name, "limit", limit)
		return nil
	})
}

// ThawDisk ends FreezeDisk.
func (p *Project) ThawDisk(name string) error {
	return p.operate(name, statusRunning, func(v *vm) error {
		s := v.machine.stall
		if s == nil {
			return fmt.Errorf("thaw the disk of %s: it is not frozen", name)
		}
		v.machine.stall = nil
		p.conf.Log.Info("disk is thawed", "vm", name)
		return s.end()
	})
}

// endStall is a stall's limit. Where the VM or the stall has ended meanwhile there is nothing to do.
func (p *Project) endStall(v *vm, m *machine, s *stall) {
	v.ops.Lock()
	defer v.ops.Unlock()
	if v.machine != m || m.stall != s {
		return
	}
	m.stall = nil
	if err := s.end(); err != nil {
		p.conf.Log.Error("thaw disk at its limit", "vm", v.key(), "error", err)
	}
}

// thawLoops thaws what a dead project left frozen. Nobody may have the file system mounted any more, and still it holds
// its loop device: a second mount of the device finds it.
func (n names) thawLoops() {
	files, _ := filepath.Glob(backingFile("loop*"))
	for _, f := range files {
		if b, err := os.ReadFile(f); err == nil && n.holds(string(b)) {
			device := "/dev/" + filepath.Base(filepath.Dir(filepath.Dir(f)))
			_ = n.withMount(device, func(folder string) error { // a mount fails where the device has gone meanwhile
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

// withMount calls f with a data disk mounted where only f's thread sees it. f must not hand work to other goroutines. A
// project that dies meanwhile leaves nothing: the mount goes with the thread.
func (n names) withMount(device string, f func(folder string) error) error {
	folder := n.scratch("aside")
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return err
	}
	return onOwnThread(func() error { return mountAside(device, folder, f) })
}

func mountAside(device, folder string, f func(string) error) error {
	if err := unix.Unshare(unix.CLONE_NEWNS); err != nil {
		return fmt.Errorf("make mount namespace: %w", err)
	}
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
		return fmt.Errorf("make mounts private: %w", err)
	}
	if err := mount(device, folder, "ext4", 0, "noinit_itable"); err != nil {
		return err
	}
	err := f(folder)
	return errors.Join(err, unix.Unmount(folder, 0))
}
