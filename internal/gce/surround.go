package gce

import (
	"context"
	"errors"
	"fmt"
	"strconv"

	"google.golang.org/api/compute/v1"
	"google.golang.org/api/googleapi"

	"github.com/quorate/quorate/internal/backoff"
)

// client is Google's.
type client = *compute.Service

// calls are what Google's client calls for one kind of resource. A remove call has a numeric id, where it may.
type calls struct {
	// path is what links call the kind.
	path   string
	get    func(ctx context.Context, api client, c *Operator, r Resource) (Resource, error)
	insert func(api client, c *Operator, r Resource) order
	remove func(api client, c *Operator, r Resource) order
}

// order is a request that begins an operation.
type order func(ctx context.Context, request string) (*compute.Operation, error)

// changing is a request of Google's client that changes something.
type changing[C any] interface {
	RequestId(id string) C
	Context(ctx context.Context) C
	Do(opts ...googleapi.CallOption) (*compute.Operation, error)
}

func orderOf[C changing[C]](call C) order {
	return func(ctx context.Context, request string) (*compute.Operation, error) {
		return call.RequestId(request).Context(ctx).Do()
	}
}

// callsOf are those of each kind.
var callsOf = map[ResourceKind]calls{
	FirewallRule: {"firewalls", func(ctx context.Context, api client, c *Operator, r Resource) (Resource, error) {
		f, err := api.Firewalls.Get(c.project, r.Name).Context(ctx).Do()
		if err != nil {
			return r, err
		}
		return c.found(r, f.Name, f.Id, f.Description, firewallFields(f))
	}, func(api client, c *Operator, r Resource) order {
		return orderOf(api.Firewalls.Insert(c.project, r.body.(*compute.Firewall)))
	}, func(api client, c *Operator, r Resource) order { return orderOf(api.Firewalls.Delete(c.project, r.ID)) }},
	Address: {"addresses", func(ctx context.Context, api client, c *Operator, r Resource) (Resource, error) {
		a, err := api.Addresses.Get(c.project, c.region, r.Name).Context(ctx).Do()
		if err != nil {
			return r, err
		}
		return c.foundAddress(r, a)
	}, func(api client, c *Operator, r Resource) order {
		return orderOf(api.Addresses.Insert(c.project, c.region, r.body.(*compute.Address)))
	}, func(api client, c *Operator, r Resource) order {
		return orderOf(api.Addresses.Delete(c.project, c.region, r.ID))
	}},
	HealthCheck: {"healthChecks", func(ctx context.Context, api client, c *Operator, r Resource) (Resource, error) {
		h, err := api.RegionHealthChecks.Get(c.project, c.region, r.Name).Context(ctx).Do()
		if err != nil {
			return r, err
		}
		return c.found(r, h.Name, h.Id, h.Description, healthCheckFields(h))
	}, func(api client, c *Operator, r Resource) order {
		return orderOf(api.RegionHealthChecks.Insert(c.project, c.region, r.body.(*compute.HealthCheck)))
	}, func(api client, c *Operator, r Resource) order {
		return orderOf(api.RegionHealthChecks.Delete(c.project, c.region, r.ID))
	}},
	EndpointGroup: {"networkEndpointGroups", func(ctx context.Context, api client, c *Operator, r Resource) (Resource,
		error) {
		g, err := api.NetworkEndpointGroups.Get(c.project, r.Zone, r.Name).Context(ctx).Do()
		if err != nil {
			return r, err
		}
		return c.found(r, g.Name, g.Id, g.Description, endpointGroupFields(g))
	}, func(api client, c *Operator, r Resource) order {
		return orderOf(api.NetworkEndpointGroups.Insert(c.project, r.Zone, r.body.(*compute.NetworkEndpointGroup)))
	}, func(api client, c *Operator, r Resource) order { // these have no other name
		return orderOf(api.NetworkEndpointGroups.Delete(c.project, r.Zone, r.Name))
	}},
	BackendService: {"backendServices", func(ctx context.Context, api client, c *Operator, r Resource) (Resource,
		error) {
		b, err := api.RegionBackendServices.Get(c.project, c.region, r.Name).Context(ctx).Do()
		if err != nil {
			return r, err
		}
		return c.found(r, b.Name, b.Id, b.Description, backendServiceFields(b))
	}, func(api client, c *Operator, r Resource) order {
		return orderOf(api.RegionBackendServices.Insert(c.project, c.region, r.body.(*compute.BackendService)))
	}, func(api client, c *Operator, r Resource) order {
		return orderOf(api.RegionBackendServices.Delete(c.project, c.region, r.ID))
	}},
	ForwardingRule: {"forwardingRules", func(ctx context.Context, api client, c *Operator, r Resource) (Resource,
		error) {
		f, err := api.ForwardingRules.Get(c.project, c.region, r.Name).Context(ctx).Do()
		if err != nil {
			return r, err
		}
		return c.found(r, f.Name, f.Id, f.Description, forwardingRuleFields(f))
	}, func(api client, c *Operator, r Resource) order {
		return orderOf(api.ForwardingRules.Insert(c.project, c.region, r.body.(*compute.ForwardingRule)))
	}, func(api client, c *Operator, r Resource) order {
		return orderOf(api.ForwardingRules.Delete(c.project, c.region, r.ID))
	}},
}

