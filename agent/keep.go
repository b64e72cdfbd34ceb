package agent

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/quorate/quorate/etcdmember/member"
	"github.com/quorate/quorate/supervisor"
)

// ErrStartAgain ends an agent whose replica has changed so that only a boot brings it in order again. Boot is the
// repair: there is no second way.
var ErrStartAgain = errors.New("starting again")

// crashLoop is how often an etcd member may end without getting ready in between. Then its directory is checked.
const crashLoop = 3

// keepMember maintains the member, its snapshots and its archives until the returned function is called. When the
// membership has to be decided on again it calls end with the reason: everything was built on the member. A control
// plane that cannot run is no reason.
func (a *Agent) keepMember(ctx context.Context, in joined, end context.CancelCauseFunc) (stop func()) {
	decideAgain := func(err error) {
		if err != nil {
			end(fmt.Errorf("%w: %w", ErrStartAgain, err))
		}
	}
	return background(ctx,
		func(ctx context.Context) { decideAgain(in.membership.Keep(ctx)) },
		func(ctx context.Context) { decideAgain(a.watchEtcd(ctx)) },
		func(ctx context.Context) { a.keepSnapshots(ctx, in.cluster, in.membership) },
		func(ctx context.Context) { a.keepArchives(ctx, in.membership) },
		a.forgetStarts)
}

// keep says that the boot is done, and waits for the end of what the replica runs on.
func (a *Agent) keep(ctx context.Context, in joined) error {
	a.setPhase(PhaseKeep)
	a.noteReady()
	a.cfg.Notify.Ready()
	a.cfg.Log.Info("ready", "replica", in.self.Place.String())
	<-ctx.Done()
	if cause := context.Cause(ctx); errors.Is(cause, ErrStartAgain) {
		return &PhaseError{Phase: PhaseKeep, Err: cause}
	}
	return nil // asked to stop
}

// watchEtcd returns an error when the member has to be decided on again.
func (a *Agent) watchEtcd(ctx context.Context) error {
	ends := etcdEnds{last: time.Now()}
	for {
		changed := a.supervisor.Changed()
		if err := a.lookAtEtcd(&ends); err != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return nil
		case <-changed:
		}
	}
}

// etcdEnds are the ends of the member that watchEtcd has seen.
type etcdEnds struct {
	last   time.Time // when the newest was; older ones are from before the boot decided anew
	failed int       // how many there were since the member was last ready
}

// lookAtEtcd reports a member that was removed, or that does not come up: starting it again and again changes nothing.
func (a *Agent) lookAtEtcd(ends *etcdEnds) error {
	if s, ok := a.supervisor.StatusOf(etcdName); ok && s.State == supervisor.Ready {
		ends.failed = 0
	}
	exit, ok := a.supervisor.Exited(etcdName)
	if !ok || !exit.At.After(ends.last) {
		return nil
	}
	ends.last = exit.At
	if exit.Code == member.RemovedExitCode {
		return member.ErrRemoved
	}
	if ends.failed++; ends.failed >= crashLoop {
		return fmt.Errorf("etcd does not come up: %s", exit)
	}
	return nil
}
