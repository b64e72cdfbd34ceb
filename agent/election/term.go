package election

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/quorate/quorate/agent/lease"
)

// ErrNotHeld says that the Lease is not held, or not for long enough to start something under it.
var ErrNotHeld = errors.New("another replica may hold the lease")

// term is the time from when the Lease was taken until nothing runs under it any more.
type term struct {
	times    lease.Times
	lock     *lock
	now      func() time.Duration
	newAlarm func() *alarm

	mu    sync.Mutex
	ended bool // nothing is started any more
}

// verdict is what may be done now. Who is seen to have lost the Lease has no time left.
func (t *term) verdict() lease.Verdict {
	renewed, held, lost := t.lock.state()
	if !held || lost {
		return lease.Kill
	}
	return t.times.Decide(t.now(), renewed)
}

// begin calls start if that is allowed now. The term does not end meanwhile, so start must not wait for anything.
func (t *term) begin(start func() error) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.ended || t.verdict() != lease.Run {
		return ErrNotHeld
	}
	return start()
}

// end has nothing started any more.
func (t *term) end() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.ended = true
}

// watch returns why the term ends: ctx is done, renewals have failed for too long, another has the Lease, gaveUp is
// closed, or this replica yields.
func (t *term) watch(ctx context.Context, gaveUp <-chan struct{}, yield <-chan error) error {
	alarm := t.newAlarm()
	defer alarm.stop()
	for {
		renewed, _, _ := t.lock.state()
		alarm.set(renewed + t.times.Stop)
		if v := t.verdict(); v != lease.Run {
			return t.whyEnded()
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-gaveUp:
			return fmt.Errorf("the lease could not be renewed in time%s", t.lock.failure())
		case why := <-yield:
			return why
		case <-t.lock.changed:
		case <-alarm.goes:
		}
	}
}

func (t *term) whyEnded() error {
	renewed, _, lost := t.lock.state()
	if lost {
		return errTaken
	}
	return fmt.Errorf("the lease was last renewed %s ago%s", (t.now() - renewed).Round(time.Millisecond),
		t.lock.failure())
}

// stopAll ends what runs, and returns once it is gone. It is killed when it has not ended by itself within patience, or
// when the Lease says so: until then the elector renews it. What does not end although it was killed is blocked in the
// kernel and does nothing any more: stopElecting lets the Lease run out then, and inTime is false.
func (t *term) stopAll(stop func(within time.Duration) error, stopElecting func()) (inTime bool) {
	inTime = true
	ended := make(chan error)
	gone := make(chan struct{})
	defer close(gone)
	ask := func(within time.Duration) {
		go func() {
			err := stop(within)
			select {
			case ended <- err:
			case <-gone: // another request was answered first
			}
		}()
	}
	asked, within := 1, patience
	if t.verdict() == lease.Kill {
		within = killNow
	}
	ask(within)
	tick := time.NewTicker(tickPeriod)
	defer tick.Stop()
	for {
		select {
		case err := <-ended:
			if err == nil {
				return inTime
			}
			asked--
			stopElecting()
			inTime = false
		case <-tick.C:
			kill := within != killNow && t.verdict() == lease.Kill
			if kill || asked == 0 {
				within = killNow
				asked++
				ask(within)
			}
		}
	}
}
