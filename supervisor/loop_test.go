package supervisor

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// stage is an imitation of the machine's processes for tests in a bubble of synctest: it launches actors, and fails the
// test if two of one name are there at once, or if one gets SIGTERM twice.
type stage struct {
	t      *testing.T
	mu     sync.Mutex
	actors map[string]*actor
	played []string // "etcd start", "etcd term", ...
	script func(a *actor)
	fail   map[string]error
	hang   chan struct{} // launches wait for it, if it is not nil
}

type actor struct {
	stage        *stage
	name         string
	number       int
	terms, kills chan struct{}
	exitGone     chan Exit
	ended        bool
	leftBehind   chan Exit
}

func newStage(t *testing.T, script func(a *actor)) *stage {
	return &stage{t: t, actors: map[string]*actor{}, script: script, fail: map[string]error{}}
}

// supervisor returns one whose processes play on the stage, and what ends it.
func (g *stage) supervisor() (*Supervisor, func() error) {
	s := New(Config{})
	s.newLauncher = func(string) launcher { return g }
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- s.Run(ctx) }()
	return s, func() error { cancel(); return <-ended }
}

func (g *stage) close() {}

func (g *stage) dropped() int64 { return 0 }

func (g *stage) launch(spec Spec) (running, error) {
	if g.hang != nil {
		<-g.hang
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if err := g.fail[spec.Name]; err != nil {
		return nil, err
	}
	former := g.actors[spec.Name]
	if former != nil && !former.ended {
		g.t.Errorf("%s is started while it runs", spec.Name)
	}
	a := &actor{
		stage: g, name: spec.Name, number: 1,
		terms: make(chan struct{}, 9), kills: make(chan struct{}, 9), exitGone: make(chan Exit, 1),
		leftBehind: make(chan Exit),
	}
	if former != nil {
		a.number = former.number + 1
	}
	g.actors[spec.Name] = a
	g.played = append(g.played, spec.Name+" start")
	go func() {
		g.script(a)
		if len(a.terms) > 0 {
			g.t.Errorf("%s got a second SIGTERM", a.name)
		}
	}()
	return a, nil
}

func (g *stage) note(line string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.played = append(g.played, line)
}

// lines returns what was noted so far.
func (g *stage) lines() []string {
	g.mu.Lock()
	defer g.mu.Unlock()
	return slices.Clone(g.played)
}

// refuse makes launches of that name fail, or work again.
func (g *stage) refuse(name string, err error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.fail[name] = err
}

func (a *actor) pid() int          { return a.number }
func (a *actor) unlimited() string { return "" }
func (a *actor) left() <-chan Exit { return a.leftBehind }
func (a *actor) gone() <-chan Exit { return a.exitGone }
func (a *actor) terminate() error  { a.stage.note(a.name + " term"); a.terms <- struct{}{}; return nil }
func (a *actor) kill() error       { a.stage.note(a.name + " kill"); a.kills <- struct{}{}; return nil }

func (a *actor) exit(code int) {
	a.stage.mu.Lock()
	a.ended = true
	a.stage.played = append(a.stage.played, a.name+" gone")
	a.stage.mu.Unlock()
	a.exitGone <- Exit{Code: code}
}

// polite ends when asked.
func polite(a *actor) {
	select {
	case <-a.terms:
	case <-a.kills:
	}
	a.exit(0)
}

func play(name string, after ...string) Spec {
	return Spec{Name: name, Path: "/bin/" + name, After: after}
}

func TestBackoffOfTheWholeLoop(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var starts []time.Time
		g := newStage(t, func(a *actor) {
			starts = append(starts, time.Now())
			switch {
			case a.number == 10: // healthy for long: all is forgotten
				time.Sleep(healthyAfter)
			case a.number == 13:
				<-a.terms
			}
			a.exit(1)
		})
		s, end := g.supervisor()
		start(t, s, play("it"))
		time.Sleep(time.Hour)
		synctest.Wait()
		want := []time.Duration{1, 2, 4, 8, 16, 32, 60, 60, 60, 0, 1, 2}
		for i, base := range want {
			low, high := time.Duration(float64(base*time.Second)*(1-jitterPart)), base*time.Second
			if i == 9 {
				low, high = healthyAfter+quickDelay, healthyAfter+quickDelay
			}
			if got := starts[i+1].Sub(starts[i]); got < low || got > high {
				t.Errorf("start %d came %s after the one before, want %s to %s", i+2, got, low, high)
			}
		}
		if st := s.Status()[0]; st.State != Ready || st.Restarts != 12 || st.PID != 13 {
			t.Errorf("status %+v", st)
		}
		if err := end(); err != nil {
			t.Error(err)
		}
	})
}

