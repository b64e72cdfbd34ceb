package agent

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/quorate/quorate/certs"
	"github.com/quorate/quorate/controlplane"
	"github.com/quorate/quorate/internal/replica"
	"github.com/quorate/quorate/supervisor"
)

// Programs that stand in for the components: each says its version, and then does what the name says.
const (
	sleeps     = "#!/bin/sh\n[ \"$1\" = --version ] && { echo Kubernetes v1.36.3; exit; }\nexec sleep 1000\n"
	endsAtOnce = "#!/bin/sh\n[ \"$1\" = --version ] && { echo Kubernetes v1.36.3; exit; }\necho unknown flag >&2; " +
		"exit 2\n"
	otherVersion = "#!/bin/sh\necho Kubernetes v1.37.0\n"
	isSilent     = "#!/bin/sh\nexec sleep 1000\n"
)

// fitting is an agent whose member runs, and the programs of its control components.
type fitting struct {
	*Agent
	t  *testing.T
	in joined
}

func newFitting(t *testing.T, a *Agent, in certified) fitting {
	t.Helper()
	supervised(t, a)
	f := fitting{a, t, joined{in}}
	for _, name := range []string{replica.APIServer, replica.Scheduler, replica.ControllerManager} {
		c := in.cluster.Components[name]
		c.Binary = f.path(name)
		in.cluster.Components[name] = c
		f.put(name, sleeps)
	}
	if err := a.supervisor.Start(sleeper(etcdName)); err != nil {
		t.Fatal(err)
	}
	return f
}

func (f fitting) path(name string) string { return filepath.Join(f.cfg.RunDir, "bin", name) }

// put replaces a program by rename, as whoever repairs one should; an empty script removes it.
func (f fitting) put(name, script string) {
	f.t.Helper()
	path := f.path(name)
	err := os.MkdirAll(filepath.Dir(path), 0o755)
	if err == nil && script == "" {
		err = os.Remove(path)
	} else if err == nil {
		err = errors.Join(os.WriteFile(path+".new", []byte(script), 0o755), os.Rename(path+".new", path))
	}
	if err != nil {
		f.t.Fatal(err)
	}
}

// components are those that keepControlPlane would run, as they are before the first fit.
func (f fitting) components() *components {
	home := make(chan struct{})
	f.t.Cleanup(func() { close(home) })
	return f.newComponents(f.in, nil, home)
}

func (f fitting) state(name string) supervisor.State {
	s, _ := f.supervisor.StatusOf(name)
	return s.State
}

// wait returns the reason of a wait, empty where there is none.
func (f fitting) wait(name string) string {
	for _, b := range f.status(f.t.Context()).Blocked {
		if b.Name == name {
			return b.Reason
		}
	}
	return ""
}

func (f fitting) want(name string, words ...string) {
	f.t.Helper()
	got := f.wait(name)
	for _, w := range words {
		if !strings.Contains(got, w) {
			f.t.Errorf("%s says %q, want %q in it", name, got, w)
		}
	}
	if len(words) == 0 && got != "" {
		f.t.Errorf("%s says %q", name, got)
	}
}

// running is a control components that was fitted once.
func runningPlane(t *testing.T) (fitting, *components) {
	t.Helper()
	_, a, in := renewing(t)
	f := newFitting(t, a, in)
	c := f.components()
	c.fit(t.Context())
	return f, c
}

