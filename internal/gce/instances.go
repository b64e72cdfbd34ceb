package gce

import (
	"context"
	"fmt"
	"net/netip"
	"strconv"
	"time"

	"google.golang.org/api/compute/v1"

	"github.com/quorate/quorate/internal/replica"
)

// VMs lists every VM of the cluster, in whatever state. The list is complete or it is an error: a zone of the region
// that did not answer, a warning, a page that is missing. What zones of other regions do does not matter. An empty list
// means only that nothing carries the label.
// at is when the API answered, by its own clock: with the oldest of the pages; zero where it does not say.
func (c *Compute) VMs(ctx context.Context) (list []replica.VM, at time.Time, err error) {
	var out []replica.VM
	at, err = c.pages(ctx, "the instances of cluster "+c.cluster, func(ctx context.Context, api *compute.Service,
		token string) (page, error) {
		list, err := api.Instances.AggregatedList(c.project).Context(ctx).Filter(c.labelFilter()).PageToken(token).
			Do(partialSuccess)
		if err != nil {
			return page{}, err
		}
		found, problems, err := c.vmsOf(list)
		take := func() { out = append(out, found...) }
		return page{next: list.NextPageToken, problems: problems, take: take, at: answeredAt(list.ServerResponse)}, err
	})
	if err != nil {
		return nil, time.Time{}, err
	}
	return out, at, nil
}

// vmsOf translates one page and lists what says that it is not whole.
func (c *Compute) vmsOf(list *compute.InstanceAggregatedList) (out []replica.VM, problems []string, err error) {
	problems, err = c.eachInstance(list, func(vm replica.VM, _ *compute.Instance) { out = append(out, vm) })
	return out, problems, err
}

// eachInstance goes through one page's VMs of the cluster, and names what makes it incomplete.
func (c *Compute) eachInstance(list *compute.InstanceAggregatedList, take func(replica.VM, *compute.Instance)) (
	problems []string, err error) {
	if err := ofKind(list.Kind, "compute#instanceAggregatedList"); err != nil {
		return nil, err
	}
	missing := holes{region: c.region}
	missing.unreachable(list.Unreachables)
	for _, scope := range sortedKeys(list.Items) {
		items := list.Items[scope]
		if w := items.Warning; w != nil {
			missing.inScope(scope, w.Code, w.Message)
		}
		for _, i := range items.Instances {
			if !c.labelled(i.Labels) {
				continue
			}
			one, err := vmOf(lastPart(scope), i)
			if err != nil {
				return nil, finalError{err}
			}
			take(one, i)
		}
	}
	if w := list.Warning; w != nil {
		missing.inAll(w.Code, w.Message)
	}
	return missing.problems, nil
}

func vmOf(zone string, i *compute.Instance) (replica.VM, error) {
	out := replica.VM{Place: replica.Place{Zone: zone, Name: i.Name}, InstanceID: strconv.FormatUint(i.Id, 10),
		Status: i.Status}
	if i.Id == 0 || i.Name == "" || i.Status == "" {
		return replica.VM{}, fmt.Errorf("found an instance %q in %s without name, id or status", i.Name, zone)
	}
	if stop, err := time.Parse(time.RFC3339, i.LastStopTimestamp); err == nil {
		out.LastStop = stop
	}
	for _, nic := range i.NetworkInterfaces {
		for _, text := range []string{nic.NetworkIP, nic.Ipv6Address} {
			if text == "" {
				continue
			}
			a, err := netip.ParseAddr(text)
			if err != nil {
				return replica.VM{}, fmt.Errorf("found address %q at instance %s", shorten(text), out.Place)
			}
			if a.Is4() || a.IsPrivate() {
				out.Addresses = append(out.Addresses, a)
			}
		}
	}
	for _, d := range i.Disks {
		one := replica.AttachedDisk{Name: lastPart(d.Source), DeviceName: d.DeviceName, Source: d.Source}
		out.Disks = append(out.Disks, one)
	}
	return out, nil
}

// VM is one VM by its name, whatever its labels. found is false only where the API says of this very instance
// that it does not exist; a missing zone or project, which has the same status, is an error.
func (c *Compute) VM(ctx context.Context, p replica.Place) (vm replica.VM, found bool, err error) {
	err = c.ask(ctx, fmt.Sprintf("instance %s in %s", p.Name, p.Zone),
		func(ctx context.Context, api *compute.Service) error {
			i, err := api.Instances.Get(c.project, p.Zone, p.Name).Context(ctx).Do()
			if err != nil {
				return err
			}
			if i.Name != p.Name {
				return finalError{fmt.Errorf("found an instance %q", i.Name)}
			}
			if vm, err = vmOf(p.Zone, i); err != nil {
				return finalError{err}
			}
			return nil
		})
	if isMissing(err, "instances", p.Name) {
		return replica.VM{}, false, nil
	}
	return vm, err == nil, err
}
