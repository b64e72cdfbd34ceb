package supervisor

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"
)

// life drives a machine by hand with a clock of its own, and notes its states.
type life struct {
	t      *testing.T
	m      machine
	now    time.Time
	states []State
	reason string // of the last transition
}

var errCheck = errors.New("503 from the check")

func newLife(t *testing.T, spec Spec) *life {
	l := &life{t: t, now: time.Unix(1e9, 0)}
	l.m = machine{state: Stopped, jitter: func() float64 { return 0 }, moved: func(from, to State, why string) {
		if why == "" {
			t.Errorf("no reason from %s to %s", from, to)
		}
		if why == l.reason {
			t.Errorf("from %s to %s for the reason of the transition before: %s", from, to, why)
		}
		l.reason = why
		l.states = append(l.states, to)
	}}
	spec.Name = "it"
	if err := l.m.start(l.now, spec); err != nil {
		t.Fatal(err)
	}
	return l
}

// probed is a Spec with three probes, which the test answers itself.
func probedSpec() Spec {
	probe := func() *Probe { return &Probe{} }
	return Spec{Start: probe(), Live: probe(), Ready: probe()}
}

func (l *life) after(d time.Duration) *life { l.now = l.now.Add(d); return l }

// launched brings a waiting machine to a process that runs.
func (l *life) launched() *life {
	l.t.Helper()
	l.want(launch, l.m.depend(l.now, nil))
	l.want(nothing, l.m.ran(l.now, nil))
	return l
}

func (l *life) ready() *life {
	l.t.Helper()
	l.launched()
	l.want(nothing, l.m.probed(l.now, startQuestion, nil))
	l.want(nothing, l.m.probed(l.now, readyQuestion, nil))
	l.is(Ready, "")
	return l
}

// parked lets a run hang until it is parked.
func (l *life) parked() {
	l.t.Helper()
	l.m.probed(l.now, liveQuestion, errCheck)
	l.want(terminate, l.after(time.Hour).m.probed(l.now, liveQuestion, errCheck))
	l.want(kill, l.after(DefaultStopTimeout).m.tick(l.now))
	l.m.shot(l.now, nil)
	l.want(nothing, l.after(killPatience).m.tick(l.now))
	l.is(Parked, "blocked in the kernel")
}

func (l *life) want(want, got act) {
	l.t.Helper()
	if got != want {
		l.t.Fatalf("in %s (%s): act %d, want %d", l.m.state, l.m.reason, got, want)
	}
}

func (l *life) is(state State, reason string) {
	l.t.Helper()
	if l.m.state != state || !strings.Contains(l.m.reason, reason) {
		l.t.Fatalf("is %s because %q, want %s because %q", l.m.state, l.m.reason, state, reason)
	}
}

func (l *life) dueIn(d time.Duration) {
	l.t.Helper()
	if got := l.m.due.Sub(l.now); got != d {
		l.t.Fatalf("in %s: due in %s, want %s", l.m.state, got, d)
	}
}

func TestAProcessWaitsForWhatItComesAfterAndSaysWhat(t *testing.T) {
	l := newLife(t, Spec{After: []string{"etcd", "network"}})
	l.want(nothing, l.m.depend(l.now, []string{"etcd (starting)"}))
	l.is(Waiting, "etcd (starting)")
	l.want(launch, l.m.depend(l.now, nil))
	l.is(Starting, "start 1, ready now: etcd, network") // not the wait that has ended
	l.want(nothing, l.m.ran(l.now, errCheck))
	l.want(nothing, l.after(firstDelay).m.tick(l.now))
	l.want(launch, l.m.depend(l.now, nil))
	l.is(Starting, "start 2, ready already: etcd, network") // it waited for nothing this time
	l.m.ran(l.now, nil)
	l.is(Ready, "") // without probes it is ready once launched
	if want := []State{Waiting, Starting, Backoff, Waiting, Starting, Ready}; !slices.Equal(l.states, want) {
		t.Errorf("states %v, want %v", l.states, want)
	}
}

