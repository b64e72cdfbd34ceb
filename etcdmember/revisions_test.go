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
	r.note(t0.Add(time.Second), 110) // too soon for another sample
	if got := r.old(); got != 100 {
		t.Errorf("a new agent: %d", got)
	}
	for step := 1; step <= 20; step++ {
		r.note(t0.Add(time.Duration(step)*historyWindow/5), int64(100+step))
	}
	if got := r.old(); got != 115 {
		t.Errorf("after four windows: %d, want what was newest one window ago", got)
	}
	if n := len(r.samples); n > 11 {
		t.Errorf("%d samples are kept", n)
	}
}