// found is a resource as the API shows it.
func (c *Operator) found(r Resource, name string, id uint64, description string, fields []Field) (Resource, error) {
	if id == 0 || name == "" {
		return r, finalError{fmt.Errorf("found %s %q without name or id", r.Kind, name)}
	}
	return Resource{Kind: r.Kind, Zone: r.Zone, Name: name, ID: strconv.FormatUint(id, 10),
		Made: description == madeBy(c.cluster), Fields: fields}, nil
}

func (c *Operator) foundAddress(r Resource, a *compute.Address) (Resource, error) {
	out, err := c.found(r, a.Name, a.Id, a.Description, addressFields(a))
	out.tier, out.Users = a.NetworkTier, usersOf(a.Users)
	return out, err
}

// Surroundings are the resources that are wanted, and those of them that are there. An address is found by its number,
// whatever its name is. It needs of each kind compute.KIND.get, and compute.addresses.list.
func (c *Operator) Surroundings(ctx context.Context, s Surroundings) (wanted, there []Resource, err error) {
	wanted = s.Resources()
	tier := ""
	for _, w := range wanted {
		r, found, err := c.getResource(ctx, w)
		if err == nil && w.Kind == Address && (!found || r.Fields[0] != w.Fields[0]) {
			other, isThere, listed := c.addressByNumber(ctx, w)
			if err = listed; isThere {
				r, found = other, true
			}
		}
		if err != nil {
			return nil, nil, explained(err)
		}
		if found {
			there = append(there, r)
		}
		if w.Kind == Address {
			tier = r.tier
		}
		if f, ok := w.body.(*compute.ForwardingRule); ok && s.Scheme == "EXTERNAL" {
			f.NetworkTier = tier // it has to be the address's
		}
	}
	return wanted, there, nil
}

// getResource is the one of a name. found is false only where the API says so of this very one.
func (c *Operator) getResource(ctx context.Context, r Resource) (out Resource, found bool, err error) {
	call := callsOf[r.Kind]
	err = c.ask(ctx, fmt.Sprintf("%s %s", r.Kind, r.Name), func(ctx context.Context, api client) (err error) {
		out, err = call.get(ctx, api, c, r)
		return err
	})
	if isMissing(err, call.path, r.Name) {
		return r, false, nil
	}
	return out, err == nil, err
}

