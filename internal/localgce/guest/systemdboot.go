package guest

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/quorate/quorate/internal/localgce/cgroup"
	"github.com/quorate/quorate/internal/localgce/host"
)

// guardStage is this program as what ends a VM of systemd's when the project's process has died.
const guardStage = "localgce-guard"

// SystemdSpec is what a boot of systemd needs to know besides.
type SystemdSpec struct {
	// Tree is the lower layer of the boot disk.
	Tree string
	// Console becomes /dev/console.
	Console string
	// Hierarchies are the machine's of version 1, and Cgroups the VM's folders in them, in the same order.
	Hierarchies []cgroup.Hierarchy
	Cgroups     []string
	// Masked are units of the image that stay off.
	Masked []string
}

// bootSystemd is stage one of a VM whose pid 1 becomes systemd.
func bootSystemd(s Spec) error {
	runtime.LockOSThread() // a cgroup namespace is a thread's until it executes something
	for _, folder := range s.Systemd.Cgroups {
		// before the namespace: what it is in then is the namespace's root
		if err := os.WriteFile(filepath.Join(folder, "cgroup.procs"), []byte("0"), 0o644); err != nil {
			return fmt.Errorf("enter cgroup: %w", err)
		}
	}
	if err := s.unshare(); err != nil {
		return err
	}
	root, err := s.mountRoot(s.Systemd.Tree)
	for _, step := range []func(string) error{
		s.mountSystemdKernel, s.mountDevices, s.mountConsole, s.bindBootID, s.mountState, s.bindAll, s.writeImageFiles,
		host.Pivot,
	} {
		if err == nil {
			err = step(root)
		}
	}
	if err == nil {
		// systemd does it only where it has a kernel of its own, and the kubelet needs it for volumes
		err = unix.Mount("", "/", "", unix.MS_REC|unix.MS_SHARED, "")
	}
	if err == nil {
		err = startGuard()
	}
	if err != nil {
		return err
	}
	const program = "/lib/systemd/systemd"
	return fmt.Errorf("execute systemd: %w", unix.Exec(program,
		[]string{program, "--system", "--show-status=auto", "--log-target=journal"},
		// systemd finds no container that it knows, and does what fits all: units for real machines are left out
		[]string{"PATH=" + SearchPath, "container=localgce", "SYSTEMD_COLORS=0"}))
}

// mountSystemdKernel mounts what the kernel offers. /sys is read-only, by which systemd knows that devices are not its
// own.
func (s Spec) mountSystemdKernel(root string) error {
	if err := s.mountKernel(root); err != nil {
		return err
	}
	return errors.Join(s.mountHierarchies(root+"/sys/fs/cgroup"), s.guardSysctls(root))
}

// mountHierarchies shows the machine's layout. cgroup2 alone is there already. Beside version 1 it goes where systemd
// looks for it in its hybrid layout: systemd tracks units in it, and the controllers are in version 1, as runc wants
// them.
func (s Spec) mountHierarchies(at string) error {
	const safe = unix.MS_NOSUID | unix.MS_NODEV | unix.MS_NOEXEC
	if len(s.Systemd.Hierarchies) == 0 {
		return nil
	}
	if err := unix.Unmount(at, 0); err != nil {
		return fmt.Errorf("make room for the cgroup hierarchies: %w", err)
	}
	err := errors.Join(host.Mount("tmpfs", at, "tmpfs", safe, "mode=755"),
		host.Mount("cgroup2", at+"/unified", "cgroup2", safe, ""))
	for _, h := range s.Systemd.Hierarchies {
		err = errors.Join(err, host.Mount("cgroup", filepath.Join(at, filepath.Base(h.Root)), "cgroup", safe, h.Option))
	}
	return errors.Join(err, unix.Mount("", at, "", unix.MS_REMOUNT|safe|unix.MS_RDONLY, "mode=755"))
}

