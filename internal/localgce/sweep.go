package localgce

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"github.com/quorate/quorate/internal/localgce/cgroup"
	"github.com/quorate/quorate/internal/localgce/disk"
	"github.com/quorate/quorate/internal/localgce/names"
	"github.com/quorate/quorate/internal/localgce/network"
)

// Sweep removes every trace of the project of a state folder from the machine, whether its process lives, hangs or
// died: processes, namespaces, links, routes, loop devices, cgroups. The files in the folder stay.
func Sweep(ctx context.Context, state string) error {
	abs, err := filepath.Abs(state)
	if err != nil {
		return fmt.Errorf("state folder %s: %w", state, err)
	}
	n := names.For(abs)
	err = sweepDead(ctx, n)
	if !errors.Is(err, names.ErrUp) {
		return err
	}
	l, err := killOwner(ctx, n)
	if err != nil {
		return err
	}
	defer l.Release()
	return sweep(ctx, n)
}

// sweepDead removes what the project left behind when its process died. It returns ErrUp if that lives.
func sweepDead(ctx context.Context, n names.Names) error {
	l, err := n.Take()
	if err != nil {
		return err
	}
	defer l.Release()
	return sweep(ctx, n)
}

// killOwner kills the project's process, which holds the lock but was not heard, and takes the lock.
func killOwner(ctx context.Context, n names.Names) (*names.Lock, error) {
	if pid, ok := n.Owner(); ok {
		if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
			return nil, fmt.Errorf("kill the project's process %d: %w", pid, err)
		}
	}
	for {
		l, err := n.Take()
		if !errors.Is(err, names.ErrUp) {
			return l, err
		}
		select {
		case <-ctx.Done():
			return nil, fmt.Errorf("wait for the project's process to end (%s names it): %w", n.LockFile(), ctx.Err())
		case <-time.After(10 * time.Millisecond):
		}
	}
}

// sweep removes what carries the project's names. The caller holds the lock.
func sweep(ctx context.Context, n names.Names) error {
	disksOf(n).Thaw(n.Scratch("aside")) // who waits for a frozen disk cannot be killed
	var errs []error
	cgroup.ThawV1(cgroup.V1(n.Fabric(), "")) // nor can who is frozen in version 1
	if root, err := cgroup.Root(); err == nil {
		errs = append(errs, cgroup.Remove(filepath.Join(root, n.Fabric()))) // with it all processes of all VMs
	}
	errs = append(errs, cgroup.RemoveV1(cgroup.V1(n.Fabric(), "")))
	// Otherwise it vanishes some time after the fabric, and its address range stays in use until then.
	if network.LinkIsHere(n.HostLink()) {
		errs = append(errs, network.IP(ctx, "", "link del "+n.HostLink()))
	}
	namespaces, err := os.ReadDir(network.Folder)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		errs = append(errs, fmt.Errorf("list network namespaces: %w", err))
	}
	for _, e := range namespaces {
		if n.Owns(e.Name()) {
			errs = append(errs, network.Delete(ctx, e.Name()))
		}
	}
	errs = append(errs, disk.WaitDetached(func(_, file string) bool { return disksOf(n).Holds(file) }))
	return errors.Join(errs...)
}

// LogPath is the file with what the init and the agent of a VM print. It stays when the project is down. In the same
// folder, the folder of the VM's name is the VM's /var/log/quorate.
func LogPath(state, vm string) (string, error) {
	abs, err := filepath.Abs(state)
	if err != nil {
		return "", fmt.Errorf("state folder %s: %w", state, err)
	}
	return names.For(abs).VMLog(vm), nil
}

// disksOf is where a project's disks lie.
func disksOf(n names.Names) disk.Place { return disk.Place{Folder: n.Disks(), Mark: n.Fabric()} }
