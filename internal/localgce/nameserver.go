package localgce

import (
	"context"
	"fmt"
)

// NameServerSilent: lookups are not answered, as when Google's name servers are out of reach: each waits for its
// time-out. A VM without the fault is told at once that nobody serves names here.
const NameServerSilent = "silent"

// SetNameServerFault makes the name server of a VM, or with an empty name of each, fail from now on and at its next
// boots: NameServerSilent, or empty for none.
func (p *Project) SetNameServerFault(ctx context.Context, name, kind string) error {
	if kind != "" && kind != NameServerSilent {
		return fmt.Errorf("name server fault %q: %s or none are known", kind, NameServerSilent)
	}
	return p.eachOf(name, func(v *vm) error {
		if v.machine != nil {
			if err := p.fabric.SilenceNames(ctx, p.port(v), kind == NameServerSilent); err != nil {
				return fmt.Errorf("name server of %s: %w", v.key(), err)
			}
		}
		p.mu.Lock()
		v.nameless = kind == NameServerSilent
		p.mu.Unlock()
		return nil
	})
}
