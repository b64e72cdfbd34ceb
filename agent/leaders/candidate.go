package leaders

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	coordination "k8s.io/client-go/kubernetes/typed/coordination/v1"
	"k8s.io/client-go/rest"

	"github.com/quorate/quorate/agent/election"
	"github.com/quorate/quorate/controlplane"
	"github.com/quorate/quorate/internal/backoff"
	"github.com/quorate/quorate/internal/replica"
	"github.com/quorate/quorate/supervisor"
)

// Candidate is this replica in the agents' own election. Until it stands, nothing is held.
type Candidate struct {
	log        *slog.Logger
	supervisor *supervisor.Supervisor
	election   atomic.Pointer[election.Election] // nil until it stands
	// yielded is when it last let another have the Lease; only the holder's goroutine uses it.
	yielded time.Time
}

// NewCandidate does not stand yet.
func NewCandidate(log *slog.Logger, s *supervisor.Supervisor) *Candidate {
	return &Candidate{log: log, supervisor: s}
}

// Begin calls start while the Lease is held.
func (c *Candidate) Begin(start func() error) error {
	if e := c.election.Load(); e != nil {
		return e.Begin(start)
	}
	return election.ErrNotHeld
}

// Held says whether something may be started under the Lease now.
func (c *Candidate) Held() bool {
	e := c.election.Load()
	return e != nil && e.Held()
}

// Stand takes part in the election until ctx is done, by an apiserver that lets the agent use leases. begins is called
// when the Lease is held, and work until it is not any more.
func (c *Candidate) Stand(ctx context.Context, me Replica, api *rest.Config, begins func(),
	work func(ctx context.Context)) {
	times := me.Cluster.ElectionTimes()
	api.Timeout = times.RenewDeadline / 2 // as client-go's own
	var e *election.Election
	e = election.New(election.Config{
		Log: c.log, Times: times,
		Lock: newOwnLease(coordination.NewForConfigOrDie(api), identity(me.Self)),
		Stop: StopElected(c.supervisor, me.Cluster),
		Lead: func(ctx context.Context) {
			begins()
			c.lead(ctx, me, e, work)
		},
	})
	c.election.Store(e)
	e.Run(ctx)
}

// StandDown lets another have the Lease, and stays out for longer than a replica takes to leave.
func (c *Candidate) StandDown(why string) {
	if e := c.election.Load(); e != nil {
		e.Yield(why, yieldForGood)
	}
}

// StopElected ends all that runs under the Lease.
func StopElected(s *supervisor.Supervisor, cluster *replica.Cluster) func(within time.Duration) error {
	return func(within time.Duration) error {
		ctx, cancel := context.WithTimeoutCause(context.Background(), within+supervisor.StopMargin,
			errors.New("it does not end"))
		defer cancel()
		names := controlplane.Elected(cluster)
		errs := make([]error, len(names))
		var all sync.WaitGroup
		for i, name := range names {
			all.Go(func() {
				if err := s.StopWithin(ctx, name, within); !errors.Is(err, supervisor.ErrUnknown) {
					errs[i] = err
				}
			})
		}
		all.Wait()
		return errors.Join(errs...)
	}
}

// lead is what this replica does while it holds the Lease.
func (c *Candidate) lead(ctx context.Context, me Replica, e *election.Election, duties func(ctx context.Context)) {
	var work sync.WaitGroup
	work.Go(func() { duties(ctx) })
	defer work.Wait()
	readyAt := map[string]time.Time{}
	for _, name := range controlplane.Elected(me.Cluster) {
		readyAt[name] = time.Now()
	}
	for backoff.Sleep(ctx, readyPeriod) == nil {
		if why := c.worthYielding(ctx, me, readyAt); why != "" {
			c.yielded = time.Now()
			e.Yield(why, yieldAside)
		}
	}
}

// worthYielding says why another replica had better hold the Lease: a component that runs under it does not get ready
// here. Where it does so nowhere, the Lease goes round at a slow pace. readyAt is when each was last seen ready, or
// when the term began; those that are ready now are noted in it.
func (c *Candidate) worthYielding(ctx context.Context, me Replica, readyAt map[string]time.Time) string {
	for _, name := range controlplane.Elected(me.Cluster) {
		s, _ := c.supervisor.StatusOf(name)
		if s.State == supervisor.Ready {
			readyAt[name] = time.Now()
		}
		if time.Since(readyAt[name]) < yieldPatience || !c.yielded.IsZero() && time.Since(c.yielded) < yieldDistance {
			continue
		}
		if others, err := me.Members(ctx); err == nil && len(others.Members) > 1 {
			return fmt.Sprintf("%s is not ready here: %s", name, cmp.Or(s.Reason, "it was not started"))
		}
	}
	return ""
}