// Only what is to run otherwise is started again: an apiserver that comes home costs neither the scheduler nor etcd.
func TestFittingStartsAgainOnlyWhatDiffers(t *testing.T) {
	_, a, in := renewing(t)
	f := newFitting(t, a, in)
	c := f.components()
	c.others = []string{"https://other:2379"}
	aside := 0
	c.aside = func(context.Context) func() {
		if f.state(replica.APIServer) == supervisor.Stopped {
			t.Error("the apiserver stops before its VM has left the load balancer")
		}
		aside++
		return func() {
			if f.state(replica.APIServer) == supervisor.Stopped {
				t.Error("the VM returns before its apiserver was started")
			}
			aside += 10
		}
	}
	c.fit(t.Context())
	first := map[string]started{}
	for name, s := range c.started {
		first[name] = s
	}
	if len(first) != 3 {
		t.Fatalf("started %v", first)
	}
	before, _ := a.supervisor.StatusOf(replica.Scheduler)
	c.fit(t.Context())
	for name, s := range c.started {
		if !sameProcess(first[name].spec, s.spec) {
			t.Errorf("%s was started again, and nothing had changed", name)
		}
	}
	if aside != 0 {
		t.Error("the VM leaves the load balancer for nothing")
	}
	c.others = nil
	c.fit(t.Context())
	if aside != 11 {
		t.Errorf("the VM leaves the load balancer and returns: %d", aside)
	}
	if sameProcess(first[replica.APIServer].spec, c.started[replica.APIServer].spec) {
		t.Error("the apiserver still uses the other member")
	}
	if now, _ := a.supervisor.StatusOf(replica.Scheduler); !now.Since.Equal(before.Since) {
		t.Errorf("the scheduler was started again: %+v, was %+v", now, before)
	}
	if got := c.started[replica.APIServer].spec.After; len(got) != 1 || got[0] != etcdName {
		t.Errorf("the apiserver comes after %v: it has to stop before etcd", got)
	}
}

// A program that cannot be used is a wait that names it. What needs it not is started, and it is started itself once it
// is put right.
func TestAProgramThatCannotBeUsedIsAWait(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		broken string // the script; empty: no file
		mode   os.FileMode
		says   string
	}{
		"another version": {otherVersion, 0o755, "is Kubernetes v1.37.0"},
		"missing":         {"", 0, "no such file"},
		"not executable":  {sleeps, 0o644, "is not an executable file"},
		"another program": {"#!/bin/sh\nexit 3\n", 0o755, "exit status 3"},
		"no program":      {"\x7fELF", 0o755, "exec format error"},
	} {
		for _, program := range []string{replica.APIServer, replica.Scheduler} {
			t.Run(name+" "+program, func(t *testing.T) {
				_, a, in := renewing(t)
				f := newFitting(t, a, in)
				f.put(program, c.broken)
				if c.broken != "" {
					if err := os.Chmod(f.path(program), c.mode); err != nil {
						t.Fatal(err)
					}
				}
				components := f.components()
				components.fit(t.Context())
				f.want(programUnusable, program, f.path(program), c.says)
				f.want(notFitted)
				if components.pause == 0 || components.pause > firstFitRetry {
					t.Errorf("it is tried again after %s", components.pause)
				}
				for _, name := range []string{replica.APIServer, replica.Scheduler, replica.ControllerManager} {
					_, runs := a.supervisor.StatusOf(name)
					if want := program != replica.APIServer && name != program; runs != want {
						t.Errorf("%s is started: %t, want %t", name, runs, want)
					}
				}
				f.put(program, sleeps)
				components.fit(t.Context())
				f.want(programUnusable)
				if n := len(components.started); n != 3 || components.pause != 0 {
					t.Errorf("%d components are started, the next fit is after %s", n, components.pause)
				}
			})
		}
	}
}

// A program that does not say its version is not launched; as soon as it does, it is.
func TestAProgramThatIsSilentIsAWait(t *testing.T) {
	t.Parallel()
	_, a, in := renewing(t)
	f := newFitting(t, a, in)
	f.put(replica.APIServer, isSilent)
	c := f.components()
	begin := time.Now()
	c.fit(t.Context())
	if took := time.Since(begin); took > programPatience {
		t.Errorf("the fit took %s", took)
	}
	f.want(programUnusable, f.path(replica.APIServer), "no answer within")
	if len(c.started) != 0 {
		t.Errorf("started %v", c.started)
	}
	f.put(replica.APIServer, sleeps)
	c.fit(t.Context())
	f.want(programUnusable)
}

