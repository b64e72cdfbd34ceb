package localgce

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/quorate/quorate/internal/localgce/fault"
)

// HostError says what a VM's former boot still has when its host is lost.
type HostError struct {
	// Disk is fenced, which is also what empty means, or copy. Fenced: the successor gets the disk, and from that
	// moment on what the former boot writes to it fails with EIO when it is synced; what it has in memory it still
	// reads. Copy: the successor gets a copy as of that moment with the same id, and the former boot goes on writing to
	// its own.
	Disk string
	// HideRecord takes the bucket away from the former boot, which else still reaches it, and nothing else of the
	// network.
	HideRecord bool
}

// HostError loses a VM's host as Google's control plane sees it: the same instance is started on another host, with its
// id, name, address and disk id and a new boot id, at once and not after 90 to 330 s. The host lives and only lost its
// way: the former boot runs on as NAME.1 for the commands, off the network, until it is killed; it cannot be started
// again. Its metadata server is its host's and answers.
func (p *Project) HostError(ctx context.Context, name string, h HostError) error {
	if !slices.Contains([]string{"", "fenced", "copy"}, h.Disk) {
		return fmt.Errorf("host error of %s: disk %q: fenced and copy are known", name, h.Disk)
	}
	return p.operate(name, statusRunning, func(v *vm) error {
		if v.Left > 0 {
			return fmt.Errorf("host error of %s: the cloud does not know it any more; it can be deleted", name)
		}
		return p.loseHost(ctx, v, h)
	})
}

// loseHost takes the network first, then the disk: what the former boot has acknowledged to others is on the
// successor's. v.ops is held.
func (p *Project) loseHost(ctx context.Context, v *vm, h HostError) error {
	next := p.successor(v)
	if err := p.fabric.Isolate(ctx, p.port(v)); err != nil {
		return fmt.Errorf("host error of %s: %w", v.Name, err)
	}
	disk, former := v.Disk, v.Disk
	err := error(nil)
	if !h.HideRecord {
		err = p.serveBucketTo(ctx, v)
	}
	switch {
	case err != nil:
	case h.Disk == "copy":
		disk.Image = imageFile(disk.Name)
		err = p.copyDisk(v, disk.Image)
	default:
		former.Image = imageFile(disk.Name) // the file is the successor's; the former boot has its device alone
		err = v.machine.disk.Fence()
	}
	if err != nil {
		return errors.Join(fmt.Errorf("host error of %s: %w", v.Name, err), p.fabric.Rejoin(ctx, p.port(v)))
	}
	return p.follow(ctx, v, next, func() {
		v.Lost, v.Disk = true, former
		next.Disk, next.ID, next.Created, next.Address, next.boots = disk, v.ID, v.Created, v.Address, v.boots
	})
}

// serveBucketTo gives a VM that is off the network the gateway's address for itself, and the bucket there. v.ops is
// held.
func (p *Project) serveBucketTo(ctx context.Context, v *vm) error {
	gateway := p.conf.gateway()
	if err := p.fabric.AddAddress(ctx, p.port(v), gateway); err != nil {
		return err
	}
	return p.serveIn(v, v.machine, fmt.Sprintf("%s:%d", gateway, servicesPort), fault.Storage, p.buckets)
}
