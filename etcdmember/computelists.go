package etcdmember

import (
	"context"
	"time"

	"github.com/quorate/quorate/internal/record"
)

const (
	// listPeriod is the time between two lists of the Compute API that prove a death.
	listPeriod = 10 * time.Second
	// listTimeout bounds one list: while nothing is formed everybody waits for it.
	listTimeout = 5 * time.Second
)

// listCompute lists what exists, at most once a listPeriod. A list that failed is asked for again at once: while nothing is formed it
// says whom to ask, and nobody seeds without.
func (m *Membership) listCompute(ctx context.Context) {
	if m.compute.Second.Err == nil && time.Since(m.compute.Second.Time) < listPeriod {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, listTimeout)
	defer cancel()
	l := Listing{Time: time.Now()}
	vms, err := m.cfg.Compute.VMs(ctx)
	l.Err = err
	for _, vm := range vms {
		l.Instances = append(l.Instances, Instance{Place: vm.Place, InstanceID: vm.InstanceID, Status: vm.Status})
	}
	l.Disks, l.DisksErr = m.cfg.Compute.DiskIDs(ctx)
	if m.compute.Second.Err == nil && !m.compute.Second.Time.IsZero() {
		m.compute.First = m.compute.Second
	}
	m.compute.Second = l
	m.vms = vms
}

// noteInstances forgets both lists when the record names an instance that it did not name before. Two lists that lack an instance prove
// it gone only if it had been made when they were: lists from before that would let a replica that boots later, and is then out of
// reach for a minute, be taken for one that was deleted.
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
	if unknown {
		m.compute = Compute{}
	}
}
