package agent

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/quorate/quorate/agent/status"
	"github.com/quorate/quorate/etcdmember/snapshot"
	"github.com/quorate/quorate/internal/replica"
	"github.com/quorate/quorate/internal/waits"
)

// snapshotOverdue is the name of the wait for a snapshot that is not taken.
const snapshotOverdue = "snapshot-overdue"

// snapshotDuty is what the duty remembers between two checks. Its one goroutine has it to itself.
type snapshotDuty struct {
	begun  time.Time // the first check: what was due before counts from then on
	saving time.Time // when the saving that goes on was begun; zero: none does
	failed error
	retry  time.Duration // the pause after the last failure; 0: none failed since the last success
	next   time.Time     // nothing is tried before
	// failures counts what failed since the agent began.
	failures uint64
}

// snapshotTurns says whose turn it is, with so much time between two; etcdmember.Membership implements it.
type snapshotTurns interface {
	SnapshotTurn(ctx context.Context, now time.Time, interval time.Duration) (turn snapshot.Turn, ok bool)
}

// snapshots sees that snapshots are saved. Several may ask it how things stand.
type snapshots struct {
	waits *waits.Phased
	// interval is the time between two, by the document. save is Config.SaveSnapshot.
	interval func() time.Duration
	save     func(ctx context.Context, why string) error

	mu    sync.Mutex
	shown *status.Snapshots // never written into again
}

// keep saves a snapshot whenever it is this replica's turn, until ctx is done. It blocks nothing, and nothing
// but ctx ends it: a saving that fails is tried again, later and later, while the other replicas' turns come. One that
// hangs is seen by the checks that go on meanwhile.
func (s *snapshots) keep(ctx context.Context, m snapshotTurns) {
	var d snapshotDuty
	// room for the one that goes on: a saving that hangs in the kernel is left behind at the end
	saved := make(chan error, 1)
	for {
		select {
		case <-ctx.Done():
			d.linger(saved)
			return
		case err := <-saved:
			d.end(err, time.Now())
		case <-time.After(snapshotPeriod):
		}
		turn, ok := m.SnapshotTurn(ctx, time.Now(), s.interval())
		if ok && ctx.Err() == nil && s.check(&d, turn, time.Now()) {
			go func() { saved <- s.saveOne(ctx, turn.Why) }()
		}
	}
}

// check is one check: it shows how things stand, and reports whether to save now.
func (s *snapshots) check(d *snapshotDuty, turn snapshot.Turn, now time.Time) (save bool) {
	if d.begun.IsZero() {
		d.begun = now
	}
	mine := !turn.At.IsZero() && !now.Before(turn.At)
	if !mine {
		d.failed, d.retry = nil, 0 // another has saved one, or it is not this replica's turn any more
	}
	if save = mine && !now.Before(d.next) && d.saving.IsZero(); save {
		d.saving = now
	}
	s.show(d.shown(turn), d.overdue(turn, now))
	return save
}

// saveOne saves one, within a limit.
func (s *snapshots) saveOne(ctx context.Context, why string) error {
	ctx, cancel := context.WithTimeoutCause(ctx, savingLimit, fmt.Errorf("not done within %s", savingLimit))
	defer cancel()
	err := s.save(ctx, why)
	if err != nil && ctx.Err() != nil {
		err = fmt.Errorf("%w: %w", context.Cause(ctx), err)
	}
	return err
}

// end notes how a saving ended.
func (d *snapshotDuty) end(err error, now time.Time) {
	d.saving, d.failed = time.Time{}, err
	d.retry = min(max(snapshotRetry, 2*d.retry), snapshotRetryMost)
	d.next = now.Add(d.retry)
	if err == nil {
		d.retry, d.next = 0, now.Add(snapshotRetry)
		return
	}
	d.failures++
}

// linger waits for a saving that was asked to end, but not for one that a frozen disk blocks: the replica stops.
func (d *snapshotDuty) linger(saved <-chan error) {
	if d.saving.IsZero() {
		return
	}
	select {
	case <-saved:
	case <-time.After(savingLinger):
	}
}

// show says how things stand.
func (s *snapshots) show(shown *status.Snapshots, wait *replica.Wait) {
	s.mu.Lock()
	s.shown = shown
	s.mu.Unlock()
	if wait == nil {
		s.waits.Release(snapshotOverdue)
		return
	}
	s.waits.Hold(*wait)
}

// status is what check last found; nil: nothing yet, or there is nothing to say.
func (s *snapshots) status() *status.Snapshots {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.shown
}

// shown is a turn as the status has it; nil where the record shows no open epoch, so that nothing can be said of its
// snapshots.
func (d *snapshotDuty) shown(turn snapshot.Turn) *status.Snapshots {
	if turn.Why == "" {
		return nil
	}
	shown := &status.Snapshots{Newest: turn.Newest.Name, Due: turn.Due, Saving: !d.saving.IsZero(),
		Failures: d.failures}
	if shown.Newest != "" {
		shown.Time = &turn.Newest.Time
	} else if !turn.Formed.IsZero() {
		shown.NoneSince = &turn.Formed
	}
	if !turn.At.IsZero() {
		shown.Turn = &turn.At
	}
	return shown
}

// overdue is the wait for a snapshot that this replica fails to save, or that nobody has saved for too long.
func (d *snapshotDuty) overdue(turn snapshot.Turn, now time.Time) *replica.Wait {
	since := turn.Due
	if since.Before(d.begun) {
		since = d.begun
	}
	newest := "there is none of this epoch yet"
	if turn.Newest.Name != "" {
		newest = "the newest is " + turn.Newest.Name
	}
	blocked := func(reason string) *replica.Wait {
		return &replica.Wait{Name: snapshotOverdue, Reason: reason, Next: snapshotNext, Since: since}
	}
	switch {
	case d.failed != nil:
		return blocked(fmt.Sprintf("this replica could not save a snapshot: %s; %s", d.failed, newest))
	case !turn.Due.IsZero() && now.Sub(since) > snapshotPatience && !d.saving.IsZero():
		return blocked(fmt.Sprintf("a snapshot is due, and this replica has been saving one since %s; %s",
			d.saving.UTC().Format(time.RFC3339), newest))
	case !turn.Due.IsZero() && now.Sub(since) > snapshotPatience:
		return blocked("a snapshot is due and nobody has saved one; " + newest)
	}
	return nil
}

// snapshotNext: the wait ends by itself once a snapshot is saved.
const snapshotNext = "It is tried again by itself, here and on the other voters; " +
	"`quorate snapshot save` on one of them tries now."
