package supervisor

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

// machine is the life of one process without the process: it is told what happened and when, and says what to do. It
// has no clock, no lock and no goroutine; its process's goroutine alone calls it.
//
//	            start               all of After ready            up, and Ready passes
//	stopped ─────────────► waiting ────────────────────► starting ─────────────────────► ready
//	   ▲                    ▲   ▲                         │    │                         │  ▲
//	   │                    │   │ time is up              │    │            Ready fails, │  │ both pass
//	   │             restart│   │                         │    │      Live fails at first▼  │
//	   │                    │  backoff ◄──────────────────┤    │                       degraded
//	   │                    │   ▲     cannot be launched, │    │                          │
//	   │                    │   │     exited by itself    └────┼───── from all three ─────┤
//	   │                    │   │ failed                       │                          │
//	   │ stop               │   │                              ▼  stop, restart, Start or │
//	   └────────────────────┴───┴──────────────────────── stopping ◄── Live failed for good
//	                                                           │
//	                                                           ▼ killed, and still not gone
//	                                                        parked ──► where stopping would have gone
//
// stop leads from waiting and backoff to stopped at once; an expected exit leads to waiting if the run was not too
// short. parked is not "tried too often", which never happens: it is a process that SIGKILL does not end, because it is
// blocked in the kernel, by a frozen disk for one, or that could not be killed, which goes on being tried. Nothing may
// be started next to it; it is left as soon as the process is gone.
type machine struct {
	spec     Spec
	jitter   func() float64                   // in [0, 1)
	moved    func(from, to State, why string) // told of each transition
	state    State
	since    time.Time
	reason   string
	starts   int       // of this Spec
	due      time.Time // when tick wants to be called; zero: not
	wanted   bool      // it is to run; false from stop on
	held     bool      // in waiting: something that it comes after was not ready
	backoff  backoff
	cause    cause     // why stopping was entered
	dying    time.Time // since when the run is to be killed; zero: it may still end by itself
	killed   bool      // SIGKILL was sent
	killErr  error     // why it could not be sent when it was tried last
	launched time.Time
	goodFor  time.Duration // the longest time in one piece that this run was ready
	health   health
}

// cause is why a run is being ended.
type cause int

const (
	byItself cause = iota // the process has ended, something that it started has not
	byStop
	byRestart
	byFailure
)

// act is what the machine wants done at once.
type act int

const (
	nothing act = iota
	launch
	terminate // SIGTERM, once
	kill      // SIGKILL for the whole group
)

const (
	// DefaultStopTimeout is that of a Spec which gives none.
	DefaultStopTimeout = 10 * time.Second
	// StopMargin is for who waits for a stop: what a process may take to be gone beyond its own time for it. One that
	// is not gone by then is blocked in the kernel.
	StopMargin = 15 * time.Second
	// killPatience is how long a process may take to be gone after SIGKILL. The kernel needs milliseconds, or gigabytes
	// of memory to give back: a second. More means that it is blocked.
	killPatience = 10 * time.Second
	// killRetry is the time between two attempts to kill, where the first one failed for want of a file or of memory.
	killRetry = time.Second
)

// successors are the transitions of the picture. Any other is a mistake in this file.
var successors = map[State][]State{
	Stopped:  {Waiting},
	Waiting:  {Starting, Stopped},
	Starting: {Ready, Backoff, Waiting, Stopping},
	Ready:    {Degraded, Backoff, Waiting, Stopping},
	Degraded: {Ready, Backoff, Waiting, Stopping},
	Stopping: {Stopped, Waiting, Backoff, Parked},
	Backoff:  {Waiting, Stopped},
	Parked:   {Stopped, Waiting, Backoff},
}

// to is the one transition.
func (m *machine) to(now time.Time, next State, reason string) {
	if !slices.Contains(successors[m.state], next) {
		panic(fmt.Sprintf("supervisor: %s: impossible transition from %s to %s (%s)", m.spec.Name, m.state, next,
			reason))
	}
	if m.state == Ready {
		m.goodFor = max(m.goodFor, now.Sub(m.since))
	}
	m.moved(m.state, next, reason)
	m.state, m.since, m.reason, m.due, m.held = next, now, reason, time.Time{}, false
}

// alive says whether a run is under way that nobody is ending.
func (m *machine) alive() bool {
	return m.state == Starting || m.state == Ready || m.state == Degraded
}

// start begins the life of a Spec. All that was remembered of a former one is forgotten.
func (m *machine) start(now time.Time, spec Spec) error {
	if m.state != Stopped {
		return nameTaken(m.state)
	}
	*m = machine{spec: spec, jitter: m.jitter, moved: m.moved, state: Stopped, wanted: true}
	m.to(now, Waiting, "asked to start")
	return nil
}

func nameTaken(state State) error {
	return fmt.Errorf("the name is taken by a process that is %s", state)
}

// depend is told, while the process waits, which of those it comes after are not ready.
func (m *machine) depend(now time.Time, missing []string) act {
	if m.state != Waiting {
		return nothing
	}
	if len(missing) > 0 {
		m.held, m.reason = true, "waits for "+strings.Join(missing, ", ")
		return nothing
	}
	m.starts++
	reason := fmt.Sprintf("start %d", m.starts)
	switch after := strings.Join(m.spec.After, ", "); {
	case m.held: // that wait has just ended
		reason += ", ready now: " + after
	case after != "":
		reason += ", ready already: " + after
	}
	m.cause, m.goodFor, m.launched = byItself, 0, now
	m.dying, m.killed, m.killErr = time.Time{}, false, nil
	m.health = health{}
	m.to(now, Starting, reason)
	return launch
}

// ran is told whether the launch worked.
func (m *machine) ran(now time.Time, err error) act {
	if err != nil {
		m.retreat(now, m.backoff.next(0, m.jitter()), fmt.Sprintf("cannot be started: %v", err))
		return nothing
	}
	m.health.begin(m.spec)
	m.reason = "launched"
	if m.spec.Start != nil {
		m.due = now.Add(m.spec.Start.limit())
	}
	return m.judge(now)
}

// stop says that the process is to be stopped and to stay so.
func (m *machine) stop(now time.Time, reason string) act {
	m.wanted = false
	switch m.state {
	case Waiting, Backoff:
		m.to(now, Stopped, reason)
	case Starting, Ready, Degraded:
		return m.end(now, byStop, reason)
	}
	return nothing
}

// restart says that a new run is to begin. One that is being ended anyway is not ended twice.
func (m *machine) restart(now time.Time, reason string) (act, error) {
	if !m.wanted {
		return nothing, ErrStopped
	}
	switch m.state {
	case Backoff:
		m.to(now, Waiting, reason)
	case Starting, Ready, Degraded:
		return m.end(now, byRestart, reason), nil
	case Stopping, Parked:
		m.cause = byRestart
	}
	return nothing, nil
}