func TestReadyIsReachedByStartThenReadyAndLostByEither(t *testing.T) {
	l := newLife(t, probedSpec()).launched()
	l.is(Starting, "launched")
	l.m.probed(l.now, startQuestion, errCheck)
	l.is(Starting, "not up yet: 503")
	l.m.probed(l.now, startQuestion, nil)
	l.is(Starting, "not ready yet")
	l.m.probed(l.now, readyQuestion, errCheck)
	l.is(Starting, "not ready: 503")
	l.m.probed(l.now, readyQuestion, nil)
	l.is(Ready, "")

	l.m.probed(l.now, readyQuestion, errCheck)
	l.after(defaultLimit-1).m.probed(l.now, readyQuestion, errCheck)
	l.is(Ready, "") // not believed yet
	l.after(1).m.probed(l.now, readyQuestion, errCheck)
	l.is(Degraded, "not ready: 503")
	l.m.probed(l.now, readyQuestion, nil)
	l.is(Ready, "pass again")

	for _, passes := range []question{liveQuestion, readyQuestion} { // what others may use is alive
		l.m.probed(l.now, liveQuestion, errCheck)
		l.is(Degraded, "not alive: 503")
		l.m.probed(l.now, passes, nil)
		l.is(Ready, "pass again")
	}
}

func TestLiveFailingForItsLimitEndsTheProcessOnce(t *testing.T) {
	spec := probedSpec()
	spec.Live.Limit = 45 * time.Second
	l := newLife(t, spec).ready()
	l.want(nothing, l.m.probed(l.now, liveQuestion, errCheck))
	l.want(nothing, l.after(44*time.Second).m.probed(l.now, liveQuestion, errCheck))
	l.want(nothing, l.m.probed(l.now, liveQuestion, nil)) // not in a row
	l.want(nothing, l.after(time.Minute).m.probed(l.now, liveQuestion, errCheck))
	l.want(nothing, l.after(44*time.Second).m.probed(l.now, liveQuestion, errCheck))
	l.want(terminate, l.after(time.Second).m.probed(l.now, liveQuestion, errCheck))
	l.is(Stopping, "not alive for 45s: 503")
	l.want(nothing, l.m.probed(l.now, liveQuestion, errCheck))
	l.want(nothing, l.m.stop(l.now, "asked")) // SIGTERM once, also when it is asked to stop now
	l.m.gone(l.now, Exit{Asked: true})
	l.is(Stopped, "503")
}

func TestAStartThatDoesNotComeUpIsAFailure(t *testing.T) {
	for _, c := range []struct {
		name  string
		check func(l *life)
		why   string
	}{
		{"no check has come back", func(*life) {}, "it was never answered"},
		{"one check failed", func(l *life) { l.m.probed(l.now, startQuestion, errCheck) }, "503 from the check"},
		{"many failed at once", func(l *life) {
			for range 1000 {
				l.want(nothing, l.m.probed(l.now, startQuestion, errCheck))
			}
		}, "503 from the check"},
	} {
		t.Run(c.name, func(t *testing.T) {
			spec := probedSpec()
			spec.Start.Limit = 4 * time.Minute
			l := newLife(t, spec).launched()
			l.dueIn(4 * time.Minute)
			c.check(l)
			l.want(nothing, l.after(4*time.Minute-1).m.tick(l.now))
			l.want(terminate, l.after(1).m.tick(l.now))
			l.m.gone(l.now, Exit{Asked: true, Code: -1, Signal: "SIGKILL"})
			l.is(Backoff, "did not come up within 4m0s: "+c.why+"; was killed by SIGKILL; next start in 1s")
			l.dueIn(firstDelay)
		})
	}
}

func TestAStartThatHasComeUpHasAllTimeToBecomeReady(t *testing.T) {
	l := newLife(t, probedSpec()).launched()
	l.m.probed(l.now, startQuestion, nil)
	l.want(nothing, l.after(time.Hour).m.tick(l.now))
	l.is(Starting, "up, not ready yet")
}

func TestStopKillsAtTheDeadlineAndParksWhatCannotBeKilled(t *testing.T) {
	l := newLife(t, Spec{StopTimeout: 3 * time.Second}).launched()
	l.want(terminate, l.m.stop(l.now, "asked"))
	l.dueIn(3 * time.Second)
	l.want(nothing, l.after(2*time.Second).m.tick(l.now))
	l.want(kill, l.after(time.Second).m.tick(l.now))
	l.m.shot(l.now, nil)
	l.is(Stopping, "killed because it had not ended after 3s")
	l.want(nothing, l.after(killPatience).m.tick(l.now))
	l.is(Parked, "blocked in the kernel")
	if err := l.m.start(l.now, Spec{}); err == nil {
		t.Fatal("started while a former process is still there")
	}
	l.m.gone(l.now, Exit{})
	l.is(Stopped, "")
}

