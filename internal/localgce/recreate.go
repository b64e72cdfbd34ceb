package localgce

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/netip"
	"os"
	"slices"
	"time"

	"github.com/quorate/quorate/internal/localgce/instance"
)

// Recreation says what a recreated VM keeps, and what becomes of the former one.
type Recreation struct {
	// Wipe replaces the data disk by a new empty one.
	Wipe bool
	// Address, if valid, is the VM's new address.
	Address netip.Addr
	// NewAddress gives the VM the next free address where Address is not given.
	NewAddress bool
	// LeaveRunning leaves the former VM running, as a host does that lost its way to Google's control plane: NAME.1,
	// NAME.2 ... for the commands, with its own address and disk, and unknown to the Compute API. Its successor needs
	// another address; unless wiped, its disk has the former disk's id and what was on it at that moment.
	LeaveRunning bool
}

// RecreateVM deletes a VM and creates one of the same name in the same zone: a new instance id, a fresh boot disk. It
// is started.
func (p *Project) RecreateVM(ctx context.Context, name string, r Recreation) error {
	return p.operate(name, "", func(v *vm) error {
		if v.Left > 0 {
			return fmt.Errorf("recreate %s: the cloud does not know it any more; it can be deleted", name)
		}
		if err := p.promiseAddress(v, r); err != nil {
			return fmt.Errorf("recreate %s: %w", name, err)
		}
		if r.LeaveRunning {
			return p.succeed(ctx, v, r)
		}
		return p.replace(ctx, v, r)
	})
}

// promiseAddress chooses the VM's next address, which nobody else gets meanwhile.
func (p *Project) promiseAddress(v *vm, r Recreation) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	v.promised = v.Address
	if r.LeaveRunning && v.status != statusRunning {
		return &StateError{Name: v.key(), Is: v.status, Wanted: statusRunning}
	}
	if r.LeaveRunning && !r.Address.IsValid() && !r.NewAddress {
		return errors.New("its former VM keeps its address while it is left running: a new address is needed")
	}
	if !r.Address.IsValid() && !r.NewAddress {
		return nil
	}
	except := v
	if r.LeaveRunning {
		except = nil
	}
	a, err := p.freeAddress(r.Address, except)
	if err == nil {
		v.promised = a
	}
	return err
}

// replace is a recreation of the usual kind. v.ops is held.
func (p *Project) replace(ctx context.Context, v *vm, r Recreation) error {
	if v.machine != nil {
		if err := p.powerOff(ctx, v); err != nil {
			return err
		}
	}
	former := v.Disk.Image
	p.mu.Lock()
	v.ID, v.Created, v.boots, v.Address = instance.NewID(), time.Now().UTC(), 0, v.promised
	if r.Wipe {
		v.Disk = p.newVolume(v.Name, v.Zone)
	}
	p.mu.Unlock()
	err := p.save()
	if err == nil && r.Wipe {
		err = p.forgetImage(former)
	}
	if err != nil {
		return err
	}
	return p.powerOn(ctx, v)
}

// succeed makes the VM one that was left running, and starts its successor. v.ops is held.
func (p *Project) succeed(ctx context.Context, v *vm, r Recreation) error {
	disk := p.newVolume(v.Name, v.Zone)
	if !r.Wipe {
		disk = v.Disk
		disk.Image = imageFile(disk.Name)
		if err := p.copyDisk(v, disk.Image); err != nil {
			return err
		}
	}
	next := p.successor(v)
	return p.follow(ctx, v, next, func() {
		former, left := v.Name, fmt.Sprintf("%s.%d", v.Name, p.ordinal(v.Name))
		next.Disk, next.ID, next.Created, next.Address = disk, instance.NewID(), time.Now().UTC(), v.promised
		v.promised = v.Address
		for i, d := range p.partitions { // what is broken is the former's way
			p.partitions[i] = direction{rename(d.From, former, left), rename(d.To, former, left)}
		}
	})
}

// successor is a VM that is off and has another's place, but nothing on the machine yet. v.ops is held.
func (p *Project) successor(v *vm) *vm {
	return &vm{status: statusTerminated, link: v.link, nameless: v.nameless}
}

// follow makes the VM one that was left running, and starts its successor; change says what else is different. v.ops is
// held.
func (p *Project) follow(ctx context.Context, v, next *vm, change func()) error {
	var former, left string
	if err := p.changeCuts(ctx, func() {
		former = v.key()
		p.index++
		next.record = v.record
		next.Index, next.Slot = p.index, fmt.Sprintf("%s.%d", v.Name, p.index)
		change()
		v.Left = p.ordinal(v.Name)
		left = v.key()
		p.vms = append(slices.Clone(p.vms), v)
		p.vms[slices.Index(p.vms, v)] = next // the first of the two
	}); err != nil {
		return err
	}
	if err := errors.Join(p.moveLogs(former, left), p.save()); err != nil {
		return err
	}
	p.conf.Log.Info("vm is left running", "vm", left, "successor", former)
	next.ops.Lock()
	defer next.ops.Unlock()
	return p.powerOn(ctx, next)
}

func rename(name, from, to string) string {
	if name == from {
		return to
	}
	return name
}

// ordinal is the next free one among the VMs of a name that were left running. p.mu is held.
func (p *Project) ordinal(name string) int {
	n := 1
	for _, v := range p.vms {
		if v.Name == name {
			n = max(n, v.Left+1)
		}
	}
	return n
}

// moveLogs makes room for the successor's logs: the former VM's files and mounts follow.
func (p *Project) moveLogs(former, left string) error {
	for from, to := range map[string]string{p.names.VMLog(former): p.names.VMLog(left),
		p.names.VMLogFolder(former): p.names.VMLogFolder(left)} {
		if err := os.RemoveAll(to); err != nil {
			return fmt.Errorf("move logs: %w", err)
		}
		if err := os.Rename(from, to); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("move logs: %w", err)
		}
	}
	return nil
}
