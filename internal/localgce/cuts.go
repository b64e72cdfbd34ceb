package localgce

import (
	"context"
	"fmt"
	"slices"
	"strings"
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
	script := p.cutScript()
	p.mu.Unlock()
	return nft(ctx, p.names.fabric(), script)
}

// cutScript renders the sets of filterTables. p.mu is held.
func (p *Project) cutScript() string {
	var silent, pairs []string
	address := map[string]string{}
	for _, v := range p.vms {
		address[v.key()] = v.Address.String()
		if v.cut || v.frozen {
			silent = append(silent, `"`+port(v.Index)+`"`)
		}
	}
	for _, d := range p.partitions {
		pairs = append(pairs, address[d.From]+" . "+address[d.To])
	}
	return setScript("silent", silent) + setScript("pairs", pairs)
}

func setScript(set string, elements []string) string {
	script := "flush set bridge localgce " + set + "\n"
	if len(elements) > 0 {
		script += "add element bridge localgce " + set + " { " + strings.Join(elements, ", ") + " }\n"
	}
	return script
}
