package localgce

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/quorate/quorate/internal/localgce/disk"
)

// TearDisk cuts a VM's power and loses what was not synced: the processes stand still, the file system writes nothing
// more, the VM is off.
func (p *Project) TearDisk(ctx context.Context, name string) error {
	return p.operate(name, statusRunning, func(v *vm) error {
		root, err := os.Open(p.dataFolder(v))
		if err != nil {
			return fmt.Errorf("tear the disk of %s: %w", name, err)
		}
		if err = p.stopProcesses(ctx, v); err == nil {
			err = disk.Shut(root)
		}
		root.Close()
		if err != nil {
			return errors.Join(fmt.Errorf("tear the disk of %s: %w", name, err), p.setFrozen(ctx, v, false))
		}
		return p.powerOff(ctx, v)
	})
}

// TearDiskByCopy cuts a VM's power and leaves on its disk what had been written to it at that very moment: a copy of
// the disk takes its place, made at one instant while the VM's kernel still writes. A file system in the middle of a
// sync is cut in its middle, which TearDisk's is not. Nothing is lost that a program knew to be synced: the network
// goes and the processes stand before the copy, and they have no time to end what they are in. It needs Config.Reflink.
func (p *Project) TearDiskByCopy(ctx context.Context, name string) error {
	if !p.depot.Clones {
		return fmt.Errorf("tear the disk of %s by a copy: %w (Config.Reflink, up --reflink)", name, disk.ErrNoReflink)
	}
	return p.operate(name, statusRunning, func(v *vm) error {
		torn, frozen := v.Disk, v.frozen
		torn.Image = imageFile(torn.Name)
		err := p.setFrozen(ctx, v, true)
		if err == nil {
			time.Sleep(standStill)
			err = disk.Clone(p.image(v.Disk.Image), p.image(torn.Image))
		}
		if err != nil {
			return errors.Join(fmt.Errorf("tear the disk of %s by a copy: %w", name, err), p.setFrozen(ctx, v, frozen))
		}
		if err := p.powerOff(ctx, v); err != nil {
			return errors.Join(err, os.Remove(p.image(torn.Image)))
		}
		return p.putDisk(v, torn)
	})
}

// standStill is how long what runs in user mode takes, at most, until it stands. What waits for the disk goes on, and
// stands when it has ended.
const standStill = time.Millisecond

// stopProcesses freezes a VM and waits a moment for all its processes to stand: one that waits for the disk does not,
// nor does it matter.
func (p *Project) stopProcesses(ctx context.Context, v *vm) error {
	if err := p.setFrozen(ctx, v, true); err != nil {
		return err
	}
	events := filepath.Join(p.vmCgroup(v.Slot), "cgroup.events")
	for range 100 {
		if b, err := os.ReadFile(events); err != nil || strings.Contains(string(b), "frozen 1") {
			return err
		}
		time.Sleep(time.Millisecond)
	}
	return nil
}
