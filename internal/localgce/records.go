package localgce

import (
	"errors"
	"fmt"
	"maps"
	"net/netip"
	"os"
	"time"
)

// loadVMs makes the VMs' records, from state.json where it knows them, and writes it.
func (p *Project) loadVMs() error {
	old, err := readSaved(p.names)
	if err != nil {
		return err
	}
	taken := map[netip.Addr]bool{}
	for _, c := range p.conf.VMs {
		taken[c.Address] = true
	}
	former := map[string]record{}
	index := 0
	for _, r := range old.VMs {
		former[r.Name], index = r, max(index, r.Index)
	}
	for _, c := range p.conf.VMs {
		r, known := former[c.Name]
		if !known || r.Zone != c.Zone {
			index++
			r = record{Name: c.Name, Zone: c.Zone, Index: index, ID: newID(), Created: time.Now().UTC(), Disk: p.newDisk(c.Name)}
			if err := os.Remove(p.names.disk(c.Name)); err != nil && !errors.Is(err, os.ErrNotExist) {
				return fmt.Errorf("remove a forgotten data disk: %w", err)
			}
		}
		r.Attributes = maps.Clone(p.conf.Attributes)
		if r.Attributes == nil {
			r.Attributes = map[string]string{}
		}
		maps.Copy(r.Attributes, c.Attributes)
		if r.Address, err = p.chooseAddress(c.Address, r.Address, taken); err != nil {
			return fmt.Errorf("vm %s: %w", c.Name, err)
		}
		p.vms = append(p.vms, &vm{record: r, status: statusTerminated})
	}
	return p.save()
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
	for a := nth(p.conf.Subnet.Addr(), firstAddress); p.conf.Subnet.Contains(a); a = a.Next() {
		if !taken[a] && p.conf.checkAddress(a) == nil {
			taken[a] = true
			return a, nil
		}
	}
	return netip.Addr{}, fmt.Errorf("no address is free in %s", p.conf.Subnet)
}

func (p *Project) newDisk(vm string) Disk {
	return Disk{ID: newID(), Name: vm + "-data", DeviceName: p.conf.DeviceName, Bytes: p.conf.DiskSize, Created: time.Now().UTC()}
}

func (p *Project) save() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	s := saved{Config: p.conf}
	for _, v := range p.vms {
		s.VMs = append(s.VMs, v.record)
	}
	return s.write(p.names)
}