// What is up is left alone whatever becomes of its program's file; what is not up is not launched with a program that
// cannot be used, and is launched at once with one that can be.
func TestAProgramThatIsReplacedWhileItsComponentIsDown(t *testing.T) {
	f, c := runningPlane(t)
	pid := func() int { s, _ := f.supervisor.StatusOf(replica.APIServer); return s.PID }
	eventually(t, "it hangs", func() bool { return f.state(replica.APIServer) == supervisor.Starting && pid() != 0 })
	hanging := pid()
	f.put(replica.APIServer, otherVersion)
	c.fit(t.Context())
	f.want(programUnusable, "is Kubernetes v1.37.0")
	if s := f.state(replica.APIServer); s != supervisor.Stopped {
		t.Errorf("the apiserver is %s: it would be launched with that program", s)
	}
	if _, ok := c.started[replica.APIServer]; ok {
		t.Error("it counts as started: the very file that it ran with before would not be taken up again")
	}
	f.put(replica.APIServer, sleeps)
	c.fit(t.Context())
	f.want(programUnusable)
	eventually(t, "it is started", func() bool { return pid() != 0 && pid() != hanging })
	hanging = pid()
	f.put(replica.APIServer, sleeps+"# another build\n")
	c.fit(t.Context())
	eventually(t, "it is started with the new program", func() bool { return pid() != 0 && pid() != hanging })
}

func TestAComponentThatIsUpIsLeftAloneWhateverBecomesOfItsProgram(t *testing.T) {
	_, a, in := renewing(t)
	in.cluster.Components["mine"] = replica.Component{Enabled: new(true), Binary: "/nowhere"}
	f := newFitting(t, a, in)
	mine := in.cluster.Components["mine"]
	mine.Binary = f.path("mine")
	in.cluster.Components["mine"] = mine
	f.put("mine", sleeps)
	c := f.components()
	// Nobody here makes the apiserver ready, and what has no probe is up as soon as it runs.
	c.started["mine"] = started{file: identifyFile(f.path("mine"))}
	spec := supervisor.Spec{Name: "mine", Path: f.path("mine"), After: []string{etcdName}}
	if err := a.supervisor.Start(spec); err != nil {
		t.Fatal(err)
	}
	eventually(t, "it runs", func() bool { return f.state("mine") == supervisor.Ready })
	c.started["mine"] = started{spec, identifyFile(spec.Path)}
	f.put("mine", "")
	if !c.runs(spec) {
		t.Error("it would be started again")
	}
	if err := c.withdraw(t.Context(), spec, controlplane.ErrBinary); err != nil || f.state("mine") != supervisor.Ready {
		t.Errorf("%v; it is %s", err, f.state("mine"))
	}
}

// That a program has not answered in time says nothing against the process that was launched from it.
func TestAComponentIsNotStoppedForAProgramThatIsSlow(t *testing.T) {
	f, c := runningPlane(t)
	eventually(t, "it hangs", func() bool { return f.state(replica.APIServer) == supervisor.Starting })
	if err := c.withdraw(t.Context(), c.started[replica.APIServer].spec, errBroken); err != nil ||
		f.state(replica.APIServer) != supervisor.Starting {
		t.Errorf("%v; it is %s", err, f.state(replica.APIServer))
	}
}

// What was stopped for its program is named by that; etcd has waits of its own.
func TestWhatIsNoComponentThatIsDown(t *testing.T) {
	f, c := runningPlane(t)
	for _, name := range []string{etcdName, replica.APIServer} {
		if err := f.supervisor.Stop(t.Context(), name); err != nil {
			t.Fatal(err)
		}
	}
	spec := sleeper(etcdName)
	spec.Start = &supervisor.Probe{Check: func(context.Context) error { return errBroken }}
	if err := f.supervisor.Start(spec); err != nil {
		t.Fatal(err)
	}
	eventually(t, "etcd comes up", func() bool { return f.state(etcdName) == supervisor.Starting })
	c.observe(time.Now())
	c.observe(time.Now().Add(time.Hour))
	f.want(componentNotReady)
}

// A program that does not answer is asked once, however many want to know; and what was found bad is no file that was
// found usable.
func TestAQuestionThatIsOpenIsNotAskedAgain(t *testing.T) {
	_, a, in := renewing(t)
	f := newFitting(t, a, in)
	f.put(replica.APIServer, isSilent)
	ctx, cancel := context.WithCancel(t.Context())
	spec := supervisor.Spec{Name: replica.APIServer, Path: f.path(replica.APIServer)}
	first := a.programs.ask(ctx, spec)
	if second := a.programs.ask(ctx, spec); second != first {
		t.Error("it was asked twice")
	}
	cancel()
	<-first.done
	if first.err == nil || a.programs.file(spec.Path) != (fileID{}) {
		t.Errorf("%v; file %+v", first.err, a.programs.file(spec.Path))
	}
	if third := a.programs.ask(t.Context(), spec); third == first {
		t.Error("a question that failed is not asked again")
	}
}

