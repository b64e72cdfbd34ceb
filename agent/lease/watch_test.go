package lease

import (
	"strings"
	"testing"
	"time"
)

const s = time.Second

// A lease is old by when it was seen to change, whatever the clocks say.
func TestALeaseIsOldByWhenItWasSeenToChange(t *testing.T) {
	wrong := time.Date(1999, 1, 1, 0, 0, 0, 0, time.UTC)
	var w Watch
	if _, ok := w.Seen(); ok || w.Unchanged() != 0 {
		t.Error("nothing was seen yet")
	}
	steps := []struct {
		name      string
		at        time.Duration
		seen      Seen
		unchanged time.Duration
	}{
		{"first seen, with a time of long ago", 10 * s, Seen{"a", wrong}, 0},
		{"the same", 12 * s, Seen{"a", wrong}, 2 * s},
		{"renewed by a clock that was set back", 14 * s, Seen{"a", wrong.Add(-time.Hour)}, 0},
		{"the same", 20 * s, Seen{"a", wrong.Add(-time.Hour)}, 6 * s},
		{"the same after a gap: nobody could renew", 40 * s, Seen{"a", wrong.Add(-time.Hour)}, 0},
		{"the same", 48 * s, Seen{"a", wrong.Add(-time.Hour)}, 8 * s},
		{"another has it", 50 * s, Seen{"b", wrong}, 0},
		{"the same", 51 * s, Seen{"b", wrong}, s},
	}
	for _, c := range steps {
		w.Note(c.at, c.seen)
		if got := w.Unchanged(); got != c.unchanged {
			t.Errorf("%s: %s, want %s", c.name, got, c.unchanged)
		}
	}
	if got, want := w.Lost(), (Loss{"a", 50 * s, 40 * s}); got != want {
		t.Errorf("lost %+v, want %+v", got, want)
	}
	if got := w.Age(53 * s); got != 3*s {
		t.Errorf("it is %s old", got)
	}
}

func TestALeaderIsStartedAgainOnlyIfItHangs(t *testing.T) {
	hangs := Facts{Duration: 8 * s, Ready: true, Runs: time.Hour, Holds: true, Unchanged: 28 * s, DryRun: Accepted}
	runsOn := Facts{Duration: 8 * s, Ready: true, Runs: time.Hour, Lost: true, LostSince: 8 * s}
	with := func(f Facts, change func(*Facts)) Facts { change(&f); return f }
	restarted := func(ago ...time.Duration) func(*Facts) { return func(f *Facts) { f.Restarts = ago } }
	for name, c := range map[string]struct {
		facts Facts
		act   Act
		why   string
	}{
		"stale, and it could be written": {hangs, Restart, "not renewed it for 28s"},
		"stale, and not tried":           {with(hangs, func(f *Facts) { f.DryRun = NotTried }), Try, ""},
		"stale, and a webhook refuses": {with(hangs, func(f *Facts) { f.DryRun, f.Why = Refused, "webhook x" }), Tell,
			"nobody could: webhook x"},
		"renewed a moment ago":         {with(hangs, func(f *Facts) { f.Unchanged = 27 * s }), Nothing, ""},
		"a standby":                    {with(hangs, func(f *Facts) { f.Holds = false }), Nothing, ""},
		"its health is not green":      {with(hangs, func(f *Facts) { f.Ready = false }), Nothing, ""},
		"it has only begun":            {with(hangs, func(f *Facts) { f.Runs = 27 * s }), Nothing, ""},
		"it goes on without its lease": {runsOn, Restart, "runs on"},
		"it may still be exiting":      {with(runsOn, func(f *Facts) { f.LostSince = 7 * s }), Nothing, ""},

		"started again a moment ago":       {with(hangs, restarted(299*s)), Tell, "4m59s ago"},
		"started again long enough ago":    {with(hangs, restarted(300*s)), Restart, ""},
		"started again twice":              {with(hangs, restarted(40*60*s, 300*s)), Restart, ""},
		"started again three times":        {with(hangs, restarted(59*60*s, 40*60*s, 300*s)), Tell, "3 times"},
		"the first of three is forgotten":  {with(hangs, restarted(60*60*s, 40*60*s, 300*s)), Restart, ""},
		"without a lease, and no restarts": {with(runsOn, restarted(0)), Tell, "0s ago"},
	} {
		act, why := Judge(c.facts)
		if act != c.act || !strings.Contains(why, c.why) {
			t.Errorf("%s: %d, %q", name, act, why)
		}
	}
}

// What runs is dead before another can take the lease, and is not ended while client-go still tries to renew.
func TestTheTimesOfATerm(t *testing.T) {
	for name, c := range map[string]struct {
		duration, deadline, retry time.Duration
		want                      Times
	}{
		"the agents' own, fast":                      {9 * s, 3 * s, 2 * s, Times{5 * s, 8 * s}},
		"the agents' own, slow":                      {15 * s, 5 * s, 4 * s, Times{9 * s, 14 * s}},
		"upstream's own, whose deadline is too long": {15 * s, 10 * s, 2 * s, Times{12 * s, 14 * s}},
		"a deadline near the end":                    {8 * s, 7 * s, s, Times{6 * s, 7 * s}},
	} {
		got := TimesOf(c.duration, c.deadline, c.retry)
		if got != c.want {
			t.Errorf("%s: %+v, want %+v", name, got, c.want)
		}
		for age, want := range map[time.Duration]Verdict{
			-s: Run, 0: Run, got.Stop - 1: Run, got.Stop: Stop, got.Kill - 1: Stop, got.Kill: Kill, time.Hour: Kill,
		} {
			if v := got.Decide(100*s+age, 100*s); v != want {
				t.Errorf("%s: %s after the renewal: %d, want %d", name, age, v, want)
			}
		}
	}
}
