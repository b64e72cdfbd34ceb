package supervisor

import (
	"context"
	"math/rand/v2"
	"path/filepath"
	"sync"
	"testing"
	"time"
)

// TestNothingRunsTwiceWhateverIsAskedAtOnce lets many callers start, stop and restart two real processes, one after the
// other one, as fast as they can. Each process holds a lock while it runs and reports if it did not get it. Fault case
// 9.
func TestNothingRunsTwiceWhateverIsAskedAtOnce(t *testing.T) {
	t.Parallel()
	inGroups(t, func(t *testing.T, cfg Config) {
		dir := t.TempDir()
		doubles := filepath.Join(dir, "doubles")
		s, end := beginUntil(t, cfg)
		specs := map[string]Spec{}
		for _, name := range []string{"below", "above"} {
			spec := childSpec(t, name, "only", filepath.Join(dir, name+".lock"), doubles)
			spec.StopTimeout = 50 * time.Millisecond
			specs[name] = spec
		}
		above := specs["above"]
		above.After = []string{"below"}
		specs["above"] = above
		start(t, s, specs["below"], specs["above"])

		ctx, cancel := context.WithTimeout(context.Background(), 700*time.Millisecond)
		defer cancel()
		var callers sync.WaitGroup
		for i := range 8 {
			callers.Go(func() { pester(ctx, s, specs, rand.New(rand.NewPCG(uint64(i), 1))) })
		}
		callers.Wait()
		for _, name := range []string{"below", "above"} {
			stop(t, s, name)
			start(t, s, specs[name])
		}
		ready(t, s, "below", "above")
		end()
		if got := notes(t, doubles); len(got) > 0 {
			t.Errorf("%d times two ran at once", len(got))
		}
		expectError(t, "after the end", s.Start(specs["above"]), ErrEnded.Error())
	})
}

// pester asks at random until ctx is done.
func pester(ctx context.Context, s *Supervisor, specs map[string]Spec, random *rand.Rand) {
	for ctx.Err() == nil {
		name := []string{"below", "above"}[random.IntN(2)]
		switch random.IntN(5) {
		case 0:
			_ = s.Stop(ctx, name)
		case 1:
			_ = s.Restart(ctx, name, "pestered")
		case 2:
			brief, cancel := context.WithTimeout(ctx, time.Duration(random.IntN(20))*time.Millisecond)
			_ = s.WaitReady(brief, name)
			cancel()
		default: // mostly refused: the name is taken
			_ = s.Start(specs[name])
		}
		_ = s.Status()
	}
}

// TestEndWhileAllIsAsked ends the supervisor while it is being pestered: Run returns and nothing is left.
func TestEndWhileAllIsAsked(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	s, end := beginUntil(t, Config{})
	spec := childSpec(t, "below", "only", filepath.Join(dir, "lock"), filepath.Join(dir, "doubles"))
	specs := map[string]Spec{"below": spec, "above": childSpec(t, "above", "exit", "1", "no")}
	ctx, cancel := context.WithCancel(context.Background())
	var callers sync.WaitGroup
	for i := range 4 {
		callers.Go(func() { pester(ctx, s, specs, rand.New(rand.NewPCG(uint64(i), 2))) })
	}
	_ = s.Start(spec) // refused where one of the callers has been quicker
	end()
	for _, st := range s.Status() {
		if st.State != Stopped || st.PID != 0 {
			t.Errorf("after Run: %+v", st)
		}
	}
	cancel()
	callers.Wait()
}
