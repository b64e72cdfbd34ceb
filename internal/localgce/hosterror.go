package localgce

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"golang.org/x/sys/unix"
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
	if err := p.fabric.isolate(ctx, v.record); err != nil {
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
		err = v.machine.disk.fence()
	}
	if err != nil {
		return errors.Join(fmt.Errorf("host error of %s: %w", v.Name, err), p.fabric.rejoin(ctx, v.record))
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
	if err := ipBatch(ctx, p.names.vm(v.Slot), fmt.Sprintf("addr add %s/32 dev lo", gateway)); err != nil {
		return err
	}
	return p.serveIn(v, v.machine, fmt.Sprintf("%s:%d", gateway, servicesPort), Storage, p.buckets)
}

// isolate takes a VM's link off the bridge for good: nobody hears it and it hears nobody, its address is free for its
// successor, and its kernel sees a link that is up.
func (f fabric) isolate(ctx context.Context, v record) error {
	return ipBatch(ctx, f.names.fabric(), fmt.Sprintf("link set %s nomaster", port(v.Index)))
}

// rejoin undoes isolate.
func (f fabric) rejoin(ctx context.Context, v record) error {
	return ipBatch(ctx, f.names.fabric(), fmt.Sprintf("link set %s master br0", port(v.Index)))
}

// fence leaves one sector of the device, in which no file system has anything. All I/O behind it fails at once and for
// good, with EIO, while the device stays in use; where ext4 looks for a folder that is not in memory it says ENOMEM. A
// file system that is shut down (TearDisk) would also refuse what is in memory, which a fenced disk's does not.
func (l *loop) fence() error {
	info, err := unix.IoctlLoopGetStatus64(int(l.hold.Fd()))
	if err == nil {
		info.Sizelimit = 512
		err = unix.IoctlLoopSetStatus64(int(l.hold.Fd()), info)
	}
	if err != nil {
		return fmt.Errorf("fence %s: %w", l.device, err)
	}
	return nil
}
