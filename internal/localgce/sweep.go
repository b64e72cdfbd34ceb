package localgce

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

// Sweep removes every trace of the project of a state folder from the machine, whether its process lives, hangs or died: processes,
// namespaces, links, routes, loop devices, cgroups. The files in the folder stay.
func Sweep(ctx context.Context, state string) error {
	abs, err := filepath.Abs(state)
	if err != nil {
		return fmt.Errorf("state folder %s: %w", state, err)
	}
	n := namesFor(abs)
	if exists(n.lockFile()) {
		lock, err := lockState(n)
		if errors.Is(err, ErrUp) {
			lock, err = n.killOwner(ctx)
		}
		if err != nil {
			return err
		}
		defer lock.Close()
	}
	return n.sweep(ctx)
}

// killOwner kills the project's process, which holds the lock but was not heard, and takes the lock.
func (n names) killOwner(ctx context.Context) (*os.File, error) {
	s, err := readSaved(n)
	if err != nil {
		return nil, err
	}
	if s.PID > 1 && s.Started != "" && startTime(s.PID) == s.Started {
		if err := syscall.Kill(s.PID, syscall.SIGKILL); err != nil {
			return nil, fmt.Errorf("kill the project's process %d: %w", s.PID, err)
		}
	}
	for {
		lock, err := lockState(n)
		if !errors.Is(err, ErrUp) {
			return lock, err
		}
		select {
		case <-ctx.Done():
			return nil, fmt.Errorf("wait for the project's process %d to end: %w", s.PID, ctx.Err())
		case <-time.After(10 * time.Millisecond):
		}
	}
}

// sweep removes what carries the project's names. The caller holds the lock, if there is a folder to lock.
func (n names) sweep(ctx context.Context) error {
	var errs []error
	if root, err := cgroupRoot(); err == nil {
		errs = append(errs, removeCgroup(filepath.Join(root, n.fabric()))) // with it all processes of all VMs
	}
	if exists(filepath.Join("/sys/class/net", n.hostLink())) {
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
	prefix := n.disks() + string(filepath.Separator)
	errs = append(errs, waitDetached(func(_, file string) bool { return strings.HasPrefix(file, prefix) }))
	return errors.Join(errs...)
}
