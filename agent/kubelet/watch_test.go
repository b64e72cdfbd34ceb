package kubelet

import (
	"context"
	"errors"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/quorate/quorate/systemd/kubeletwatch"
)

// A runtime that hangs is restarted within 45 s, after it has written its stacks; the kubelet is not touched.
func TestARuntimeThatHangsIsRestarted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		watch, stop := w.watch()
		defer stop()
		time.Sleep(time.Minute)
		hung := time.Now()
		w.change(func(_, _ *kubeletwatch.Unit) { w.answer = silent })
		for len(w.done()) == 0 && time.Since(hung) < time.Hour {
			time.Sleep(time.Second)
		}
		if took := time.Since(hung); took > 40*time.Second || took < 25*time.Second {
			t.Errorf("it was restarted after %s", took)
		}
		w.change(func(_, _ *kubeletwatch.Unit) { w.answer = at(0) })
		time.Sleep(15 * time.Second)
		if got := w.done(); !slices.Equal(got, []string{"restart " + runtimeUnit}) || !slices.Equal(w.stacks,
			[]string{runtimeUnit}) {
			t.Errorf("it did %q, with stacks of %q", got, w.stacks)
		}
		s := watch.Status()
		if len(s.Records) != 1 || len(w.told) != 1 || s.Records[0] != w.told[0] {
			t.Fatalf("the records are %+v, and %+v were told", s.Records, w.told)
		}
		r := s.Records[0]
		if r.What != "restart" || r.Cause != kubeletwatch.Hung || !strings.Contains(r.Stacks, "journalctl -u") ||
			!strings.HasPrefix(r.Outcome, "well again after") {
			t.Errorf("the record is %+v", r)
		}
		if s.Units[0].Restart != 1 || s.Units[0].State != kubeletwatch.Running || s.Units[1].State != "running" {
			t.Errorf("the units are %+v", s.Units)
		}
	})
}

// What ends is started again by systemd. The watch sees it at once, and records how it ended and when it was well.
func TestAnExitIsSeenAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		watch, stop := w.watch()
		defer stop()
		time.Sleep(time.Minute)
		w.change(func(k, _ *kubeletwatch.Unit) {
			k.Active, k.Sub, k.PID, k.Exit = "activating", "auto-restart", 0, "SIGKILL"
			w.listening = false
		})
		time.Sleep(10 * time.Millisecond)
		if s := watch.Status(); s.Units[1].State != kubeletwatch.Exited || len(s.Records) != 1 {
			t.Fatalf("ten milliseconds later: %+v", s)
		}
		time.Sleep(2 * time.Second)
		w.change(func(k, _ *kubeletwatch.Unit) { w.start(k); k.Restarts++ })
		time.Sleep(2 * time.Second)
		w.change(func(_, _ *kubeletwatch.Unit) { w.listening = true })
		time.Sleep(time.Second)
		if r := watch.Status().Records[0]; r.What != Ended || r.Reason != "SIGKILL" ||
			!strings.HasPrefix(r.Outcome, "well again after 4") {
			t.Errorf("the record is %+v", r)
		}
		if got := w.done(); len(got) > 0 {
			t.Errorf("it did %q", got)
		}
	})
}

// All connections of the VM are read to know who listens. Where the kubelet answers, or there is none, nobody needs
// that.
func TestTheKernelIsAskedWhoListensOnlyAboutAKubeletThatDoesNotAnswer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		_, stop := w.watch()
		defer stop()
		count := func() int { w.mu.Lock(); defer w.mu.Unlock(); return w.lists }
		lists := func(of string, atLeast, atMost int) {
			t.Helper()
			before := count()
			time.Sleep(time.Minute)
			if n := count() - before; n < atLeast || n > atMost {
				t.Errorf("%s: %d lists in a minute", of, n)
			}
		}
		time.Sleep(time.Minute)
		lists("a kubelet that answers", 0, 0)
		w.change(func(k, _ *kubeletwatch.Unit) { w.start(k); w.listening = false })
		lists("a kubelet that starts", 10, 200)
		w.change(func(k, _ *kubeletwatch.Unit) { k.Active, k.Sub, k.PID = "inactive", "dead", 0 })
		time.Sleep(time.Second)
		lists("no kubelet", 0, 0)
	})
}