func TestDependantsStartAfterAndStopBefore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newStage(t, func(a *actor) { <-a.terms; time.Sleep(time.Second); a.exit(0) })
		s, end := g.supervisor()
		etcd := play("etcd")
		begun := time.Now()
		etcd.Ready = &Probe{Check: func(context.Context) error {
			if time.Since(begun) < 5*time.Second {
				return errCheck
			}
			return nil
		}}
		start(t, s, etcd, play("apiserver", "etcd"), play("scheduler", "apiserver"),
			play("manager", "apiserver", "etcd"))
		time.Sleep(4 * time.Second)
		synctest.Wait()
		if got, want := g.lines(), []string{"etcd start"}; !slices.Equal(got, want) {
			t.Fatalf("before etcd is ready: %v", got)
		}
		if st := status(t, s, "apiserver"); st.State != Waiting || st.Reason != "waits for etcd (starting)" {
			t.Errorf("apiserver: %+v", st)
		}
		ready(t, s, "scheduler", "manager")
		if took := time.Since(begun); took > 5*time.Second+eagerPeriod {
			t.Errorf("ready after %s: a boot waits for the ready probe", took)
		}
		stopping := time.Now()
		if err := end(); err != nil {
			t.Error(err)
		}
		if took := time.Since(stopping); took != 3*time.Second {
			t.Errorf("three layers of a second each took %s", took)
		}
		played := g.lines()
		order := func(line string) int { return slices.Index(played, line) }
		for _, pair := range [][2]string{
			{"apiserver start", "scheduler start"}, {"apiserver start", "manager start"},
			{"scheduler gone", "apiserver term"}, {"manager gone", "apiserver term"}, {"apiserver gone", "etcd term"},
		} {
			if order(pair[0]) < 0 || order(pair[0]) > order(pair[1]) {
				t.Errorf("%q is not before %q: %v", pair[0], pair[1], played)
			}
		}
	})
}

func TestADependencyThatDegradesStopsNothingButHoldsUpANewStart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex
		var sick error
		g := newStage(t, polite)
		s, end := g.supervisor()
		etcd := play("etcd")
		etcd.Ready = &Probe{Limit: time.Millisecond,
			Check: func(context.Context) error { mu.Lock(); defer mu.Unlock(); return sick }}
		start(t, s, etcd, play("apiserver", "etcd"))
		ready(t, s, "apiserver")
		set := func(err error) { mu.Lock(); sick = err; mu.Unlock(); time.Sleep(3 * time.Second) }
		set(errCheck)
		if etcd, api := status(t, s, "etcd"), status(t, s, "apiserver"); etcd.State != Degraded || api.State != Ready {
			t.Errorf("etcd %+v, apiserver %+v", etcd, api)
		}
		if err := s.Restart(t.Context(), "apiserver", "new flags"); err != nil {
			t.Error(err)
		}
		time.Sleep(time.Minute)
		if st := status(t, s, "apiserver"); st.State != Waiting || st.Reason != "waits for etcd (degraded)" {
			t.Errorf("apiserver: %+v", st)
		}
		set(nil)
		if st := status(t, s, "apiserver"); st.State != Ready || st.Restarts != 1 {
			t.Errorf("apiserver: %+v", st)
		}
		if err := end(); err != nil {
			t.Error(err)
		}
	})
}

