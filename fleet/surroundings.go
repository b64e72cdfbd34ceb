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
// is wanted, it is not read again: what was read is given back with each reading.
func (r *run) readSurroundings(ctx context.Context, k plan.Kind, to *Reading) {
	if k != plan.Create && k != plan.Delete || !r.asks() {
		return
	}
	if r.around == nil {
		wanted, there, err := r.Cloud.Surroundings(ctx, r.Wanted())
		if err != nil {
			to.fault = err
			return
		}
		r.around = &plan.Surroundings{Wanted: resourcesOf(wanted), There: resourcesOf(there)}
	}
	to.Surroundings = *r.around
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
