package agent

import (
	"context"
	"errors"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/quorate/quorate/internal/replica"
	"github.com/quorate/quorate/supervisor"
)

// orderedMember is ordered to leave, or not.
type orderedMember struct {
	order   atomic.Uint64
	drained chan uint64
	refuses atomic.Int32 // so many times more
}

// OrderToLeave implements leavingMember.
func (m *orderedMember) OrderToLeave() uint64 { return m.order.Load() }

// SayDrained implements leavingMember.
func (m *orderedMember) SayDrained(_ context.Context, order uint64) error {
	if m.refuses.Add(-1) >= 0 {
		return errors.New("503")
	}
	m.drained <- order
	return nil
}

// outOfService is an agent whose replica serves, and that goes out of service when it is ordered to leave.
type outOfService struct {
	*Agent
	*backends
	*orderedMember
	retired atomic.Bool
	ended   chan error
}

func newOutOfService(t *testing.T, change func(*Agent)) *outOfService {
	t.Helper()
	b, a, in := balanced(t)
	change(a)
	supervised(t, a)
	newMember(t, a, in, threeOf(nil))
	for _, name := range []string{etcdName, replica.APIServer, replica.Scheduler} {
		if err := a.supervisor.Start(sleeper(name)); err != nil {
			t.Fatal(err)
		}
	}
	o := &outOfService{Agent: a, backends: b, orderedMember: &orderedMember{drained: make(chan uint64, 1)},
		ended: make(chan error, 1)}
	eventually(t, "it runs", func() bool { return o.stateOf(replica.APIServer) == supervisor.Ready })
	t.Cleanup(background(context.Background(), func(ctx context.Context) {
		a.goOutOfService(ctx, o.orderedMember, func() { o.retired.Store(true) }, func(err error) { o.ended <- err })
	}))
	return o
}

func (o *outOfService) stateOf(name string) supervisor.State {
	s, _ := o.supervisor.StatusOf(name)
	return s.State
}

// A replica that is ordered to leave leaves the load balancer, then stops what serves, then says so. Its member goes
// on.
func TestAReplicaThatLeavesServesNobodyFirst(t *testing.T) {
	t.Parallel()
	o := newOutOfService(t, func(*Agent) {})
	o.onDetach = func(context.Context) {
		if o.stateOf(replica.APIServer) != supervisor.Ready || o.retired.Load() {
			t.Error("its apiserver stops before the VM has left the load balancer")
		}
	}
	o.refuses.Store(1)
	begin := time.Now()
	o.order.Store(7)
	if got := <-o.drained; got != 7 || time.Since(begin) < detachSettles {
		t.Errorf("order %d is answered after %s", got, time.Since(begin))
	}
	if !slices.Equal(o.asked, []string{"detach demo"}) || !o.retired.Load() ||
		o.stateOf(replica.APIServer) != supervisor.Stopped || o.stateOf(replica.Scheduler) != supervisor.Stopped ||
		o.stateOf(etcdName) != supervisor.Ready {
		t.Errorf("asked %q; the apiserver is %s, etcd %s", o.asked, o.stateOf(replica.APIServer), o.stateOf(etcdName))
	}
	o.order.Store(0)
	if err := <-o.ended; !errors.Is(err, ErrStartAgain) {
		t.Errorf("called back: %v", err)
	}
}

// An order that is withdrawn before anything was stopped leaves all as it is.
func TestAnOrderToLeaveThatIsWithdrawnAtOnceStopsNothing(t *testing.T) {
	t.Parallel()
	o := newOutOfService(t, func(*Agent) {})
	detached := make(chan struct{}, 1)
	o.onDetach = func(context.Context) { o.order.Store(0); detached <- struct{}{} }
	o.order.Store(7)
	<-detached
	time.Sleep(detachSettles + 2*orderPause)
	if o.retired.Load() || o.stateOf(replica.APIServer) != supervisor.Ready || len(o.drained)+len(o.ended) > 0 {
		t.Errorf("the apiserver is %s", o.stateOf(replica.APIServer))
	}
}

// Without a load balancer nobody waits for it.
func TestWithoutALoadBalancerAReplicaServesUntilItsMemberIsRemoved(t *testing.T) {
	t.Parallel()
	o := newOutOfService(t, func(a *Agent) { a.document.atOnce = &atOnce{} })
	o.order.Store(7)
	time.Sleep(3 * orderPause)
	if o.retired.Load() || len(o.asked) > 0 || o.stateOf(replica.APIServer) != supervisor.Ready {
		t.Errorf("asked %q; the apiserver is %s", o.asked, o.stateOf(replica.APIServer))
	}
}
