package fleet

import (
	"fmt"
	"time"

	"github.com/quorate/quorate/etcdmember/order"
	"github.com/quorate/quorate/etcdmember/table"
	"github.com/quorate/quorate/fleet/plan"
	"github.com/quorate/quorate/internal/record"
	"github.com/quorate/quorate/internal/replica"
)

// recordOf is what of the record a plan needs. What it does not say yet, the document does.
func recordOf(v record.View, c *replica.Cluster, now time.Time) plan.Record {
	orders := table.OrdersOf(v.Orders, record.NumberOf(v.NewestFormed()), now)
	out := plan.Record{Begun: v.Inception != nil, Formed: v.NewestFormed() != nil, Region: c.GCE.Region,
		Wanted: c.Replicas, Busy: busy(v, orders, now)}
	if v.Inception != nil {
		out.Region = v.Inception.Region
	}
	if orders.Replicas > 0 {
		out.Wanted = orders.Replicas
	}
	for _, p := range v.Places() {
		if i := confirmed(v.Replicas[p]); i != nil {
			out.Replicas = append(out.Replicas,
				plan.Incarnation{Place: p, InstanceID: i.InstanceID, DiskID: i.Disk()})
		}
		if o := orders.Left(p); o != nil {
			out.Leaves = append(out.Leaves, plan.Leave{Place: p, Number: o.Number, Done: o.Done != nil})
		}
	}
	return out
}

// confirmed is the newest incarnation of a place that was confirmed; nil: none was.
func confirmed(all []record.Incarnation) *record.Incarnation {
	for n := len(all) - 1; n >= 0; n-- {
		if all[n].Started != nil {
			return &all[n]
		}
	}
	return nil
}

// busy is why the membership is to be left alone; empty: it is not.
func busy(v record.View, orders table.Orders, now time.Time) string {
	restore, _, restores := order.RestoreOf(v, now).InForce()
	newest := v.Newest()
	switch {
	case orders.Paused:
		return "it is paused by order, which 'quorate resume' ends"
	case restores:
		return fmt.Sprintf("order %d restores the cluster", restore.Number)
	case newest != nil && newest.Closed != nil:
		return fmt.Sprintf("epoch %d has ended, and a restore has not formed the next", newest.Number)
	case newest != nil && newest.Outcome == nil && v.NewestFormed() != nil:
		return fmt.Sprintf("epoch %d is being formed by a restore", newest.Number)
	}
	return ""
}
