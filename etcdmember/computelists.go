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

const (
	// listPeriod is the time between two lists of the Compute API that prove a death.
	listPeriod = 10 * time.Second
	// listTimeout bounds one list: while nothing is formed everybody waits for it.
	listTimeout = 5 * time.Second
)

// listCompute lists what exists, at most once a listPeriod. A list that failed is asked for again at once: while
// nothing is formed it says whom to ask, and nobody seeds without.
func (m *Membership) listCompute(ctx context.Context, v record.View) {
	if m.compute.Second.Err == nil && time.Since(m.compute.Second.Time) < listPeriod {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, listTimeout)
	defer cancel()
	l := table.Listing{Time: time.Now()}
	vms, at, err := m.cfg.Compute.VMs(ctx)
	l.Err = err
	if err == nil {
		l.ServerTime = at
	}
	for _, vm := range vms {
		i := table.Instance{Place: vm.Place, InstanceID: vm.InstanceID, Status: vm.Status, LastStop: vm.LastStop}
		l.Instances = append(l.Instances, i)
	}
	if err == nil {
		l.Instances = append(l.Instances, m.notListed(ctx, v, l)...)
	}
	m.listDisks(ctx, v, &l)
	if m.compute.Second.Err == nil && !m.compute.Second.Time.IsZero() {
		m.compute.First = m.compute.Second
	}
	m.compute.Second = l
	m.vms = vms
	table.NoteRuns(m.runs, l, v, m.cfg.Me.InstanceID)
}

// notListed are the instances of the record that the list by label lacks and that may exist nevertheless: a label can
// be lost, and a list can be late. Each is asked for by its name, and counts as listed unless the API says of this very
// name that it does not exist, or has another instance under it. An API that does not find this very VM by its name
// either knows nothing.
func (m *Membership) notListed(ctx context.Context, v record.View, l table.Listing) []table.Instance {
	var out []table.Instance
	trusted, asked := false, false
	for _, want := range currentInstances(v) {
		if want.InstanceID == m.cfg.Me.InstanceID || table.InList(l, want.InstanceID) {
			continue // a list that lacks this very VM is none, and stays none
		}
		if !asked {
			asked = true
			me, found, err := m.cfg.Compute.VM(ctx, m.cfg.Me.Place)
			trusted = err == nil && found && me.InstanceID == m.cfg.Me.InstanceID
		}
		if trusted {
			vm, found, err := m.cfg.Compute.VM(ctx, want.Place)
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
func (m *Membership) noteInstances(v record.View) {
	unknown := false
	see := func(id string) {
		unknown = unknown || !m.instances[id]
		m.instances[id] = true
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
		m.compute = table.Compute{}
		table.ForgetStops(m.runs)
	}
}
