package localgce

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sys/unix"
)

// ErrNotRoot is returned by Start where the process may not make namespaces.
var ErrNotRoot = errors.New("a project needs root: it makes network namespaces, mounts and loop devices; run it " +
	"with sudo")

// PreflightError names everything that the machine lacks.
type PreflightError struct{ Missing []string }

// Error implements error.
func (e *PreflightError) Error() string {
	return "this machine lacks what a local GCE project needs:\n  - " + strings.Join(e.Missing, "\n  - ")
}

// preflight tries each thing that a project needs, with the project's names, and names each one that is missing and
// what to do. The caller holds the lock.
func (n names) preflight(ctx context.Context, conf Config) error {
	missing := missingPrograms()
	missing = append(missing, missingFileSystems("overlay", "tmpfs", "ext4", "cgroup2")...)
	if _, err := exec.LookPath("ip"); err == nil {
		missing = append(missing, n.missingNetwork(ctx)...)
	}
	missing = append(missing, missingKernel(n)...)
	if conf.Kind == SystemdVMs {
		missing = append(missing, n.missingForSystemd(conf)...)
	}
	if len(missing) > 0 {
		return &PreflightError{Missing: missing}
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

func missingFileSystems(wanted ...string) (missing []string) {
	for _, name := range wanted {
		if !hasFileSystem(name) && exec.Command("modprobe", name).Run() != nil && !hasFileSystem(name) {
			missing = append(missing, fmt.Sprintf("file system %s in the kernel (modprobe %s, or another kernel)", name,
				name))
		}
	}
	return missing
}

func hasFileSystem(name string) bool {
	b, err := os.ReadFile("/proc/filesystems")
	return err == nil && slices.Contains(strings.Fields(string(b)), name)
}

// missingNetwork makes one of everything in a namespace of its own.
func (n names) missingNetwork(ctx context.Context) []string {
	ns := n.vm("preflight")
	_ = deleteNamespace(ctx, ns)
	if _, err := run(ctx, "ip", "netns", "add", ns); err != nil {
		return []string{fmt.Sprintf("network namespaces (in a container: --privileged): %v", err)}
	}
	defer func() { _ = deleteNamespace(context.WithoutCancel(ctx), ns) }()
	var missing []string
	try := func(what string, err error) {
		if err != nil {
			missing = append(missing, fmt.Sprintf("%s: %v", what, err))
		}
	}
	try("kernel module veth (modprobe veth)", ipBatch(ctx, ns, "link add name x0 type veth peer name x1",
		"addr add 192.0.2.1/24 dev x0", "link set x0 up", "link set x1 up"))
	try("kernel module bridge (modprobe bridge)", ipBatch(ctx, ns, "link add name br0 type bridge"))
	if len(missing) == 0 {
		try("resilient next-hop groups (Linux 5.13, iproute2 5.12 or newer)", ipBatch(ctx, ns,
			"nexthop add id 1 via 192.0.2.2 dev x0", "nexthop add id 2 group 1 type resilient buckets 8 idle_timer 1"))
	}
	if _, err := exec.LookPath("nft"); err == nil {
		try("nft's bridge and ip families (modprobe nf_tables)", nft(ctx, ns, filterTables))
	}
	return missing
}

func missingKernel(n names) (missing []string) {
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
	if err := tryCgroup(n.vm("preflight")); err != nil {
		missing = append(missing, fmt.Sprintf("a writable cgroup2 file system (mount -t cgroup2 cgroup2 "+
			"/sys/fs/cgroup): %v", err))
	}
	return missing
}

// tryCgroup makes a cgroup and looks for what a sweep kills with.
func tryCgroup(name string) error {
	root, err := cgroupRoot()
	if err != nil {
		return err
	}
	path := filepath.Join(root, name)
	if err := os.Mkdir(path, 0o755); err != nil && !errors.Is(err, os.ErrExist) {
		return err
	}
	defer os.Remove(path)
	if !exists(filepath.Join(path, "cgroup.kill")) {
		return errors.New("cgroup.kill is absent: Linux 5.14 or newer is needed")
	}
	return nil
}

// tryUnshare makes the namespaces on a thread that ends with the attempt.
func tryUnshare() error {
	return onOwnThread(func() error {
		return unix.Unshare(
			unix.CLONE_NEWNS | unix.CLONE_NEWPID | unix.CLONE_NEWUTS | unix.CLONE_NEWIPC | unix.CLONE_NEWCGROUP)
	})
}
