package agent

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/quorate/quorate/etcdmember/snapshot"
	"github.com/quorate/quorate/internal/record"
)

// schedule is a record that says an hour after each snapshot that the next one is due, and whose turn comes some time
// after that.
type schedule struct {
	begin  time.Time
	newest time.Time
	after  time.Duration // until this replica's turn; negative: it has none
	away   bool          // nothing can be decided
}

func (s *schedule) SnapshotTurn(context.Context, time.Time, time.Duration) (snapshot.Turn, bool) {
	t := snapshot.Turn{Due: s.begin.Add(time.Hour), Why: snapshot.WhySchedule}
	if !s.newest.IsZero() {
		t.Due, t.Newest = s.newest.Add(time.Hour), record.Taken{Name: "1/5-x", Time: s.newest}
	}
	if s.after >= 0 {
		t.At = t.Due.Add(s.after)
	}
	return t, !s.away
}

// keeping runs the duty in a bubble for some time. save is what happens at each saving.
func keeping(t *testing.T, run time.Duration, s *schedule, save func(n int) error,
	look func(t *testing.T, a *Agent)) (at []time.Duration) {
	synctest.Test(t, func(t *testing.T) {
		begin := time.Now()
		s.begin = begin
		a := newVM(t).agent()
		a.snapshots.save = func(_ context.Context, why string) error {
			at = append(at, time.Since(begin).Round(time.Minute))
			if why != snapshot.WhySchedule {
				t.Errorf("why %q", why)
			}
			err := save(len(at))
			if err == nil {
				s.newest = time.Now()
			}
			return err
		}
		ctx, cancel := context.WithTimeout(t.Context(), run)
		defer cancel()
		a.snapshots.keep(ctx, s)
		if look != nil {
			look(t, a)
		}
	})
	return at
}

func TestASnapshotIsSavedWheneverItIsTheReplicasTurn(t *testing.T) {
	at := keeping(t, 200*time.Minute, &schedule{}, func(int) error { return nil }, func(t *testing.T, a *Agent) {
		s := a.status(t.Context())
		if s.Snapshots == nil || s.Snapshots.Newest != "1/5-x" || s.Snapshots.Turn == nil || s.Snapshots.Saving ||
			len(s.Blocked) != 0 {
			t.Errorf("status %+v, %+v", s.Snapshots, s.Blocked)
		}
		// 1200 or so: 20 minutes
		if got := scraped(t, a); !strings.Contains(got, "\nquorate_snapshot_age_seconds 1") ||
			strings.Contains(got, "quorate_wait_seconds{") {
			t.Errorf("metrics\n%s", got)
		}
	})
	if want := []time.Duration{60 * time.Minute, 120 * time.Minute, 180 * time.Minute}; !slices.Equal(at, want) {
		t.Errorf("saved at %v, want %v", at, want)
	}
}

func TestAReplicaWithoutATurnSavesNothing(t *testing.T) {
	for name, s := range map[string]*schedule{"no turn": {after: -1}, "no member": {away: true}} {
		t.Run(name, func(t *testing.T) {
			if at := keeping(t, 200*time.Minute, s, func(int) error { return nil }, nil); len(at) > 0 {
				t.Errorf("saved at %v", at)
			}
		})
	}
}

// While the record is lost nothing is known of an epoch's snapshots, so that "none" would be a lie.
func TestWithoutAnOpenEpochNothingIsSaidOfSnapshots(t *testing.T) {
	if got := new(snapshotDuty).shown(snapshot.Turn{}); got != nil {
		t.Errorf("got %+v", got)
	}
	if got := new(snapshotDuty).shown(snapshot.Turn{Why: snapshot.WhySchedule}); got == nil {
		t.Error("an epoch without a snapshot is not shown")
	}
}

func TestASavingThatFailsIsTriedAgainLaterAndLater(t *testing.T) {
	broken := errors.New("the bucket is away")
	at := keeping(t, 200*time.Minute, &schedule{}, func(n int) error { return broken }, func(t *testing.T, a *Agent) {
		blocked := a.status(t.Context()).Blocked
		if len(blocked) != 1 || blocked[0].Name != snapshotOverdue ||
			!strings.Contains(blocked[0].Reason, broken.Error()) {
			t.Errorf("blocked %+v", blocked)
		}
		if got := scraped(t, a); strings.Contains(got, "\nquorate_snapshot_age_seconds") ||
			!strings.Contains(got, `quorate_wait_seconds{name="snapshot-overdue",row=""}`) {
			t.Errorf("metrics\n%s", got)
		}
	})
	want := []time.Duration{60 * time.Minute, 61 * time.Minute, 63 * time.Minute, 67 * time.Minute, 75 * time.Minute,
		92 * time.Minute, 122 * time.Minute, 152 * time.Minute, 182 * time.Minute}
	if len(at) != len(want) {
		t.Fatalf("tried at %v, want about %v", at, want)
	}
	for n := range at {
		if d := at[n] - want[n]; d < -2*time.Minute || d > 2*time.Minute {
			t.Errorf("try %d at %s, want about %s", n+1, at[n], want[n])
		}
	}
}

