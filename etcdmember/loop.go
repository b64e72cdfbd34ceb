package etcdmember

import (
	"context"
	"fmt"
	"time"

	"github.com/quorate/quorate/etcdmember/table"
	"github.com/quorate/quorate/internal/backoff"
)

// Claim is the part of the boot before there are certificates: it ends when this replica can have some, because the
// record has a bundle, or because this replica holds the newest claim. It is the one to make the bundle where there is
// none and never was: a cluster that was formed has one, and who restores it takes the newest.
//
// A bundle in the record ends it before anybody else is asked: nobody answers one who has no certificates, and lists of
// the Compute API would hold up the repair of a master by seconds, for nothing that is decided here.
func (m *Membership) Claim(ctx context.Context) (makesBundle bool, err error) {
	err = m.loop(ctx, until{
		known: func(f table.Facts) bool { return f.RecordErr == nil && f.Record.Bundle > 0 },
		decided: func(f table.Facts, o table.Observation) bool {
			holder := f.RecordErr == nil && o.Record == table.Rs && o.Mine
			makesBundle = holder && table.HistoryOf(f).Formed == nil
			return holder
		},
	})
	return makesBundle, err
}

// Settle is the rest of the boot: it ends when the member runs, knows a leader and has applied all that was committed
// when it was asked, as a voter or as the learner that it has to be. agent.json says `started` then, which a seeder
// writes only after it has read `formed`: no apiserver may start before.
func (m *Membership) Settle(ctx context.Context) error {
	return m.loop(ctx, until{decided: func(f table.Facts, _ table.Observation) bool {
		if !f.Directory.Running || m.disk.agent.File.Phase != table.PhaseStarted {
			return false
		}
		s, err := m.Status(ctx)
		return err == nil && s.Leader != 0 && s.Applied > 0 && s.Applied >= s.Committed
	}})
}

// WaitVoter waits until the member is a voter whose client port serves, at most for d, and reports whether it is. It
// asks often at first, because a promotion takes two polls of 250 ms.
func (m *Membership) WaitVoter(ctx context.Context, d time.Duration) bool {
	begin := time.Now()
	for {
		if s, err := m.Status(ctx); err == nil && !s.Learner && s.Ready {
			return true
		}
		pause := voterPause
		if time.Since(begin) > bootWindow {
			pause = lateVoterPause
		}
		if time.Since(begin) >= d || backoff.Sleep(ctx, pause) != nil {
			return false
		}
	}
}

// until says when a loop has got where it has to be.
type until struct {
	// known is asked about what stands here and in the record, before others are asked; nil: that is never enough.
	known func(table.Facts) bool
	// decided is asked about all that was observed, before an act.
	decided func(table.Facts, table.Observation) bool
}

// loop observes, decides and acts until the end. Where there is a fault it does not end, and nothing is done, whatever
// else was observed.
func (m *Membership) loop(ctx context.Context, end until) error {
	begin, r := time.Now(), m.reconciler
	defer m.observer.lists.drop()
	defer m.observer.asks.lines.dropAll()
	for {
		f := r.observeSelf(ctx)
		if ctx.Err() == nil && end.known != nil && end.known(f) && table.Fault(f, table.HistoryOf(f)) == "" {
			r.show(f.Now, nil)
			return nil
		}
		r.observer.others(ctx, &f)
		if ctx.Err() != nil {
			return interrupted(ctx)
		}
		o, plan := r.decide(f)
		if o.Fault == "" && end.decided(f, o) {
			r.completeRestores(ctx, f)
			shown := plan.Blocked
			if plan.Act != table.ActKeep {
				shown = nil // what it would wait for next is the next phase's to show
			}
			r.show(f.Now, shown)
			return nil
		}
		r.show(f.Now, plan.Blocked)
		pause := bootPause
		if time.Since(begin) > bootWindow {
			pause = longPause
		}
		switch {
		case plan.Act == table.ActKeep, plan.Act == table.ActWait, plan.Act == table.ActHalt:
		default:
			if r.step(ctx, f, plan) {
				pause = 0
			} else {
				pause = max(pause, pauseAfterFailed(m.observer.memory.failed))
			}
		}
		if err := backoff.Sleep(ctx, pause); err != nil {
			return err
		}
	}
}

// pauseAfterFailed is how long a step that failed is not tried again. The first times are soon: a place that is lost
// again within 5 s of its return cannot remove its former member before the leader has noticed that it is gone
// ("unhealthy cluster"), which takes it some 0.2 s. A restore fetches and builds gigabytes each time, so its pause
// doubles up to half a minute.
func pauseAfterFailed(f table.Failure) time.Duration {
	switch {
	case f.Times == 0:
		return errorPause
	case f.Act == table.ActRestore || f.Act == table.ActAccept:
		return min(errorPause<<min(f.Times, 10), restorePause)
	}
	return min(bootPause<<min(f.Times-1, 10), errorPause)
}

func interrupted(ctx context.Context) error {
	return fmt.Errorf("interrupted: %w", context.Cause(ctx))
}
