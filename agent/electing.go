package agent

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	coordination "k8s.io/client-go/kubernetes/typed/coordination/v1"
	"k8s.io/client-go/tools/leaderelection/resourcelock"

	"github.com/quorate/quorate/agent/election"
	"github.com/quorate/quorate/controlplane"
	"github.com/quorate/quorate/internal/backoff"
	"github.com/quorate/quorate/internal/replica"
	"github.com/quorate/quorate/supervisor"
)

// leaseName is the agents' own Lease. Its holder runs the components that run on one replica at a time, and does what
// one replica at a time does.
const leaseName = "quorate"

// leaseIdentity names one boot of one VM, so that an agent that was started again goes on at once: the children of the
// one before it are dead. It begins with the VM's name, for people.
func leaseIdentity(self replica.Identity) string {
	return self.Place.Name + "_" + self.Place.Zone + "_" + self.InstanceID + "_" + self.BootID
}

// newElection is this replica's part in the agents' own election. It has not begun.
func (a *Agent) newElection(in joined) *election.Election {
	times := in.cluster.ElectionTimes()
	config := localAPI(a.files, in.cluster.Endpoint.Port)
	config.Timeout = times.RenewDeadline / 2 // as client-go's own
	var e *election.Election
	e = election.New(election.Config{
		Log: a.cfg.Log, Times: times,
		Lock: &resourcelock.LeaseLock{
			LeaseMeta:  metav1.ObjectMeta{Namespace: leaseNamespace, Name: leaseName},
			Client:     coordination.NewForConfigOrDie(config),
			LockConfig: resourcelock.ResourceLockConfig{Identity: leaseIdentity(in.self)},
		},
		Stop: a.stopElected(in.cluster),
		Lead: func(ctx context.Context) { a.leadAgents(ctx, in, e) },
	})
	return e
}

// openedElection is the election once the agent may use leases; before that nothing is held.
type openedElection struct {
	atomic.Pointer[election.Election]
}

// Begin calls start while the Lease is held.
func (o *openedElection) Begin(start func() error) error {
	if e := o.Load(); e != nil {
		return e.Begin(start)
	}
	return election.ErrNotHeld
}

// Held says whether something may be started under the Lease now.
func (o *openedElection) Held() bool {
	e := o.Load()
	return e != nil && e.Held()
}

// standForElection takes part in the election once the agent may use leases.
func (a *Agent) standForElection(ctx context.Context, in joined) {
	select {
	case <-ctx.Done():
	case <-a.leasesOpen:
		e := a.newElection(in)
		a.elected.Store(e)
		e.Run(ctx)
	}
}

// stopElected ends all that runs under the Lease.
func (a *Agent) stopElected(cluster *replica.Cluster) func(within time.Duration) error {
	return func(within time.Duration) error {
		ctx, cancel := context.WithTimeoutCause(context.Background(), within+stopMargin, errors.New("it does not end"))
		defer cancel()
		names := controlplane.Elected(cluster)
		errs := make([]error, len(names))
		var all sync.WaitGroup
		for i, name := range names {
			all.Go(func() {
				if err := a.supervisor.StopWithin(ctx, name, within); !errors.Is(err, supervisor.ErrUnknown) {
					errs[i] = err
				}
			})
		}
		all.Wait()
		return errors.Join(errs...)
	}
}

// leadAgents is what this replica does while it holds the Lease.
func (a *Agent) leadAgents(ctx context.Context, in joined, e *election.Election) {
	a.wantFit()
	var work sync.WaitGroup
	work.Go(func() { a.doDuties(ctx, in) })
	defer work.Wait()
	readyAt := map[string]time.Time{}
	for _, name := range controlplane.Elected(in.cluster) {
		readyAt[name] = time.Now()
	}
	for backoff.Sleep(ctx, fitHurry) == nil {
		if why := a.worthYielding(ctx, in, readyAt); why != "" {
			a.yielded = time.Now()
			e.Yield(why, yieldAside)
		}
	}
}

// worthYielding says why another replica had better hold the Lease: a component that runs under it does not get ready
// here. Where it does so nowhere, the Lease goes round at a slow pace. readyAt is when each was last seen ready, or
// when the term began; those that are ready now are noted in it.
func (a *Agent) worthYielding(ctx context.Context, in joined, readyAt map[string]time.Time) string {
	for _, name := range controlplane.Elected(in.cluster) {
		s, _ := a.supervisor.StatusOf(name)
		if s.State == supervisor.Ready {
			readyAt[name] = time.Now()
		}
		if time.Since(readyAt[name]) < yieldPatience || !a.yielded.IsZero() && time.Since(a.yielded) < yieldDistance {
			continue
		}
		if others, err := in.membership.Status(ctx); err == nil && len(others.Members) > 1 {
			return fmt.Sprintf("%s is not ready here: %s", name, cmp.Or(s.Reason, "it was not started"))
		}
	}
	return ""
}
