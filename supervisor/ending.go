package supervisor

import (
	"fmt"
	"time"
)

// This file is the second half of machine: how a run ends and what follows.

// end begins to stop the run.
func (m *machine) end(now time.Time, why cause, reason string) act {
	m.cause = why
	m.to(now, Stopping, reason)
	m.due = now.Add(m.stopTimeout())
	return terminate
}

func (m *machine) stopTimeout() time.Duration {
	if m.spec.StopTimeout == 0 {
		return DefaultStopTimeout
	}
	return m.spec.StopTimeout
}

// hurry brings the kill of a process that is being ended forward. One that is killed already is left to that.
func (m *machine) hurry(now time.Time, within time.Duration) {
	if due := now.Add(within); within > 0 && m.state == Stopping && m.dying.IsZero() && due.Before(m.due) {
		m.due = due
	}
}

// asked says whether an end that comes now is the supervisor's own doing.
func (m *machine) asked() bool {
	return (m.state == Stopping || m.state == Parked) && m.cause != byItself
}

// left is told that the process itself has ended while something that it started has not, though it was killed.
func (m *machine) left(now time.Time, exit Exit) {
	switch {
	case m.alive():
		m.cause = byItself
		m.to(now, Stopping, exit.String()+"; something that it started is still there, and is killed")
	case m.state != Stopping:
		return
	}
	m.dying, m.killed, m.due = now, true, now.Add(killPatience)
}

// gone is told that nothing of the run lives any more.
func (m *machine) gone(now time.Time, exit Exit) {
	if m.alive() {
		m.cause = byItself
	}
	text := exit.String()
	if exit.Asked {
		text = m.reason + "; " + text
	}
	switch {
	case !m.wanted:
		m.to(now, Stopped, text)
	case m.cause == byRestart:
		m.to(now, Waiting, text)
	case m.cause == byItself && exit.Expected:
		m.retreat(now, m.backoff.expected(now.Sub(m.launched)), text+" (expected)")
	default:
		m.retreat(now, m.backoff.next(m.goodForAt(now), m.jitter()), text)
	}
}

// goodForAt is goodFor, with the time up to now if the process is ready now.
func (m *machine) goodForAt(now time.Time) time.Duration {
	if m.state == Ready {
		return max(m.goodFor, now.Sub(m.since))
	}
	return m.goodFor
}

// retreat waits for delay before the next start.
func (m *machine) retreat(now time.Time, delay time.Duration, reason string) {
	if delay == 0 {
		m.to(now, Waiting, reason)
		return
	}
	m.to(now, Backoff, fmt.Sprintf("%s; next start in %s", reason, delay.Round(10*time.Millisecond)))
	m.due = now.Add(delay)
}

// tick is called at due or later.
func (m *machine) tick(now time.Time) act {
	if m.due.IsZero() || now.Before(m.due) {
		return nothing
	}
	due := m.due
	m.due = time.Time{}
	switch m.state {
	case Starting:
		return m.tooSlow(now)
	case Backoff:
		m.to(now, Waiting, fmt.Sprintf("paused for %s", now.Sub(m.since).Round(10*time.Millisecond)))
	case Stopping, Parked:
		return m.overdue(now, due)
	}
	return nothing
}

// overdue kills a run that has not ended when it was due, and parks one that is not gone after that.
func (m *machine) overdue(now, due time.Time) act {
	switch {
	case m.dying.IsZero():
		m.dying = due
	case m.killed && m.state == Stopping:
		m.to(now, Parked, fmt.Sprintf("%s; killed, but not gone after %s: it is blocked in the kernel", m.reason,
			killPatience))
		return nothing
	case m.killed:
		return nothing
	case m.state == Stopping && now.Sub(m.dying) >= killPatience:
		m.to(now, Parked, fmt.Sprintf("%s; it cannot be killed: %v", m.reason, m.killErr))
	}
	return kill
}

// shot is told whether the run could be killed. What could not is tried again for as long as it is there.
func (m *machine) shot(now time.Time, err error) {
	m.killed, m.killErr = err == nil, err
	switch {
	case err != nil:
		m.due = now.Add(killRetry)
	case m.state == Stopping:
		m.reason = fmt.Sprintf("%s; killed because it had not ended after %s", m.reason, m.dying.Sub(m.since))
		m.due = now.Add(killPatience)
	case m.state == Parked:
		m.reason += "; killed at last"
	}
}
