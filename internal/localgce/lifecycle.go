package localgce

import (
	"context"
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"time"

	"github.com/quorate/quorate/internal/localgce/instance"
)

// CreateVM creates a VM and starts it. Its data disk is a new empty one, or where a name is given the disk of that name
// in the VM's zone that no VM has. It has the attributes of the project and its own.
func (p *Project) CreateVM(ctx context.Context, c VMConfig, disk string) error {
	if faults := (Config{VMs: []VMConfig{c}, Subnet: p.conf.Subnet, Endpoint: p.conf.Endpoint}).vmFaults(); len(
		faults) > 0 {
		return fmt.Errorf("create vm: %w", faults[0])
	}
	p.mu.Lock()
	v, err := p.addVM(c, disk)
	p.mu.Unlock()
	if err != nil {
		return fmt.Errorf("create vm %s: %w", c.Name, err)
	}
	if err := p.save(); err != nil {
		return err
	}
	return p.StartVM(ctx, v.key())
}

// addVM makes the record of a new VM, or changes nothing. p.mu is held.
func (p *Project) addVM(c VMConfig, disk string) (*vm, error) {
	for _, v := range p.vms {
		if v.Name == c.Name {
			return nil, fmt.Errorf("there is one of that name: %s in %s", v.key(), v.Zone)
		}
	}
	address, err := p.freeAddress(c.Address, nil)
	if err != nil {
		return nil, err
	}
	data := p.newVolume(c.Name, c.Zone)
	switch i := p.diskNamed(disk, c.Zone); {
	case disk != "" && i < 0:
		return nil, fmt.Errorf("there is no disk %q in %s that no vm has", disk, c.Zone)
	case disk != "":
		data = p.disks[i]
		p.disks = slices.Delete(slices.Clone(p.disks), i, i+1)
	default:
		if owner := p.diskTakenBy(data.Name, c.Zone); owner != "" {
			return nil, fmt.Errorf("disk %s exists (%s has it): name it as the vm's disk, or delete it first",
				data.Name, owner)
		}
	}
	attributes := maps.Clone(p.attributes)
	maps.Copy(attributes, c.Attributes)
	p.index++
	v := &vm{status: statusTerminated, record: record{
		Name: c.Name, Zone: c.Zone, Index: p.index, Slot: c.Name, ID: instance.NewID(), Address: address,
		Attributes: attributes, Spot: c.Spot,
		Created: time.Now().UTC(), Disk: data,
	}}
	p.vms = append(slices.Clone(p.vms), v)
	return v, nil
}

// freeAddress is the wanted address, if a VM may have it and no other has, or where none is wanted the next free one.
// except may have it already. p.mu is held.
func (p *Project) freeAddress(wanted netip.Addr, except *vm) (netip.Addr, error) {
	taken := map[netip.Addr]bool{}
	for _, v := range p.vms {
		if v == except && wanted.IsValid() {
			continue
		}
		if wanted.IsValid() && (v.Address == wanted || v.promised == wanted) {
			return wanted, fmt.Errorf("address %s belongs to %s", wanted, v.key())
		}
		taken[v.Address], taken[v.promised] = true, true
	}
	if wanted.IsValid() {
		return wanted, p.conf.checkAddress(wanted)
	}
	return p.chooseAddress(wanted, wanted, taken)
}

// DeleteVM deletes a VM. Its data disk stays and belongs to nobody, or goes with it. One that was left running goes
// with its disk: for the cloud it was gone before.
func (p *Project) DeleteVM(ctx context.Context, name string, withDisk bool) error {
	return p.operate(name, "", func(v *vm) error {
		if v.machine != nil {
			if err := p.powerOff(ctx, v); err != nil {
				return err
			}
		}
		return p.forgetVM(ctx, v, withDisk)
	})
}

// forgetVM deletes a VM that is off. v.ops is held.
func (p *Project) forgetVM(ctx context.Context, v *vm, withDisk bool) error {
	name, keep := v.key(), !withDisk && v.Left == 0
	err := p.changeCuts(ctx, func() {
		v.status = statusDeleted
		p.vms = slices.DeleteFunc(slices.Clone(p.vms), func(x *vm) bool { return x == v })
		p.partitions = slices.DeleteFunc(p.partitions, func(d direction) bool { return d.From == name || d.To == name })
		if keep {
			p.disks = append(slices.Clone(p.disks), v.Disk)
		}
	})
	if err != nil {
		return fmt.Errorf("delete vm %s: %w", name, err)
	}
	p.conf.Log.Info("vm is deleted", "vm", name, "disk kept", keep)
	if keep {
		return p.save()
	}
	return p.forgetImage(v.Disk.Image)
}
