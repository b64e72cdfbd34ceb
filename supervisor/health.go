package supervisor

import (
	"fmt"
	"time"
)

// defaultFailures is how many failures in a row count as failed.
const defaultFailures = 3

// health is what the probes of one run have said.
type health struct {
	up                 bool // the start probe has passed
	usable             bool // the ready probe passes, or has not failed often enough to be believed
	start, live, ready tally
}

// tally counts the failures in a row of one probe.
type tally struct {
	failures int
	last     error
}

// count adds one result and says whether the probe counts as failed.
func (t *tally) count(probe *Probe, err error) bool {
	if err == nil {
		*t = tally{}
		return false
	}
	t.failures++
	t.last = err
	limit := probe.Failures
	if limit == 0 {
		limit = defaultFailures
	}
	return t.failures >= limit
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

// probed is told the result of one check.
func (m *machine) probed(now time.Time, q question, err error) act {
	if !m.alive() {
		return nothing
	}
	h := &m.health
	switch q {
	case startQuestion:
		if h.start.count(m.spec.Start, err) {
			return m.end(now, byFailure, fmt.Sprintf("did not come up in %d checks: %v", h.start.failures, err))
		}
		h.up = h.up || err == nil
	case liveQuestion:
		if h.live.count(m.spec.Live, err) {
			return m.end(now, byFailure, fmt.Sprintf("not alive in %d checks in a row: %v", h.live.failures, err))
		}
	case readyQuestion:
		failed := h.ready.count(m.spec.Ready, err)
		h.usable = err == nil || h.usable && !failed
	}
	return m.judge(now)
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
	case h.live.failures > 0:
		return fmt.Sprintf("not alive, check %d: %v", h.live.failures, h.live.last)
	case !h.usable && h.ready.last != nil:
		return fmt.Sprintf("not ready: %v", h.ready.last)
	case !h.usable:
		return "up, not ready yet"
	}
	return ""
}