func TestTheWaitForASnapshotEndsWithOne(t *testing.T) {
	at := keeping(t, 90*time.Minute, &schedule{}, func(n int) error {
		if n < 3 {
			return errors.New("no room")
		}
		return nil
	}, func(t *testing.T, a *Agent) {
		if blocked := a.status(t.Context()).Blocked; len(blocked) != 0 {
			t.Errorf("blocked %+v", blocked)
		}
	})
	if len(at) != 3 {
		t.Errorf("tried at %v", at)
	}
}

// After a success the next one is taken when it is due, however long the pauses were before.
func TestASavedSnapshotEndsThePausesBeforeIt(t *testing.T) {
	now := time.Now()
	var d snapshotDuty
	for range 4 {
		d.end(errBroken, now)
	}
	if wait := d.next.Sub(now); wait != 8*snapshotRetry {
		t.Errorf("after four failures the next try is in %s", wait)
	}
	if d.end(nil, now); d.retry != 0 || d.next.Sub(now) != snapshotRetry {
		t.Errorf("after a success the next try is in %s, and the one after a failure %s later", d.next.Sub(now),
			d.retry)
	}
}

func TestASnapshotThatNobodySavesIsSaid(t *testing.T) {
	for minutes, want := range map[int]int{60 + 44: 0, 60 + 46: 1} {
		keeping(t, time.Duration(minutes)*time.Minute, &schedule{after: -1}, nil, func(t *testing.T, a *Agent) {
			if blocked := a.status(t.Context()).Blocked; len(blocked) != want {
				t.Errorf("after %d minutes: blocked %+v, want %d", minutes, blocked, want)
			}
		})
	}
}

// A scrape and a status come at any moment of a check, and read what it has found. (Under the race detector this fails
// where a check shares more.)
func TestAScrapeMayComeInTheMiddleOfALook(t *testing.T) {
	a := newVM(t).agent()
	looked := make(chan struct{})
	go func() {
		defer close(looked)
		s, d := schedule{begin: time.Now().Add(-2 * time.Hour)}, snapshotDuty{}
		for range 200 {
			turn, _ := s.SnapshotTurn(t.Context(), time.Now(), time.Hour)
			if a.snapshots.check(&d, turn, time.Now()) {
				d.end(errBroken, time.Now())
			}
			d.next = time.Time{} // the next one tries again at once
		}
	}()
	for going := true; going; {
		select {
		case <-looked:
			going = false
		default:
		}
		got, status := scraped(t, a), a.status(t.Context())
		if !going && (!strings.Contains(got, `name="snapshot-overdue"`) || len(status.Blocked) != 1) {
			t.Errorf("blocked %+v; metrics\n%s", status.Blocked, got)
		}
	}
}

// A saving that hangs has a limit, after which it is tried again, and status does not say meanwhile that all is well.
func TestASavingThatHangsIsEndedAndCalledOverdue(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &schedule{begin: time.Now().Add(-time.Hour)} // it is this replica's turn now
		a := newVM(t).agent()
		var savings atomic.Int32
		a.snapshots.save = func(ctx context.Context, _ string) error {
			savings.Add(1)
			<-ctx.Done()
			return errors.New("signal: terminated")
		}
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan struct{})
		go func() { defer close(ended); a.snapshots.keep(ctx, s) }()
		at := func(d time.Duration, want int, words ...string) {
			t.Helper()
			time.Sleep(d)
			synctest.Wait()
			st := a.status(t.Context())
			if len(st.Blocked) != want || savings.Load() > 0 && want > 0 &&
				!strings.Contains(st.Blocked[0].Reason, words[0]) {
				t.Errorf("blocked %+v, want %d %q", st.Blocked, want, words)
			}
		}
		at(snapshotPatience-time.Minute, 0)
		if s := a.status(t.Context()).Snapshots; s == nil || !s.Saving || savings.Load() != 1 {
			t.Errorf("it saves: %+v", s)
		}
		at(2*time.Minute, 1, "has been saving one since")
		at(savingLimit-snapshotPatience, 1, "not done within 1h0m0s: signal: terminated")
		at(2*snapshotRetry, 1, "not done within")
		if savings.Load() != 2 {
			t.Errorf("%d savings", savings.Load())
		}
		cancel()
		<-ended
	})
}

// One that a frozen disk blocks does not end when it is told to, and the replica stops without it.
func TestASavingThatDoesNotEndDoesNotHoldTheStopUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := newVM(t).agent()
		thawed := make(chan struct{})
		a.snapshots.save = func(context.Context, string) error { <-thawed; return nil }
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		begin := time.Now()
		a.snapshots.keep(ctx, &schedule{begin: time.Now().Add(-time.Hour)})
		if took := time.Since(begin); took != time.Minute+savingLinger {
			t.Errorf("it ended after %s", took)
		}
		close(thawed)
	})
}

// The record is given a minute to show a snapshot that was saved: it is not saved a second time because a listing is
// late.
func TestASnapshotThatTheRecordShowsLateIsSavedOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := newVM(t).agent()
		s := &schedule{begin: time.Now().Add(-time.Hour)}
		savings := 0
		a.snapshots.save = func(context.Context, string) error { savings++; return nil }
		ctx, cancel := context.WithTimeout(t.Context(), snapshotRetry-time.Second)
		defer cancel()
		a.snapshots.keep(ctx, s)
		if savings != 1 {
			t.Errorf("%d savings", savings)
		}
	})
}
