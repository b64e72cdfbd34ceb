package latency

import (
	"context"
	"net/http"
	"net/http/httptest"
	"testing"
	"testing/synctest"
	"time"
)

func TestARequestTakesATimeOfTheRange(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		answers := 0
		r := Range{Least: 50 * time.Millisecond, Most: 200 * time.Millisecond}
		front := r.Before(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { answers++ }))
		took := map[time.Duration]bool{}
		for range 100 {
			begun := time.Now()
			front.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest(http.MethodGet, "/", nil))
			d := time.Since(begun)
			if d < r.Least || d >= r.Most {
				t.Errorf("one took %s", d)
			}
			took[d] = true
		}
		if answers != 100 || len(took) < 50 {
			t.Errorf("%d answers of 100, in %d different times", answers, len(took))
		}
	})
}

func TestWhatWasSentTakesEffectWhenTheCallerHasGone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		done := false
		front := Range{time.Hour, time.Hour}.Before(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
			done = true
		}))
		front.ServeHTTP(httptest.NewRecorder(), httptest.NewRequestWithContext(ctx, http.MethodPost, "/", nil))
		if !done {
			t.Error("the service never got it")
		}
	})
}

func TestNoTimesAreNone(t *testing.T) {
	begun := time.Now()
	Times{}.Compute.Before(http.NotFoundHandler()).ServeHTTP(httptest.NewRecorder(),
		httptest.NewRequest(http.MethodGet, "/", nil))
	if d := (Times{}).Operation.Any(); d != 0 || time.Since(begun) > time.Second {
		t.Errorf("an operation takes %s", d)
	}
}
