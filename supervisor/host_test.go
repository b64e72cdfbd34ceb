package supervisor

import (
	"context"
	"os"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"syscall"
	"testing"
	"testing/synctest"
	"time"
)

// countedGroup is a group that counts how often it is killed, and lives for a time.
type countedGroup struct {
	kills int
	until time.Time
}

func (g *countedGroup) join(*syscall.SysProcAttr) {}
func (g *countedGroup) joined(int)                {}
func (g *countedGroup) limit(Limits, int) string  { return "" }
func (g *countedGroup) kill() error               { g.kills++; return nil }
func (g *countedGroup) alive() bool               { return time.Now().Before(g.until) }
func (g *countedGroup) close() bool               { return false }

// The number of a process that has been reaped may belong to a stranger.
func TestAReapedProcessIsSentNothing(t *testing.T) {
	s := New(Config{LogDir: t.TempDir()})
	h := s.newLauncher("it")
	defer h.close()
	run, err := h.launch(Spec{Name: "it", Path: "/bin/true"})
	if err != nil {
		t.Fatal(err)
	}
	<-run.gone()
	c := run.(*child)
	g := &countedGroup{}
	c.group = g
	if err := c.kill(); err != nil || g.kills != 0 {
		t.Errorf("killed %d times: %v", g.kills, err)
	}
	if err := c.terminate(); err != nil {
		t.Errorf("terminated: %v", err)
	}
}

func TestWhatOutlivesAProcessIsToldOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for lives, want := range map[time.Duration]int{leftNotice / 2: 0, time.Minute: 1} {
			c := &child{group: &countedGroup{until: time.Now().Add(lives)}, exitLeft: make(chan Exit, 9)}
			begun := time.Now()
			c.awaitGroup(Exit{Code: 3})
			if took := time.Since(begun); took < lives || len(c.exitLeft) != want {
				t.Errorf("what lives for %s: told %d times within %s, want %d", lives, len(c.exitLeft), took, want)
			}
		}
	})
}

// used are the files and goroutines that this program has.
func used(t *testing.T) (files, goroutines int) {
	t.Helper()
	open, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Fatal(err)
	}
	return len(open), runtime.NumGoroutine()
}

// What ends or cannot be launched again and again leaves nothing behind. It does not run in parallel with other tests.
func TestManyRunsLeakNothing(t *testing.T) {
	defer debug.SetGCPercent(debug.SetGCPercent(-1)) // which would close files that nobody closes
	file := filepath.Join(t.TempDir(), "notes")
	no := func(context.Context) error { return errCheck }
	probe := &Probe{Period: time.Millisecond, Limit: time.Hour, Check: no}
	ended := func(st Status) bool { return st.State == Backoff }
	runs := func(st Status) bool { return st.PID != 0 }
	for name, c := range map[string]struct {
		spec    Spec
		settled func(Status) bool
	}{
		"that crash":              {Spec{Path: "/bin/false", Start: probe}, ended},
		"that are asked to end":   {Spec{Path: "/bin/sleep", Args: []string{"1000"}, Live: probe, Ready: probe}, runs},
		"that cannot be launched": {Spec{Path: "/no/such/program"}, ended},
		"that leave a file open":  {childSpec(t, "it", "parent", file, "same"), runs},
	} {
		t.Run(name, func(t *testing.T) {
			s, spec := begin(t, Config{}), c.spec
			spec.Name = "it"
			start(t, s, spec)
			again := func(times int) {
				for range times {
					before := await(t, s, "it", "a run", c.settled).Restarts
					if err := s.Restart(within(t), "it", "again"); err != nil {
						t.Fatal(err)
					}
					await(t, s, "it", "the next run", func(st Status) bool { return st.Restarts > before })
				}
			}
			again(5)
			files, goroutines := used(t)
			again(40)
			for ctx := within(t); ; time.Sleep(20 * time.Millisecond) {
				nowFiles, nowGoroutines := used(t)
				if nowFiles < files+10 && nowGoroutines < goroutines+10 {
					break
				}
				if ctx.Err() != nil {
					t.Fatalf("files %d, were %d; goroutines %d, were %d", nowFiles, files, nowGoroutines, goroutines)
				}
			}
		})
	}
}

func TestAProcessThatIsBeingStoppedIsNotAskedAnyMore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var asks times
		g := newStage(t, func(a *actor) { <-a.terms; time.Sleep(5 * time.Second); a.exit(0) })
		s, end := g.supervisor()
		spec := play("it")
		spec.Live = &Probe{Period: time.Second, Check: asks.of(func(context.Context) error { return nil })}
		start(t, s, spec)
		time.Sleep(10500 * time.Millisecond)
		before := len(asks.list())
		stop(t, s, "it")
		if now := len(asks.list()); before == 0 || now != before {
			t.Errorf("asked %d times until the stop, and %d times more", before, now-before)
		}
		if err := end(); err != nil {
			t.Error(err)
		}
	})
}
