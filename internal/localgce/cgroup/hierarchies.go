package cgroup

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// Hierarchy is one of the machine's cgroup hierarchies of version 1: a controller's, or systemd's without one.
type Hierarchy struct {
	// Root is where the machine has it; the base name is what programs call it.
	Root string
	// Option is what it is mounted by: controllers, or name=systemd.
	Option string
}

// Hierarchies are those of version 1. A machine that has cgroup2 alone has none.
func Hierarchies() ([]Hierarchy, error) {
	mounts, err := os.ReadFile("/proc/self/mounts")
	if err != nil {
		return nil, fmt.Errorf("find the cgroup hierarchies: %w", err)
	}
	return hierarchiesIn(string(mounts)), nil
}

// hierarchiesIn reads them from the kernel's table of mounts.
func hierarchiesIn(mounts string) (list []Hierarchy) {
	common := []string{"rw", "ro", "relatime", "noatime", "nosuid", "nodev", "noexec", "xattr", "clone_children"}
	for line := range strings.Lines(mounts) {
		f := strings.Fields(line)
		if len(f) < 4 || f[2] != "cgroup" {
			continue
		}
		own := slices.DeleteFunc(strings.Split(f[3], ","), func(o string) bool {
			return slices.Contains(common, o) || strings.HasPrefix(o, "release_agent=")
		})
		h := Hierarchy{f[1], strings.Join(own, ",")}
		if !slices.Contains(list, h) { // what is mounted over is in the table too
			list = append(list, h)
		}
	}
	return list
}

// MakeV1 makes a folder two levels below a hierarchy's root, as each VM has one. An empty cpuset would let nobody
// in, so it is handed down.
func MakeV1(path string) error {
	for _, folder := range []string{filepath.Dir(path), path} {
		if err := Make(folder); err != nil {
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

// V1 are a VM's folders in the hierarchies of version 1, or with an empty slot the project's above them.
func V1(project, slot string) (folders []string) {
	list, _ := Hierarchies() // who cannot read its mounts has made none
	for _, h := range list {
		folders = append(folders, filepath.Join(h.Root, project, slot))
	}
	return folders
}

// ThawV1 thaws whatever is frozen in these cgroups or below: other than in version 2, it could not be killed.
func ThawV1(folders []string) {
	for _, folder := range folders {
		_ = filepath.WalkDir(folder, func(path string, d fs.DirEntry, err error) error {
			if err == nil && d.Name() == "freezer.state" {
				_ = os.WriteFile(path, []byte("THAWED"), 0) // a root has the file too, and refuses
			}
			return nil // what goes meanwhile is gone
		})
	}
}

// RemoveV1 removes cgroups of version 1, whose processes have been killed in version 2.
func RemoveV1(folders []string) error {
	var errs []error
	for _, folder := range folders {
		errs = append(errs, Remove(folder))
	}
	return errors.Join(errs...)
}

// MissingHierarchies names the cgroup controllers that systemd, the kubelet and runc need and that VMs cannot have.
// They are either all in version 1, beside a cgroup2 for systemd, or in version 2.
func MissingHierarchies(project string) (missing []string) {
	list, err := Hierarchies()
	if err != nil {
		return []string{err.Error()}
	}
	for _, h := range list {
		path := filepath.Join(h.Root, project)
		if err := Make(path); err != nil {
			missing = append(missing, fmt.Sprintf("a writable cgroup hierarchy at %s: %v", h.Root, err))
		}
		_ = os.Remove(path) // a VM that is left over is for the sweep
	}
	var unified []byte
	if root, err := Root(); err == nil {
		unified, _ = os.ReadFile(filepath.Join(root, "cgroup.controllers")) // a cgroup namespace's root has none
	}
	return append(missing, missingControllers(list, strings.Fields(string(unified)))...)
}

// missingControllers names what neither version 1 nor, where there is none of that, version 2 has.
func missingControllers(list []Hierarchy, unified []string) (missing []string) {
	wanted, there := []string{"cpu", "cpuset", "memory", "pids"}, unified
	if len(list) > 0 {
		wanted, there = append(wanted, "cpuacct", "devices", "freezer", "name=systemd"), nil
	}
	for _, h := range list {
		there = append(there, strings.Split(h.Option, ",")...)
	}
	for _, w := range wanted {
		if !slices.Contains(there, w) {
			missing = append(missing, fmt.Sprintf("cgroup controller %s, for systemd VMs (mounted: %s)", w,
				cmp.Or(strings.Join(there, ", "), "none")))
		}
	}
	return missing
}