// A kubelet that ends again and again fills neither the records nor the events.
func TestACrashLoopIsOneWaitAndFewRecords(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		_, stop := w.watch()
		defer stop()
		for range 300 {
			w.change(func(k, _ *kubeletwatch.Unit) {
				k.Active, k.Sub, k.PID, k.Exit = "activating", "auto-restart", 0, "exit code 1"
				w.listening = false
			})
			time.Sleep(2 * time.Second)
			w.change(func(k, _ *kubeletwatch.Unit) { w.start(k); k.Restarts++ })
			time.Sleep(5 * time.Second)
		}
		if got := w.done(); len(got) > 0 || !slices.Equal(w.waiting(), []string{kubeletCrashLoop}) {
			t.Errorf("it did %q and waits for %q", got, w.waiting())
		}
		if len(w.told) > 6 {
			t.Errorf("%d events: %+v", len(w.told), w.told)
		}
	})
}

// The one that does not end is parked once; when it has gone, the unit is started again, also by the next agent.
func TestAProcessThatDoesNotEndIsParked(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		_, stop := w.watch()
		time.Sleep(time.Minute)
		w.change(func(k, _ *kubeletwatch.Unit) {
			k.Active, k.Sub = "deactivating", "final-sigkill"
			k.Unkilled = []kubeletwatch.Process{{PID: 1, Started: 1}, {PID: k.PID, Started: k.Ticks}}
		})
		time.Sleep(time.Minute)
		if got := w.done(); !slices.Equal(got, []string{"park " + kubeletUnit}) ||
			!slices.Equal(w.waiting(), []string{kubeletUnkillable}) {
			t.Fatalf("it did %q and waits for %q", got, w.waiting())
		}
		stop()
		_, stop = w.watch()
		defer stop()
		time.Sleep(24 * time.Hour)
		if got := w.done(); len(got) != 1 {
			t.Fatalf("a day later it did %q", got)
		}
		w.change(func(k, _ *kubeletwatch.Unit) { k.Unkilled = nil })
		time.Sleep(10 * time.Second)
		if got := w.done(); !slices.Equal(got, []string{"park " + kubeletUnit, "start " + kubeletUnit}) ||
			len(w.waiting()) > 0 {
			t.Errorf("when it had gone it did %q and waits for %q", got, w.waiting())
		}
	})
}

// Restarts that do not help end after four, also where the agent is started again before each. What it is about to do
// it writes down first, and what it cannot write down it does not do.
func TestRestartsEndAndTheNextAgentKnows(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.answer = silent
		w.do = func(_ kubeletwatch.Act, u *kubeletwatch.Unit) error { w.start(u); u.Started = time.Minute; return nil }
		for range 200 {
			_, stop := w.watch()
			time.Sleep(2 * time.Minute)
			stop()
		}
		if got := w.done(); len(got) != 4 {
			t.Errorf("it did %d acts: %q", len(got), got)
		}
		_, stop := w.watch()
		defer stop()
		time.Sleep(2 * time.Minute)
		if all := w.tracker.All(); len(all) != 1 || all[0].Name != runtimeHung || !strings.Contains(all[0].Next,
			"Restarts do not help") {
			t.Errorf("it waits for %+v", all)
		}
	})
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.answer = silent
		_, stop := w.watch()
		defer stop()
		if err := os.RemoveAll(w.dir); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Hour)
		if got := w.done(); len(got) > 0 {
			t.Errorf("without its file it did %q", got)
		}
	})
}

// An act whose outcome the agent did not live to see is in the records of the next one.
func TestTheNextAgentKnowsAnActOfUnknownOutcome(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.do = func(_ kubeletwatch.Act, u *kubeletwatch.Unit) error { w.start(u); return nil }
		w.answer = silent
		w.change(func(_, r *kubeletwatch.Unit) { w.start(r); r.Started = 0 })
		_, stop := w.watch()
		time.Sleep(time.Minute)
		stop()
		watch, stop := w.watch()
		defer stop()
		time.Sleep(time.Second)
		s := watch.Status()
		if got := w.done(); len(got) != 1 || len(s.Records) != 1 || s.Units[0].Restart != 1 ||
			s.Records[0].What != "restart" || s.Records[0].Outcome != "the agent ended before it was known" {
			t.Errorf("it did %q, and the next agent has %+v", got, s)
		}
	})
}

