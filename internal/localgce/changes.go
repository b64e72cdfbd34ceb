package localgce

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/netip"
	"slices"

	"github.com/quorate/quorate/internal/localgce/instance"
)

// changes are a project's compute.Changes: what the Compute API changes.
type changes struct{ p *Project }

// AddInstance implements compute.Changes. The VM has the attributes of the project and its own.
func (c changes) AddInstance(i instance.VM) error {
	p := c.p
	err := func() error {
		p.mu.Lock()
		defer p.mu.Unlock()
		n := slices.IndexFunc(p.disks, func(d volume) bool { return d.ID == i.DataDisk.ID })
		if n < 0 {
			return fmt.Errorf("add vm %s: a vm has its disk %s by now", i.Name, i.DataDisk.Name)
		}
		v, err := p.addVM(VMConfig{Name: i.Name, Zone: i.Zone, Spot: i.Spot, Attributes: i.Attributes},
			p.disks[n].Name)
		if err != nil {
			return fmt.Errorf("add vm %s: %w", i.Name, err)
		}
		v.ID, v.Created, v.Labels, v.Made, v.ExternalIP = i.ID, i.Created, i.Labels, i.Made, i.ExternalIP
		return nil
	}()
	if err != nil {
		return err
	}
	return p.save()
}

// StartInstance implements compute.Changes.
func (c changes) StartInstance(id uint64) error {
	return c.p.withInstance(id, func(v *vm) error {
		if v.machine != nil {
			return nil // somebody was faster
		}
		return c.p.powerOn(context.Background(), v)
	})
}

// StopInstance implements compute.Changes. One that is off stays so.
func (c changes) StopInstance(id uint64) error { return c.p.withInstance(id, c.p.stopForGood) }

// stopForGood ends a VM in order where it hears that, and cuts its power where it does not, as Google does after some
// 90 s. v.ops is held.
func (p *Project) stopForGood(v *vm) error {
	switch {
	case v.machine == nil:
		return nil
	case v.frozen, v.machine.stall != nil:
		p.setStatus(v, statusStopping)
		return p.powerOff(context.Background(), v)
	}
	return p.stopInOrder(context.Background(), v)
}

// DeleteInstance implements compute.Changes.
func (c changes) DeleteInstance(id uint64, withDisk bool) error {
	return c.p.withInstance(id, func(v *vm) error {
		return errors.Join(c.p.stopForGood(v), c.p.forgetVM(context.Background(), v, withDisk))
	})
}

// SetExternalIP implements compute.Changes. The fabric leads the address there when it returns.
func (c changes) SetExternalIP(id uint64, address netip.Addr) error {
	err := c.p.withInstance(id, func(v *vm) error {
		c.p.mu.Lock()
		defer c.p.mu.Unlock()
		v.ExternalIP = address
		return nil
	})
	c.p.balancer.Apply()
	return errors.Join(err, c.p.save())
}

// AddDisk implements compute.Changes.
func (c changes) AddDisk(zone string, d instance.Disk) error {
	c.p.mu.Lock()
	c.p.disks = append(slices.Clone(c.p.disks), volume{Disk: d, Zone: zone, Image: imageFile(d.Name)})
	c.p.mu.Unlock()
	return c.p.save()
}

// DeleteDisk implements compute.Changes.
func (c changes) DeleteDisk(id uint64) error {
	c.p.mu.Lock()
	n := slices.IndexFunc(c.p.disks, func(d volume) bool { return d.ID == id })
	if n < 0 {
		c.p.mu.Unlock()
		return fmt.Errorf("delete disk %d: there is none that no vm has", id)
	}
	d := c.p.disks[n]
	c.p.mu.Unlock()
	return c.p.DeleteDisk(d.Name, d.Zone)
}

// withInstance runs f with the VM that has an instance id to itself.
func (p *Project) withInstance(id uint64, f func(*vm) error) error {
	name := ""
	p.mu.Lock()
	for _, v := range p.vms {
		if v.ID == id && v.Left == 0 {
			name = v.key()
		}
	}
	p.mu.Unlock()
	return p.operate(name, "", func(v *vm) error {
		if v.ID != id {
			return fmt.Errorf("instance %d is no more: %s was made again meanwhile", id, name)
		}
		return f(v)
	})
}

// clusterLabel names the cluster whose a VM or a disk is.
const clusterLabel = "quorate-cluster"

// labels are a VM's. p.mu is held.
func (p *Project) labels(v *vm) map[string]string {
	if v.Labels != nil {
		return maps.Clone(v.Labels)
	}
	return map[string]string{clusterLabel: p.conf.Cluster}
}
