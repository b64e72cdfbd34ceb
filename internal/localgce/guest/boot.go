// Package guest is what runs inside of a VM: the stages of its boot, pid 1 with its one agent, and what a VM with
// systemd needs beside its image. A project hands it a Spec, and reads Status from it.
package guest

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"

	"golang.org/x/sys/unix"

	"github.com/quorate/quorate/internal/localgce/host"
	"github.com/quorate/quorate/internal/localgce/instance"
)

// A VM's pid 1 starts as stage one (boot): it builds the root file system in its own mount namespace, pivots into it
// and executes the same program again as stage two (init), whose threads then all have the new namespaces. The program
// knows its stage by its argument zero.
const (
	bootStage = "localgce-boot"
	initStage = "localgce-init"
)

// The file descriptors that both stages find open.
const (
	specFD   = 3 // the boot's specification, in memory
	reportFD = 4 // Status as JSON lines, to the project
)

// RunInitIfAsked must be the first call of main, and of TestMain in tests, of every program that calls Start: the
// project starts that program again as pid 1 of its VMs. There, it does not return.
func RunInitIfAsked() {
	switch os.Args[0] {
	case bootStage:
		os.Exit(stage(boot))
	case initStage:
		os.Exit(stage(runInit))
	case guardStage:
		runGuard()
	}
}

func stage(f func(Spec) error) int {
	spec, err := readSpec()
	if err == nil {
		err = f(spec)
	}
	if err == nil {
		return 0
	}
	fmt.Fprintln(os.Stderr, os.Args[0]+": "+err.Error())
	_ = json.NewEncoder(os.NewFile(reportFD, "report")).Encode(Status{Error: err.Error()})
	return 1
}

// Spec is all that a boot needs to know. Paths are the host's unless said otherwise.
type Spec struct {
	Name, Zone string
	// Slot names what the VM has on the machine.
	Slot string
	// BootID stands in for the kernel's random boot_id, which all VMs of the machine share.
	BootID, MachineID string
	// Scratch is an empty folder for the boot disk's file system.
	Scratch string
	// Loop is the data disk.
	Loop string
	// Log is what the VM prints; Logs becomes /var/log/quorate.
	Log, Logs string
	Binds     []Bind
	Agent     Agent
	// Systemd is what a boot of systemd takes; nil where pid 1 is our own.
	Systemd *SystemdSpec
}

// readSpec reads a duplicate: an os.File of the descriptor itself would close it when it is collected, and stage two
// would not find it.
func readSpec() (spec Spec, err error) {
	fd, err := unix.FcntlInt(specFD, unix.F_DUPFD_CLOEXEC, 0)
	if err == nil {
		f := os.NewFile(uintptr(fd), "spec")
		defer f.Close()
		if _, err = f.Seek(0, io.SeekStart); err == nil {
			err = json.NewDecoder(f).Decode(&spec)
		}
	}
	if err != nil {
		err = fmt.Errorf("read boot specification: %w", err)
	}
	return spec, err
}

// boot is stage one.
func boot(s Spec) error {
	if s.Systemd != nil {
		return bootSystemd(s)
	}
	// A cgroup namespace is a thread's: only the exec at the end makes it the whole process's. On another thread the
	// mount of cgroup2 would show the host's.
	runtime.LockOSThread()
	if err := s.unshare(); err != nil {
		return err
	}
	root, err := s.mountRoot("/") // the machine's own tree
	if err == nil {
		err = errors.Join(s.mountKernel(root), s.mountDevices(root))
	}
	if err == nil {
		err = errors.Join(s.writeFiles(root), s.bindBootID(root), s.mountData(root), s.bindAll(root))
	}
	if err == nil {
		err = host.Pivot(root)
	}
	if err != nil {
		return err
	}
	return fmt.Errorf("execute init: %w", unix.Exec("/proc/self/exe", []string{initStage},
		[]string{"PATH=" + SearchPath}))
}

// unshare makes the namespaces that a process makes for itself, and gives them the VM's name.
func (s Spec) unshare() error {
	if err := unix.Unshare(unix.CLONE_NEWCGROUP); err != nil {
		return fmt.Errorf("make cgroup namespace: %w", err)
	}
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
		return fmt.Errorf("make mounts private: %w", err)
	}
	if err := unix.Sethostname([]byte(s.Name)); err != nil {
		return fmt.Errorf("set host name: %w", err)
	}
	return nil
}

// mountRoot makes the boot disk: a tree, with a file system in memory above it that is gone with the boot. File systems
// that are mounted in the tree are not in it; binds show what is needed of them.
func (s Spec) mountRoot(lower string) (string, error) {
	if err := host.Mount("tmpfs", s.Scratch, "tmpfs", 0, "mode=755"); err != nil {
		return "", err
	}
	upper, work, root := filepath.Join(s.Scratch, "upper"), filepath.Join(s.Scratch, "work"),
		filepath.Join(s.Scratch, "root")
	if err := errors.Join(os.Mkdir(upper, 0o755), os.Mkdir(work, 0o755), os.Mkdir(root, 0o755)); err != nil {
		return "", err
	}
	return root, host.Mount("overlay", root, "overlay", 0, "lowerdir="+lower+",upperdir="+upper+",workdir="+work)
}

