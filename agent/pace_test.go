package agent

import (
	"context"
	"os"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// again is the start of the next agent of this VM.
func (v *vm) again(ctx context.Context) (a *Agent, paused time.Duration) {
	a = v.agent()
	begin := time.Now()
	a.pacer.pace(ctx)
	return a, time.Since(begin)
}

// An agent that ends soon after each start keeps a growing distance between its starts; the first restart, by which a
// replica is repaired, begins at once.
func TestStartsThatComeToNothingArePaced(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		v := newVM(t)
		for n, most := range []time.Duration{0, 0, 1 * time.Second, 3 * time.Second, 7 * time.Second, 9 * time.Second,
			9 * time.Second} {
			if _, paused := v.again(t.Context()); paused > most || paused < most*7/10-time.Second/5 {
				t.Errorf("start %d begins after %s, want about %s", n, paused, most)
			}
			time.Sleep(time.Second) // it ends at once, and the service manager waits for a second
		}
		time.Sleep(time.Hour) // in a boot that waited
		if _, paused := v.again(t.Context()); paused != 0 {
			t.Errorf("after a long life the next start begins after %s", paused)
		}
	})
}

func TestAPauseBeforeAStartIsAWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		v := newVM(t)
		for range 5 {
			v.again(t.Context())
		}
		a := v.agent()
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan struct{})
		go func() { defer close(done); a.pacer.pace(ctx) }()
		time.Sleep(time.Second)
		s := a.status(t.Context())
		if len(s.Blocked) != 1 || s.Blocked[0].Name != crashLooping ||
			!strings.Contains(s.Blocked[0].Reason, "started 5 times") || s.Replica.Phase != "pacing" {
			t.Errorf("status %+v", s)
		}
		begin := time.Now()
		cancel()
		<-done
		if time.Since(begin) > 0 || len(a.tracker.All()) != 0 {
			t.Errorf("told to stop it pauses for %s, and waits for %+v", time.Since(begin), a.tracker.All())
		}
	})
}

// A member that has run for a while, and an end in order, are no part of a crash loop.
func TestWhatForgetsTheStarts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		v := newVM(t)
		a, _ := v.again(t.Context())
		ctx, cancel := context.WithTimeout(t.Context(), calmAfter-time.Second)
		defer cancel()
		a.pacer.forgetLater(ctx)
		if _, err := os.Stat(a.pacer.path); err != nil {
			t.Errorf("a short life is forgotten: %v", err)
		}
		a.pacer.forgetLater(t.Context())
		if _, err := os.Stat(a.pacer.path); err == nil {
			t.Error("a member that runs is not enough")
		}
	})
	v := newVM(t)
	v.metadata.hangs = true
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- Run(ctx, v.config()) }()
	eventually(t, "it runs", func() bool { return slices.Contains(v.notify.all(), "identity") })
	cancel()
	if err := <-ended; err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(v.agent().pacer.path); err == nil {
		t.Error("an end in order counts as a crash")
	}
}

// Whoever looks after a member forgets the starts before, whether a control plane is there or not.
func TestTheStartsOfAMemberThatIsLookedAfterAreForgotten(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, in := kept(t)
		a.pacer.pace(t.Context())
		ctx, end := context.WithCancelCause(t.Context())
		defer a.keepMember(ctx, in, end)()
		time.Sleep(calmAfter + time.Second)
		if _, err := os.Stat(a.pacer.path); err == nil {
			t.Error("its starts count for ever")
		}
	})
}

// The clock is set between two starts, and the notes of the former are damaged: neither makes a start wait for longer
// than the longest distance.
func TestStartsAreNotPacedByAWrongClock(t *testing.T) {
	now := time.Now()
	for name, last := range map[string]time.Time{"set back": now.Add(time.Hour), "set ahead": now.Add(-time.Hour)} {
		if p := (starts{Count: 9, Last: last}).pause(now); p < 0 || p > lastDistance {
			t.Errorf("%s: %s", name, p)
		}
	}
	v := newVM(t)
	a := v.agent()
	if err := os.WriteFile(a.pacer.path, []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, paused := v.again(t.Context()); paused > time.Second {
		t.Errorf("damaged notes: it begins after %s", paused)
	}
}
