package localgce

import (
	"context"
	"fmt"
)

// NameServerSilent: lookups are not answered, as when Google's name servers are out of reach: each waits for its
// time-out. A VM without the fault is told at once that nobody serves names here.
const NameServerSilent = "silent"

const silentNames = `table ip names {
	chain in {
		type filter hook input priority 0; policy accept;
		iifname "lo" udp dport 53 drop
		iifname "lo" tcp dport 53 drop
	}
}
`

// SetNameServerFault makes the name server of a VM, or with an empty name of each, fail from now on and at its next
// boots: NameServerSilent, or empty for none.
func (p *Project) SetNameServerFault(ctx context.Context, name, kind string) error {
	if kind != "" && kind != NameServerSilent {
		return fmt.Errorf("name server fault %q: %s or none are known", kind, NameServerSilent)
	}
	return p.eachOf(name, func(v *vm) error {
		if v.machine != nil {
			if err := p.fabric.silenceNames(ctx, v.record, kind == NameServerSilent); err != nil {
				return fmt.Errorf("name server of %s: %w", v.key(), err)
			}
		}
		p.mu.Lock()
		v.nameless = kind == NameServerSilent
		p.mu.Unlock()
		return nil
	})
}

// silenceNames drops what a VM asks its name server, which has the metadata server's address on the VM's loopback, or
// lets it through. It is dropped where it arrives: a sender hears of what is dropped on its way out.
func (f fabric) silenceNames(ctx context.Context, v record, silent bool) error {
	script := "add table ip names\ndelete table ip names\n"
	if silent {
		script += silentNames
	}
	return nft(ctx, f.names.vm(v.Slot), script)
}
