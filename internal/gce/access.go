package gce

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"google.golang.org/api/compute/v1"

	"github.com/quorate/quorate/internal/backoff"
	"github.com/quorate/quorate/internal/replica"
)

// accessName and accessType are what an access config of a VM is called, and what it does: one address, one VM.
const (
	accessName = "External NAT"
	accessType = "ONE_TO_ONE_NAT"
)

// User is what has an address: a VM, of Kind Instance, or a resource.
type User struct {
	Kind       ResourceKind
	Zone, Name string
}

// usersOf are the links of an address' users in words. A kind that is not known keeps its name in links.
func usersOf(links []string) (out []User) {
	kinds := map[string]ResourceKind{"instances": Instance, "forwardingRules": ForwardingRule}
	for _, link := range links {
		parts := strings.Split(linkText(link), "/")
		u := User{Name: parts[len(parts)-1], Kind: "resource"}
		if n := len(parts) - 2; n >= 0 {
			u.Kind = ResourceKind(parts[n])
			if kind, known := kinds[parts[n]]; known {
				u.Kind = kind
			}
		}
		if at := slices.Index(parts, "zones"); at >= 0 && at+1 < len(parts) {
			u.Zone = parts[at+1]
		}
		out = append(out, u)
	}
	return out
}

// externalIP is the external address of a VM's first interface; empty: it has none, or none at the moment.
func externalIP(i *compute.Instance) string {
	for _, nic := range i.NetworkInterfaces[:min(1, len(i.NetworkInterfaces))] {
		for _, a := range nic.AccessConfigs {
			if a.NatIP != "" {
				return a.NatIP
			}
		}
	}
	return ""
}

// accessTo is the access config by which a VM gets a reserved address of the region: of that address' network tier.
func (c *Operator) accessTo(ctx context.Context, address string) (*compute.AccessConfig, error) {
	is, found, err := c.addressByNumber(ctx, Resource{Kind: Address, body: &compute.Address{Address: address}})
	if err == nil && !found {
		err = fmt.Errorf("find address %s: it is not reserved in %s", address, c.region)
	}
	if err != nil {
		return nil, explained(err)
	}
	return &compute.AccessConfig{Name: accessName, Type: accessType, NatIP: address, NetworkTier: is.tier}, nil
}

// GiveAddress gives a reserved external address to the VM with a numeric id, and returns when that is over. One that
// has it already is done; one that has another external address is an error. An address that somebody else has is a
// *Refused for InUse. It needs compute.instances.get, compute.instances.addAccessConfig, compute.addresses.list,
// compute.addresses.use, compute.subnetworks.useExternalIp and compute.zoneOperations.get.
func (c *Operator) GiveAddress(ctx context.Context, p replica.Place, instanceID, address string) error {
	access, err := c.accessTo(ctx, address)
	if err != nil {
		return err
	}
	asked := fmt.Sprintf("giving %s to %s (%s)", address, p, instanceID)
	return c.changeAccess(ctx, p, instanceID, asked, func(there *compute.Instance) (beginning, error) {
		switch has := externalIP(there); {
		case there.Name == "":
			return nil, fmt.Errorf("give %s to %s: there is no instance %s", address, p, instanceID)
		case has == address:
			return nil, nil
		case has != "":
			return nil, fmt.Errorf("give %s to %s: it has the external address %s", address, p, has)
		}
		return func(ctx context.Context, api *compute.Service, request string) (*compute.Operation, error) {
			return api.Instances.AddAccessConfig(c.project, p.Zone, instanceID, firstInterface(there), access).
				RequestId(request).Context(ctx).Do()
		}, nil
	})
}

// TakeAddress takes an external address from the VM with a numeric id, and returns when that is over. One that does not
// have it, or is not there, is done. It needs compute.instances.get, compute.instances.deleteAccessConfig and
// compute.zoneOperations.get.
func (c *Operator) TakeAddress(ctx context.Context, p replica.Place, instanceID, address string) error {
	asked := fmt.Sprintf("taking %s from %s (%s)", address, p, instanceID)
	return c.changeAccess(ctx, p, instanceID, asked, func(there *compute.Instance) (beginning, error) {
		for _, nic := range there.NetworkInterfaces {
			for _, a := range nic.AccessConfigs {
				if a.NatIP != address {
					continue
				}
				return func(ctx context.Context, api *compute.Service, request string) (*compute.Operation, error) {
					return api.Instances.DeleteAccessConfig(c.project, p.Zone, instanceID, a.Name, nic.Name).
						RequestId(request).Context(ctx).Do()
				}, nil
			}
		}
		return nil, nil
	})
}

// firstInterface is the name of a VM's first network interface.
func firstInterface(i *compute.Instance) string {
	for _, nic := range i.NetworkInterfaces {
		if nic.Name != "" {
			return nic.Name
		}
	}
	return "nic0"
}

// changeAccess changes what external address a VM has, by what it has at the moment: change gets an instance without a
// name where none is there, and begins nothing where all is as it should be. After a failure it is asked again: the
// order may have been carried out. While another operation changes the VM, it waits.
func (c *Operator) changeAccess(ctx context.Context, p replica.Place, instanceID, asked string,
	change func(*compute.Instance) (beginning, error)) error {
	pause := backoff.Backoff{First: firstPoll, Most: mostPoll}
	for {
		there, found, err := c.getInstance(ctx, p.Zone, instanceID)
		if err != nil {
			return explained(err)
		}
		if !found {
			there = &compute.Instance{}
		}
		begin, err := change(there)
		if err != nil || begin == nil {
			return err
		}
		err = c.carryOut(ctx, where{zone: p.Zone}, asked, begin)
		if !isBusy(err) {
			return c.unlessChanged(ctx, p, instanceID, change, err)
		}
		if errWait := backoff.Sleep(ctx, pause.Next()); errWait != nil {
			return fmt.Errorf("wait for another operation: %w (last try: %w)", errWait, err)
		}
	}
}

// unlessChanged is an order's failure, unless what it was to change is as it should be all the same.
func (c *Operator) unlessChanged(ctx context.Context, p replica.Place, instanceID string,
	change func(*compute.Instance) (beginning, error), failed error) error {
	if failed == nil || ctx.Err() != nil {
		return explained(failed)
	}
	there, found, err := c.getInstance(ctx, p.Zone, instanceID)
	if err != nil || !found {
		return explained(errors.Join(failed, err))
	}
	if begin, err := change(there); begin == nil && err == nil {
		return nil
	}
	return explained(failed)
}

// IsAttached says whether a VM of a name is in the endpoint group of its zone. A group that is missing has nobody in
// it. It needs compute.networkEndpointGroups.get.
func (c *Compute) IsAttached(ctx context.Context, group string, p replica.Place) (bool, error) {
	there, err := c.endpointsOf(ctx, group, p)
	var refused *Refused
	if errors.As(err, &refused) && refused.Reason == NotFound {
		return false, nil
	}
	return len(there) > 0, err
}
