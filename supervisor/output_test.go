package supervisor

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
)

// TestOutputThatCannotBeWrittenHoldsNothingUp floods logs that fail, hang or are away: the process can write all it wants, is
// supervised, and stops. Fault case 16.
func TestOutputThatCannotBeWrittenHoldsNothingUp(t *testing.T) {
	t.Parallel()
	for name, prepare := range map[string]func(t *testing.T, log string) sink{
		"the disk is full": func(t *testing.T, log string) sink {
			if err := os.Symlink("/dev/full", log); err != nil {
				t.Fatal(err)
			}
			return &logFile{path: log, limit: logLimit}
		},
		"the disk hangs": func(t *testing.T, log string) sink {
			// Opening a pipe for writing blocks until somebody reads, as any call does on a frozen file system.
			if err := syscall.Mkfifo(log, 0o600); err != nil {
				t.Fatal(err)
			}
			return &logFile{path: log, limit: logLimit}
		},
		"the folder cannot be made": func(_ *testing.T, log string) sink {
			return &logFile{path: filepath.Join(os.DevNull, filepath.Base(log)), limit: logLimit}
		},
		"the journal does not read": func(t *testing.T, log string) sink {
			listener, err := net.Listen("unix", log)
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { listener.Close() })
			return &journal{socket: log, identifier: "it"}
		},
		"the journal is away": func(_ *testing.T, log string) sink {
			return &journal{socket: log, identifier: "it"}
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			file := filepath.Join(dir, "notes")
			log := filepath.Join(dir, "it.log")
			to := prepare(t, log)
			s := New(Config{Log: slog.New(slog.NewTextHandler(logTo{t}, nil))})
			out := newOutput("it", to, s.voice)
			s.newLauncher = func(string) launcher { return &host{output: out} }
			t.Cleanup(func() { thaw(log, out.done) })
			runUntilCleanup(t, s)
			start(t, s, childSpec(t, "it", "flood", file))
			eventually(t, "all is written", func() bool { return len(notes(t, file)) == 1 })
			stop(t, s, "it")
			if exit, _ := s.Exited("it"); exit.Code != 0 || !strings.HasSuffix(exit.Tail, "xxx\n") || len(exit.Tail) != tailSize {
				t.Errorf("code %d, tail of %d bytes", exit.Code, len(exit.Tail))
			}
		})
	}
}

// runUntilCleanup runs the supervisor, and ends it with the test.
func runUntilCleanup(t *testing.T, s *Supervisor) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- s.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
}

// thaw takes what those who hang in a pipe want to write, until the goroutine that Run has left behind is done.
func thaw(path string, done <-chan struct{}) {
	if info, err := os.Stat(path); err == nil && info.Mode().Type() == os.ModeNamedPipe {
		pipe, err := os.OpenFile(path, os.O_RDWR, 0)
		if err != nil {
			return
		}
		defer pipe.Close()
		go func() { _, _ = io.Copy(io.Discard, pipe) }()
	}
	<-done
}

func TestALogThatBlocksHoldsNothingUp(t *testing.T) {
	t.Parallel()
	var blocked blockedWriter
	blocked.mu.Lock()
	s := New(Config{Log: slog.New(slog.NewTextHandler(&blocked, nil)), LogDir: t.TempDir()})
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- s.Run(ctx) }()
	file := filepath.Join(t.TempDir(), "notes")
	for range voiceLines/5 + 1 { // a start and a stop are five lines
		start(t, s, childSpec(t, "it", "exit", "1", "no"))
		ready(t, s, "it")
		stop(t, s, "it")
	}
	start(t, s, childSpec(t, "it", "polite", file, "it"))
	eventually(t, "it runs", func() bool { return len(notes(t, file)) == 1 })
	cancel()
	if err := <-ended; err != nil {
		t.Error(err)
	}
	if s.voice.lost.Load() == 0 {
		t.Error("no line was lost: the log did not block")
	}
	blocked.mu.Unlock()
}

type blockedWriter struct{ mu sync.Mutex }

func (b *blockedWriter) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return len(p), nil
}

func TestOutputGoesToAFileAndItsPredecessor(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "made", "here")
	file := &logFile{path: filepath.Join(dir, "it.log"), limit: 30}
	for i := range 7 {
		if n, err := fmt.Fprintf(file, "line number %d\n", i); err != nil || n != 14 {
			t.Fatal(n, err)
		}
	}
	if err := file.Close(); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{
		"it.log.1": "line number 3\nline number 4\nline number 5\n",
		"it.log":   "line number 6\n",
	} {
		got, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil || string(got) != want {
			t.Errorf("%s: %q, %v; want %q", name, got, err, want)
		}
	}
}

