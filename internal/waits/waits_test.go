package waits

import (
	"bytes"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/quorate/quorate/internal/replica"
)

func inSource(t *testing.T, test func(t *testing.T, s *Source, log *bytes.Buffer, next func() *Source)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		var log bytes.Buffer
		path := filepath.Join(t.TempDir(), "waits.json")
		next := func() *Source {
			return New(slog.New(slog.NewTextHandler(&log, nil)), path).Source("member", "row", 0)
		}
		test(t, next(), &log, next)
	})
}

func wait(row, name string) *replica.Wait {
	return &replica.Wait{Row: row, Name: name, Reason: "r.", Next: "n."}
}

func (s *Source) since(t *testing.T) time.Time {
	t.Helper()
	all := s.t.All()
	if len(all) != 1 {
		t.Fatalf("it waits for %+v", all)
	}
	return all[0].Since
}

// Seen: a replica whose disk was full started again and again, and the age of its wait began anew each time.
func TestAWaitThatComesBackSoonGoesOn(t *testing.T) {
	inSource(t, func(t *testing.T, s *Source, _ *bytes.Buffer, next func() *Source) {
		began := time.Now()
		s.Only(wait("28", "no-room"), time.Now())
		for range 10 {
			time.Sleep(20 * time.Second)
			s = next() // the agent ended, and another began
			time.Sleep(5 * time.Second)
			s.Only(wait("25", "no-room"), time.Now())
			time.Sleep(20 * time.Second)
			s.Only(nil, time.Now()) // its member runs for a moment
			time.Sleep(20 * time.Second)
			s.Only(wait("running", "no-room"), time.Now())
			if since := s.since(t); !since.Equal(began) {
				t.Fatalf("it waits since %s, want %s", since, began)
			}
		}
	})
}

func TestAWaitThatComesBackLateIsANewOne(t *testing.T) {
	for name, away := range map[string]func(s *Source, next func() *Source) *Source{
		"after its end": func(s *Source, _ func() *Source) *Source {
			s.Only(nil, time.Now())
			time.Sleep(sameWait + time.Second)
			return s
		},
		"after the agent's": func(_ *Source, next func() *Source) *Source {
			s := next()
			time.Sleep(sameWait + time.Second)
			return s
		},
		"after its end, with a new agent between": func(s *Source, next func() *Source) *Source {
			s.Only(nil, time.Now())
			time.Sleep(sameWait - time.Second)
			s = next()
			time.Sleep(2 * time.Second)
			return s
		},
		"with another between": func(s *Source, next func() *Source) *Source {
			s.Only(wait("2", "record-unreadable"), time.Now())
			time.Sleep(sameWait + time.Second)
			return s
		},
	} {
		t.Run(name, func(t *testing.T) {
			inSource(t, func(t *testing.T, s *Source, _ *bytes.Buffer, next func() *Source) {
				s.Only(wait("28", "no-room"), time.Now())
				s = away(s, next)
				s.Only(wait("28", "no-room"), time.Now())
				if since := s.since(t); !since.Equal(time.Now()) {
					t.Errorf("it waits since %s ago", time.Since(since))
				}
			})
		})
	}
}

// Each source has names of its own, and the waits of each stand in its place.
func TestSourcesAreApart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tracker := New(slog.New(slog.DiscardHandler), "")
		a, b := tracker.Source("agent", "phase", 0), tracker.Source("member", "row", 0)
		b.Only(wait("28", "x"), time.Now())
		time.Sleep(time.Second)
		a.Hold(*wait("etcd", "x"))
		a.Hold(*wait("etcd", "y"))
		a.Release("x")
		a.Release("z")
		all := tracker.All()
		if len(all) != 2 || all[0].Name != "y" || all[1].Name != "x" || !all[1].Since.Before(all[0].Since) {
			t.Errorf("%+v", all)
		}
	})
}

func TestAWaitIsToldOnceItHasLasted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := New(slog.New(slog.DiscardHandler), "").Source("leader", "row", 3*time.Second)
		patient := wait("23", "peers-do-not-connect")
		patient.Patience = 5 * time.Second
		for _, step := range []struct {
			after time.Duration
			wait  *replica.Wait
			told  bool
		}{
			{0, wait("42", "a"), false}, {2 * time.Second, wait("42", "a"), false}, {time.Second, wait("43", "a"), true},
			{time.Second, nil, false}, {time.Second, wait("42", "a"), false}, {3 * time.Second, wait("42", "a"), true},
			{0, patient, false}, {4 * time.Second, patient, false}, {time.Second, patient, true},
		} {
			time.Sleep(step.after)
			if s.Only(step.wait, time.Now()); (len(s.t.All()) > 0) != step.told {
				t.Errorf("%+v: %+v", step, s.t.All())
			}
		}
		if since := s.since(t); !since.Equal(time.Now().Add(-5 * time.Second)) {
			t.Errorf("it began when it was found, %s ago", time.Since(since))
		}
	})
}

// The log hears when a wait begins, each new reason of one that is held, and when it ends.
func TestTheLogHearsEachNewsOnce(t *testing.T) {
	inSource(t, func(t *testing.T, s *Source, log *bytes.Buffer, _ func() *Source) {
		w := wait("keep", "w")
		for _, reason := range []string{"one.", "one.", "two."} {
			w.Reason = reason
			s.Hold(*w)
		}
		s.Release("w")
		s.Release("w")
		if got := strings.Count(log.String(), "msg=blocked"); got != 2 ||
			strings.Count(log.String(), `msg="no longer blocked"`) != 1 {
			t.Errorf("%s", log)
		}
	})
}

// What cannot be read, or written, costs the age of the waits and nothing else.
func TestAFileOfNoUseCostsTheAgeAlone(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "waits.json")
	if err := os.WriteFile(path, []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	s := New(slog.New(slog.DiscardHandler), path).Source("member", "row", 0)
	s.Only(wait("28", "x"), time.Now())
	if b, err := os.ReadFile(path); err != nil || !bytes.Contains(b, []byte(`"name":"x"`)) {
		t.Errorf("%s, %v", b, err)
	}
	var log bytes.Buffer
	s = New(slog.New(slog.NewTextHandler(&log, nil)), filepath.Join(dir, "none", "waits.json")).Source("member", "row", 0)
	s.Only(wait("28", "x"), time.Now())
	if _, err := os.Stat(filepath.Join(dir, "none")); !errors.Is(err, os.ErrNotExist) || len(s.t.All()) != 1 ||
		!strings.Contains(log.String(), "will not know") {
		t.Errorf("%v, %+v, %s", err, s.t.All(), &log)
	}
}