// kubeletSysctls are those of the machine that a kubelet sets, or ends where it cannot.
var kubeletSysctls = []string{"vm/overcommit_memory", "vm/panic_on_oom", "kernel/panic", "kernel/panic_on_oops",
	"kernel/keys/root_maxkeys", "kernel/keys/root_maxbytes"}

// guardSysctls keeps the machine's settings from the VM: only those of the network, which is its own, can be written.
// Plain files of the VM's own take the place of those that a kubelet insists on.
func (s Spec) guardSysctls(root string) error {
	sys := root + "/proc/sys"
	err := errors.Join(
		unix.Mount(sys, sys, "", unix.MS_BIND|unix.MS_REC, ""),
		unix.Mount(sys+"/net", sys+"/net", "", unix.MS_BIND, ""),
		unix.Mount("", sys, "", unix.MS_BIND|unix.MS_REMOUNT|unix.MS_RDONLY, ""),
	)
	if trigger := root + "/proc/sysrq-trigger"; host.Exists(trigger) { // it would reboot the machine
		err = errors.Join(err, host.Bind(trigger, trigger, true))
	}
	for _, key := range kubeletSysctls {
		own := filepath.Join(s.Scratch, "sysctl."+strings.ReplaceAll(key, "/", "."))
		value, readErr := os.ReadFile(filepath.Join("/proc/sys", key))
		err = errors.Join(err, readErr, os.WriteFile(own, value, 0o644))
		if err == nil {
			err = host.Bind(own, filepath.Join(sys, key), false)
		}
	}
	if err != nil {
		return fmt.Errorf("keep the machine's sysctls: %w", err)
	}
	return nil
}

// mountConsole makes the VM's serial console. There is no kernel log: that of the machine is none of the VM's business,
// and the kubelet, which opens it for the kernel's words about memory, goes on without.
func (s Spec) mountConsole(root string) error {
	// A link would have systemd take /dev/null itself away from a unit that may not see the kernel's log.
	return errors.Join(host.Bind(s.Systemd.Console, root+"/dev/console", false),
		host.Bind("/dev/null", root+"/dev/kmsg", false))
}

// mountState puts containerd's and the kubelet's folders on the file system below the overlay: another overlay, as each
// container has one, cannot have its upper layer on this.
func (s Spec) mountState(root string) error {
	for _, name := range []string{"containerd", "kubelet"} {
		own := filepath.Join(s.Scratch, name)
		if err := os.Mkdir(own, 0o711); err != nil {
			return err
		}
		if err := host.Bind(own, filepath.Join(root, "var/lib", name), false); err != nil {
			return err
		}
	}
	return nil
}

// startGuard leaves a child behind that has standard input, whose other end the project's process holds. The child is
// not a unit's, so it lives as long as the VM.
func startGuard() error {
	unix.CloseOnExec(specFD)
	unix.CloseOnExec(reportFD)
	guard := &exec.Cmd{Path: "/proc/self/exe", Args: []string{guardStage}, Env: []string{"PATH=" + SearchPath},
		Dir:   "/",
		Stdin: os.Stdin, Stdout: os.Stdout, Stderr: os.Stderr}
	if err := guard.Start(); err != nil {
		return fmt.Errorf("start the guard: %w", err)
	}
	null, err := os.Open(os.DevNull)
	if err == nil {
		err = unix.Dup2(int(null.Fd()), 0) // or the guard would not be alone with it
	}
	if err != nil {
		return fmt.Errorf("let go of standard input: %w", err)
	}
	return nil
}

// runGuard cuts the VM's power when the project's process is gone.
func runGuard() {
	_ = os.WriteFile("/proc/self/comm", []byte(guardStage), 0) // for ps; the kernel would show "exe"
	<-hostGone()
	fmt.Fprintln(os.Stderr, guardStage+": the project's process is gone: power off")
	// of a pid namespace: the kernel kills its pid 1, and with it all
	fmt.Fprintln(os.Stderr, guardStage+":", unix.Reboot(unix.LINUX_REBOOT_CMD_POWER_OFF))
	os.Exit(1)
}
