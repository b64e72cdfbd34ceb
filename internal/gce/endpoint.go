package gce

import (
	"context"
	"errors"
	"fmt"
	"net/netip"

	"google.golang.org/api/compute/v1"

	"github.com/quorate/quorate/internal/replica"
)

// Endpoint is a VM as it is attached to an endpoint group: by the name that it has in the group's zone, and its own
// address.
type Endpoint struct {
	replica.Place
	Address netip.Addr
}

// Attach makes sure that a VM is in the network endpoint group of a name in its zone, and says whether it had to attach
// it. Where the group has another address of the VM, a former VM of its name has left it: it is detached. No other VM
// is touched. A group or a permission that is missing is a *Refused. It needs compute.networkEndpointGroups.get,
// compute.networkEndpointGroups.attachNetworkEndpoints, compute.instances.use and compute.zoneOperations.get.
func (c *Compute) Attach(ctx context.Context, group string, e Endpoint) (attached bool, err error) {
	there, err := c.endpointsOf(ctx, group, e.Place)
	if err != nil {
		return false, err
	}
	for _, one := range there {
		if one.Address == e.Address {
			return false, nil
		}
		if err := c.detach(ctx, group, one); err != nil {
			return false, err
		}
	}
	asked := fmt.Sprintf("attaching %s (%s) to the endpoint group %s in %s", e.Name, e.Address, group, e.Zone)
	err = c.carryOut(ctx, where{zone: e.Zone}, asked,
		func(ctx context.Context, api *compute.Service, request string) (*compute.Operation, error) {
			return api.NetworkEndpointGroups.AttachNetworkEndpoints(c.project, e.Zone, group,
				&compute.NetworkEndpointGroupsAttachEndpointsRequest{NetworkEndpoints: c.named(e)}).
				RequestId(request).Context(ctx).Do()
		})
	return err == nil, explainedGroup(err, group, e.Zone)
}

// Detach takes a VM out of the group, whatever its address there, and says whether it was in it; it returns when that
// is over. A group that is missing has nobody in it. It needs compute.networkEndpointGroups.get,
// compute.networkEndpointGroups.detachNetworkEndpoints, compute.instances.use and compute.zoneOperations.get.
func (c *Compute) Detach(ctx context.Context, group string, p replica.Place) (detached bool, err error) {
	there, err := c.endpointsOf(ctx, group, p)
	var refused *Refused
	if errors.As(err, &refused) && refused.Reason == NotFound {
		return false, nil
	}
	for _, one := range there {
		if err := c.detach(ctx, group, one); err != nil {
			return false, err
		}
	}
	return len(there) > 0, err
}

// detach takes out what the group has. That it has it no more is no error.
func (c *Compute) detach(ctx context.Context, group string, e Endpoint) error {
	asked := fmt.Sprintf("detaching %s (%s) from the endpoint group %s in %s", e.Name, e.Address, group, e.Zone)
	err := c.carryOut(ctx, where{zone: e.Zone}, asked,
		func(ctx context.Context, api *compute.Service, request string) (*compute.Operation, error) {
			return api.NetworkEndpointGroups.DetachNetworkEndpoints(c.project, e.Zone, group,
				&compute.NetworkEndpointGroupsDetachEndpointsRequest{NetworkEndpoints: c.named(e)}).
				RequestId(request).Context(ctx).Do()
		})
	if err == nil {
		return nil
	}
	there, errThere := c.endpointsOf(ctx, group, e.Place)
	for _, one := range there {
		if one == e {
			return explainedGroup(err, group, e.Zone)
		}
	}
	return errThere
}

// named is an endpoint in the API's words.
func (c *Compute) named(e Endpoint) []*compute.NetworkEndpoint {
	return []*compute.NetworkEndpoint{{Instance: c.inZone(e.Zone, "instances", e.Name), IpAddress: e.Address.String()}}
}

// endpointsOf are those of the group's endpoints that have a VM's name.
func (c *Compute) endpointsOf(ctx context.Context, group string, p replica.Place) (out []Endpoint, err error) {
	asked := fmt.Sprintf("the endpoint group %s in %s", group, p.Zone)
	_, err = c.pages(ctx, asked, func(ctx context.Context, api *compute.Service, token string) (page, error) {
		list, err := api.NetworkEndpointGroups.ListNetworkEndpoints(c.project, p.Zone, group,
			&compute.NetworkEndpointGroupsListEndpointsRequest{HealthStatus: "SKIP"}).PageToken(token).Context(ctx).Do()
		if err != nil {
			return page{}, err
		}
		if err := ofKind(list.Kind, "compute#networkEndpointGroupsListNetworkEndpoints"); err != nil {
			return page{}, err
		}
		found, err := namedEndpoints(list.Items, p)
		var missing holes
		if w := list.Warning; w != nil {
			missing.inAll(w.Code, w.Message)
		}
		return page{next: list.NextPageToken, problems: missing.problems, take: func() { out = append(out, found...) }},
			err
	})
	if err != nil {
		return nil, explainedGroup(err, group, p.Zone)
	}
	return out, nil
}

// namedEndpoints are those of a page that have a VM's name; the group's zone is the VM's.
func namedEndpoints(items []*compute.NetworkEndpointWithHealthStatus, p replica.Place) (out []Endpoint, err error) {
	for _, item := range items {
		if item.NetworkEndpoint == nil || lastPart(item.NetworkEndpoint.Instance) != p.Name {
			continue
		}
		a, err := netip.ParseAddr(item.NetworkEndpoint.IpAddress)
		if err != nil {
			return nil, finalError{fmt.Errorf("found address %q at the endpoint %s", shorten(item.NetworkEndpoint.IpAddress),
				p)}
		}
		out = append(out, Endpoint{p, a})
	}
	return out, nil
}

// explainedGroup marks a failure with its reason, and says how a group that is missing is made.
func explainedGroup(err error, group, zone string) error {
	if err == nil {
		return nil
	}
	err = explained(err)
	if !isMissing(err, "networkEndpointGroups", group) {
		return err
	}
	return &Refused{Reason: NotFound, err: fmt.Errorf("%w; 'gcloud compute network-endpoint-groups create %s --zone=%s "+
		"--network-endpoint-type=gce-vm-ip --network=NETWORK --subnet=SUBNETWORK' makes it", err, group, zone)}
}

// IsHealthy says whether a VM passes the health check of the backend service of a name, by the endpoint group of that
// name in its zone; false, too, where it is not in the group. It needs compute.regionBackendServices.get.
func (c *Compute) IsHealthy(ctx context.Context, name string, p replica.Place) (healthy bool, err error) {
	asked := fmt.Sprintf("the health of %s behind backend service %s", p, name)
	group := &compute.ResourceGroupReference{Group: c.inZone(p.Zone, "networkEndpointGroups", name)}
	err = c.ask(ctx, asked, func(ctx context.Context, api *compute.Service) error {
		found, err := api.RegionBackendServices.GetHealth(c.project, c.region, name, group).Context(ctx).Do()
		if err != nil {
			return err
		}
		healthy = false
		for _, s := range found.HealthStatus {
			healthy = healthy || lastPart(s.Instance) == p.Name && s.HealthState == "HEALTHY"
		}
		return ofKind(found.Kind, "compute#backendServiceGroupHealth")
	})
	return healthy, explained(err)
}
