package asynclog

import (
	"bytes"
	"errors"
	"fmt"
	"regexp"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// stream is what a log writes to. While it is held each write hangs; while it has an error each write fails.
type stream struct {
	mu   sync.Mutex
	text bytes.Buffer
	err  error
	held chan struct{}
}

func (s *stream) Write(p []byte) (int, error) {
	s.mu.Lock()
	held := s.held
	s.mu.Unlock()
	if held != nil {
		<-held
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.err != nil {
		return 0, s.err
	}
	return s.text.Write(p)
}

// hold makes the stream hang until the returned function is called.
func (s *stream) hold() (release func()) {
	held := make(chan struct{})
	s.mu.Lock()
	defer s.mu.Unlock()
	s.held = held
	return func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.held = nil
		close(held)
	}
}

func (s *stream) fail(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.err = err
}

// wrote returns the lines without their times.
func (s *stream) wrote() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	text := regexp.MustCompile(`(?m)^time=\S+ `).ReplaceAllString(s.text.String(), "")
	return strings.Split(strings.TrimSuffix(text, "\n"), "\n")
}

func TestNobodyWaitsForAStreamThatHangs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var s stream
		release := s.hold()
		l := New(&s)
		begun := time.Now()
		l.Info("line", "n", 0)
		synctest.Wait() // it hangs in the stream
		for n := range queueLength {
			l.Info("line", "n", n+1)
		}
		time.Sleep(time.Minute)
		l.Info("dropped")
		time.Sleep(time.Minute)
		l.Info("dropped")
		if waited := time.Since(begun); waited != 2*time.Minute {
			t.Errorf("who logs waited for %s", waited-2*time.Minute)
		}
		if lost := l.Lost(); lost.Lines != 2 || lost.Err != nil {
			t.Errorf("lost %+v", lost)
		}
		release()
		synctest.Wait()
		l.Info("flows again")
		l.Close()
		lines := s.wrote()
		if len(lines) != queueLength+3 {
			t.Fatalf("%d lines", len(lines))
		}
		for n, line := range lines[:queueLength+1] {
			if want := fmt.Sprintf("level=INFO msg=line n=%d", n); line != want {
				t.Fatalf("line %d is %q", n, line)
			}
		}
		at := func(d time.Duration) string { return begun.Add(d).Format("2006-01-02T15:04:05.000Z07:00") }
		note := `level=WARN msg="log lines were dropped because nobody took them in time" lines=2 first=` +
			at(time.Minute) + " last=" + at(2*time.Minute)
		if lines[queueLength+1] != note || lines[queueLength+2] != `level=INFO msg="flows again"` {
			t.Errorf("the end is %q", lines[queueLength+1:])
		}
		if lost := l.Lost(); lost.Lines != 2 {
			t.Errorf("lost %+v after it was said", lost)
		}
	})
}

// A journal whose reader is gone and a full disk fail each write. Nothing is kept for later: it would be dropped as
// well.
func TestWhatAStreamRefusesIsCountedAndSaidOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var s stream
		full := errors.New("no space left on device")
		l := New(&s)
		s.fail(full)
		l.Info("one")
		fmt.Fprint(l, "two\nthree\n")
		fmt.Fprint(l, "four, without its end")
		synctest.Wait()
		if lost := l.Lost(); lost.Lines != 4 || !errors.Is(lost.Err, full) {
			t.Errorf("lost %+v", lost)
		}
		s.fail(nil)
		l.Info("five")
		synctest.Wait()
		if lost := l.Lost(); lost.Lines != 4 || lost.Err != nil {
			t.Errorf("lost %+v while it flows", lost)
		}
		l.Info("six")
		l.Close()
		text := strings.Join(s.wrote(), "\n")
		want := `^level=INFO msg=five\n` +
			`level=WARN msg="log lines were dropped.*" lines=4 first=\S+ last=\S+\n` +
			`level=INFO msg=six$`
		if !regexp.MustCompile(want).MatchString(text) {
			t.Errorf("it wrote\n%s", text)
		}
	})
}

func TestCloseWritesWhatIsQueuedAndWaitsASecondAtMost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var s stream
		release := s.hold()
		l := New(&s)
		for range queueLength {
			l.Info("queued")
		}
		time.AfterFunc(flushPatience/2, release)
		l.Close()
		if n := len(s.wrote()); n != queueLength {
			t.Errorf("%d lines of %d", n, queueLength)
		}

		release = s.hold()
		hung := New(&s)
		hung.Info("hangs")
		begun := time.Now()
		hung.Close()
		if took := time.Since(begun); took != flushPatience {
			t.Errorf("closing took %s", took)
		}
		release()
		for range 2 * queueLength {
			hung.Info("nobody writes this any more, and nobody waits for it")
		}
	})
}
