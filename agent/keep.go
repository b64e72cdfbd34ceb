package agent

import (
	"context"
	"errors"
	"fmt"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/quorate/quorate/controlplane"
	"github.com/quorate/quorate/etcdmember"
	"github.com/quorate/quorate/supervisor"
)

// ErrStartAgain ends an agent whose replica has changed so that only a boot brings it in order again. Boot is the repair: there is
// no second way.
var ErrStartAgain = errors.New("starting again")

// crashLoop is how many starts without coming up are one too many for an etcd member: its directory has to be looked at.
const crashLoop = 3

// keepMembership looks after the membership until the returned function is called. When the membership has to be decided on
// again, the returned context ends with that as its cause, and with it everything that was built on the member.
func (a *Agent) keepMembership(ctx context.Context, in joined) (context.Context, func()) {
	built, end := context.WithCancelCause(ctx)
	done := make(chan struct{})
	go func() {
		defer close(done)
		if err := in.membership.Keep(built); err != nil {
			end(fmt.Errorf("%w: %w", ErrStartAgain, err))
		}
	}()
	return built, func() { end(context.Canceled); <-done }
}

// keep looks after a replica that runs, until ctx is done.
func (a *Agent) keep(ctx context.Context, in running) error {
	a.setPhase(PhaseKeep)
	a.cfg.Notify.Ready()
	a.cfg.Log.Info("ready", "replica", in.self.Place.String())
	g, gctx := errgroup.WithContext(ctx)
	g.Go(func() error { return a.watchChildren(gctx) })
	g.Go(func() error { return a.keepSnapshots(gctx, in.membership) })
	g.Go(func() error { return a.keepArchives(gctx, in.membership) })
	if in.apart {
		g.Go(func() error { return a.comeHome(gctx, in) })
	}
	err := g.Wait()
	switch cause := context.Cause(ctx); {
	case errors.Is(cause, ErrStartAgain):
		return &PhaseError{Phase: PhaseKeep, Err: cause}
	case ctx.Err() != nil:
		return nil // asked to stop
	}
	return &PhaseError{Phase: PhaseKeep, Err: fmt.Errorf("%w: %w", ErrStartAgain, err)}
}

// watchChildren frees the lease of a component that has exited, and ends the agent when the member has to be decided on again.
func (a *Agent) watchChildren(ctx context.Context) error {
	seen := map[string]time.Time{}
	begin := time.Now()
	ends := etcdEnds{last: begin}
	for {
		changed := a.supervisor.Changed()
		if err := a.lookAtEtcd(&ends); err != nil {
			return err
		}
		for _, l := range controlplane.Leases(a.cluster) {
			exit, ok := a.supervisor.Exited(l.Component)
			if !ok || !exit.At.After(begin) || exit.At.Equal(seen[l.Component]) {
				continue
			}
			seen[l.Component] = exit.At
			a.releaseLease(ctx, a.leases, l.Name, exit.At)
		}
		select {
		case <-ctx.Done():
			return nil
		case <-changed:
		}
	}
}

// etcdEnds are the ends of the member that watchChildren has seen.
type etcdEnds struct {
	last   time.Time // when the newest was; older ones are of a story that the boot has ended
	failed int       // how many there were since the member was last ready
}

// lookAtEtcd reports a member that was removed, or that does not come up: starting it again and again changes nothing.
func (a *Agent) lookAtEtcd(ends *etcdEnds) error {
	if s, ok := find(a.supervisor, etcdName); ok && s.State == supervisor.Ready {
		ends.failed = 0
	}
	exit, ok := a.supervisor.Exited(etcdName)
	if !ok || !exit.At.After(ends.last) {
		return nil
	}
	ends.last = exit.At
	if exit.Code == etcdmember.RemovedExitCode {
		return etcdmember.ErrRemoved
	}
	if ends.failed++; ends.failed >= crashLoop {
		return fmt.Errorf("etcd does not come up: %s", exit)
	}
	return nil
}

// comeHome gives the apiserver its own member back as soon as that is a voter: another's silent death would stall it.
func (a *Agent) comeHome(ctx context.Context, in running) error {
	for !in.membership.WaitVoter(ctx, time.Minute) {
		if ctx.Err() != nil {
			return nil
		}
	}
	a.plane.mu.Lock()
	a.plane.otherEtcd = nil
	a.plane.mu.Unlock()
	a.cfg.Log.Info("the own member is a voter: the apiserver uses it alone from now on")
	return a.fitPlane(ctx, in.joined)
}
