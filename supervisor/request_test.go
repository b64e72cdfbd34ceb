package supervisor

import (
	"context"
	"errors"
	"slices"
	"testing"
	"testing/synctest"
	"time"
)

// hangingLaunch begins a supervisor whose process it is inside a launch that hangs until release is called.
func hangingLaunch(t *testing.T) (s *Supervisor, release func(), end func() error) {
	g := newStage(t, polite)
	g.hang = make(chan struct{})
	s, end = g.supervisor()
	start(t, s, play("it"))
	synctest.Wait()
	return s, func() { close(g.hang) }, end
}

func TestAStopOutlivesItsCallerWhileALaunchHangs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, release, end := hangingLaunch(t)
		ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
		defer cancel()
		if err := s.Stop(ctx, "it"); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("stop during the launch: %v", err)
		}
		release()
		time.Sleep(time.Minute)
		if st := status(t, s, "it"); st.State != Stopped || st.Reason != "asked to stop; exited with code 0" {
			t.Errorf("a minute after: %+v", st)
		}
		if err := end(); err != nil {
			t.Error(err)
		}
	})
}

func TestNobodyWaitsForALaunchThatHangs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, release, end := hangingLaunch(t)
		begun := time.Now()
		err := s.Stop(context.Background(), "it")
		if took := time.Since(begun); !errors.Is(err, ErrParked) || took != answerPatience {
			t.Errorf("the stop took %s: %v", took, err)
		}
		release()
		stop(t, s, "it") // it went on without its caller
		if err := end(); err != nil {
			t.Error(err)
		}
	})
}

func TestALaunchThatHangsHoldsUpNoStart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, release, end := hangingLaunch(t)
		expectError(t, "a second start of it", s.Start(play("it")), "the name is taken by a process that is starting")
		if err := s.Start(play("other")); err != nil {
			t.Error(err)
		}
		release()
		ready(t, s, "it", "other")
		if err := end(); err != nil {
			t.Error(err)
		}
	})
}

func TestNobodyWaitsForAParkedProcess(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		thawed := make(chan struct{})
		g := newStage(t, func(a *actor) { <-a.kills; <-thawed; <-a.terms; a.exit(0) })
		s, end := g.supervisor()
		start(t, s, play("it"))
		ready(t, s, "it")
		begun := time.Now()
		err := s.Stop(context.Background(), "it")
		if took := time.Since(begun); !errors.Is(err, ErrParked) || took != DefaultStopTimeout+killPatience {
			t.Errorf("the stop took %s: %v", took, err)
		}
		expectError(t, "the stop", err, "stop it: the process does not end: pid 1 is still there:",
			"blocked in the kernel")
		if err := s.Stop(context.Background(), "it"); !errors.Is(err, ErrParked) ||
			time.Since(begun) != DefaultStopTimeout+killPatience {
			t.Errorf("a second stop: %v after %s", err, time.Since(begun))
		}
		close(thawed)
		synctest.Wait()
		stop(t, s, "it") // it went on without its callers
		if err := end(); err != nil {
			t.Error(err)
		}
	})
}

func TestStopWithinKillsEarlierThanTheSpecSays(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newStage(t, func(a *actor) { <-a.kills; <-a.terms; a.exit(0) })
		s, end := g.supervisor()
		spec := play("it")
		spec.StopTimeout = time.Hour
		start(t, s, spec)
		ready(t, s, "it")
		begun := time.Now()
		if err := s.StopWithin(t.Context(), "it", 6*time.Second); err != nil || time.Since(begun) != 6*time.Second {
			t.Errorf("stopped after %s: %v", time.Since(begun), err)
		}
		if err := end(); err != nil {
			t.Error(err)
		}
	})
}

// A process that comes back with another Spec is stopped in the order that this one demands.
func TestANewSpecChangesTheOrderOfTheEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newStage(t, func(a *actor) { <-a.terms; time.Sleep(time.Second); a.exit(0) })
		s, end := g.supervisor()
		start(t, s, play("one"), play("two"))
		stop(t, s, "two")
		start(t, s, play("two", "one"))
		ready(t, s, "one", "two")
		if err := end(); err != nil {
			t.Error(err)
		}
		played := g.lines()
		if want := []string{"two start", "two term", "two gone", "one term",
			"one gone"}; !slices.Equal(played[len(played)-5:], want) {
			t.Errorf("one was stopped before two, which comes after it: %v", played)
		}
	})
}

// A Start may have found the supervisor running and reach the process when Run has stopped it.
func TestAStartThatComesTooLateIsRefusedByTheProcess(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newStage(t, polite)
		s, end := g.supervisor()
		start(t, s, play("it"))
		ready(t, s, "it")
		p := s.find("it")
		for _, r := range []request{newRequest(askEnd, "the end"), newRequest(askStop, "a stop beside it")} {
			if err := p.ask(t.Context(), r); err != nil {
				t.Fatal(err)
			}
			<-r.gone
		}
		r := newRequest(askStart, "")
		r.spec = play("it")
		if err := p.ask(t.Context(), r); !errors.Is(err, ErrEnded) {
			t.Errorf("start: %v", err)
		}
		synctest.Wait()
		if got, want := g.lines(), []string{"it start", "it term", "it gone"}; !slices.Equal(got, want) {
			t.Errorf("%v, want %v", got, want)
		}
		if err := end(); err != nil {
			t.Error(err)
		}
	})
}