// Who wants a fit has it at once, whenever the next one was due.
func TestAFitThatIsWantedIsMadeAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, a, in := renewing(t)
		c := a.newComponents(joined{in}, nil, nil)
		fits := 0
		c.decideEncryption = func() ([]byte, error) { fits++; return nil, errBroken }
		ctx, cancel := context.WithTimeout(t.Context(), firstFitRetry/10)
		defer cancel()
		a.fitWanted.give()
		c.keep(ctx)
		if fits != 2 {
			t.Errorf("%d fits", fits)
		}
	})
}

// A file that cannot be written is a wait, and what runs goes on; one that is already as it has to be need not be
// written.
func TestAFileThatCannotBeWrittenIsAWait(t *testing.T) {
	_, a, in := renewing(t)
	f := newFitting(t, a, in)
	obstacle := filepath.Join(a.cfg.RunDir, "authentication.yaml")
	if err := os.MkdirAll(filepath.Join(obstacle, "x"), 0o700); err != nil {
		t.Fatal(err)
	}
	c := f.components()
	c.fit(t.Context())
	f.want(notFitted, obstacle)
	if len(c.started) != 0 || c.pause == 0 {
		t.Errorf("started %v; the next fit is after %s", c.started, c.pause)
	}
	if err := os.RemoveAll(obstacle); err != nil {
		t.Fatal(err)
	}
	c.fit(t.Context())
	f.want(notFitted)
	if len(c.started) != 3 {
		t.Errorf("started %v", c.started)
	}
	info, err := os.Stat(obstacle)
	if err != nil {
		t.Fatal(err)
	}
	c.fit(t.Context())
	if again, err := os.Stat(obstacle); err != nil || !os.SameFile(info, again) {
		t.Errorf("a file that is as it has to be was written again (%v)", err)
	}
	right, err := os.ReadFile(obstacle)
	if err == nil {
		err = os.WriteFile(obstacle, []byte("other"), 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	c.fit(t.Context())
	if now, err := os.ReadFile(obstacle); err != nil || string(now) != string(right) {
		t.Errorf("a file that was changed says %q (%v)", now, err)
	}
}

// A component that ends again and again is a wait with the reason of its ends, also while it is started again; one log
// line tells it.
func TestAComponentThatDoesNotComeUpIsAWait(t *testing.T) {
	t.Parallel()
	_, a, in := renewing(t)
	f := newFitting(t, a, in)
	var log strings.Builder
	a.logsWaitsTo(slog.New(slog.NewTextHandler(&log, nil)))
	f.put(replica.APIServer, endsAtOnce)
	c := f.components()
	c.fit(t.Context())
	eventually(t, "it has ended", func() bool { return f.state(replica.APIServer) == supervisor.Backoff })
	begin := time.Now()
	c.observe(begin)
	f.want(componentNotReady)
	var reasons []string
	for n := range 300 {
		c.observe(begin.Add(componentPatience + time.Duration(n)))
		if r := f.wait(componentNotReady); !slices.Contains(reasons, r) {
			reasons = append(reasons, r)
		}
		time.Sleep(10 * time.Millisecond)
	}
	if len(reasons) != 1 ||
		!strings.Contains(reasons[0], f.path(replica.APIServer)+"): exited with code 2: unknown flag") {
		t.Errorf("reasons %q", reasons)
	}
	if n := strings.Count(log.String(), "\n"); n != 1 {
		t.Errorf("%d lines:\n%s", n, log.String())
	}
	if s, _ := a.supervisor.StatusOf(replica.APIServer); s.Restarts == 0 {
		t.Error("it was not started again meanwhile: this test shows nothing")
	}
	if strings.Contains(reasons[0], replica.Scheduler) {
		t.Error("what waits for the apiserver is named, too")
	}
}

func TestTheReasonOfAComponentThatIsDown(t *testing.T) {
	at := time.Now()
	status := func(state supervisor.State, reason string) supervisor.Status {
		return supervisor.Status{State: state, Reason: reason}
	}
	var d down
	for _, c := range []struct {
		s    supervisor.Status
		want string
	}{
		{status(supervisor.Starting, "launched"), "starting: launched"},
		{status(supervisor.Starting, "not up yet: refused"), "starting: not up yet: refused"},
		{status(supervisor.Backoff, "exited with code 1; next start in 1.2s"), "exited with code 1"},
		{status(supervisor.Starting, "launched"), "exited with code 1"},
		{status(supervisor.Degraded, "not ready: 500"), "degraded: not ready: 500"},
		{status(supervisor.Parked, "blocked"), "parked: blocked"},
	} {
		if d = d.with(c.s, at.Add(time.Hour)); d.why != c.want || !d.since.Equal(at.Add(time.Hour)) {
			t.Errorf("%s, %s: %+v, want %q", c.s.State, c.s.Reason, d, c.want)
		}
	}
}

// The times between two fits, which are what a person waits for who has put something right.
func TestWhenTheNextFitIs(t *testing.T) {
	now := time.Now()
	one := map[string]down{"x": {}}
	for name, c := range map[string]struct {
		components components
		want       time.Duration
	}{
		"all is well":               {components{}, fitPeriod},
		"a component is not ready":  {components{down: one}, fitHurry},
		"a fit failed":              {components{pause: 3 * time.Second}, 3 * time.Second},
		"both":                      {components{pause: 3 * time.Second, down: one}, 3 * time.Second},
		"a fit is wanted, or first": {components{fitted: time.Time{}.Add(-time.Hour)}, 0},
	} {
		if c.want > 0 {
			c.components.fitted = now
		}
		if got := max(0, c.components.next().Sub(now)); got != c.want {
			t.Errorf("%s: after %s, want %s", name, got, c.want)
		}
		if got := c.components.rest(now); len(c.components.down) > 0 && got != fitHurry {
			t.Errorf("%s: it is checked again after %s", name, got)
		}
	}
}

// A renewal brings the authority's key, and the fit that should hand it to the controller-manager fails: it is tried
// again until the controller-manager signs.
func TestTheSigningKeyReachesTheControllerManagerAlthoughAFitFailed(t *testing.T) {
	_, a, in := renewing(t)
	f := newFitting(t, a, in)
	key := in.files.CASignerKey(certs.Kubernetes)
	if err := os.Remove(key); err != nil {
		t.Fatal(err)
	}
	c := f.components()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	ended := make(chan struct{})
	go func() { defer close(ended); c.keep(ctx) }()
	eventually(t, "the controller-manager is there",
		func() bool { _, ok := a.supervisor.StatusOf(replica.ControllerManager); return ok })
	obstacle := filepath.Join(a.cfg.RunDir, "authentication.yaml")
	if err := errors.Join(os.Remove(obstacle), os.MkdirAll(filepath.Join(obstacle, "x"), 0o700)); err != nil {
		t.Fatal(err)
	}
	in.issued.Lacking = true // it is tried again at once
	defer background(ctx, func(ctx context.Context) { a.certificates.Renew(ctx, in.issued) })()
	eventually(t, "the renewal brings the key", func() bool { return canSign(in.files) })
	eventually(t, "the fit fails", func() bool { return f.wait(notFitted) != "" })
	if err := os.RemoveAll(obstacle); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the fit is tried again", func() bool { return f.wait(notFitted) == "" })
	cancel()
	<-ended
	args := c.started[replica.ControllerManager].spec.Args
	if !slices.Contains(args, "--cluster-signing-key-file="+key) {
		t.Errorf("the controller-manager is started with %q", args)
	}
}

// However long the control components cannot run, nothing of it ends what was built on the member.
func TestAControlPlaneThatCannotRunEndsNothing(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		_, a, in := renewing(t) // its programs are not installed here
		ctx, cancel := context.WithTimeout(t.Context(), 24*time.Hour)
		defer cancel()
		defer a.keepControlPlane(ctx, joined{in}, func(error) {})()
		_, err := enter(ctx, a.progress, PhaseControlPlane, joined{in}, a.awaitAPIServer)
		if !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("after a day: %v", err)
		}
		if s := a.status(t.Context()); s.Replica.Ready || len(s.Blocked) != 1 || s.Blocked[0].Name != programUnusable {
			t.Errorf("status %+v", s)
		}
	})
}