// addressByNumber is the region's reserved address of a number.
func (c *Operator) addressByNumber(ctx context.Context, w Resource) (out Resource, found bool, err error) {
	number := w.body.(*compute.Address).Address
	err = c.ask(ctx, "the addresses of "+c.region, func(ctx context.Context, api client) error {
		found = false
		return api.Addresses.List(c.project, c.region).Pages(ctx, func(list *compute.AddressList) error {
			if err := ofKind(list.Kind, "compute#addressList"); err != nil {
				return err
			}
			for _, a := range list.Items {
				if a.Address == number && !found {
					if out, err = c.foundAddress(w, a); err != nil {
						return err
					}
					found = true
				}
			}
			return nil
		})
	})
	return out, found && err == nil, err
}

// at is what a resource is of.
func (c *Operator) at(r Resource) where {
	switch {
	case r.Kind == FirewallRule:
		return where{}
	case r.Zone != "":
		return where{zone: r.Zone}
	}
	return where{region: c.region}
}

// InsertResource makes one that is wanted, and returns when that is over. Where it stands already, as it is wanted and
// made for this cluster, it is done; where another one stands there, *Exists is returned. What it refers to may still
// be on its way: then it waits. It needs compute.KIND.create, .use of what it refers to, and compute.networks.use or
// updatePolicy.
func (c *Operator) InsertResource(ctx context.Context, r Resource) error {
	asked := fmt.Sprintf("making %s %s in %s", r.Kind, r.Name, c.at(r))
	pause := backoff.Backoff{First: firstPoll, Most: mostPoll}
	for {
		err := c.insert(ctx, c.at(r), asked, func(ctx context.Context, api *compute.Service, request string) (
			*compute.Operation, error) {
			return callsOf[r.Kind].insert(api, c, r)(ctx, request)
		}, func(ctx context.Context) (site, error) { return c.resourceStands(ctx, r) })
		if !isBusy(err) {
			return err
		}
		if errWait := backoff.Sleep(ctx, pause.Next()); errWait != nil {
			return fmt.Errorf("wait for another operation: %w (last try: %w)", errWait, err)
		}
	}
}

// resourceStands says whether a resource stands in a place, by its mark and its fields.
func (c *Operator) resourceStands(ctx context.Context, r Resource) (site, error) {
	is, found, err := c.getResource(ctx, r)
	if err != nil || !found {
		return free, err
	}
	differs := ""
	for n, f := range r.Fields {
		if is.Fields[n] != f {
			differs = fmt.Sprintf("its %s is %q, not %q", f.Name, is.Fields[n].Value, f.Value)
			break
		}
	}
	if differs == "" && !is.Made {
		differs = "its description does not say that quorate made it for cluster " + c.cluster
	}
	if differs != "" {
		return free, &Exists{string(r.Kind), c.at(r).String(), r.Name, is.ID, nil, differs}
	}
	return done, nil
}

// DeleteResource deletes one that a command made for this cluster, by its numeric id, and returns when that is over.
// Where nothing of its name is there, it is done. One that something else refers to is a *Refused for InUse. It needs
// compute.KIND.delete and .get.
func (c *Operator) DeleteResource(ctx context.Context, r Resource) error {
	call := callsOf[r.Kind]
	name := r.ID
	if r.Kind == EndpointGroup {
		name = r.Name
	}
	return c.remove(ctx, resource{string(r.Kind), c.at(r), r.Name, r.ID, call.path, name},
		func(ctx context.Context) (id uint64, found bool, err error) {
			is, found, err := c.getResource(ctx, r)
			if err != nil || !found {
				return 0, found, err
			}
			if !is.Made {
				err = errors.New("delete " + string(r.Kind) + " " + r.Name + ": its description does not say that quorate " +
					"made it for cluster " + c.cluster)
			}
			id, _ = strconv.ParseUint(is.ID, 10, 64) // it was formatted here
			return id, true, err
		},
		func(ctx context.Context, api *compute.Service, request string) (*compute.Operation, error) {
			return call.remove(api, c, r)(ctx, request)
		})
}
