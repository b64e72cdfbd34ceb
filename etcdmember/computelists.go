package etcdmember

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/quorate/quorate/etcdmember/table"
	"github.com/quorate/quorate/internal/record"
	"github.com/quorate/quorate/internal/replica"
)

// computeLists is what the Compute API has said of the cluster's VMs and disks, and what an agent remembers of that
// from one poll to the next. Only the loop touches it.
type computeLists struct {
	api    ComputeAPI
	me     replica.Identity
	diskID func() string // of this VM's data disk; nil, or empty: it is not known

	compute   table.Compute
	vms       []replica.VM         // of the newest list, with their addresses
	instances map[string]bool      // all that the record ever named
	runs      map[string]table.Run // of lists that say of an instance that it is absent, or stopped
}

func newComputeLists(api ComputeAPI, me replica.Identity, diskID func() string) *computeLists {
	return &computeLists{api: api, me: me, diskID: diskID, instances: map[string]bool{}, runs: map[string]table.Run{}}
}

// ownDisk is the id of this VM's data disk; empty while it is not known.
func (c *computeLists) ownDisk() string {
	if c.diskID == nil {
		return ""
	}
	return c.diskID()
}

// list lists what exists, at most once a listPeriod. A list that failed is asked for again at once: while
// nothing is formed it says whom to ask, and nobody seeds without.
func (c *computeLists) list(ctx context.Context, v record.View) {
	if c.compute.Second.Err == nil && time.Since(c.compute.Second.Time) < listPeriod {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, listTimeout)
	defer cancel()
	l := table.Listing{Time: time.Now()}
	vms, at, err := c.api.VMs(ctx)
	l.Err = err
	if err == nil {
		l.ServerTime = at
	}
	for _, vm := range vms {
		i := table.Instance{Place: vm.Place, InstanceID: vm.InstanceID, Status: vm.Status, LastStop: vm.LastStop}
		l.Instances = append(l.Instances, i)
	}
	if err == nil {
		l.Instances = append(l.Instances, c.notListed(ctx, v, l)...)
	}
	c.listDisks(ctx, v, &l)
	if c.compute.Second.Err == nil && !c.compute.Second.Time.IsZero() {
		c.compute.First = c.compute.Second
	}
	c.compute.Second = l
	c.vms = vms
	table.NoteRuns(c.runs, l, v, c.me.InstanceID)
}

// notListed are the instances of the record that the list by label lacks and that may exist nevertheless: a label can
// be lost, and a list can be late. Each is asked for by its name, and counts as listed unless the API says of this very
// name that it does not exist, or has another instance under it. An API that does not find this very VM by its name
// either knows nothing.
func (c *computeLists) notListed(ctx context.Context, v record.View, l table.Listing) []table.Instance {
	var out []table.Instance
	trusted, asked := false, false
	for _, want := range currentInstances(v) {
		if want.InstanceID == c.me.InstanceID || table.InList(l, want.InstanceID) {
			continue // a list that lacks this very VM is none, and stays none
		}
		if !asked {
			asked = true
			me, found, err := c.api.VM(ctx, c.me.Place)
			trusted = err == nil && found && me.InstanceID == c.me.InstanceID
		}
		if trusted {
			vm, found, err := c.api.VM(ctx, want.Place)
			another := err == nil && found && vm.InstanceID != want.InstanceID &&
				!mayPrecede(v, want.Place, vm.InstanceID, want.InstanceID)
			if err == nil && !found || another {
				continue
			}
			if err == nil && vm.InstanceID == want.InstanceID {
				want.Status, want.LastStop = vm.Status, vm.LastStop
			}
		}
		out = append(out, want)
	}
	return out
}

// currentInstances are the newest of each place by the record, and the seeder of the newest claim.
func currentInstances(v record.View) []table.Instance {
	var out []table.Instance
	for p := range v.Replicas {
		if i := v.Last(p); i != nil {
			out = append(out, table.Instance{Place: p, InstanceID: i.InstanceID, Status: table.StatusUnknown})
		}
	}
	if e := v.Newest(); e != nil && e.Claim != nil {
		s := e.Claim.Seeder
		known := slices.ContainsFunc(out, func(i table.Instance) bool { return i.InstanceID == s.InstanceID })
		if !known {
			out = append(out, table.Instance{Place: s.Place, InstanceID: s.InstanceID, Status: table.StatusUnknown})
		}
	}
	return out
}

// mayPrecede: the record knows the instance as one that had the place, and not as one that took it after the wanted one
// had taken its last incarnation. Where the API shows it under the name, instead of its successor, it is late.
func mayPrecede(v record.View, p replica.Place, instanceID, wanted string) bool {
	all := v.Replicas[p]
	first := slices.IndexFunc(all, func(i record.Incarnation) bool { return i.InstanceID == instanceID })
	had := slices.ContainsFunc(all, func(i record.Incarnation) bool { return i.InstanceID == wanted })
	return first >= 0 &&
		(!had || slices.ContainsFunc(all[first:], func(i record.Incarnation) bool { return i.InstanceID == wanted }))
}

// noteInstances forgets both lists when the record names an instance that it did not name before. Two lists that lack
// an instance prove it gone only if it had been made when they were: lists from before that would let a replica that
// boots later, and is then out of reach for a minute, be taken for one that was deleted. And when it names a restore
// that it did not: a VM that was TERMINATED in lists from before the order, or from before it was accepted, which is
// when it begins to stop anybody, may have been started since, without having seen that.
func (c *computeLists) noteInstances(v record.View) {
	unknown := false
	see := func(id string) {
		unknown = unknown || !c.instances[id]
		c.instances[id] = true
	}
	for _, e := range v.Epochs {
		if e.Claim != nil {
			see(e.Claim.Seeder.InstanceID)
		}
	}
	for _, incarnations := range v.Replicas {
		for _, i := range incarnations {
			see(i.InstanceID)
		}
	}
	for _, o := range v.Orders {
		if o.Restore != nil {
			see(fmt.Sprintf("order %d, accepted %t", o.Number, o.Accepted != nil))
		}
	}
	if unknown {
		c.compute = table.Compute{}
		table.ForgetStops(c.runs)
	}
}
