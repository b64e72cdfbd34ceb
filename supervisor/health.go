package supervisor

import (
	"errors"
	"fmt"
	"time"
)

// health is what the probes of one run have said.
type health struct {
	up                 bool // the start probe has passed
	usable             bool // the ready probe passes, or has not failed often enough to be believed
	start, live, ready tally
}

// tally is what the failed checks in a row of one probe have said.
type tally struct {
	since time.Time // the first of them; zero: the last check passed, or there was none
	last  error
}

// add takes one result and returns how long the probe has been failing by then.
func (t *tally) add(now time.Time, err error) time.Duration {
	switch {
	case err == nil:
		*t = tally{}
		return 0
	case t.since.IsZero():
		t.since = now
	}
	t.last = err
	return now.Sub(t.since)
}

// begin is the health of a process that has just been launched.
func (h *health) begin(spec Spec) {
	*h = health{up: spec.Start == nil, usable: spec.Ready == nil}
}

// question names a probe.
type question int

const (
	startQuestion question = iota
	liveQuestion
	readyQuestion
)

// probed takes the result of one check.
func (m *machine) probed(now time.Time, q question, err error) act {
	if !m.alive() {
		return nothing
	}
	h := &m.health
	switch q {
	case startQuestion:
		h.start.add(now, err)
		if err == nil {
			h.up, m.due = true, time.Time{}
		}
	case liveQuestion:
		if failing := h.live.add(now, err); failing >= m.spec.Live.limit() {
			return m.end(now, byFailure, fmt.Sprintf("not alive for %s: %v", failing.Round(time.Millisecond), err))
		}
	case readyQuestion:
		failing := h.ready.add(now, err)
		if err == nil {
			h.live.add(now, nil) // Live is not asked while Ready passes
		}
		h.usable = err == nil || h.usable && failing < m.spec.Ready.limit()
	}
	return m.judge(now)
}

// tooSlow ends a process that has not come up in its time: checks that hang, or one that never returns, give it no
// more.
func (m *machine) tooSlow(now time.Time) act {
	why := m.health.start.last
	if why == nil {
		why = errors.New("it was never answered")
	}
	return m.end(now, byFailure, fmt.Sprintf("did not come up within %s: %v", m.spec.Start.limit(), why))
}

// judge moves between starting, ready and degraded as the health demands.
func (m *machine) judge(now time.Time) act {
	complaint := m.health.complaint()
	switch {
	case complaint == "" && m.state == Starting:
		m.to(now, Ready, fmt.Sprintf("ready %s after its launch", now.Sub(m.launched).Round(time.Millisecond)))
	case complaint == "" && m.state == Degraded:
		m.to(now, Ready, "all checks pass again")
	case complaint != "" && m.state == Ready:
		m.to(now, Degraded, complaint)
	case complaint != "":
		m.reason = complaint
	}
	return nothing
}

// complaint says why the process may not be used; empty: it may.
func (h *health) complaint() string {
	switch {
	case !h.up && h.start.last != nil:
		return fmt.Sprintf("not up yet: %v", h.start.last)
	case !h.up:
		return "launched"
	case h.live.last != nil:
		return fmt.Sprintf("not alive: %v", h.live.last)
	case !h.usable && h.ready.last != nil:
		return fmt.Sprintf("not ready: %v", h.ready.last)
	case !h.usable:
		return "up, not ready yet"
	}
	return ""
}
