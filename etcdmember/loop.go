package etcdmember

import (
	"context"
	"fmt"
	"time"

	"github.com/quorate/quorate/etcdmember/table"
	"github.com/quorate/quorate/internal/backoff"
)

// The pauses of the loop. Boot is a sequence of peers that come up within seconds, so it looks often; listing a bucket
// ten times a second for longer would cost money, so a long wait looks at the pace of the running replica.
const (
	bootPause  = 100 * time.Millisecond
	longPause  = 2 * time.Second
	keepPause  = 8 * time.Second // orders are followed within 10 s: what is read has to be acted on, too
	bootWindow = 15 * time.Second
	errorPause = 500 * time.Millisecond
	// restorePause is the longest pause after a restore whose making failed.
	restorePause = 30 * time.Second
)

// Claim is the part of the boot before there are certificates: it ends when this replica can have some, because the
// record has a bundle, or because this replica holds the newest claim. It is the one to make the bundle where there is
// none and never was: a cluster that was formed has one, and who restores it takes the newest.
func (m *Membership) Claim(ctx context.Context) (makesBundle bool, err error) {
	err = m.loop(ctx, func(f table.Facts, o table.Observation) bool {
		holder := o.Record == table.Rs && o.Mine
		makesBundle = holder && f.Record.Bundle == 0 && table.HistoryOf(f).Formed == nil
		return f.RecordErr == nil && (f.Record.Bundle > 0 || holder)
	})
	return makesBundle, err
}

// Settle is the rest of the boot: it ends when the member runs, knows a leader and has applied all that was committed
// when it looked, as a voter or as the learner that it has to be. agent.json says `started` then, which a seeder writes
// only after it has read `formed`: no apiserver may start before.
func (m *Membership) Settle(ctx context.Context) error {
	return m.loop(ctx, func(f table.Facts, _ table.Observation) bool {
		if !f.Directory.Running || m.agent.File.Phase != table.PhaseStarted {
			return false
		}
		s, err := m.Status(ctx)
		return err == nil && s.Leader != 0 && s.Applied > 0 && s.Applied >= s.Committed
	})
}

// WaitVoter waits until the member is a voter whose client port serves, at most for d, and reports whether it is. It
// asks often at first, because a promotion takes two polls of 250 ms.
func (m *Membership) WaitVoter(ctx context.Context, d time.Duration) bool {
	begin := time.Now()
	for {
		if s, err := m.Status(ctx); err == nil && !s.Learner && s.Ready {
			return true
		}
		pause := 50 * time.Millisecond
		if time.Since(begin) > bootWindow {
			pause = time.Second
		}
		if time.Since(begin) >= d || backoff.Sleep(ctx, pause) != nil {
			return false
		}
	}
}

// loop observes, decides and acts until done, asked before each act, says so. Where there is a fault nothing is done,
// whatever the rest of the observation looks like.
func (m *Membership) loop(ctx context.Context, done func(table.Facts, table.Observation) bool) error {
	begin := time.Now()
	for {
		f := m.gather(ctx)
		if ctx.Err() != nil {
			return interrupted(ctx)
		}
		o, plan := m.decide(f)
		if o.Fault == "" && done(f, o) {
			m.completeRestores(ctx, f)
			shown := plan.Blocked
			if plan.Act != table.ActKeep {
				shown = nil // what it would wait for next is the next phase's to show
			}
			m.show(f.Now, shown)
			return nil
		}
		m.show(f.Now, plan.Blocked)
		pause := bootPause
		if time.Since(begin) > bootWindow {
			pause = longPause
		}
		switch {
		case plan.Act == table.ActKeep, plan.Act == table.ActWait, plan.Act == table.ActHalt:
		default:
			if m.step(ctx, f, plan) {
				pause = 0
			} else {
				pause = max(pause, pauseAfterFailed(m.tries.Failed))
			}
		}
		if err := backoff.Sleep(ctx, pause); err != nil {
			return err
		}
	}
}

// pauseAfterFailed is how long a step that failed is not tried again. The first times are soon: a place that is lost
// again within 5 s of its return cannot remove its former member before the leader has noticed that it is gone
// ("unhealthy cluster"), which takes it some 0.2 s. A restore fetches and makes gigabytes each time, so its pause
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

// decide is what the table says of the facts. What is remembered for the next decision is noted here: who answered
// although nothing is formed, that this replica is superseded, and that another step is next than the one that failed.
func (m *Membership) decide(f table.Facts) (table.Observation, table.Plan) {
	o := table.Classify(f)
	plan := table.Decide(f.Now, o)
	m.strangerSince = o.StrangerSince
	m.noteSuperseded(o)
	if !m.tries.Failed.Of(plan) {
		m.tries.Failed = table.Failure{}
	}
	m.saw(f, o, plan)
	return o, plan
}

// step takes the plan's step and reports whether it went well. A step that fails again and again is one line and one
// wait, not many.
func (m *Membership) step(ctx context.Context, f table.Facts, p table.Plan) bool {
	again := m.tries.Failed.Of(p)
	if !again {
		m.cfg.Log.Info("step", "row", p.Row.String(), "act", string(p.Act), "reason", p.Reason)
	}
	err := m.act(ctx, f, p)
	m.count(p.Act, err)
	if err == nil {
		m.tries.Failed = table.Failure{}
		return true
	}
	if ctx.Err() != nil {
		return false
	}
	if p.Blocked != nil && !again { // what the plan itself waits for is shown before it
		m.cfg.Log.Warn("step failed", "row", p.Row.String(), "act", string(p.Act), "err", err.Error())
	}
	m.tries.Failed = m.tries.Failed.Again(p, err)
	m.showFailed(f)
	return false
}

// showFailed shows at once that a step has failed: the next observation may be half a minute away. The same facts are
// decided on once more, with the failure as one more of them; the step that this comes to is the next observation's.
func (m *Membership) showFailed(f table.Facts) {
	f.Tries = m.tries
	m.observeRoom(&f)
	m.show(f.Now, table.Decide(f.Now, table.Classify(f)).Blocked)
}

func interrupted(ctx context.Context) error {
	return fmt.Errorf("interrupted: %w", context.Cause(ctx))
}
