package localgce

import (
	"fmt"
	"os"
	"slices"

	"golang.org/x/sys/unix"
)

// bindFaults are the ways in which a folder that a VM is shown can fail: every access ends in an error (unreadable: "transport endpoint is
// not connected", as a dead gcsfuse leaves it) or in none at all (hang), it is there and empty, or it takes no writes.
var bindFaults = []string{"unreadable", "hang", "empty", "readonly"}

// bindFault is one that is set. It holds over the VM's boots.
type bindFault struct {
	guest, kind string
	// fuse, where the kind is hang, is the end at which a file system's program would answer.
	fuse *os.File
}

// guestFault is a bindFault for a VM's boot.
type guestFault struct {
	Guest, Kind string
	FD          int // of /dev/fuse, where the kind needs it
}

// SetBindFault makes a folder of Config.Binds, named by its path in the VM, fail for one VM or with an empty name for all: see bindFaults.
// An empty kind heals it. Files that the VM has open are not touched. It holds over the VM's boots.
func (p *Project) SetBindFault(name, guest, kind string) error {
	if kind != "" && !slices.Contains(bindFaults, kind) {
		return fmt.Errorf("bind fault %q: %s or none are known", kind, listed(bindFaults))
	}
	if err := p.checkBind(guest); err != nil {
		return err
	}
	return p.eachOf(name, func(v *vm) error { return p.changeBind(v, guest, kind) })
}

func (p *Project) checkBind(guest string) error {
	var known []string
	for _, b := range p.conf.Binds {
		info, err := os.Stat(b.Host)
		if folder := err == nil && info.IsDir(); folder && b.Guest == guest {
			return nil
		} else if folder {
			known = append(known, b.Guest)
		}
	}
	return fmt.Errorf("%q is no folder that is shown to the vms; there are %s", guest, listed(known))
}

// changeBind heals what is set and sets what is wanted. v.ops is held.
func (p *Project) changeBind(v *vm, guest, kind string) error {
	if i := slices.IndexFunc(v.binds, func(f *bindFault) bool { return f.guest == guest }); i >= 0 {
		former := v.binds[i]
		if err := v.inMounts(func() error { return unblind(guest, former.kind) }); err != nil {
			return fmt.Errorf("heal %s of %s: %w", guest, v.key(), err)
		}
		former.release()
		v.binds = slices.Delete(v.binds, i, i+1)
	}
	if kind == "" {
		return nil
	}
	f := &bindFault{guest: guest, kind: kind}
	fuse, err := openFuse(kind)
	if err != nil {
		return err
	}
	f.fuse = fuse
	if err := v.inMounts(func() error { return blind(guest, kind, fd(fuse)) }); err != nil {
		f.release()
		return fmt.Errorf("make %s of %s fail: %w", guest, v.key(), err)
	}
	if kind != "hang" { // nobody will ever answer
		f.release()
	}
	v.binds = append(v.binds, f)
	return nil
}

func (f *bindFault) release() {
	if f.fuse != nil {
		f.fuse.Close()
		f.fuse = nil
	}
}

// openFuse opens the program's end of a file system that never answers, for the kinds that need one.
func openFuse(kind string) (*os.File, error) {
	if kind != "unreadable" && kind != "hang" {
		return nil, nil
	}
	f, err := os.OpenFile("/dev/fuse", os.O_RDWR, 0)
	if err != nil {
		return nil, fmt.Errorf("bind fault %s: this machine lacks FUSE (modprobe fuse): %w", kind, err)
	}
	return f, nil
}

func fd(f *os.File) int {
	if f == nil {
		return -1
	}
	return int(f.Fd())
}

// blind mounts the fault over a folder of the VM's, in whose mount namespace it is called.
func blind(target, kind string, fuse int) error {
	switch kind {
	case "unreadable", "hang":
		return mount("localgce-fault", target, "fuse", 0, fmt.Sprintf("fd=%d,rootmode=40000,user_id=0,group_id=0", fuse))
	case "empty":
		return mount("localgce-fault", target, "tmpfs", 0, "mode=755")
	}
	return unix.Mount("", target, "", unix.MS_BIND|unix.MS_REMOUNT|unix.MS_RDONLY, "")
}

// unblind undoes blind.
func unblind(target, kind string) error {
	if kind == "readonly" {
		return unix.Mount("", target, "", unix.MS_BIND|unix.MS_REMOUNT, "")
	}
	return unix.Unmount(target, unix.MNT_DETACH)
}

// inMounts calls f on a thread in the VM's mount namespace; a VM that is off has none, and its boot sets the faults. f must not hand work to
// other goroutines. v.ops is held.
func (v *vm) inMounts(f func() error) error {
	if v.machine == nil {
		return nil
	}
	return onOwnThread(func() error {
		ns, err := os.Open(fmt.Sprintf("/proc/%d/ns/mnt", v.machine.cmd.Process.Pid))
		if err != nil {
			return err
		}
		defer ns.Close()
		if err := unix.Unshare(unix.CLONE_FS); err != nil {
			return fmt.Errorf("leave the process's root folder: %w", err)
		}
		if err := unix.Setns(int(ns.Fd()), unix.CLONE_NEWNS); err != nil {
			return fmt.Errorf("enter mount namespace: %w", err)
		}
		return f()
	})
}

// bootFaults opens what a boot needs to set the VM's faults. The files are the boot's from firstFD on; the project's own are closed by
// closeFiles, but those that hang.
func (v *vm) bootFaults(firstFD int) (faults []guestFault, files []*os.File, err error) {
	for _, f := range v.binds {
		fuse, err := openFuse(f.kind)
		if err != nil {
			return nil, files, err
		}
		g := guestFault{Guest: f.guest, Kind: f.kind, FD: -1}
		if fuse != nil {
			g.FD = firstFD + len(files)
			files = append(files, fuse)
		}
		if f.kind == "hang" {
			f.release()
			if f.fuse, err = duplicate(fuse); err != nil {
				return nil, files, err
			}
		}
		faults = append(faults, g)
	}
	return faults, files, nil
}

func duplicate(f *os.File) (*os.File, error) {
	n, err := unix.FcntlInt(f.Fd(), unix.F_DUPFD_CLOEXEC, 0)
	if err != nil {
		return nil, fmt.Errorf("duplicate %s: %w", f.Name(), err)
	}
	return os.NewFile(uintptr(n), f.Name()), nil
}

func closeFiles(files []*os.File) {
	for _, f := range files {
		f.Close()
	}
}

// copyBinds are the VM's faults for a successor. v.ops is held.
func (v *vm) copyBinds() (list []*bindFault) {
	for _, f := range v.binds {
		list = append(list, &bindFault{guest: f.guest, kind: f.kind})
	}
	return list
}
