package gce

import (
	"errors"
	"net/http"
	"strings"
	"testing"
	"time"
)

func TestTheTimeIsTheServersDate(t *testing.T) {
	t.Parallel()
	at := time.Date(2031, 2, 3, 4, 5, 6, 0, time.UTC)
	f := newFakeMetadata(t)
	asked := 0
	f.setFault(func(w http.ResponseWriter, _ *http.Request) bool {
		if asked++; asked == 1 {
			w.WriteHeader(http.StatusServiceUnavailable)
			return true
		}
		w.Header().Set("Date", at.Format(http.TimeFormat))
		return false
	})
	if got, err := f.dial(5 * time.Second).Time(t.Context()); err != nil || !got.Equal(at) {
		t.Errorf("%s, %v", got, err)
	}
}

// What does not say the time is an error, and this machine's time is never taken for it.
func TestAnAnswerWithoutTheTimeIsAnError(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		answer func(w http.ResponseWriter, r *http.Request) bool
		want   string
	}{
		"no date": {func(w http.ResponseWriter, _ *http.Request) bool { w.Header()["Date"] = nil; return false },
			"without a date"},
		"a date in words": {func(w http.ResponseWriter, _ *http.Request) bool {
			w.Header().Set("Date",
				"today")
			return false
		},
			"without a date"},
		"nothing there": {func(w http.ResponseWriter, _ *http.Request) bool {
			w.Header().Set("Metadata-Flavor", "Google")
			w.WriteHeader(http.StatusNotFound)
			return true
		}, "found status 404"},
		"another server": {func(w http.ResponseWriter,
			_ *http.Request) bool {
			w.WriteHeader(http.StatusOK)
			return true
		},
			"Metadata-Flavor"},
	} {
		f := newFakeMetadata(t)
		f.setFault(c.answer)
		at, err := f.dial(3 * time.Second).Time(t.Context())
		if !errors.Is(err, ErrMetadata) || !strings.Contains(err.Error(), c.want) ||
			!strings.Contains(err.Error(), "for the time") || !at.IsZero() {
			t.Errorf("%s: %s, %v", name, at, err)
		}
	}
}
