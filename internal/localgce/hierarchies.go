package localgce

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// hierarchy is one of the machine's cgroup hierarchies of version 1: a controller's, or systemd's without one.
type hierarchy struct {
	// Root is where the machine has it; the base name is what programs call it.
	Root string
	// Option is what it is mounted by: controllers, or name=systemd.
	Option string
}

// hierarchies are those of version 1. A machine that has cgroup2 alone has none.
func hierarchies() ([]hierarchy, error) {
	mounts, err := os.ReadFile("/proc/self/mounts")
	if err != nil {
		return nil, fmt.Errorf("find the cgroup hierarchies: %w", err)
	}
	return hierarchiesIn(string(mounts)), nil
}

// hierarchiesIn reads them from the kernel's table of mounts.
func hierarchiesIn(mounts string) (list []hierarchy) {
	common := []string{"rw", "ro", "relatime", "noatime", "nosuid", "nodev", "noexec", "xattr", "clone_children"}
	for line := range strings.Lines(mounts) {
		f := strings.Fields(line)
		if len(f) < 4 || f[2] != "cgroup" {
			continue
		}
		own := slices.DeleteFunc(strings.Split(f[3], ","), func(o string) bool {
			return slices.Contains(common, o) || strings.HasPrefix(o, "release_agent=")
		})
		h := hierarchy{f[1], strings.Join(own, ",")}
		if !slices.Contains(list, h) { // what is mounted over is in the table too
			list = append(list, h)
		}
	}
	return list
}

// makeV1Cgroup makes a folder two levels below a hierarchy's root, as each VM has one. An empty cpuset would let nobody
// in, so it is handed down.
func makeV1Cgroup(path string) error {
	for _, folder := range []string{filepath.Dir(path), path} {
		if err := makeCgroup(folder); err != nil {
			return err
		}
		for _, file := range []string{"cpuset.cpus", "cpuset.mems"} {
			parents, err := os.ReadFile(filepath.Join(filepath.Dir(folder), file))
			if errors.Is(err, fs.ErrNotExist) {
				continue // another controller's
			}
			if err == nil {
				err = os.WriteFile(filepath.Join(folder, file), parents, 0o644)
			}
			if err != nil {
				return fmt.Errorf("hand down the processors to a cgroup: %w", err)
			}
		}
	}
	return nil
}

// v1Cgroups are a VM's folders in the hierarchies of version 1, or with an empty slot the project's above them.
func (n names) v1Cgroups(slot string) (folders []string) {
	list, _ := hierarchies() // who cannot read its mounts has made none
	for _, h := range list {
		folders = append(folders, filepath.Join(h.Root, n.fabric(), slot))
	}
	return folders
}

// thawV1 thaws whatever is frozen in these cgroups or below: other than in version 2, it could not be killed.
func thawV1(folders []string) {
	for _, folder := range folders {
		_ = filepath.WalkDir(folder, func(path string, d fs.DirEntry, err error) error {
			if err == nil && d.Name() == "freezer.state" {
				_ = os.WriteFile(path, []byte("THAWED"), 0) // a root has the file too, and refuses
			}
			return nil // what goes meanwhile is gone
		})
	}
}

// removeV1 removes cgroups of version 1, whose processes have been killed in version 2.
func removeV1(folders []string) error {
	var errs []error
	for _, folder := range folders {
		errs = append(errs, removeCgroup(folder))
	}
	return errors.Join(errs...)
}
