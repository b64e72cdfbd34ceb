package supervisor

import (
	"testing"
	"time"
)

func TestBackoffDoublesToAMinuteAndIsForgottenAfterTenHealthyMinutes(t *testing.T) {
	var b backoff
	for i, want := range []time.Duration{1, 2, 4, 8, 16, 32, 60, 60, 60} {
		if got := b.next(0, 0); got != want*time.Second {
			t.Errorf("failure %d: %s, want %s", i+1, got, want*time.Second)
		}
	}
	if got := b.next(healthyAfter-1, 0); got != quickDelay {
		t.Errorf("first failure after it was ready for long: %s, want %s", got, quickDelay)
	}
	if got := b.next(healthyAfter-1, 0); got != maxDelay {
		t.Errorf("ready for a little less than ten minutes: %s, want %s", got, maxDelay)
	}
	if got := b.next(healthyAfter, 0); got != quickDelay {
		t.Errorf("ready for ten minutes: %s, want %s", got, quickDelay)
	}
	if got := b.next(provenAfter, 0); got != firstDelay {
		t.Errorf("the quick restart is used up: %s, want %s", got, firstDelay)
	}
}

func TestBackoffQuickRestartIsForTheProvenOnly(t *testing.T) {
	var b backoff
	if got := b.next(provenAfter-1, 0); got != firstDelay {
		t.Errorf("not ready for long enough: %s, want %s", got, firstDelay)
	}
	if got := b.next(provenAfter, 0); got != quickDelay {
		t.Errorf("ready for ten seconds: %s, want %s", got, quickDelay)
	}
	if got := b.next(provenAfter, 0); got != 2*firstDelay {
		t.Errorf("and again: %s, want %s", got, 2*firstDelay)
	}
}

func TestBackoffJitterOnlyShortens(t *testing.T) {
	for _, jitter := range []float64{0, 0.3, 0.999} {
		var b backoff
		got := b.next(0, jitter)
		if low := time.Duration(float64(firstDelay) * (1 - jitterPart)); got < low || got > firstDelay {
			t.Errorf("jitter %v: %s, want between %s and %s", jitter, got, low, firstDelay)
		}
	}
}

func TestExpectedExitsDoNotSpin(t *testing.T) {
	var b backoff
	for ran, want := range map[time.Duration]time.Duration{
		0:                expectedDistance,
		expectedDistance: 0,
		time.Hour:        0,
	} {
		if got := b.expected(ran); got != want {
			t.Errorf("after %s: %s, want %s", ran, got, want)
		}
	}
	if b != (backoff{}) {
		t.Errorf("an expected exit left a trace: %+v", b)
	}
}