// mountKernel mounts what the kernel offers. /tmp is empty: the host's is nobody's business.
func (s Spec) mountKernel(root string) error {
	const safe = unix.MS_NOSUID | unix.MS_NODEV | unix.MS_NOEXEC
	return errors.Join(
		host.Mount("proc", root+"/proc", "proc", safe, ""),
		host.Mount("sysfs", root+"/sys", "sysfs", safe|unix.MS_RDONLY, ""),
		host.Mount("cgroup2", root+"/sys/fs/cgroup", "cgroup2", safe, ""),
		host.Mount("tmpfs", root+"/run", "tmpfs", unix.MS_NOSUID|unix.MS_NODEV, "mode=755"),
		host.Mount("tmpfs", root+"/tmp", "tmpfs", unix.MS_NOSUID|unix.MS_NODEV, "mode=1777"),
	)
}

func (s Spec) mountDevices(root string) error {
	dev := root + "/dev"
	if err := host.Mount("tmpfs", dev, "tmpfs", unix.MS_NOSUID, "mode=755"); err != nil {
		return err
	}
	for _, name := range []string{"null", "zero", "full", "random", "urandom", "tty"} {
		if err := host.Bind("/dev/"+name, dev+"/"+name, false); err != nil {
			return err
		}
	}
	return errors.Join(
		host.Mount("devpts", dev+"/pts", "devpts", unix.MS_NOSUID|unix.MS_NOEXEC, "newinstance,ptmxmode=0666,mode=620"),
		host.Mount("tmpfs", dev+"/shm", "tmpfs", unix.MS_NOSUID|unix.MS_NODEV, "mode=1777"),
		os.Symlink("pts/ptmx", dev+"/ptmx"),
		os.Symlink("/proc/self/fd", dev+"/fd"),
		os.Symlink("/proc/self/fd/0", dev+"/stdin"),
		os.Symlink("/proc/self/fd/1", dev+"/stdout"),
		os.Symlink("/proc/self/fd/2", dev+"/stderr"),
		host.Bind(s.Loop, dev+"/sdb", false),
		os.MkdirAll(dev+"/disk/by-id", 0o755),
		os.Symlink("../../sdb", dev+"/disk/by-id/google-"+instance.DeviceName),
	)
}

// mountData mounts the data disk.
func (s Spec) mountData(root string) error {
	if err := host.Mount(s.Loop, filepath.Join(root, instance.MountPoint), "ext4", 0, "noinit_itable"); err != nil {
		return fmt.Errorf("data disk: %w", err)
	}
	return nil
}

// bindAll mounts what the project shows to the VM.
func (s Spec) bindAll(root string) error {
	if err := host.Bind(s.Logs, root+"/var/log/quorate", false); err != nil {
		return err
	}
	for _, b := range s.Binds {
		if err := host.Bind(b.Host, filepath.Join(root, b.Guest), b.ReadOnly); err != nil {
			return err
		}
	}
	return nil
}

// writeFiles gives the VM its identity. There is no name server: a lookup of an unknown name fails at once, on a closed
// port.
func (s Spec) writeFiles(root string) error {
	files := map[string]string{
		root + "/etc/hostname":   s.Name + "\n",
		root + "/etc/machine-id": s.MachineID + "\n",
		root + "/etc/hosts": "127.0.0.1 localhost\n::1 localhost ip6-localhost ip6-loopback\n" +
			instance.MetadataAddress + " metadata.google.internal metadata # Added by Google\n",
		root + "/etc/resolv.conf": "search " + s.domains() + "\nnameserver " + instance.MetadataAddress + "\n",
	}
	for path, text := range files {
		_ = os.Remove(path) // it may be a link into another tree
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			return fmt.Errorf("write the VM's files: %w", err)
		}
	}
	return nil
}

// domains are where a VM looks for names, as Google's DHCP says.
func (s Spec) domains() string {
	domain := "c." + instance.ProjectID + ".internal"
	return s.Zone + "." + domain + " " + domain + " google.internal"
}

// bindBootID gives the boot an id of its own: the kernel's is the machine's.
func (s Spec) bindBootID(root string) error {
	path := root + "/run/boot_id"
	if err := os.WriteFile(path, []byte(s.BootID+"\n"), 0o644); err != nil {
		return fmt.Errorf("write the VM's files: %w", err)
	}
	return host.Bind(path, root+"/proc/sys/kernel/random/boot_id", true)
}