func TestStopIsImmediateInBackoffAndWhileWaiting(t *testing.T) { // fault cases 7 and 8
	synctest.Test(t, func(t *testing.T) {
		g := newStage(t, polite)
		g.refuse("broken", errors.New("no such file"))
		s, end := g.supervisor()
		start(t, s, play("broken"), play("waits", "broken"))
		time.Sleep(10 * time.Second)
		for name, want := range map[string]State{"broken": Backoff, "waits": Waiting} {
			if st := status(t, s, name); st.State != want {
				t.Errorf("%+v, want %s", st, want)
			}
			begun := time.Now()
			stop(t, s, name)
			if time.Since(begun) != 0 || status(t, s, name).State != Stopped {
				t.Errorf("stopped after %s: %+v", time.Since(begun), status(t, s, name))
			}
		}
		if err := s.WaitReady(t.Context(), "broken"); !errors.Is(err, ErrStopped) {
			t.Errorf("wait for a stopped process: %v", err)
		}
		if err := s.Restart(t.Context(), "broken", "x"); !errors.Is(err, ErrStopped) {
			t.Errorf("restart of a stopped process: %v", err)
		}
		g.refuse("broken", nil)
		start(t, s, play("broken"))
		ready(t, s, "broken")
		if st := status(t, s, "broken"); st.Restarts != 0 {
			t.Errorf("a new Spec begins at no restarts: %+v", st)
		}
		if err := end(); err != nil {
			t.Error(err)
		}
	})
}

func TestAProcessBlockedInTheKernelIsParkedAndDoesNotHoldUpTheEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		blocked := make(chan struct{})
		g := newStage(t, func(a *actor) {
			<-a.terms
			if a.name == "blocked" {
				<-a.kills
				<-blocked
			}
			a.exit(0)
		})
		s, end := g.supervisor()
		start(t, s, play("below"), play("blocked", "below"))
		ready(t, s, "blocked")
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		err := s.Stop(ctx, "blocked")
		if st := status(t, s, "blocked"); err == nil || st.State != Parked || st.PID != 1 {
			t.Errorf("stop: %v; %+v", err, st)
		}
		if err := s.Start(play("blocked")); err == nil {
			t.Error("started while a former process is still there")
		}
		if err := end(); err == nil {
			t.Error("Run does not tell of a process that it could not end")
		} else {
			t.Log(err)
		}
		if st := status(t, s, "below"); st.State != Stopped {
			t.Errorf("what it depended on was not stopped: %+v", st)
		}
		close(blocked)
	})
}

func TestALaunchThatDoesNotComeBackDoesNotHoldUpTheEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newStage(t, polite)
		g.hang = make(chan struct{})
		s, end := g.supervisor()
		var asks times
		spec := play("it")
		spec.Start = &Probe{Check: asks.of(func(context.Context) error {
			if len(asks.list()) > 9 {
				return nil // or the test would not end
			}
			return errCheck
		})}
		start(t, s, spec)
		synctest.Wait()
		expectError(t, "the end", end(), "stop it: the process does not end: its launch has not come back for 10s")
		close(g.hang)
		synctest.Wait()
		if got, want := g.lines(), []string{"it start", "it kill", "it gone"}; !slices.Equal(got, want) {
			t.Errorf("a launch that comes back too late: %v, want %v", got, want)
		}
		time.Sleep(time.Minute)
		if n := len(asks.list()); n > 1 {
			t.Errorf("it was killed, and asked %d times", n)
		}
	})
}

func TestReadyIsAskedEagerlyButNotForEver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var asks times
		s, end := newStage(t, polite).supervisor()
		spec := play("it")
		spec.Ready = &Probe{Period: 10 * time.Second, Check: asks.of(func(context.Context) error { return errCheck })}
		start(t, s, spec)
		time.Sleep(eagerFor + 70*time.Second)
		synctest.Wait()
		if got, want := len(asks.list()), int(eagerFor/eagerPeriod)+8; got < want-2 || got > want+2 {
			t.Errorf("asked %d times, want about %d", got, want)
		}
		if err := end(); err != nil {
			t.Error(err)
		}
	})
}

func TestReadyIsNotAskedEagerlyOnceItHasPassed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var asks times
		s, end := newStage(t, polite).supervisor()
		spec := play("it")
		spec.Ready = &Probe{Period: 10 * time.Second, Check: asks.of(func(context.Context) error {
			if n := len(asks.list()); n != 3 {
				return errCheck
			}
			return nil
		})}
		start(t, s, spec)
		time.Sleep(25 * time.Second)
		if got, want := len(asks.list()), 3+2; got != want {
			t.Errorf("asked %d times, want %d: the third passes, and two that fail follow at its period", got, want)
		}
		if err := end(); err != nil {
			t.Error(err)
		}
	})
}

