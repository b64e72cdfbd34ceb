package fleet

import (
	"context"
	"fmt"
	"slices"

	"github.com/quorate/quorate/fleet/plan"
	"github.com/quorate/quorate/internal/gce"
	"github.com/quorate/quorate/internal/replica"
	"github.com/quorate/quorate/internal/setup"
)

// asks reports whether the document has commands make surroundings.
func (f *Fleet) asks() bool {
	return f.Document.LoadBalancer().Type != "" || len(f.Document.GCE.Firewall.APISources) > 0
}

// Wanted are what the document asks for around the masters.
func (f *Fleet) Wanted() gce.Surroundings {
	c, g := f.Document, f.Document.GCE
	s := gce.Surroundings{Project: g.Project, Cluster: c.Name, Region: g.Region, Name: c.Name, Network: g.NetworkPath(),
		Subnetwork: g.SubnetworkPath(), Account: g.ServiceAccount, Port: c.Endpoint.Port, Zones: g.Zones,
		Sources: g.Firewall.APISources,
		Probes:  setup.ProbeRanges(c.Endpoint.ExternalIP != "", c.Endpoint.InternalIP != "")}
	switch b := c.LoadBalancer(); b.Type {
	case replica.ExternalBalancer:
		s.Name, s.Scheme, s.Address = b.Name, "EXTERNAL", c.Endpoint.ExternalIP
	case replica.InternalBalancer:
		s.Name, s.Scheme, s.Address = b.Name, "INTERNAL", c.Endpoint.InternalIP
	}
	return s
}

// readSurroundings reads what surrounds the masters, for the commands that make it and take it away. Once all is as it
// is wanted, it is not read again: what was read is given back with each reading. A load balancer on demand is read by
// each command and each time: another one may have moved the address.
func (r *run) readSurroundings(ctx context.Context, k plan.Kind, to *Reading) {
	onDemand := r.Document.LoadBalancer().OnDemand
	if !r.asks() || k != plan.Create && k != plan.Delete && !onDemand {
		return
	}
	if r.around == nil || onDemand {
		wanted, there, err := r.Cloud.Surroundings(ctx, r.Wanted())
		if err != nil {
			to.fault = err
			return
		}
		r.around = &plan.Surroundings{Wanted: resourcesOf(wanted), There: resourcesOf(there), Probes: r.Wanted().Probes}
		if onDemand {
			if r.around.Address, err = r.readAddress(ctx, there, to); err != nil {
				to.fault = err
				return
			}
		}
	}
	to.Surroundings = *r.around
	if k == plan.Create && r.Document.LoadBalancer().Type != "" && !onDemand {
		to.fault = r.readHealth(ctx, to)
	}
}

// readHealth reads which masters pass the load balancer's health check, once all its parts are there.
func (r *run) readHealth(ctx context.Context, to *Reading) error {
	if len(r.around.There) < len(r.around.Wanted) {
		return nil
	}
	for _, m := range to.Members.List {
		if !m.Ready || !r.around.HasGroup(m.Place.Zone) {
			continue
		}
		is, err := r.Cloud.IsHealthy(ctx, r.Document.LoadBalancer().Name, m.Place)
		if err != nil {
			return err
		}
		if is {
			to.Surroundings.Healthy = append(to.Surroundings.Healthy, m.Place)
		}
	}
	return nil
}

// readAddress reads who has the endpoint's address. While a VM has it, also who is attached: what takes it from there
// waits for them.
func (r *run) readAddress(ctx context.Context, there []gce.Resource, to *Reading) (*plan.Address, error) {
	a := &plan.Address{Number: r.Document.Endpoint.ExternalIP}
	groups := false
	for _, one := range there {
		groups = groups || one.Kind == gce.EndpointGroup
		for _, u := range one.Users {
			a.Users = append(a.Users, plan.User{Kind: string(u.Kind), Zone: u.Zone, Name: u.Name})
		}
	}
	if !groups || len(a.Users) != 1 || a.Users[0].Kind != plan.InstanceKind {
		return a, nil
	}
	for _, v := range to.VMs {
		is, err := r.Cloud.IsAttached(ctx, r.Document.LoadBalancer().Name, v.Place)
		if err != nil {
			return nil, err
		}
		if is {
			a.Attached = append(a.Attached, v.Place)
		}
	}
	return a, nil
}

func resourcesOf(list []gce.Resource) (out []plan.Resource) {
	for _, r := range list {
		one := plan.Resource{Kind: string(r.Kind), Zone: r.Zone, Name: r.Name, ID: r.ID, Made: r.Made}
		for _, f := range r.Fields {
			one.Fields = append(one.Fields, plan.Field(f))
		}
		out = append(out, one)
	}
	return out
}

// makeResource makes the one that a step names.
func (f *Fleet) makeResource(ctx context.Context, s plan.Step) error {
	wanted, _, err := f.Cloud.Surroundings(ctx, f.Wanted())
	if err != nil {
		return err
	}
	at := slices.IndexFunc(wanted, func(r gce.Resource) bool {
		return string(r.Kind) == s.Kind && r.Name == s.Resource && r.Zone == s.Place.Zone
	})
	if at < 0 {
		return fmt.Errorf("make %s %s: the document does not ask for it any more", s.Kind, s.Resource)
	}
	return f.Cloud.InsertResource(ctx, wanted[at])
}
