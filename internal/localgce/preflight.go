package localgce

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"

	"golang.org/x/sys/unix"

	"github.com/quorate/quorate/internal/localgce/cgroup"
	"github.com/quorate/quorate/internal/localgce/host"
	"github.com/quorate/quorate/internal/localgce/names"
	"github.com/quorate/quorate/internal/localgce/network"
)

// ErrNotRoot is returned by Start where the process may not make namespaces.
var ErrNotRoot = errors.New("a project needs root: it makes network namespaces, mounts and loop devices; run it " +
	"with sudo")

// preflight tries each thing that a project needs, with the project's names, and names each one that is missing and
// what to do. The caller holds the lock.
func preflight(ctx context.Context, n names.Names, conf Config) error {
	missing := missingPrograms()
	missing = append(missing, host.MissingFileSystems("overlay", "tmpfs", "ext4", "cgroup2")...)
	if _, err := exec.LookPath("ip"); err == nil {
		missing = append(missing, network.Missing(ctx, n.VM("preflight"))...)
	}
	missing = append(missing, missingKernel(n)...)
	if conf.Kind == SystemdVMs {
		missing = append(missing, missingForSystemd(n, conf)...)
	}
	if len(missing) > 0 {
		return &host.PreflightError{Missing: missing}
	}
	return nil
}

func missingPrograms() (missing []string) {
	for _, p := range [][2]string{{"ip", "iproute2"}, {"nft", "nftables"}, {"nsenter", "util-linux"},
		{"blkid", "util-linux"}, {"mkfs.ext4", "e2fsprogs"}} {
		if _, err := exec.LookPath(p[0]); err != nil {
			missing = append(missing, fmt.Sprintf("program %s (apt-get install %s)", p[0], p[1]))
		}
	}
	return missing
}

func missingKernel(n names.Names) (missing []string) {
	if err := tryUnshare(); err != nil {
		missing = append(missing, fmt.Sprintf("pid, mount, uts, ipc and cgroup namespaces (in a container: "+
			"--privileged): %v", err))
	}
	if f, err := os.OpenFile("/dev/loop-control", os.O_RDWR, 0); err != nil {
		missing = append(missing, fmt.Sprintf("loop devices (modprobe loop; in a container: --privileged -v "+
			"/dev:/dev): %v", err))
	} else {
		f.Close()
	}
	if err := cgroup.Try(n.VM("preflight")); err != nil {
		missing = append(missing, fmt.Sprintf("a writable cgroup2 file system (mount -t cgroup2 cgroup2 "+
			"/sys/fs/cgroup): %v", err))
	}
	return missing
}

// tryUnshare makes the namespaces on a thread that ends with the attempt.
func tryUnshare() error {
	return host.OnOwnThread(func() error {
		return unix.Unshare(
			unix.CLONE_NEWNS | unix.CLONE_NEWPID | unix.CLONE_NEWUTS | unix.CLONE_NEWIPC | unix.CLONE_NEWCGROUP)
	})
}