func TestLiveIsAskedWhileReadyDoesNotPass(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var alive, asks times
		var broken atomic.Bool
		answer := func(context.Context) error {
			if broken.Load() {
				return errCheck
			}
			return nil
		}
		s, end := newStage(t, polite).supervisor()
		spec := play("it")
		spec.Live = &Probe{Period: 20 * time.Second, Limit: time.Hour, Check: alive.of(answer)}
		spec.Ready = &Probe{Period: 10 * time.Second, Retry: time.Second, Check: asks.of(answer)}
		start(t, s, spec)
		ready(t, s, "it")
		counts := func(when string, wantAlive, wantAsks int) {
			t.Helper()
			synctest.Wait()
			if a, r := len(alive.list()), len(asks.list()); a != wantAlive || r != wantAsks {
				t.Errorf("%s: Live was asked %d times and Ready %d, want %d and %d", when, a, r, wantAlive, wantAsks)
			}
		}
		time.Sleep(105 * time.Second)
		counts("it passes", len(alive.list()), 11)
		begin := len(alive.list())
		if begin > 1 {
			t.Errorf("Live was asked %d times, and at most one is before Ready has passed", begin)
		}
		broken.Store(true)
		time.Sleep(5 * time.Second) // to the next check of Ready, at 110 s
		counts("it fails", begin+1, 12)
		time.Sleep(20 * time.Second)
		counts("it goes on to fail", begin+2, 32)
		if st, _ := s.StatusOf("it"); st.State != Degraded {
			t.Errorf("it is %s: %s", st.State, st.Reason)
		}
		broken.Store(false)
		time.Sleep(time.Second)
		counts("it passes again", begin+2, 33)
		if st, _ := s.StatusOf("it"); st.State != Ready {
			t.Errorf("it is %s: %s", st.State, st.Reason)
		}
		time.Sleep(time.Minute)
		counts("it goes on to pass", begin+2, 39)
		if err := end(); err != nil {
			t.Error(err)
		}
	})
}

func TestAnExitIsSeenWithTheStateThatItCaused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newStage(t, func(a *actor) {
			select {
			case <-a.terms:
			case <-time.After(time.Minute):
			}
			a.exit(40 + a.number)
		})
		s, end := g.supervisor()
		spec := play("etcd")
		spec.ExpectedExit = func(code int, _ string) bool { return code == 42 || code == 44 }
		if _, ok := s.Exited("etcd"); ok {
			t.Error("it has not run")
		}
		start(t, s, spec)
		see := func(run int) string {
			for {
				changed := s.Changed()
				if exit, ok := s.Exited("etcd"); ok && exit.Run == run {
					return fmt.Sprintf("code %d expected %t asked %t %s", exit.Code, exit.Expected, exit.Asked,
						s.Status()[0].State)
				}
				<-changed
			}
		}
		if got, want := see(1), "code 41 expected false asked false backoff"; got != want {
			t.Errorf("exit 1: %s, want %s", got, want)
		}
		see(2)
		if exit, _ := s.Exited("etcd"); !exit.Expected {
			t.Errorf("exit 2: %+v", exit)
		}
		if got, want := see(3), "code 43 expected false asked false backoff"; got != want {
			t.Errorf("exit 3: %s, want %s", got, want)
		}
		ready(t, s, "etcd")
		if err := end(); err != nil {
			t.Error(err)
		}
		if got, want := see(4), "code 44 expected false asked true stopped"; got != want {
			t.Errorf("exit 4: %s, want %s", got, want)
		}
	})
}