func TestOutputOfARealProcessIsInItsFileAndItsReason(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	s, end := beginUntil(t, Config{LogDir: dir})
	start(t, s, childSpec(t, "it", "exit", "7", "first\nlast words"))
	st := await(t, s, "it", "its end", func(st Status) bool { return st.State == Backoff })
	if !strings.HasPrefix(st.Reason, "exited with code 7: last words; next start in") {
		t.Errorf("reason %q", st.Reason)
	}
	end()
	got, err := os.ReadFile(filepath.Join(dir, "it.log"))
	if err != nil || !strings.HasPrefix(string(got), "first\nlast words\n") {
		t.Errorf("%q, %v", got, err)
	}
}

func TestOutputGoesToTheJournalUnderItsNameAlsoAfterTheJournalWasStartedAgain(t *testing.T) {
	socket := filepath.Join(t.TempDir(), "stdout")
	listener, err := net.Listen("unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	j := &journal{socket: socket, identifier: "kube-apiserver"}
	defer j.Close()
	for _, line := range []string{"one", "two"} {
		// The stream of before is closed at its far end: a write finds out, and the next connects again.
		for _, err := fmt.Fprintln(j, line); err != nil; _, err = fmt.Fprintln(j, line) {
			t.Log(err)
		}
		conn, err := listener.Accept()
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for lines := bufio.NewScanner(conn); len(got) < 8 && lines.Scan(); {
			got = append(got, lines.Text())
		}
		conn.Close()
		if want := "kube-apiserver||6|0|0|0|0|" + line; strings.Join(got, "|") != want {
			t.Errorf("the journal got %q, want %q", strings.Join(got, "|"), want)
		}
	}
}

func TestOutputOnSharedStderrIsPrefixedByLine(t *testing.T) {
	var out bytes.Buffer
	p := &prefixed{to: &out, prefix: "it: "}
	for _, part := range []string{"a\nb", "c\n", "", "d"} {
		if n, err := p.Write([]byte(part)); n != len(part) || err != nil {
			t.Fatal(n, err)
		}
	}
	if err := p.Close(); err != nil {
		t.Fatal(err)
	}
	if want := "it: a\nit: bc\nit: d\n"; out.String() != want {
		t.Errorf("%q, want %q", out.String(), want)
	}
	if _, err := p.Write(bytes.Repeat([]byte("x"), 2*chunkSize)); err != nil || len(p.rest) > chunkSize {
		t.Errorf("a line without end is kept: %d bytes, %v", len(p.rest), err)
	}
}

func TestTailBeginsWithAWholeLine(t *testing.T) {
	f := &follower{done: make(chan struct{})}
	close(f.done)
	for i := range 10_000 {
		f.keep(fmt.Appendf(nil, "line %08d\n", i))
	}
	tail := f.finish(0)
	if len(tail) > tailSize || len(tail) < tailSize-20 || !strings.HasPrefix(tail, "line ") || !strings.HasSuffix(tail, "00009999\n") {
		t.Errorf("%d bytes: %.20q ... %q", len(tail), tail, tellingLine(tail))
	}
}

func TestAPanicsFirstLineIsTheReason(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"":             "",
		"one\ntwo\n\n": "two",
		"log\npanic: no such member\n\ngoroutine 1 [running]:\nmain.main()\n\tmain.go:18 +0x5e\n": "panic: no such member",
		"fatal error: all goroutines are asleep - deadlock!\n\ngoroutine 1 [select]:\n":           "fatal error: all goroutines are asleep - deadlock!",
		"don't panic: all is well\nlast": "last",
	} {
		if got := tellingLine(text); got != want {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
}

// A log may say what a client asked for: root alone reads it, also one that an older version has made, or one put aside.
func TestLogsAreRootsAlone(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "log")
	l := &logFile{path: filepath.Join(dir, "it.log"), limit: 4}
	defer l.Close()
	write := func() {
		t.Helper()
		if _, err := l.Write([]byte("four")); err != nil {
			t.Fatal(err)
		}
	}
	write()
	if err := os.WriteFile(l.path, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(l.path, 0o640); err != nil {
		t.Fatal(err)
	}
	l.limit = logLimit
	write()
	for path, want := range map[string]os.FileMode{dir: 0o700, l.path: 0o600, l.path + ".1": 0o600} {
		info, err := os.Stat(path)
		if err != nil {
			t.Fatal(err)
		}
		if got := info.Mode().Perm(); got != want {
			t.Errorf("%s has mode %#o, want %#o", filepath.Base(path), got, want)
		}
	}
}
