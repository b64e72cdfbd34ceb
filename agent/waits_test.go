package agent

import (
	"errors"
	"log/slog"
	"sync"
	"testing"
	"time"

	"github.com/quorate/quorate/internal/replica"
	"github.com/quorate/quorate/internal/waits"
)

func TestAWaitOfTheAgentKeepsItsBeginning(t *testing.T) {
	a := newVM(t).agent()
	a.progress.enter(PhaseKeep)
	a.waits.HoldFor("certificates-not-renewed", errBroken, "n")
	since := a.tracker.All()[0].Since
	a.waits.HoldFor("certificates-not-renewed", errors.New("broken otherwise"), "n")
	if s := a.status(t.Context()); len(s.Blocked) != 1 || !s.Blocked[0].Since.Equal(since) ||
		s.Blocked[0].Reason != "broken otherwise" || s.Blocked[0].Row != "keep" {
		t.Errorf("%+v", s.Blocked)
	}
	a.waits.Release("another")
	a.waits.Release("certificates-not-renewed")
	if s := a.status(t.Context()); len(s.Blocked) != 0 {
		t.Errorf("%+v", s.Blocked)
	}
}

// logsWaitsTo lets the agent's waits be logged elsewhere.
func (a *Agent) logsWaitsTo(log *slog.Logger) {
	a.tracker = waits.New(log, "")
	a.waits.Source = a.tracker.Source("agent", "phase", 0)
}

// stuckLog takes no line while it is locked.
type stuckLog struct{ sync.Mutex }

func (l *stuckLog) Write(p []byte) (int, error) {
	l.Lock()
	defer l.Unlock()
	return len(p), nil
}

// The watchdog's question takes the agent's locks: a line that is written under one of them makes a log that is stuck
// the agent's death.
func TestALogThatIsStuckKeepsTheWatchdogsAnswerNotBack(t *testing.T) {
	for name, do := range map[string]func(a *Agent){
		"a wait": func(a *Agent) { a.waits.HoldFor("certificates-not-renewed", errBroken, "n") },
		"a snapshot": func(a *Agent) {
			a.snapshots.show(nil, &replica.Wait{Name: snapshotOverdue, Reason: "r", Next: "n", Since: time.Now()})
		},
		"the end of a wait":   func(a *Agent) { a.waits.Release("w") },
		"a snapshot that was": func(a *Agent) { a.snapshots.show(nil, nil) },
	} {
		t.Run(name, func(t *testing.T) {
			var log stuckLog
			a := newVM(t).agent()
			a.logsWaitsTo(slog.New(slog.NewTextHandler(&log, nil)))
			a.waits.Hold(replica.Wait{Name: "w"})
			if name == "a snapshot that was" {
				a.waits.Hold(replica.Wait{Name: snapshotOverdue})
			}
			log.Lock()
			said := make(chan struct{})
			go func() { defer close(said); do(a) }()
			time.Sleep(20 * time.Millisecond)
			alive := make(chan bool, 1)
			go func() { alive <- a.alive() && a.status(t.Context()).Blocked != nil }()
			select {
			case <-alive:
			case <-time.After(time.Second):
				t.Error("no answer while the log is stuck")
			}
			log.Unlock()
			<-said
		})
	}
}

// A lock that is never given back is what the watchdog is for, so its question needs each of them.
func TestALockThatIsKeptKeepsTheWatchdogsAnswerBack(t *testing.T) {
	for name, lock := range map[string]func(a *Agent) sync.Locker{
		"the agent's":      func(a *Agent) sync.Locker { return &a.mu },
		"the progress's":   func(a *Agent) sync.Locker { return &a.progress.mu },
		"the host's":       func(a *Agent) sync.Locker { return &a.host.mu },
		"the document's":   func(a *Agent) sync.Locker { return &a.document.mu },
		"the encryption's": func(a *Agent) sync.Locker { return &a.encryption.mu },
		"the snapshots'":   func(a *Agent) sync.Locker { return &a.snapshots.mu },
		"the archives'":    func(a *Agent) sync.Locker { return &a.archives.mu },
		"the add-ons'":     func(a *Agent) sync.Locker { return &a.addons.mu },
	} {
		t.Run(name, func(t *testing.T) {
			a := newVM(t).agent()
			kept := lock(a)
			kept.Lock()
			alive := make(chan bool)
			go func() { alive <- a.alive() }()
			select {
			case <-alive:
				t.Error("an answer without the lock")
				kept.Unlock()
			case <-time.After(50 * time.Millisecond):
				kept.Unlock()
				<-alive
			}
		})
	}
}
