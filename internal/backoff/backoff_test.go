package backoff

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
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

func TestARestEndsWithItsContext(t *testing.T) {
	stopped := errors.New("stopped")
	for name, c := range map[string]struct{ rest, stop, took time.Duration }{
		"it has its time":                 {time.Second, time.Hour, time.Second},
		"it is ended":                     {time.Hour, time.Second, time.Second},
		"it would be no rest":             {0, time.Hour, 0},
		"it would be no rest, after that": {0, 0, 0},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithCancelCause(t.Context())
				if c.stop == 0 {
					cancel(stopped)
				}
				time.AfterFunc(c.stop, func() { cancel(stopped) })
				begin := time.Now()
				err := Sleep(ctx, c.rest)
				if took := time.Since(begin); took != c.took || errors.Is(err, stopped) != (c.stop <= c.rest) {
					t.Errorf("after %s: %v", took, err)
				}
			})
		})
	}
}
