package localgce

import (
	"testing"
	"testing/synctest"
	"time"
)

func TestWatchdogsAreSwitchedOnAgainOnceAndNotWhileTheVMStands(t *testing.T) {
	for name, c := range map[string]struct {
		then func(r *rearming, end func())
		want int
	}{
		"the VM runs on":     {func(*rearming, func()) {}, 1},
		"it is frozen again": {func(r *rearming, _ func()) { r.stop() }, 0},
		"it ends":            {func(_ *rearming, end func()) { end() }, 0},
		"it is frozen again, and thawed": {func(r *rearming, _ func()) {
			r.stop()
			r.start(nil, pingInterval, func() { t.Error("the interval did not begin anew") })
			time.Sleep(pingInterval - time.Second)
			r.stop()
		}, 0},
		"it is frozen long after": {func(r *rearming, _ func()) { time.Sleep(2 * pingInterval); r.stop() }, 1},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var r rearming
				done, calls := make(chan struct{}), 0
				r.start(done, pingInterval, func() { calls++ })
				time.Sleep(pingInterval - time.Second)
				synctest.Wait()
				if calls != 0 {
					t.Error("a service had no time for its ping")
				}
				c.then(&r, func() { close(done) })
				time.Sleep(time.Hour)
				r.stop()
				if calls != c.want {
					t.Errorf("switched on %d times, want %d", calls, c.want)
				}
			})
		})
	}
}

// A freeze waits for what has begun: it would switch the watchdogs on while the VM stands.
func TestAFreezeWaitsForTheSwitchThatHasBegun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var r rearming
		ended := false
		r.start(nil, time.Second, func() { time.Sleep(busPatience); ended = true })
		time.Sleep(time.Second + time.Millisecond)
		r.stop()
		if !ended {
			t.Error("it did not wait")
		}
		r.stop()
	})
}
