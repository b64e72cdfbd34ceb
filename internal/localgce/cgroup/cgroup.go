// Package cgroup makes, freezes and removes cgroups, in version 2 and beside it in version 1.
package cgroup

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/quorate/quorate/internal/localgce/host"
)

// Root is where the machine has cgroup2: /sys/fs/cgroup, or beside version 1 /sys/fs/cgroup/unified.
func Root() (string, error) {
	mounts, err := os.ReadFile("/proc/self/mounts")
	if err != nil {
		return "", fmt.Errorf("find the cgroup2 file system: %w", err)
	}
	for line := range strings.Lines(string(mounts)) {
		if f := strings.Fields(line); len(f) > 2 && f[2] == "cgroup2" {
			return f[1], nil
		}
	}
	return "", errors.New("find the cgroup2 file system: none is mounted")
}

// Make makes the folder.
func Make(path string) error {
	if err := os.MkdirAll(path, 0o755); err != nil {
		return fmt.Errorf("make cgroup: %w", err)
	}
	return nil
}

// Delegate makes the folder and marks it as systemd marks that of a unit with Delegate=yes: the agent divides it
// for its children.
func Delegate(path string) error {
	if err := Make(path); err != nil {
		return err
	}
	for _, mark := range []string{"trusted.delegate", "user.delegate"} {
		if err := unix.Setxattr(path, mark, []byte("1"), 0); err != nil {
			return fmt.Errorf("mark cgroup as delegated: %w", err)
		}
	}
	return nil
}

// HandDown enables, for the cgroups below path, every controller that path has; from then on no process may be in path
// itself. Controllers are a bonus, so errors are left alone: machines that still hold them in version 1 have none to
// give.
func HandDown(path string) {
	controllers, err := os.ReadFile(filepath.Join(path, "cgroup.controllers"))
	if err != nil {
		return
	}
	for _, c := range strings.Fields(string(controllers)) {
		_ = os.WriteFile(filepath.Join(path, "cgroup.subtree_control"), []byte("+"+c), 0o644)
	}
}

// Remove kills whoever is in the cgroup or below and removes it. Absent is fine. The kernel needs a moment
// between a process's death and a folder that can go.
func Remove(path string) error {
	deadline := time.Now().Add(10 * time.Second)
	for {
		if _, err := os.Stat(path); errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		_ = os.WriteFile(filepath.Join(path, "cgroup.freeze"), []byte("0"), 0o644)
		_ = os.WriteFile(filepath.Join(path, "cgroup.kill"), []byte("1"), 0o644)
		err := removeFolders(path)
		if err == nil {
			return nil
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("remove cgroup: %w", err)
		}
		time.Sleep(5 * time.Millisecond)
	}
}

// removeFolders removes the cgroup's folders, the deepest first: their files cannot be removed and need not be.
func removeFolders(path string) error {
	var folders []string
	err := filepath.WalkDir(path, func(p string, d fs.DirEntry, err error) error {
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		if err == nil && d.IsDir() {
			folders = append(folders, p)
		}
		return err
	})
	slices.Reverse(folders)
	for _, f := range folders {
		if e := os.Remove(f); e != nil && !errors.Is(e, fs.ErrNotExist) {
			err = e
		}
	}
	return err
}

// Try makes a cgroup and looks for what a sweep kills with.
func Try(name string) error {
	root, err := Root()
	if err != nil {
		return err
	}
	path := filepath.Join(root, name)
	if err := os.Mkdir(path, 0o755); err != nil && !errors.Is(err, os.ErrExist) {
		return err
	}
	defer os.Remove(path)
	if !host.Exists(filepath.Join(path, "cgroup.kill")) {
		return errors.New("cgroup.kill is absent: Linux 5.14 or newer is needed")
	}
	return nil
}
