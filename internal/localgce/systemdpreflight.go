package localgce

import (
	"fmt"
	"os"

	"golang.org/x/sys/unix"

	"github.com/quorate/quorate/internal/localgce/cgroup"
	"github.com/quorate/quorate/internal/localgce/names"
)

// inotifyInstances is what a master has open, with a kubelet and some pods: systemd 5, kubelet 7, kube-apiserver 5,
// controller-manager 4, scheduler 3, containerd and D-Bus 1 each. All VMs of the machine share one budget.
const inotifyInstances = 28

// missingForSystemd names what this machine lacks for VMs with systemd.
func missingForSystemd(n names.Names, conf Config) (missing []string) {
	if _, err := os.Stat(conf.Image); err != nil {
		missing = append(missing, fmt.Sprintf("the tree of a baked image (make image): %v", err))
	}
	missing = append(missing, cgroup.MissingHierarchies(n.Fabric())...)
	const three = 3 // to which a project without VMs will come soon
	return append(missing, missingInotify(max(three, len(conf.VMs)))...)
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
