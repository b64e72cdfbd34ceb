package agent

import (
	"context"
	"fmt"
	"time"

	"github.com/quorate/quorate/internal/backoff"
)

// leavingMember is a member that may be removed by order, for good or to join again.
type leavingMember interface {
	// OrderToLeave is the order that is in force and not followed yet; 0: there is none. It asks nobody.
	OrderToLeave() uint64
	// SayDrained says on the order that this replica serves nobody any more. It can be repeated.
	SayDrained(ctx context.Context, order uint64) error
}

// goOutOfService has a replica whose member is about to be removed by order serve nobody any more before that, which
// etcd's leader waits for: without etcd its apiserver answers every request with an error, and the load balancer would
// send new ones for some seconds. It does what a planned stop does but for etcd: the VM leaves the load balancer,
// leadership and leases are handed over, and the apiserver ends its requests. Without a load balancer nobody waits, and
// nothing is done. retire ends what starts components. Called back, the replica starts again.
func (a *Agent) goOutOfService(ctx context.Context, m leavingMember, retire func(), end context.CancelCauseFunc) {
	for ctx.Err() == nil {
		order := m.OrderToLeave()
		if order == 0 || a.document.group() == "" {
			_ = backoff.Sleep(ctx, orderPause)
			continue
		}
		a.cfg.Log.Info("by order the member is removed soon: "+
			"this replica leaves the load balancer, and its control plane stops", "order", order)
		back := a.standAside(ctx)
		if m.OrderToLeave() == 0 { // nothing was stopped yet
			back()
			continue
		}
		retire()
		// While there is an apiserver through which its Lease can be given back.
		a.candidate.StandDown("this replica's member is removed by order")
		a.leaving.leave(ctx)
		a.leaving.stopControlPlane(ctx)
		a.sayDrained(ctx, m, order)
		for ctx.Err() == nil && m.OrderToLeave() != 0 { // the removal of the member ends the agent
			_ = backoff.Sleep(ctx, orderPause)
		}
		if ctx.Err() == nil {
			end(fmt.Errorf("%w: the order to leave does not count any more", ErrStartAgain))
		}
		return
	}
}

// sayDrained says so until that is written, or of no interest any more.
func (a *Agent) sayDrained(ctx context.Context, m leavingMember, order uint64) {
	retry := backoff.Backoff{First: time.Second, Most: orderRetry}
	for m.OrderToLeave() == order {
		err := m.SayDrained(ctx, order)
		if err == nil {
			a.cfg.Log.Info("this replica serves nobody any more", "order", order)
			return
		}
		a.cfg.Log.Warn("say that this replica serves nobody any more", "err", err.Error())
		if backoff.Sleep(ctx, retry.Next()) != nil {
			return
		}
	}
}
