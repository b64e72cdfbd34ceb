package localgce

import (
	"net/http"
	"net/netip"
	"slices"

	"github.com/quorate/quorate/internal/localgce/fault"
)

// Service and Fault are what SetFault takes.
type (
	Service = fault.Service
	Fault   = fault.Fault
)

// The services.
const (
	Metadata = fault.Metadata
	Compute  = fault.Compute
	Storage  = fault.Storage
)

// SetFault makes a service fail from now on, or with an empty Kind be well again: for one VM, also at its next boots
// and for those that are made in its place, or for everybody.
func (p *Project) SetFault(s fault.Service, f fault.Fault) error {
	for _, name := range append(slices.Clone(f.VMs), f.Who) {
		if name == "" {
			continue
		}
		if _, err := p.vm(name); err != nil {
			return err
		}
	}
	return p.faults.Put(s, p.compute.AsOfNow(f))
}

// FaultsMet is how many requests have met the faults of a service that are set.
func (p *Project) FaultsMet(s fault.Service) int { return p.faults.Met(s) }

// caller is the VM that sent a request; empty: it came from elsewhere.
func (p *Project) caller(r *http.Request) (name string) {
	from, err := netip.ParseAddrPort(r.RemoteAddr)
	if err != nil {
		return ""
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, v := range p.vms {
		if v.Address == from.Addr().Unmap() && !v.Lost { // one whose host was lost is off the network
			name = v.key()
		}
	}
	return name
}
