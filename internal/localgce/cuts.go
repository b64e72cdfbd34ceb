package localgce

import (
	"context"
	"fmt"
	"net/netip"
	"slices"
)

// direction is a partition of one direction: what from sends does not reach to.
type direction struct {
	From string `json:"from"`
	To   string `json:"to"`
}

// Cut takes a VM off the network. Its metadata server still answers: GCE's is served by the VM's host.
func (p *Project) Cut(ctx context.Context, name string) error {
	v, err := p.vm(name)
	if err != nil {
		return err
	}
	return p.changeCuts(ctx, func() { v.cut = true })
}

// Heal undoes Cut and Partition for one VM, or with an empty name for all.
func (p *Project) Heal(ctx context.Context, name string) error {
	if name != "" {
		if _, err := p.vm(name); err != nil {
			return err
		}
	}
	return p.changeCuts(ctx, func() {
		for _, v := range p.vms {
			if name == "" || v.key() == name {
				v.cut = false
			}
		}
		p.partitions = slices.DeleteFunc(p.partitions, func(d direction) bool {
			return name == "" || d.From == name || d.To == name
		})
	})
}

// Partition drops what a sends to b and, unless oneWay, what b sends to a. All else still works.
func (p *Project) Partition(ctx context.Context, a, b string, oneWay bool) error {
	for _, name := range []string{a, b} {
		if _, err := p.vm(name); err != nil {
			return err
		}
	}
	if a == b {
		return fmt.Errorf("partition %s from itself: two VMs are needed", a)
	}
	return p.changeCuts(ctx, func() {
		for _, d := range []direction{{a, b}, {b, a}}[:map[bool]int{true: 1, false: 2}[oneWay]] {
			if !slices.Contains(p.partitions, d) {
				p.partitions = append(p.partitions, d)
			}
		}
	})
}

// changeCuts makes a change to what is cut and brings the fabric's filter in line, all in one transaction of nft's.
func (p *Project) changeCuts(ctx context.Context, change func()) error {
	p.cuts.Lock() // changes reach nft in the order in which they are made
	defer p.cuts.Unlock()
	p.mu.Lock()
	change()
	silent, pairs := p.whatIsCut()
	p.mu.Unlock()
	return p.fabric.Cut(ctx, silent, pairs)
}

// whatIsCut are the indexes of the VMs that are off the network, and from whom to whom nothing gets. p.mu is held.
func (p *Project) whatIsCut() (silent []int, pairs [][2]netip.Addr) {
	address := map[string]netip.Addr{}
	for _, v := range p.vms {
		address[v.key()] = v.Address
		if v.cut || v.frozen {
			silent = append(silent, v.Index)
		}
	}
	for _, d := range p.partitions {
		pairs = append(pairs, [2]netip.Addr{address[d.From], address[d.To]})
	}
	return silent, pairs
}
