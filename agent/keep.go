package agent

import (
	"context"
	"errors"
	"fmt"
)

// ErrStartAgain ends an agent whose replica has changed so that only a boot brings it in order again. Boot is the
// repair: there is no second way.
var ErrStartAgain = errors.New("starting again")

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
		func(ctx context.Context) { decideAgain(a.etcdChild().watch(ctx)) },
		func(ctx context.Context) { a.snapshots.keep(ctx, in.membership) },
		func(ctx context.Context) { a.archives.keep(ctx, in.membership) },
		a.pacer.forgetLater)
}

// keep says that the boot is done, and waits for the end of what the replica runs on.
func (a *Agent) keep(ctx context.Context, in joined) error {
	a.progress.enter(PhaseKeep)
	a.progress.done()
	a.cfg.Notify.Ready()
	a.cfg.Log.Info("ready", "replica", in.self.Place.String())
	<-ctx.Done()
	if cause := context.Cause(ctx); errors.Is(cause, ErrStartAgain) {
		return &PhaseError{Phase: PhaseKeep, Err: cause}
	}
	return nil // asked to stop
}
