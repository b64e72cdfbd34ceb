package systemd

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// dog is a watchdog of 30 s whose pings are counted.
type dog struct {
	*Watchdog
	mu    sync.Mutex
	pings []time.Duration
	log   bytes.Buffer
}

func newDog(checks ...Check) *dog {
	d := &dog{}
	d.Watchdog = NewWatchdog(NewNotifier(Environment{Watchdog: 30 * time.Second}, nil),
		slog.New(slog.NewTextHandler(&d.log, nil)), checks...)
	started := time.Now()
	d.ping = func() {
		d.mu.Lock()
		defer d.mu.Unlock()
		d.pings = append(d.pings, time.Since(started))
	}
	return d
}

// runFor runs the watchdog for a while of the bubble's time.
func (d *dog) runFor(t *testing.T, span time.Duration) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), span)
	defer cancel()
	if err := d.Run(ctx); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("it ended with %v", err)
	}
}

func TestWatchdogPingsAtHalfTheInterval(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDog(Check{"loop", func(context.Context) error { return nil }})
		d.runFor(t, 61*time.Second)
		if len(d.pings) != 5 || d.pings[0] != 0 || d.pings[4] != time.Minute {
			t.Errorf("pings at %v", d.pings)
		}
	})
}

func TestWatchdogIsWithheldByTheCheckThatFails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		started := time.Now()
		d := newDog(
			Check{"loop", func(context.Context) error { return nil }},
			Check{"supervisor", func(context.Context) error {
				if since := time.Since(started); since > 20*time.Second && since < 50*time.Second {
					return errors.New("its loop stands still")
				}
				return nil
			}},
		)
		d.runFor(t, 61*time.Second)
		if len(d.pings) != 3 || d.pings[1] != 15*time.Second || d.pings[2] != time.Minute {
			t.Errorf("pings at %v", d.pings)
		}
		log := d.log.String()
		if strings.Count(log, `msg="watchdog ping withheld" check=supervisor error="its loop stands still"`) != 2 ||
			strings.Count(log, "watchdog ping resumed") != 1 {
			t.Errorf("it logged %s", log)
		}
	})
}

// A deadlock is deaf to ctx: the ping must be withheld, the log must name the check, and the stop must not wait.
func TestWatchdogIsWithheldByTheCheckThatHangs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		locked := make(chan struct{})
		var runs atomic.Int64
		d := newDog(Check{"store", func(context.Context) error { runs.Add(1); <-locked; return nil }})
		d.runFor(t, 31*time.Second)
		if len(d.pings) != 0 || runs.Load() != 1 {
			t.Errorf("%d pings, %d runs at once", len(d.pings), runs.Load())
		}
		if log := d.log.String(); !strings.Contains(log, `check=store error="the check has not returned for 7.5s"`) ||
			!strings.Contains(log, "for 22.5s") {
			t.Errorf("it logged %s", log)
		}
		close(locked)
	})
}

// The result of a check that was late says nothing about now.
func TestWatchdogAsksAgainAfterALateCheck(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var runs atomic.Int64
		d := newDog(Check{"store", func(ctx context.Context) error {
			if runs.Add(1) == 1 {
				<-ctx.Done()
				return ctx.Err()
			}
			return nil
		}})
		d.runFor(t, 16*time.Second)
		if len(d.pings) != 1 || d.pings[0] != 15*time.Second || runs.Load() != 2 {
			t.Errorf("pings at %v after %d runs", d.pings, runs.Load())
		}
	})
}

func TestWatchdogThatNobodyWaitsFor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDog(Check{"loop", func(context.Context) error { t.Error("it was asked"); return nil }})
		d.interval = 0
		d.runFor(t, time.Hour)
		if len(d.pings) != 0 {
			t.Errorf("pings at %v", d.pings)
		}
	})
}
