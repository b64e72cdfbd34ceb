package localgce

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"syscall"

	"github.com/quorate/quorate/internal/localgce/disk"
	"github.com/quorate/quorate/internal/localgce/guest"
)

// Kind is what a project's VMs are.
type Kind string

// The kinds.
const (
	// ProcessVMs have localgce's own pid 1 and the machine's tree, and run one agent. They need no image.
	ProcessVMs Kind = "process"
	// SystemdVMs boot the tree of a baked image: systemd is pid 1, and it starts the image's units.
	SystemdVMs Kind = "systemd"
)

// BootImage makes a project's VMs boot the root.tar of a baked image. It is unpacked into the user's cache, or into the
// folder that QUORATE_CACHE names: beside what else of the builds is kept there.
func (c *Config) BootImage(root string) error {
	image, err := filepath.Abs(root)
	if err != nil {
		return fmt.Errorf("image %s: %w", root, err)
	}
	cache := os.Getenv("QUORATE_CACHE")
	if cache == "" {
		user, err := os.UserCacheDir()
		if err != nil {
			return fmt.Errorf("find the cache, which QUORATE_CACHE may name: %w", err)
		}
		cache = filepath.Join(user, "quorate")
	}
	c.Kind, c.Image, c.Cache = SystemdVMs, image, filepath.Join(cache, "trees")
	return nil
}

// KubeletUnits are the units of the image that have to do with pods, for Config.Masked of masters without a kubelet.
func KubeletUnits() []string {
	return []string{"kubelet.service", "containerd.service", "quorate-pause-image.timer", "quorate-addon-images.timer"}
}

// initSystem is a VM's pid 1 as the project deals with it, and all that the kinds differ in outside of the VM. Inside,
// guest/boot.go boots the one and guest/systemdboot.go the other.
type initSystem interface {
	// ensureDisk makes the data disk as the VM wants to find it, if it is absent.
	ensureDisk(ctx context.Context, image string, size int64) error
	// prepare acquires what the boot needs besides, and says so in its specification. release gives it back when the VM
	// is dead, or was never started.
	prepare(s *guest.Spec) error
	release()
	// follow tells of the agent's status whenever it changes, first when the VM has booted, and returns when the VM is
	// dead. reports is what is written by the stages of the boot.
	follow(m *machine, reports io.Reader, tell func(guest.Status))
	// stopSignal asks for an orderly end.
	stopSignal() syscall.Signal
	// freezing is called before the VM's processes are frozen, thawed when they go on.
	freezing(m *machine) error
	thawed(m *machine)
}

// ownInit is localgce's own pid 1: guest/unit.go.
type ownInit struct{}

// ensureDisk leaves nothing to do to our own init.
func (ownInit) ensureDisk(ctx context.Context, image string, size int64) error {
	return disk.Ensure(ctx, image, size)
}

func (ownInit) prepare(*guest.Spec) error  { return nil }
func (ownInit) release()                   {}
func (ownInit) stopSignal() syscall.Signal { return syscall.SIGTERM }
func (ownInit) freezing(*machine) error    { return nil }
func (ownInit) thawed(*machine)            {}

// follow reads what init reports: a value for each change, until it is dead.
func (ownInit) follow(m *machine, reports io.Reader, tell func(guest.Status)) {
	for decoder := json.NewDecoder(reports); ; {
		var s guest.Status
		if decoder.Decode(&s) != nil {
			<-m.done
			return
		}
		tell(s)
	}
}

// newInit is the pid 1 of a VM that is going to boot.
func (p *Project) newInit() initSystem {
	if p.conf.Kind == SystemdVMs {
		return &systemdInit{project: p}
	}
	return ownInit{}
}
