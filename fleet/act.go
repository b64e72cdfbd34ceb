package fleet

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/quorate/quorate/etcdmember/order"
	"github.com/quorate/quorate/fleet/plan"
	"github.com/quorate/quorate/internal/gce"
)

// take carries out one step. It returns when the step is done, or with an error, after which it may be done.
func (f *Fleet) take(ctx context.Context, s plan.Step) error {
	switch s.Act {
	case plan.BeginRecord:
		return f.Begin(ctx)
	case plan.CreateDisk:
		return f.Cloud.InsertDisk(ctx, s.Place.Zone, f.diskSpec(s))
	case plan.CreateVM:
		return f.Cloud.InsertVM(ctx, s.Place.Zone, f.vmSpec(s))
	case plan.DeleteVM:
		return f.Cloud.DeleteVM(ctx, s.Place, s.InstanceID)
	case plan.DeleteDisk:
		return f.Cloud.DeleteDisk(ctx, s.Place.Zone, s.Disk, s.DiskID)
	case plan.CreateResource:
		return f.makeResource(ctx, s)
	case plan.DeleteResource:
		return f.Cloud.DeleteResource(ctx, gce.Resource{Kind: gce.ResourceKind(s.Kind), Zone: s.Place.Zone,
			Name: s.Resource, ID: s.ResourceID})
	case plan.TakeAddress:
		return f.Cloud.TakeAddress(ctx, s.Place, s.InstanceID, s.Address)
	case plan.GiveAddress:
		return f.Cloud.GiveAddress(ctx, s.Place, s.InstanceID, s.Address)
	case plan.OrderReplicas:
		return f.give(ctx, func(l order.Log) (order.Draft, error) { return l.CheckReplicas(strconv.Itoa(s.Replicas)) })
	case plan.OrderLeave:
		return f.give(ctx, func(l order.Log) (order.Draft, error) {
			return l.CheckLeave(s.Place.String(), "its VM is removed by a command")
		})
	}
	return fmt.Errorf("carry out %q: it is not known", s.Act)
}

// give has an order checked against the record, and writes it unless it is in force already.
func (f *Fleet) give(ctx context.Context, check func(order.Log) (order.Draft, error)) error {
	v, err := f.Cluster.View(ctx)
	if err != nil {
		return err
	}
	d, err := check(order.NewLog(v, time.Now()))
	if err != nil || d.Already != "" {
		return err
	}
	d.Order.By = f.By
	_, err = f.Cluster.CreateOrder(ctx, d.Order)
	return err
}

// takesAway reports whether a step takes something away. The load balancer's other parts lead nowhere once its
// forwarding rule is gone, so nobody misses them.
func takesAway(s plan.Step) bool {
	switch s.Act {
	case plan.OrderLeave, plan.DeleteVM, plan.DeleteDisk, plan.TakeAddress:
		return true
	case plan.DeleteResource:
		return s.Kind == plan.RuleKind
	}
	return false
}

// waits reports whether a step only waits for what the agents do.
func waits(a plan.Act) bool {
	return slices.Contains([]plan.Act{plan.AwaitJoined, plan.AwaitLeft, plan.AwaitAttached, plan.AwaitHealthy}, a)
}

// beginsOutage reports whether nobody reaches the endpoint from a step on until the next one has taken effect.
func beginsOutage(s *plan.Step) bool {
	return s != nil && (s.Act == plan.TakeAddress || s.Act == plan.DeleteResource && s.Kind == plan.RuleKind)
}
