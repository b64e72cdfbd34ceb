package main

import (
	"strings"
	"testing"
	"time"

	"github.com/quorate/quorate/test/bench/nodes"
)

func TestAPromiseToACrowdIsHeldToItsSpan(t *testing.T) {
	good := crowded{crowd: crowds[0], Watching: 39, Spans: []span{{}, {}, {What: "stop"}, {What: "kill", Renewal: 44,
		Failed: map[string]int{"lease: no answer in time": 3}}}}
	for _, r := range loadRows([]crowded{good}) {
		if !r.OK {
			t.Errorf("%q is missed: %v", r.What, r.Value)
		}
	}
	for what, spoil := range map[string]func(*crowded){
		"to the last watch":              func(c *crowded) { c.Watching = 41 },
		"watches that break":             func(c *crowded) { c.Spans[0].Broken = 1 },
		"stop, failed requests":          func(c *crowded) { c.Spans[2].Failed = map[string]int{"pod: 500": 1} },
		"stop, nodes not Ready":          func(c *crowded) { c.Spans[2].NotReady = []string{"node-00001"} },
		"kill, broken watches elsewhere": func(c *crowded) { c.Spans[3].BrokenElsewhere = 1 },
		"kill, longest renewal":          func(c *crowded) { c.Spans[3].Renewal = 46 },
	} {
		bad := good
		bad.Spans = append([]span(nil), good.Spans...)
		spoil(&bad)
		var missed []string
		for _, r := range loadRows([]crowded{bad}) {
			if !r.OK {
				missed = append(missed, r.What)
			}
		}
		if len(missed) != 1 || !strings.HasSuffix(missed[0], what) {
			t.Errorf("%s: missed is %q", what, missed)
		}
	}
	var out strings.Builder
	r := results{Loads: []crowded{good}}
	if err := r.print(&out, ""); err != nil || strings.Contains(out.String(), "MISSED") ||
		!strings.Contains(out.String(), "kill: 3 times lease: no answer in time") {
		t.Errorf("%v\n%s", err, out.String())
	}
}

func TestRequestsOfALostConnectionAreNotElsewhere(t *testing.T) {
	at := time.Date(2026, 11, 27, 0, 0, 0, 0, time.UTC)
	var s span
	s.count([]nodes.Request{
		{Who: "a", Kind: nodes.Lease, Began: at, Took: 3 * time.Millisecond},
		{Who: "a", Kind: nodes.Lease, Began: at, Cause: "no answer in time"},
		{Who: "b", Kind: nodes.Pods, Began: at, Cause: "connection reset"},
	}, map[string]bool{"a": true})
	if s.Requests != 3 || s.failures() != 2 || s.FailedElsewhere != 1 || s.Failed["pod: connection reset"] != 1 ||
		s.Leases.P99 != 3 {
		t.Errorf("%+v", s)
	}
}

// A renewal before the span begins counts as the begin of a gap, and the span's end as the end of one.
func TestTheLongestTimeBetweenRenewals(t *testing.T) {
	from := time.Date(2026, 11, 27, 0, 0, 0, 0, time.UTC)
	renewal := func(who string, at ...int) (out []nodes.Request) {
		for _, s := range at {
			out = append(out, nodes.Request{Who: who, Kind: nodes.Lease, Write: true,
				Began: from.Add(time.Duration(s) * time.Second)})
		}
		return out
	}
	requests := append(renewal("a", -30, -5, 6, 16), renewal("b", -50, -8, 12, 20)...)
	var s span
	s.renewals([]*nodes.One{{Name: "a"}, {Name: "b"}, {Name: "c"}}, requests, map[string]bool{"b": true}, from,
		from.Add(21*time.Second))
	if s.Renewal != 20 || s.RenewalElsewhere != 11 {
		t.Errorf("%.0f s, elsewhere %.0f s, want 20 s and 11 s", s.Renewal, s.RenewalElsewhere)
	}
}

func TestLatencyIsThatOfTheSlowestButOneInAHundred(t *testing.T) {
	var took []time.Duration
	for ms := 200; ms > 0; ms-- {
		took = append(took, time.Duration(ms)*time.Millisecond)
	}
	if l := latencyOf(took); l.P50 != 100 || l.P99 != 198 {
		t.Errorf("%+v", l)
	}
	if l := latencyOf(nil); l != (latency{}) {
		t.Errorf("of nothing: %+v", l)
	}
}
