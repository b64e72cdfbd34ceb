package host

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"
)

// Pivot makes root the root of the mount namespace and drops the former one, which detaches every mount of the host
// from it.
func Pivot(root string) error {
	if err := os.Chdir(root); err != nil {
		return err
	}
	if err := unix.PivotRoot(".", "."); err != nil {
		return fmt.Errorf("pivot into %s: %w", root, err)
	}
	// The former root now lies above the new one at the same place.
	if err := unix.Unmount(".", unix.MNT_DETACH); err != nil {
		return fmt.Errorf("detach the host's root: %w", err)
	}
	return os.Chdir("/")
}

// Mount mounts a file system at a folder, which is made if absent.
func Mount(source, target, fstype string, flags uintptr, data string) error {
	if err := os.MkdirAll(target, 0o755); err != nil {
		return err
	}
	if err := unix.Mount(source, target, fstype, flags, data); err != nil {
		return fmt.Errorf("mount %s (%s) at %s: %w", source, fstype, target, err)
	}
	return nil
}

// Bind shows source, a file or a folder, at target, which is made if absent.
func Bind(source, target string, readOnly bool) error {
	info, err := os.Stat(source)
	if err != nil {
		return fmt.Errorf("bind to %s: %w", target, err)
	}
	if err := makeTarget(target, info.IsDir()); err != nil {
		return fmt.Errorf("bind %s: %w", source, err)
	}
	if err := unix.Mount(source, target, "", unix.MS_BIND, ""); err != nil {
		return fmt.Errorf("bind %s to %s: %w", source, target, err)
	}
	if !readOnly {
		return nil
	}
	if err := unix.Mount("", target, "", unix.MS_BIND|unix.MS_REMOUNT|unix.MS_RDONLY, ""); err != nil {
		return fmt.Errorf("make %s read-only: %w", target, err)
	}
	return nil
}

func makeTarget(target string, folder bool) error {
	if folder {
		return os.MkdirAll(target, 0o755)
	}
	if strings.HasPrefix(target, "/proc/") || Exists(target) {
		return nil
	}
	if err := os.MkdirAll(filepath.Dir(target), 0o755); err != nil {
		return err
	}
	f, err := os.Create(target)
	if err != nil {
		return err
	}
	return f.Close()
}

// Exists says whether there is anything at a path.
func Exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}