// What systemd has given up is started. Where that cannot be written down, the wait says at once why nothing is done.
func TestAUnitThatFailedIsStarted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		_, stop := w.watch()
		defer stop()
		time.Sleep(time.Minute)
		if err := os.RemoveAll(w.dir); err != nil {
			t.Fatal(err)
		}
		w.change(func(k, _ *kubeletwatch.Unit) {
			k.Active, k.Sub, k.Result, k.PID = "failed", "failed", "start-limit-hit", 0
		})
		time.Sleep(time.Second)
		if all := w.tracker.All(); len(all) != 1 || !strings.Contains(all[0].Reason, "write down") ||
			all[0].Next != "The agent starts it by itself." {
			t.Errorf("it waits for %+v", all)
		}
		if err := os.Mkdir(w.dir, 0o700); err != nil {
			t.Fatal(err)
		}
		time.Sleep(10 * time.Second)
		if got := w.done(); !slices.Equal(got, []string{"start " + kubeletUnit}) || len(w.waiting()) > 0 {
			t.Errorf("it did %q and waits for %q", got, w.waiting())
		}
	})
}

func TestAFileOfNoUseIsAnError(t *testing.T) {
	path := filepath.Join(t.TempDir(), "kubelet.json")
	if err := os.WriteFile(path, []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := New(Config{StatePath: path}); err == nil || !strings.Contains(err.Error(), "in this boot") {
		t.Errorf("got %v", err)
	}
}

// Thirty days of a kubelet and a runtime that are slow and healthy: nothing is ever done to them.
func TestASlowKubeletIsLeftAloneForThirtyDays(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex
		random := rand.New(rand.NewPCG(1, 2))
		up := func(most time.Duration) time.Duration {
			mu.Lock()
			defer mu.Unlock()
			return time.Duration(random.Int64N(int64(most)))
		}
		upTo := func(most int) int { return int(up(time.Duration(most))) }
		w := newWorld(t)
		// Of ten answers of the runtime three take seconds, and at times two in a row do not come in time.
		missed := 0
		w.answer = func(ctx context.Context) (bool, error) {
			if missed < 2 && upTo(20) == 0 {
				missed++
				return silent(ctx)
			}
			missed = 0
			if upTo(10) < 3 {
				return at(up(9900 * time.Millisecond))(ctx)
			}
			return at(up(100 * time.Millisecond))(ctx)
		}
		w.health = func(ctx context.Context) (bool, error) {
			if upTo(4) == 0 { // for hours at a time its port is blocked, too
				return refused(ctx)
			}
			return at(up(20 * time.Second))(ctx)
		}
		_, stop := w.watch()
		started := time.Now()
		for time.Since(started) < 30*24*time.Hour {
			time.Sleep(up(8 * time.Hour))
			switch upTo(8) {
			case 0: // pings are late, up to the moment when systemd would act
				w.change(func(k, _ *kubeletwatch.Unit) { k.Pinged = w.clock() })
				time.Sleep(up(59 * time.Second))
				w.change(func(k, _ *kubeletwatch.Unit) { k.Pinged = 0 })
			case 1: // a person restarts the kubelet, and its start-up is slow
				w.change(func(k, _ *kubeletwatch.Unit) { w.start(k); w.listening = false })
				time.Sleep(up(295 * time.Second))
				w.change(func(_, _ *kubeletwatch.Unit) { w.listening = true })
			case 2: // the runtime is restarted, and reads its state for minutes
				answer := w.answer
				w.change(func(_, r *kubeletwatch.Unit) { w.start(r); w.answer = silent })
				time.Sleep(up(270 * time.Second))
				w.change(func(_, _ *kubeletwatch.Unit) { w.answer = answer })
			case 3: // the CNI file is gone for a while
				w.change(func(_, _ *kubeletwatch.Unit) { w.network = "cni plugin not initialized" })
				time.Sleep(up(time.Hour))
				w.change(func(_, _ *kubeletwatch.Unit) { w.network = "" })
			case 4: // the apiserver is away
				w.change(func(_, _ *kubeletwatch.Unit) { w.ready = false })
				time.Sleep(up(time.Hour))
				w.change(func(_, _ *kubeletwatch.Unit) { w.ready = true })
			case 5: // the bus is
				w.change(func(_, _ *kubeletwatch.Unit) { w.unreadable = errors.New("no bus") })
				time.Sleep(up(10 * time.Minute))
				w.change(func(_, _ *kubeletwatch.Unit) { w.unreadable = nil })
			case 6: // the agent is started again
				stop()
				_, stop = w.watch()
			case 7: // the port is blocked
				health := w.health
				w.change(func(_, _ *kubeletwatch.Unit) { w.health = refused })
				time.Sleep(up(8 * time.Hour))
				w.change(func(_, _ *kubeletwatch.Unit) { w.health = health })
			}
		}
		stop()
		if got := w.done(); len(got) > 0 {
			t.Errorf("it did %q", got)
		}
		if len(w.told) < 5 {
			t.Errorf("only %d exits were recorded: this test shows less than it should", len(w.told))
		}
	})
}
