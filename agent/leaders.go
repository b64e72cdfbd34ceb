package agent

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"sync"
	"time"

	"github.com/quorate/quorate/agent/election"
	"github.com/quorate/quorate/agent/lease"
	"github.com/quorate/quorate/agent/status"
	"github.com/quorate/quorate/controlplane"
	"github.com/quorate/quorate/internal/backoff"
	"github.com/quorate/quorate/internal/waits"
	"github.com/quorate/quorate/supervisor"
)

// leaseNotRenewed is the wait for a leader that renews its lease.
const (
	leaseNotRenewed = "lease-not-renewed"
	leaseNext       = "Nothing is started again for now. What refuses a write of the lease has to be put right; a " +
		"leader that hangs again and again says why in its log."
)

// leaders is what this replica has seen of the control plane's elections. Several may use it at once.
type leaders struct {
	mu      sync.Mutex
	watches map[string]*lease.Watch // by the lease's name
	// read is when the leases were last read, by election.SinceBoot.
	read time.Duration
	// restarts are when components were started again for their leases, by the components' names.
	restarts map[string][]time.Duration
}

// keepLeaders observes the leases, and starts a leader again that hangs while its health is green.
func (a *Agent) keepLeaders(ctx context.Context) {
	select {
	case <-ctx.Done():
		return
	case <-a.leasesOpen:
	}
	for {
		if all, err := a.openedLeases().list(ctx); err == nil {
			a.leaders.note(all, election.SinceBoot())
			a.judgeLeaders(ctx)
		}
		if backoff.Sleep(ctx, leasesPeriod) != nil {
			return
		}
	}
}

func (l *leaders) note(all map[string]lease.Seen, now time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.watches == nil {
		l.watches, l.restarts = map[string]*lease.Watch{}, map[string][]time.Duration{}
	}
	maps.DeleteFunc(l.watches, func(name string, _ *lease.Watch) bool { _, there := all[name]; return !there })
	for name, s := range all {
		if l.watches[name] == nil {
			l.watches[name] = &lease.Watch{}
		}
		l.watches[name].Note(now, s)
	}
	l.read = now
}

// watch is a copy of what was seen of a lease.
func (l *leaders) watch(name string) (lease.Watch, bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if w := l.watches[name]; w != nil {
		return *w, true
	}
	return lease.Watch{}, false
}

// judgeLeaders does what is to be done about each component that elects itself.
func (a *Agent) judgeLeaders(ctx context.Context) {
	var told []error
	for _, l := range controlplane.Leases(a.cluster) {
		w, ok := a.leaders.watch(l.Name)
		runs, there := a.supervisor.StatusOf(l.Component)
		if !ok || !there {
			continue
		}
		told = append(told, a.judgeLeader(ctx, l, w, runs))
	}
	a.waits.HoldWhile(leaseNotRenewed, waits.OneLine(told), leaseNext)
}

// judgeLeader does what is to be done about one component, and returns what a person is told.
func (a *Agent) judgeLeader(ctx context.Context, l controlplane.Lease, w lease.Watch, runs supervisor.Status) error {
	f := a.leaderFacts(ctx, l, w, runs)
	act, why := lease.Judge(f)
	if act == lease.Try {
		observed, _ := w.Seen()
		f.DryRun, f.Why = a.openedLeases().dryRun(ctx, l, observed)
		act, why = lease.Judge(f)
	}
	switch act {
	case lease.Restart:
		a.restartLeader(ctx, l.Component, why)
	case lease.Tell:
		return fmt.Errorf("%s: %s", l.Component, why)
	}
	return nil
}

func (a *Agent) restartLeader(ctx context.Context, component, why string) {
	now := election.SinceBoot()
	a.leaders.mu.Lock()
	a.leaders.restarts[component] = append(a.leaders.restarts[component], now)
	a.leaders.mu.Unlock()
	a.cfg.Log.Warn("starts a leader again", "component", component, "reason", why)
	ctx, cancel := context.WithTimeoutCause(ctx, defaultStop+stopMargin, errors.New("it does not end"))
	defer cancel()
	if err := a.supervisor.Restart(ctx, component, why); err != nil {
		a.cfg.Log.Warn("start a leader again", "component", component, "err", err.Error())
	}
}

// leaderFacts is what is known of a component that runs.
func (a *Agent) leaderFacts(ctx context.Context, l controlplane.Lease, w lease.Watch,
	runs supervisor.Status) lease.Facts {
	now := election.SinceBoot()
	f := lease.Facts{Duration: a.cluster.ElectionTimes().LeaseDuration, Ready: runs.State == supervisor.Ready,
		Runs: time.Since(runs.Since), Unchanged: w.Unchanged()}
	a.leaders.mu.Lock()
	for _, at := range a.leaders.restarts[l.Component] {
		f.Restarts = append(f.Restarts, now-at)
	}
	a.leaders.mu.Unlock()
	host, err := os.Hostname()
	if err != nil || a.sharesHost(ctx) {
		return f // nobody can tell whose the lease is
	}
	s, _ := w.Seen()
	f.Holds = lease.HeldBy(s.Holder, host, l.HolderIsHost)
	// It is this very process that renewed the lease and lost it, if it had come up long enough before that.
	loss := w.Lost()
	f.Lost = lease.HeldBy(loss.By, host, l.HolderIsHost) && s.Holder != "" && !f.Holds &&
		now-f.Runs+lossMargin < loss.Renewed
	f.LostSince = now - loss.At
	return f
}

// leaseStatus is what there is to say of the leases; nothing while they cannot be read.
func (a *Agent) leaseStatus(now time.Duration) []status.Lease {
	out := []status.Lease{}
	host, _ := os.Hostname()
	a.mu.Lock()
	cluster, self := a.cluster, a.self
	a.mu.Unlock()
	a.leaders.mu.Lock()
	defer a.leaders.mu.Unlock()
	if len(a.leaders.watches) == 0 || now-a.leaders.read > leasesPatience {
		return out
	}
	of := map[string]controlplane.Lease{}
	for _, l := range controlplane.Leases(cluster) {
		of[l.Name] = l
	}
	for _, name := range slices.Sorted(maps.Keys(a.leaders.watches)) {
		w := a.leaders.watches[name]
		seen, _ := w.Seen()
		s := status.Lease{Name: name, Holder: seen.Holder, Renewed: seen.Renewed,
			Age: w.Age(now).Round(time.Millisecond).Seconds()}
		if l, ok := of[name]; ok {
			s.Role = role(lease.HeldBy(seen.Holder, host, l.HolderIsHost))
			s.Component, s.Restarts = l.Component, len(a.leaders.restarts[l.Component])
		} else if name == leaseName {
			s.Role = role(seen.Holder == leaseIdentity(self))
		}
		out = append(out, s)
	}
	return out
}

// role is what a replica is in an election in which it stands.
func role(leads bool) string {
	if leads {
		return status.Leader
	}
	return status.Standby
}