func TestAKillThatFailsIsTriedAgainForEver(t *testing.T) {
	noFile := errors.New("too many open files")
	l := newLife(t, Spec{}).launched()
	l.want(terminate, l.m.stop(l.now, "asked"))
	l.after(DefaultStopTimeout)
	for range int(killPatience / killRetry) {
		l.want(kill, l.m.tick(l.now))
		l.m.shot(l.now, noFile)
		l.is(Stopping, "asked")
		l.dueIn(killRetry)
		l.after(killRetry)
	}
	for range 1000 {
		l.want(kill, l.m.tick(l.now))
		l.m.shot(l.now, noFile)
		l.is(Parked, "asked; it cannot be killed: too many open files")
		l.after(killRetry)
	}
	l.want(kill, l.m.tick(l.now))
	l.m.shot(l.now, nil)
	l.is(Parked, "killed at last")
	l.want(nothing, l.after(time.Hour).m.tick(l.now))
	l.m.gone(l.now, Exit{Asked: true})
	l.is(Stopped, "")
}

// The kill that worked late is given as much time as one that worked at once.
func TestAKillThatFailedOnceIsAKill(t *testing.T) {
	l := newLife(t, Spec{StopTimeout: 3 * time.Second}).launched()
	l.m.stop(l.now, "asked")
	l.want(kill, l.after(3*time.Second).m.tick(l.now))
	l.m.shot(l.now, errCheck)
	l.m.hurry(l.now, time.Millisecond)
	l.want(kill, l.after(killRetry).m.tick(l.now))
	l.m.shot(l.now, nil)
	l.is(Stopping, "killed because it had not ended after 3s")
	l.dueIn(killPatience)
}

func TestAStopInAHurryIsKilledEarlier(t *testing.T) {
	l := newLife(t, Spec{StopTimeout: 35 * time.Second}).launched()
	l.want(terminate, l.m.stop(l.now, "asked"))
	l.after(time.Second).m.hurry(l.now, 6*time.Second)
	l.dueIn(6 * time.Second)
	l.m.hurry(l.now, 20*time.Second) // it does not get more time by being asked again
	l.m.hurry(l.now, 0)
	l.dueIn(6 * time.Second)
	l.want(kill, l.after(6*time.Second).m.tick(l.now))
	l.m.shot(l.now, nil)
	l.is(Stopping, "killed because it had not ended after 7s")
	l.m.hurry(l.now, time.Millisecond)
	l.dueIn(killPatience)
	l.want(nothing, l.after(killPatience).m.tick(l.now))
	l.is(Parked, "blocked in the kernel")
	l.m.hurry(l.now, time.Second)
	l.is(Parked, "blocked in the kernel")
}

