package localgce

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sys/unix"
)

// inotifyInstances is what a master has open, with a kubelet and some pods: systemd 5, kubelet 7, kube-apiserver 5,
// controller-manager 4, scheduler 3, containerd and D-Bus 1 each. All VMs of the machine share one budget.
const inotifyInstances = 28

// missingForSystemd names what this machine lacks for VMs with systemd.
func (n names) missingForSystemd(conf Config) (missing []string) {
	if _, err := os.Stat(conf.Image); err != nil {
		missing = append(missing, fmt.Sprintf("the tree of a baked image (make image): %v", err))
	}
	missing = append(missing, n.missingHierarchies()...)
	const three = 3 // to which a project without VMs will come soon
	return append(missing, missingInotify(max(three, len(conf.VMs)))...)
}

// missingHierarchies names the cgroup controllers that systemd, the kubelet and runc need and that VMs cannot have.
// They are either all in version 1, beside a cgroup2 for systemd, or in version 2.
func (n names) missingHierarchies() (missing []string) {
	list, err := hierarchies()
	if err != nil {
		return []string{err.Error()}
	}
	for _, h := range list {
		path := filepath.Join(h.Root, n.fabric())
		if err := makeCgroup(path); err != nil {
			missing = append(missing, fmt.Sprintf("a writable cgroup hierarchy at %s: %v", h.Root, err))
		}
		_ = os.Remove(path) // a VM that is left over is for the sweep
	}
	var unified []byte
	if root, err := cgroupRoot(); err == nil {
		unified, _ = os.ReadFile(filepath.Join(root, "cgroup.controllers")) // a cgroup namespace's root has none
	}
	return append(missing, missingControllers(list, strings.Fields(string(unified)))...)
}

// missingControllers names what neither version 1 nor, where there is none of that, version 2 has.
func missingControllers(list []hierarchy, unified []string) (missing []string) {
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
				listed(there)))
		}
	}
	return missing
}

// missingInotify opens as many inotify instances as so many VMs will, all at once.
func missingInotify(vms int) []string {
	var open []int
	defer func() {
		for _, fd := range open {
			_ = unix.Close(fd)
		}
	}()
	want := vms * inotifyInstances
	for range want {
		fd, err := unix.InotifyInit1(unix.IN_CLOEXEC)
		if err != nil {
			return []string{fmt.Sprintf("inotify instances: %d systemd VMs need %d, and %d are free (sysctl -w "+
				"fs.inotify.max_user_instances=1024): %v", vms, want, len(open), err)}
		}
		open = append(open, fd)
	}
	return nil
}
