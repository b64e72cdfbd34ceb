package etcdmember

import (
	"testing"
	"time"
)

func TestACompactionLeavesTheWindow(t *testing.T) {
	r := revisions{window: historyWindow}
	if got := r.old(); got != 0 {
		t.Errorf("nothing is known, and revision %d is old", got)
	}
	r.note(t0, 100)
	r.note(t0.Add(10*time.Second), 110) // too soon for another sample
	if got := r.old(); got != 100 {
		t.Errorf("a new agent: %d", got)
	}
	for minute := 1; minute <= 20; minute++ {
		r.note(t0.Add(time.Duration(minute)*time.Minute), int64(100+minute))
	}
	if got := r.old(); got != 115 {
		t.Errorf("after 20 minutes: %d, want what was newest five minutes ago", got)
	}
	if n := len(r.samples); n > 11 {
		t.Errorf("%d samples are kept", n)
	}
}