func TestWhatFollowsAnExit(t *testing.T) {
	expected := Exit{Code: 1, Expected: true, Tail: "leaderelection lost\n"}
	for _, c := range []struct {
		name  string
		do    func(l *life)
		state State
		due   time.Duration
		why   string
	}{
		{"a crash waits", func(l *life) { l.m.gone(l.now, Exit{Code: 2, Tail: "x\nflag provided: -no\n\n"}) },
			Backoff, firstDelay, "exited with code 2: flag provided: -no"},
		{"an exit with 0 that nobody asked for is a crash", func(l *life) { l.m.gone(l.now, Exit{}) },
			Backoff, firstDelay, "exited with code 0"},
		{"one that was ready for ten seconds is back at once",
			func(l *life) { l.after(provenAfter).m.gone(l.now, Exit{Code: 1}) },
			Backoff, quickDelay, ""},
		{"being ready counts in one piece", func(l *life) {
			for range 3 {
				l.after(provenAfter-1).m.probed(l.now, liveQuestion, errCheck)
				l.m.probed(l.now, liveQuestion, nil)
			}
			l.m.gone(l.now, Exit{Code: 1})
		}, Backoff, firstDelay, ""},
		{"the longest time in one piece counts, not the last one", func(l *life) {
			for _, good := range []time.Duration{time.Second, provenAfter, time.Second} {
				l.after(good).m.probed(l.now, liveQuestion, errCheck)
				l.m.probed(l.now, liveQuestion, nil)
			}
			l.after(time.Second).m.gone(l.now, Exit{Code: 1})
		}, Backoff, quickDelay, ""},
		{"a restart of a run that is being ended anyway starts at once", func(l *life) {
			l.m.probed(l.now, liveQuestion, errCheck)
			l.want(terminate, l.after(time.Minute).m.probed(l.now, liveQuestion, errCheck))
			act, err := l.m.restart(l.now, "new certificate")
			l.want(nothing, act)
			if err != nil {
				l.t.Error(err)
			}
			l.m.gone(l.now, Exit{Asked: true})
		}, Waiting, 0, "not alive for 1m0s"},
		{"a restart of a parked run starts at once when it is gone", func(l *life) {
			l.parked()
			if _, err := l.m.restart(l.now, "new certificate"); err != nil {
				l.t.Error(err)
			}
			l.m.gone(l.now, Exit{Asked: true})
		}, Waiting, 0, "blocked in the kernel"},
		{"want of memory is told",
			func(l *life) { l.m.gone(l.now, Exit{Code: -1, Signal: "SIGKILL", OutOfMemory: true}) },
			Backoff, firstDelay, "was killed by SIGKILL (out of memory)"},
		{"an expected exit starts at once", func(l *life) { l.after(2*time.Second).m.gone(l.now, expected) },
			Waiting, 0, "leaderelection lost (expected)"},
		{"an expected exit of a short run waits for the rest of a second",
			func(l *life) { l.after(300*time.Millisecond).m.gone(l.now, expected) },
			Backoff, 700 * time.Millisecond, ""},
		{"a restart starts at once", func(l *life) {
			act, err := l.m.restart(l.now, "new certificate")
			l.want(terminate, act)
			if err != nil {
				l.t.Error(err)
			}
			l.m.gone(l.now, Exit{Asked: true})
		}, Waiting, 0, "new certificate; exited with code 0"},
		{"what it started is waited for, then it is a crash", func(l *life) {
			l.m.left(l.now, Exit{Code: 3})
			l.is(Stopping, "something that it started is still there")
			l.want(nothing, l.after(time.Second).m.tick(l.now))
			l.m.gone(l.now, Exit{Code: 3})
		}, Backoff, firstDelay, "code 3"},
	} {
		t.Run(c.name, func(t *testing.T) {
			l := newLife(t, probedSpec()).ready()
			c.do(l)
			l.is(c.state, c.why)
			if c.due > 0 {
				l.dueIn(c.due)
			}
		})
	}
}

func TestWhoseDoingAnEndIs(t *testing.T) {
	for name, c := range map[string]struct {
		do    func(l *life)
		asked bool
	}{
		"it ends while it is ready":               {func(*life) {}, false},
		"it is stopped":                           {func(l *life) { l.m.stop(l.now, "stop") }, true},
		"it hangs, and was parked":                {func(l *life) { l.parked() }, true},
		"it has ended, and left something behind": {func(l *life) { l.m.left(l.now, Exit{}) }, false},
	} {
		l := newLife(t, probedSpec()).ready()
		if c.do(l); l.m.asked() != c.asked {
			t.Errorf("%s: asked %t", name, l.m.asked())
		}
	}
}

// A process that is parked has been killed: that it leaves something behind adds nothing.
func TestAParkedProcessThatEndsIsWaitedForAsBefore(t *testing.T) {
	l := newLife(t, probedSpec()).ready()
	l.parked()
	l.m.left(l.now, Exit{})
	if l.is(Parked, "blocked in the kernel"); !l.m.due.IsZero() {
		t.Errorf("due at %s", l.m.due)
	}
}

func TestANewStartForgetsTheFormerLife(t *testing.T) {
	l := newLife(t, Spec{})
	for range 3 {
		l.m.depend(l.now, nil)
		l.m.ran(l.now, errCheck)
		l.after(maxDelay).m.tick(l.now)
	}
	l.m.stop(l.now, "asked")
	if err := l.m.start(l.now, Spec{Name: "it", Path: "/bin/other"}); err != nil {
		t.Fatal(err)
	}
	l.m.depend(l.now, nil)
	l.m.ran(l.now, errCheck)
	l.dueIn(firstDelay)
	if l.m.starts != 1 || l.m.spec.Path != "/bin/other" {
		t.Errorf("start %d of %s", l.m.starts, l.m.spec.Path)
	}
	if _, err := l.m.restart(l.now, "now"); err != nil {
		t.Errorf("it is wanted: %v", err)
	}
}

func TestALaunchThatFailsBacksOffWithItsCause(t *testing.T) {
	l := newLife(t, Spec{})
	for _, want := range []time.Duration{1, 2, 4} {
		l.want(launch, l.m.depend(l.now, nil))
		l.m.ran(l.now, fmt.Errorf("fork/exec /no/such: no such file"))
		l.is(Backoff, "cannot be started: fork/exec /no/such: no such file")
		l.dueIn(want * time.Second)
		l.want(nothing, l.after(want*time.Second).m.tick(l.now))
		l.is(Waiting, "paused for "+(want*time.Second).String())
	}
}

