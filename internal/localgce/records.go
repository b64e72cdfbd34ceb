package localgce

import (
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"time"

	"github.com/quorate/quorate/internal/localgce/instance"
	"github.com/quorate/quorate/internal/localgce/network"
)

// loadVMs makes the VMs' records, from state.json where it knows them, and writes it.
func (p *Project) loadVMs() error {
	old, err := readSaved(p.names)
	if err != nil {
		return err
	}
	p.attributes = maps.Clone(p.conf.Attributes)
	if p.attributes == nil {
		p.attributes = map[string]string{}
	}
	taken := map[netip.Addr]bool{}
	for _, c := range p.conf.VMs {
		taken[c.Address] = true
	}
	former := p.recall(old)
	for _, c := range p.conf.VMs {
		r, known := former[c.Name]
		if !known {
			p.index++
			r = record{Name: c.Name, Zone: c.Zone, Index: p.index, Slot: c.Name, ID: instance.NewID(),
				Created: time.Now().UTC(),
				Disk:    p.dataDisk(c)}
		}
		r.Spot = c.Spot
		r.Attributes = maps.Clone(p.attributes)
		maps.Copy(r.Attributes, c.Attributes)
		if r.Address, err = p.chooseAddress(c.Address, r.Address, taken); err != nil {
			return fmt.Errorf("vm %s: %w", c.Name, err)
		}
		p.vms = append(p.vms, &vm{record: r, status: statusTerminated})
	}
	if err := p.save(); err != nil {
		return err
	}
	return p.removeStrayImages()
}

// recall takes over what an earlier project knew: the records of the VMs that are wanted again, and as disks that no VM
// has those of the others. A VM that was left running is gone, with its disk.
func (p *Project) recall(old saved) map[string]record {
	zones := map[string]string{}
	for _, c := range p.conf.VMs {
		zones[c.Name] = c.Zone
	}
	former := map[string]record{}
	p.disks, p.snapshots = old.Disks, old.Snapshots
	for _, r := range old.VMs {
		p.index = max(p.index, r.Index)
		fallback(&r.Slot, r.Name)
		fallback(&r.Disk.Zone, r.Zone)
		fallback(&r.Disk.Image, r.Name+".img") // what a state.json of before named by the VM
		switch {
		case r.Left > 0:
		case zones[r.Name] == r.Zone:
			former[r.Name] = r
		default:
			p.disks = append(p.disks, r.Disk)
		}
	}
	return former
}

// dataDisk is the disk of a VM that was not known: one of its usual name that no VM has, else a new one.
func (p *Project) dataDisk(c VMConfig) volume {
	d := p.newVolume(c.Name, c.Zone)
	if i := p.diskNamed(d.Name, c.Zone); i >= 0 {
		d = p.disks[i]
		p.disks = slices.Delete(p.disks, i, i+1)
	}
	return d
}

// firstAddress is where VMs' own addresses begin in the subnet; the ones before are for those who ask for them.
const firstAddress = 11

// chooseAddress takes the wanted address, or the former if it still fits, or the next free one.
func (p *Project) chooseAddress(wanted, former netip.Addr, taken map[netip.Addr]bool) (netip.Addr, error) {
	if wanted.IsValid() {
		return wanted, nil
	}
	if former.IsValid() && p.conf.checkAddress(former) == nil && !taken[former] {
		taken[former] = true
		return former, nil
	}
	for a := network.Nth(p.conf.Subnet.Addr(), firstAddress); p.conf.Subnet.Contains(a); a = a.Next() {
		if !taken[a] && p.conf.checkAddress(a) == nil {
			taken[a] = true
			return a, nil
		}
	}
	return netip.Addr{}, fmt.Errorf("no address is free in %s", p.conf.Subnet)
}

func (p *Project) save() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	s := saved{Config: p.conf, Disks: p.disks, Snapshots: p.snapshots}
	for _, v := range p.vms {
		s.VMs = append(s.VMs, v.record)
	}
	return s.write(p.names)
}
