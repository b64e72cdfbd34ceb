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
)

// Sweep removes every trace of the project of a state folder from the machine, whether its process lives, hangs or
// died: processes, namespaces, links, routes, loop devices, cgroups. The files in the folder stay.
func Sweep(ctx context.Context, state string) error {
	abs, err := filepath.Abs(state)
	if err != nil {
		return fmt.Errorf("state folder %s: %w", state, err)
	}
	n := namesFor(abs)
	err = n.sweepDead(ctx)
	if !errors.Is(err, ErrUp) {
		return err
	}
	l, err := n.killOwner(ctx)
	if err != nil {
		return err
	}
	defer l.release()
	return n.sweep(ctx)
}

// sweepDead removes what the project left behind when its process died. It returns ErrUp if that lives.
func (n names) sweepDead(ctx context.Context) error {
	l, err := takeLock(n)
	if err != nil {
		return err
	}
	defer l.release()
	return n.sweep(ctx)
}

// killOwner kills the project's process, which holds the lock but was not heard, and takes the lock.
func (n names) killOwner(ctx context.Context) (*lock, error) {
	if pid, ok := n.owner(); ok {
		if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
			return nil, fmt.Errorf("kill the project's process %d: %w", pid, err)
		}
	}
	for {
		l, err := takeLock(n)
		if !errors.Is(err, ErrUp) {
			return l, err
		}
		select {
		case <-ctx.Done():
			return nil, fmt.Errorf("wait for the project's process to end (%s names it): %w", n.lockFile(), ctx.Err())
		case <-time.After(10 * time.Millisecond):
		}
	}
}

// sweep removes what carries the project's names. The caller holds the lock.
func (n names) sweep(ctx context.Context) error {
	n.thawLoops() // who waits for a frozen disk cannot be killed
	var errs []error
	thawV1(n.v1Cgroups("")) // nor can who is frozen in version 1
	if root, err := cgroupRoot(); err == nil {
		errs = append(errs, removeCgroup(filepath.Join(root, n.fabric()))) // with it all processes of all VMs
	}
	errs = append(errs, removeV1(n.v1Cgroups("")))
	// Otherwise it vanishes some time after the fabric, and its address range stays in use until then.
	if linkIsHere(n.hostLink()) {
		errs = append(errs, ipBatch(ctx, "", "link del "+n.hostLink()))
	}
	namespaces, err := os.ReadDir(namespaceFolder)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		errs = append(errs, fmt.Errorf("list network namespaces: %w", err))
	}
	for _, e := range namespaces {
		if n.owns(e.Name()) {
			errs = append(errs, deleteNamespace(ctx, e.Name()))
		}
	}
	errs = append(errs, waitDetached(func(_, file string) bool { return n.holds(file) }))
	return errors.Join(errs...)
}