func TestStopAndRestartWhileNothingRuns(t *testing.T) {
	l := newLife(t, Spec{})
	l.m.depend(l.now, []string{"etcd"})
	l.want(nothing, l.m.stop(l.now, "asked"))
	l.is(Stopped, "asked")
	if _, err := l.m.restart(l.now, "why not"); !errors.Is(err, ErrStopped) {
		t.Errorf("restart of a stopped process: %v", err)
	}

	l = newLife(t, Spec{})
	l.m.depend(l.now, nil)
	l.m.ran(l.now, errCheck)
	if _, err := l.m.restart(l.now, "the program is there now"); err != nil {
		t.Error(err)
	}
	l.is(Waiting, "the program is there now")
}

// TestNoOrderOfEventsIsImpossible throws every event at every state that can be reached by eight of them, and relies on
// machine.to to panic; it also checks that a launch is only wanted while nothing runs and SIGTERM only once for a run.
func TestNoOrderOfEventsIsImpossible(t *testing.T) {
	type world struct {
		m                machine
		runs, terminated bool
	}
	now := time.Unix(1e9, 0)
	exit := Exit{Code: 1}
	events := []func(w *world) act{
		func(w *world) act { w.m.start(now, w.m.spec); return nothing },
		func(w *world) act { return w.m.stop(now, "stop") },
		func(w *world) act { a, _ := w.m.restart(now, "restart"); return a },
		func(w *world) act { return w.m.depend(now, nil) },
		func(w *world) act { w.m.due = now; return w.m.tick(now) },
		func(w *world) act { w.m.due = now; return w.m.tick(now.Add(time.Hour)) },
		func(w *world) act { return w.m.probed(now, startQuestion, nil) },
		func(w *world) act { return w.m.probed(now, readyQuestion, nil) },
		func(w *world) act { return w.m.probed(now, liveQuestion, errCheck) },
		func(w *world) act { return w.m.probed(now.Add(time.Hour), liveQuestion, errCheck) },
		func(w *world) act { return w.m.probed(now, readyQuestion, errCheck) },
		func(w *world) act { return w.m.probed(now.Add(time.Hour), readyQuestion, errCheck) },
		func(w *world) act {
			if w.runs {
				w.m.left(now, exit)
			}
			return nothing
		},
		func(w *world) act {
			if w.runs {
				exit.Asked = w.m.asked()
				w.m.gone(now, exit)
				w.runs = false
			}
			return nothing
		},
	}
	spec := probedSpec()
	seen := map[string]bool{}
	states := map[State]bool{}
	var explore func(w world, depth int)
	explore = func(w world, depth int) {
		key := fmt.Sprint(w.m.state, w.m.wanted, w.m.cause, w.m.dying, w.m.killed, w.m.due.IsZero(), w.m.health.up,
			w.m.health.usable,
			w.m.health.live.since, w.m.health.ready.since, w.runs, w.terminated, depth)
		if seen[key] || depth == 0 {
			return
		}
		seen[key], states[w.m.state] = true, true
		for i, event := range events {
			next := w
			switch a := event(&next); a {
			case launch:
				if next.runs {
					t.Fatalf("event %d in %s wants a second run", i, w.m.state)
				}
				for _, err := range []error{nil, errCheck} {
					tried := next
					tried.runs, tried.terminated = err == nil, false
					tried.m.ran(now, err)
					explore(tried, depth-1)
				}
				continue
			case kill:
				if !next.runs {
					t.Fatalf("event %d in %s wants to kill nothing", i, w.m.state)
				}
				for _, err := range []error{nil, errCheck} {
					tried := next
					tried.m.shot(now, err)
					explore(tried, depth-1)
				}
				continue
			case terminate:
				if !next.runs || next.terminated {
					t.Fatalf("event %d in %s wants a SIGTERM too many", i, w.m.state)
				}
				next.terminated = true
			}
			explore(next, depth-1)
		}
	}
	first := machine{state: Stopped, spec: spec, jitter: func() float64 { return 0 },
		moved: func(State, State, string) {}}
	explore(world{m: first}, 9)
	if len(states) != len(successors) {
		t.Errorf("reached %d states of %d: %v", len(states), len(successors), states)
	}
}
