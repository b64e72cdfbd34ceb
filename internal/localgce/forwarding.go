package localgce

import (
	"net/netip"
	"slices"

	"github.com/quorate/quorate/internal/localgce/balancer"
	"github.com/quorate/quorate/internal/localgce/instance"
	"github.com/quorate/quorate/internal/replica"
)

// ownForwarding is that of the endpoint while no forwarding rule has its address: every VM of the cluster is behind it,
// where its zone has no endpoint group, and asked as the load balancers are that quorate makes.
func (p *Project) ownForwarding() instance.Forwarding {
	f := instance.Forwarding{Address: p.conf.Endpoint, Drain: replica.DrainTimeout, Check: instance.HealthCheck{
		Port: 443, Path: "/readyz", Interval: replica.CheckInterval, Timeout: replica.CheckTimeout,
		Healthy: replica.HealthyAfter, Unhealthy: replica.UnhealthyAfter}}
	for _, v := range p.vms {
		if p.labels(v)[clusterLabel] == p.conf.Cluster && p.serves(v) {
			f.Endpoints = append(f.Endpoints, v.ID)
		}
	}
	return f
}

// serves says whether the endpoint's own load balancer sends anything to a VM: where its zone has endpoint groups, it
// is attached to one of them.
func (p *Project) serves(v *vm) bool { return p.compute == nil || p.compute.Serves(v.Zone, v.ID) }

// forwardings are what is forwarded, and to which instances. The endpoint's own is none any more once a forwarding rule
// or a VM has had its address. p.mu is held.
func (p *Project) forwardings() (out []instance.Forwarding) {
	if p.compute != nil {
		out = p.compute.Forwardings()
	}
	p.ruled = p.ruled || slices.ContainsFunc(out,
		func(f instance.Forwarding) bool { return f.Address == p.conf.Endpoint }) ||
		slices.ContainsFunc(p.vms, func(v *vm) bool { return v.ExternalIP == p.conf.Endpoint })
	if !p.ruled {
		out = append(out, p.ownForwarding())
	}
	return out
}

// forwarded are the addresses that are forwarded to a VM. p.mu is held.
func (p *Project) forwarded(v *vm) (out []netip.Addr) {
	for _, f := range p.forwardings() {
		if slices.Contains(f.Endpoints, v.ID) {
			out = append(out, f.Address)
		}
	}
	return out
}

// services are what is balanced now, over those VMs that Google knows. What the Compute API made takes as long to feel
// a change as a master has to reckon with; the endpoint's own feels it at once.
func (p *Project) services() (out []balancer.Service) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, f := range p.forwardings() {
		s := balancer.Service{Forwarding: f, Settle: replica.SettleTime}
		if !p.ruled && f.Address == p.conf.Endpoint {
			s.Settle = 0
		}
		for _, v := range p.vms {
			if v.Left == 0 && slices.Contains(f.Endpoints, v.ID) {
				s.Backends = append(s.Backends, balancer.Backend{ID: v.ID, Name: v.Name, Address: v.Address,
					Running: v.status == statusRunning})
			}
		}
		out = append(out, s)
	}
	return out
}

// external are the addresses that lead to one VM each, of those VMs that Google knows.
func (p *Project) external() (out []balancer.External) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, v := range p.vms {
		if v.Left == 0 && v.ExternalIP.IsValid() {
			out = append(out, balancer.External{Address: v.ExternalIP, To: v.Address})
		}
	}
	return out
}
