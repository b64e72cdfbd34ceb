package backoff

import (
	"testing"
	"time"
)

func TestAPauseDoublesUpToItsLimitAndChanceTakesHalfAtMost(t *testing.T) {
	b := Backoff{First: time.Second, Most: 10 * time.Second}
	for range 100 {
		for i, most := range []time.Duration{1, 2, 4, 8, 10, 10} {
			most *= time.Second
			if got := b.Next(); got < most/2 || got > most {
				t.Fatalf("pause %d: %s, want between %s and %s", i+1, got, most/2, most)
			}
		}
		b.Reset()
	}
}

func TestReplicasDoNotComeBackInStep(t *testing.T) {
	seen := map[time.Duration]bool{}
	for range 100 {
		b := Backoff{First: time.Hour, Most: time.Hour}
		seen[b.Next()] = true
	}
	if len(seen) < 90 {
		t.Errorf("of 100 pauses %d differ", len(seen))
	}
}
