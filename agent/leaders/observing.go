package leaders

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

// observed is what this replica has seen of the control plane's elections. Several may use it at once.
type observed struct {
	mu      sync.Mutex
	watches map[string]*lease.Watch // by the lease's name
	// read is when the leases were last read, by election.SinceBoot.
	read time.Duration
	// restarts are when components were started again for their leases, by the components' names.
	restarts map[string][]time.Duration
}

// Keep observes the leases, and starts a leader again that hangs while its health is green, until ctx is done.
func (l *Leaders) Keep(ctx context.Context) {
	select {
	case <-ctx.Done():
		return
	case <-l.opened:
	}
	for {
		if all, err := l.open().list(ctx); err == nil {
			l.seen.note(all, election.SinceBoot())
			l.judge(ctx)
		}
		if backoff.Sleep(ctx, observePeriod) != nil {
			return
		}
	}
}

func (o *observed) note(all map[string]lease.Seen, now time.Duration) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.watches == nil {
		o.watches, o.restarts = map[string]*lease.Watch{}, map[string][]time.Duration{}
	}
	maps.DeleteFunc(o.watches, func(name string, _ *lease.Watch) bool { _, there := all[name]; return !there })
	for name, s := range all {
		if o.watches[name] == nil {
			o.watches[name] = &lease.Watch{}
		}
		o.watches[name].Note(now, s)
	}
	o.read = now
}

// watch is a copy of what was seen of a lease.
func (o *observed) watch(name string) (lease.Watch, bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if w := o.watches[name]; w != nil {
		return *w, true
	}
	return lease.Watch{}, false
}

// restarted notes that a component is started again for its lease.
func (o *observed) restarted(component string, now time.Duration) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.restarts[component] = append(o.restarts[component], now)
}

// restartsAgo are how long ago that was done.
func (o *observed) restartsAgo(component string, now time.Duration) (out []time.Duration) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, at := range o.restarts[component] {
		out = append(out, now-at)
	}
	return out
}

// judge does what is to be done about each component that elects itself.
func (l *Leaders) judge(ctx context.Context) {
	var told []error
	for _, of := range controlplane.Leases(l.replica().Cluster) {
		w, ok := l.seen.watch(of.Name)
		runs, there := l.supervisor.StatusOf(of.Component)
		if !ok || !there {
			continue
		}
		told = append(told, l.judgeOne(ctx, of, w, runs))
	}
	l.waits.HoldWhile(leaseNotRenewed, waits.OneLine(told), leaseNext)
}

// judgeOne does what is to be done about one component, and returns what a person is told.
func (l *Leaders) judgeOne(ctx context.Context, of controlplane.Lease, w lease.Watch, runs supervisor.Status) error {
	f := l.facts(ctx, of, w, runs)
	seen, _ := w.Seen()
	act, why := lease.Judge(f)
	if act == lease.Try {
		f.DryRun, f.Why = l.open().dryRun(ctx, of, seen)
		act, why = lease.Judge(f)
	}
	switch act {
	case lease.Restart:
		if !l.open().still(ctx, of.Name, seen) {
			return nil // the next observation has what it is now
		}
		l.restart(ctx, of.Component, why)
	case lease.Tell:
		return fmt.Errorf("%s: %s", of.Component, why)
	}
	return nil
}

func (l *Leaders) restart(ctx context.Context, component, why string) {
	l.seen.restarted(component, election.SinceBoot())
	l.log.Warn("starts a leader again", "component", component, "reason", why)
	ctx, cancel := context.WithTimeoutCause(ctx, supervisor.DefaultStopTimeout+supervisor.StopMargin,
		errors.New("it does not end"))
	defer cancel()
	if err := l.supervisor.Restart(ctx, component, why); err != nil {
		l.log.Warn("start a leader again", "component", component, "err", err.Error())
	}
}

// facts is what is known of a component that runs.
func (l *Leaders) facts(ctx context.Context, of controlplane.Lease, w lease.Watch,
	runs supervisor.Status) lease.Facts {
	now := election.SinceBoot()
	f := lease.Facts{Duration: l.replica().Cluster.ElectionTimes().LeaseDuration,
		Ready: runs.State == supervisor.Ready, Runs: time.Since(runs.Since), Unchanged: w.Unchanged(),
		Restarts: l.seen.restartsAgo(of.Component, now)}
	host, err := os.Hostname()
	s, _ := w.Seen()
	loss := w.Lost()
	holds, held := lease.HeldBy(s.Holder, host, of.HolderIsHost), lease.HeldBy(loss.By, host, of.HolderIsHost)
	if err != nil || !holds && !held || l.sharesHost(ctx) {
		return f // it is not this machine's, or nobody can tell whose it is
	}
	f.Holds = holds
	// It is this very process that renewed the lease and lost it, if it had come up long enough before that.
	f.Lost = held && s.Holder != "" && !holds && now-f.Runs+lossMargin < loss.Renewed
	f.LostSince = now - loss.At
	return f
}

// Status is what there is to say of the leases; nothing while they cannot be read.
func (l *Leaders) Status(now time.Duration) []status.Lease {
	me := l.replica()
	host, _ := os.Hostname()
	return l.seen.status(now, me, host)
}

func (o *observed) status(now time.Duration, me Replica, host string) []status.Lease {
	out := []status.Lease{}
	o.mu.Lock()
	defer o.mu.Unlock()
	if len(o.watches) == 0 || now-o.read > patience {
		return out
	}
	of := map[string]controlplane.Lease{}
	for _, l := range controlplane.Leases(me.Cluster) {
		of[l.Name] = l
	}
	for _, name := range slices.Sorted(maps.Keys(o.watches)) {
		w := o.watches[name]
		seen, _ := w.Seen()
		s := status.Lease{Name: name, Holder: seen.Holder, Renewed: seen.Renewed,
			Age: w.Age(now).Round(time.Millisecond).Seconds()}
		if l, ok := of[name]; ok {
			s.Role = role(lease.HeldBy(seen.Holder, host, l.HolderIsHost))
			s.Component, s.Restarts = l.Component, len(o.restarts[l.Component])
		} else if name == Own {
			s.Role = role(seen.Holder == identity(me.Self))
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