func TestWhatIsRefused(t *testing.T) {
	check := func(context.Context) error { return nil }
	synctest.Test(t, func(t *testing.T) {
		g := newStage(t, polite)
		s, end := g.supervisor()
		start(t, s, play("a"), play("b", "a"), play("c", "b"))
		ready(t, s, "c")
		bad := play("B/ad")
		bad.Path, bad.Env, bad.StopTimeout = "bin/x", []string{"A"}, -1
		bad.OOMScore = -1
		bad.Live, bad.Ready = &Probe{}, &Probe{Check: check, Period: -1}
		for name, c := range map[string]struct {
			spec Spec
			want []string
		}{
			"every fault at once": {bad, []string{"name:", "path:", "stop timeout:", "oom score -1", "env:",
				"live probe:", "ready probe:"}},
			"a name that runs": {play("a"), []string{"start a: the name is taken by a process that is ready"}},
			"after itself":     {play("d", "d"), []string{`after: "d": no such process before this one`}},
			"after nobody":     {play("d", "nobody"), []string{`after: "nobody": no such process`, ErrUnknown.Error()}},
		} {
			expectError(t, name, s.Start(c.spec), c.want...)
		}
		stop(t, s, "a")
		expectError(t, "a circle", s.Start(play("a", "c")), `after: "c": no such process before this one`)
		start(t, s, play("a"))
		expectError(t, "stop of nobody", s.Stop(t.Context(), "nobody"), ErrUnknown.Error())
		expectError(t, "wait for nobody", s.WaitReady(t.Context(), "nobody"), ErrUnknown.Error())
		if err := end(); err != nil {
			t.Error(err)
		}
		expectError(t, "start at the end", s.Start(play("late")), ErrEnded.Error())
		expectError(t, "restart at the end", s.Restart(t.Context(), "a", "x"), ErrEnded.Error())
		if err := s.Stop(t.Context(), "a"); err != nil {
			t.Errorf("stop of what Run has stopped: %v", err)
		}
		expectError(t, "a second run", s.Run(t.Context()), "run before")
	})
}

// A process that accepts connections and never answers: each check costs its time-out.
func TestAHangIsFoundWithinTheLimitHoweverLongACheckTakes(t *testing.T) {
	hang := func(ctx context.Context) error { <-ctx.Done(); return context.Cause(ctx) }
	for _, c := range []struct {
		name        string
		spec        func(begun time.Time) Spec
		least, most time.Duration
		why         string
	}{
		{"while it starts", func(time.Time) Spec {
			spec := play("it")
			spec.Start = &Probe{Period: 50 * time.Millisecond, Timeout: 2 * time.Second, Limit: 4 * time.Minute,
				Check: hang}
			return spec
		}, 4 * time.Minute, 4 * time.Minute, "did not come up within 4m0s: no answer in 2s"},
		{"while it starts, and the check does not heed its context", func(begun time.Time) Spec {
			spec := play("it")
			spec.Start = &Probe{Limit: 4 * time.Minute, Check: func(context.Context) error {
				time.Sleep(time.Until(begun.Add(time.Hour)))
				return nil
			}}
			return spec
		}, 4 * time.Minute, 4 * time.Minute, "did not come up within 4m0s: it was never answered"},
		{"when it was up for a minute", func(begun time.Time) Spec {
			spec := play("it")
			spec.Live = &Probe{Period: 5 * time.Second, Timeout: 10 * time.Second, Limit: 45 * time.Second,
				Check: func(ctx context.Context) error {
					if time.Since(begun) < time.Minute {
						return nil
					}
					return hang(ctx)
				}}
			return spec
		}, 105 * time.Second, time.Minute + 10*time.Second + 60*time.Second, "not alive for 45s: no answer in 10s"},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s, end := newStage(t, polite).supervisor()
				begun := time.Now()
				start(t, s, c.spec(begun))
				for ended := false; !ended; {
					changed := s.Changed()
					if _, ended = s.Exited("it"); !ended {
						<-changed
					}
				}
				if exit, _ := s.Exited("it"); exit.At.Sub(begun) < c.least || exit.At.Sub(begun) > c.most {
					t.Errorf("the hang was found after %s, want %s to %s", exit.At.Sub(begun), c.least, c.most)
				}
				if st := status(t, s, "it"); !strings.HasPrefix(st.Reason, c.why) {
					t.Errorf("%q, want %q", st.Reason, c.why)
				}
				if err := end(); err != nil {
					t.Error(err)
				}
				time.Sleep(time.Until(begun.Add(time.Hour))) // a check that is left behind ends
			})
		})
	}
}
