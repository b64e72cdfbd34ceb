package plan

import (
	"fmt"
	"slices"

	"github.com/quorate/quorate/internal/replica"
)

// Surroundings are what masters need of their project besides VMs and disks: firewall rules and the parts of the load
// balancer.
type Surroundings struct {
	// Wanted are those that the document asks for, in the order in which they can be made; none: commands leave them
	// alone.
	Wanted []Resource
	// There are those of them that were found.
	There []Resource
	// Address is the endpoint's where the load balancer is made on demand; nil: it is not.
	Address *Address
	// Probes are the ranges from which the load balancer's health checks come.
	Probes []string
	// Healthy are the masters that pass the load balancer's health check. Create alone reads it.
	Healthy []replica.Place
}

// Resource is one of the surroundings, as it is wanted or as it was found.
type Resource struct {
	// Kind is such as "health check". Zone is that of an endpoint group.
	Kind, Zone, Name string
	// ID is the numeric id of one that was found.
	ID string
	// Made: a command made it for this cluster. Of one that is wanted: commands make it; otherwise it has to be there.
	Made bool
	// Fields are those that have to be as wanted.
	Fields []Field
}

// Field is one field of a resource, by its name in the Compute API.
type Field struct{ Name, Value string }

// The kinds that differ from others: AddressKind is known by its number, whatever its name is. InstanceKind is that of
// a VM that has an address.
const (
	AddressKind     = "address"
	HealthCheckKind = "health check"
	GroupKind       = "endpoint group"
	ServiceKind     = "backend service"
	RuleKind        = "forwarding rule"
	InstanceKind    = "instance"
)

// find is the resource that was found where one is wanted.
func (s Surroundings) find(w Resource) (Resource, bool) {
	at := slices.IndexFunc(s.There, func(r Resource) bool {
		return r.Kind == w.Kind && r.Zone == w.Zone && (r.Name == w.Name || r.Kind == AddressKind)
	})
	if at < 0 {
		return Resource{}, false
	}
	return s.There[at], true
}

// HasGroup says whether the load balancer reaches a zone: the document has an endpoint group there.
func (s Surroundings) HasGroup(zone string) bool {
	return slices.ContainsFunc(s.Wanted, func(r Resource) bool { return r.Kind == GroupKind && r.Zone == zone })
}

// where says in which zone a resource is, of one that is in a zone.
func (r Resource) where() string {
	if r.Zone == "" {
		return ""
	}
	return " in " + r.Zone
}

// surround adds the steps that make what is missing of those that are meant. What has a name that is wanted and is
// another thing is refused: nothing that is there is changed.
func (b *builder) surround(meant func(Resource) bool) error {
	for _, w := range b.Surroundings.Wanted {
		r, found := b.Surroundings.find(w)
		switch {
		case !meant(w):
		case !found && !w.Made:
			return refuse(ResourceMissing, "Reserve one ('gcloud compute addresses create "+w.Name+" --region="+
				b.Record.Region+"'), and name it in the document as endpoint.externalIP.",
				"The %s %s is not reserved in %s, and Google draws such addresses by itself.", w.Kind, w.Fields[0].Value,
				b.Record.Region)
		case !found:
			b.step(Step{Act: CreateResource, Kind: w.Kind, Resource: w.Name, Place: inZone(w.Zone)}, "", "Delete it.",
				"Make %s %s%s: %s.", w.Kind, w.Name, w.where(), purposes[w.Kind])
		default:
			if err := w.fits(r); err != nil {
				return err
			}
		}
	}
	return nil
}

// awaitHealthy waits until the load balancer's probes arrive at a master: a firewall that keeps them out looks like a
// cluster that is well, and serves nobody. On demand another step puts the load balancer in force.
func (b *builder) awaitHealthy(p replica.Place) {
	s := b.Surroundings
	if s.rule().Name == "" || s.Address != nil || !s.HasGroup(p.Zone) || slices.Contains(s.Healthy, p) {
		return
	}
	b.step(Step{Act: AwaitHealthy, Place: p}, "", "", "Wait until the load balancer's health check passes %s.", p.Name)
}

// purposes say what each kind is for.
var purposes = map[string]string{
	"firewall rule": "who reaches which ports of the masters",
	AddressKind:     "the endpoint's address stays the cluster's",
	HealthCheckKind: "which masters are ready",
	GroupKind:       "each master of the zone enters it by itself",
	ServiceKind:     "connections are spread over the groups",
	RuleKind:        "the endpoint's address leads to the masters",
}

// fits refuses what was found where it is not as wanted.
func (r Resource) fits(found Resource) error {
	for _, f := range r.Fields {
		at := slices.IndexFunc(found.Fields, func(o Field) bool { return o.Name == f.Name })
		if at >= 0 && found.Fields[at] == f {
			continue
		}
		value := "nothing"
		if at >= 0 {
			value = found.Fields[at].Value
		}
		return refuse(ResourceDiffers, "Change it or delete it yourself, or have the document name another "+
			"(gce.loadBalancer.name).", "The %s %s%s is there, and its %s is %q; needed: %q.", r.Kind, found.Name, r.where(),
			f.Name, value, f.Value)
	}
	return nil
}

// clear adds the steps that delete what commands have made of those that are meant, the last made first.
func (b *builder) clear(meant func(Resource) bool) {
	for _, w := range slices.Backward(b.Surroundings.Wanted) {
		r, found := b.Surroundings.find(w)
		switch {
		case !found, !meant(w):
		case !r.Made:
			b.warn("The %s %s%s was not made by quorate, and is kept.", r.Kind, r.Name, r.where())
		default:
			b.step(deletionOf(r), "", fmt.Sprintf("'quorate %s' makes one again%s.", b.maker(), otherAddress(r)),
				"Delete %s %s%s (%s).", r.Kind, r.Name, r.where(), r.ID)
		}
	}
	b.Surroundings.There = slices.DeleteFunc(slices.Clone(b.Surroundings.There), meant)
}

// maker is the command that makes again what this one deletes.
func (b *builder) maker() Kind {
	if b.Kind == Delete {
		return Create
	}
	return Add
}

// all resources are meant.
func all(Resource) bool { return true }

// otherAddress: a number that was given back may be somebody else's by then.
func otherAddress(r Resource) string {
	if r.Kind != AddressKind {
		return ""
	}
	return ", if nobody has taken its number meanwhile"
}
