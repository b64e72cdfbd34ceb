package supervisor

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
)

// TestOutputThatCannotBeWrittenHoldsNothingUp floods logs that fail, hang or are away: the process can write all it
// wants, is supervised, and stops. Fault case 16.
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
			out := newOutput("it", to, s.log)
			s.newLauncher = func(string) launcher { return &host{output: out} }
			t.Cleanup(func() { thaw(log, out.done) })
			runUntilCleanup(t, s)
			start(t, s, childSpec(t, "it", "flood", file))
			eventually(t, "all is written", func() bool { return len(notes(t, file)) == 1 })
			stop(t, s, "it")
			if exit, _ := s.Exited("it"); exit.Code != 0 || !strings.HasSuffix(exit.Tail, "xxx\n") ||
				len(exit.Tail) != tailSize {
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

// refusing is a sink that fails while it has an error, and hangs while it has a gate that is not open.
type refusing struct {
	err   error
	gate  chan struct{}
	wrote bytes.Buffer
}

func (r *refusing) Write(p []byte) (int, error) {
	if r.gate != nil {
		<-r.gate
	}
	if r.err != nil {
		return 0, r.err
	}
	return r.wrote.Write(p)
}

func (r *refusing) endRun() {}

func (r *refusing) Close() error { return nil }

func TestOutputThatIsDroppedIsCountedAndSaidOnceAGap(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log bytes.Buffer
		to := &refusing{}
		out := newOutput("it", to, slog.New(slog.NewTextHandler(&log, nil)))
		go out.write()
		put := func(err error, chunks ...string) {
			to.err = err
			for _, chunk := range chunks {
				out.put([]byte(chunk))
				synctest.Wait()
			}
		}
		full := errors.New("the disk is full")
		put(full, "four", "more")
		put(nil, "kept")
		put(full, "six more")
		put(nil, "kept", "kept")
		to.gate = make(chan struct{})
		put(nil, "hangs")
		for range queueLength {
			put(nil, "x")
		}
		for range 3 { // as quick as the sink, which is behind
			put(nil, "x")
			to.gate <- struct{}{}
			synctest.Wait()
			put(nil, "x")
		}
		close(to.gate)
		close(out.queue)
		<-out.done
		if got, want := out.dropped.Load(), int64(4+4+8+3); got != want {
			t.Errorf("%d bytes were dropped, want %d", got, want)
		}
		var said []string
		for line := range strings.Lines(log.String()) {
			_, line, _ = strings.Cut(line, "msg=")
			said = append(said, strings.TrimSpace(line))
		}
		fails := `"the output of a process cannot be written and is dropped" process=it error="the disk is full"`
		dropped := `"output of a process was dropped" process=it bytes=`
		want := []string{fails, dropped + "8", fails, dropped + "8", dropped + "3"}
		if !slices.Equal(said, want) {
			t.Errorf("the log says\n%s\nwant\n%s", strings.Join(said, "\n"), strings.Join(want, "\n"))
		}
	})
}

func TestWhatIsDroppedIsInTheStatus(t *testing.T) {
	t.Parallel()
	log := filepath.Join(t.TempDir(), "it.log")
	if err := os.Symlink("/dev/full", log); err != nil {
		t.Fatal(err)
	}
	s := begin(t, Config{LogDir: filepath.Dir(log)})
	start(t, s, childSpec(t, "it", "exit", "7", "four"))
	eventually(t, "the loss is shown", func() bool { return s.Status()[0].OutputDropped >= int64(len("four\n")) })
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
	j := openSink("", "kube-apiserver").(*journal)
	j.socket = socket
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
		if want := "kube-apiserver||6|1|0|0|0|<6>" + line; strings.Join(got, "|") != want {
			t.Errorf("the journal got %q, want %q", strings.Join(got, "|"), want)
		}
	}
}

// A run may end within a crash and within a line. The next run's first line is one of its own, and no part of that.
func TestTheJournalKeepsRunsApart(t *testing.T) {
	socket := filepath.Join(t.TempDir(), "stdout")
	listener, err := net.Listen("unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	out := newOutput("it", &journal{socket: socket, identifier: "it"}, slog.New(slog.NewTextHandler(t.Output(), nil)))
	for _, text := range []string{"panic: no\n\ngoroutine 1 [running]:\n", "no end", "next"} {
		reader, writer, err := os.Pipe()
		if err != nil {
			t.Fatal(err)
		}
		run := out.follow(reader)
		fmt.Fprint(writer, text)
		writer.Close()
		run.finish(lingerPatience)
	}
	out.close()
	conn, err := listener.Accept()
	if err != nil {
		t.Fatal(err)
	}
	got, err := io.ReadAll(conn)
	want := "it\n\n6\n1\n0\n0\n0\n<2>panic: no\n<2>\n<2>goroutine 1 [running]:\n<6>no end\n<6>next\n"
	if string(got) != want || err != nil {
		t.Errorf("the journal got %q, %v, want %q", got, err, want)
	}
}

// A person removes a log to make room, or puts it aside, or empties it. What comes then is to be found, and the room is
// to be free.
func TestALogThatIsTakenAwayIsWrittenAnew(t *testing.T) {
	for name, take := range map[string]func(path string) error{
		"removed":  os.Remove,
		"moved":    func(path string) error { return os.Rename(path, path+".mine") },
		"replaced": func(path string) error { return errors.Join(os.Remove(path), os.WriteFile(path, nil, 0o600)) },
		"emptied":  func(path string) error { return os.Truncate(path, 0) },
		"its folder is removed": func(path string) error {
			return os.RemoveAll(filepath.Dir(path))
		},
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "log", "it.log")
			l := &logFile{path: path, limit: 10}
			defer l.Close()
			for _, line := range []string{"one\n", "two\n"} {
				if _, err := l.Write([]byte(line)); err != nil {
					t.Fatal(err)
				}
			}
			if err := take(path); err != nil {
				t.Fatal(err)
			}
			if n, err := l.Write([]byte("three\n")); n != 6 || err != nil {
				t.Error(n, err)
			}
			if got, err := os.ReadFile(path); err != nil || string(got) != "three\n" {
				t.Errorf("%q, %v", got, err)
			}
		})
	}
}

func TestALogGoesOnWhereTheRunBeforeEnded(t *testing.T) {
	path := filepath.Join(t.TempDir(), "it.log")
	for _, line := range []string{"first\n", "second\n"} {
		l := &logFile{path: path, limit: logLimit}
		if _, err := l.Write([]byte(line)); err != nil {
			t.Fatal(err)
		}
		if err := l.Close(); err != nil {
			t.Fatal(err)
		}
	}
	if got, err := os.ReadFile(path); err != nil || string(got) != "first\nsecond\n" {
		t.Errorf("%q, %v", got, err)
	}
}

// After an error the file is opened again: the disk below may have been mounted anew.
func TestALogIsOpenedAgainAfterAnError(t *testing.T) {
	path := filepath.Join(t.TempDir(), "it.log")
	l := &logFile{path: path, limit: logLimit}
	defer l.Close()
	if _, err := l.Write([]byte("one\n")); err != nil {
		t.Fatal(err)
	}
	readOnly, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	l.file.Close()
	l.file = readOnly
	if n, err := l.Write([]byte("lost\n")); n != 0 || err == nil {
		t.Errorf("%d, %v", n, err)
	}
	if _, err := l.Write([]byte("two\n")); err != nil {
		t.Error(err)
	}
	if got, err := os.ReadFile(path); err != nil || string(got) != "one\ntwo\n" {
		t.Errorf("%q, %v", got, err)
	}
}

func TestTailBeginsWithAWholeLine(t *testing.T) {
	f := &follower{done: make(chan struct{})}
	close(f.done)
	for i := range 10_000 {
		f.keep(fmt.Appendf(nil, "line %08d\n", i))
	}
	tail := f.finish(0)
	if len(tail) > tailSize || len(tail) < tailSize-20 || !strings.HasPrefix(tail, "line ") ||
		!strings.HasSuffix(tail, "00009999\n") {
		t.Errorf("%d bytes: %.20q ... %q", len(tail), tail, TellingLine(tail))
	}
}

// The tail is cut at once and ends then: what is left may begin in the middle of a line, or right at a line.
func TestTailThatWasCutBeginsWithAWholeLine(t *testing.T) {
	for name, tc := range map[string]struct{ before, want string }{
		"in a line": {strings.Repeat("x", tailSize+1) + "yy\n", strings.Repeat("z", tailSize-1-2) + "\n"},
		"at a line": {strings.Repeat("x", tailSize) + "\n", strings.Repeat("z", tailSize-1) + "\n"},
	} {
		f := &follower{done: make(chan struct{})}
		close(f.done)
		f.keep([]byte(tc.before + tc.want))
		if tail := f.finish(0); tail != tc.want {
			t.Errorf("%s: %d bytes, %.5q..., want %d, %.5q...", name, len(tail), tail, len(tc.want), tc.want)
		}
	}
}

func TestAPanicsFirstLineIsTheReason(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"":             "",
		"one\ntwo\n\n": "two",
		"{\"level\":\"fatal\",\"msg\":\"failed to commit tx\"}\n" +
			"{\"level\":\"info\",\"msg\":\"established a connection\"}": "failed to commit tx",
		"E1127 20:32:08.673284 79 server.go:328] lost it\nunknown flag: --x": "unknown flag: --x",
		"E1127 20:32:08.673284 79 server.go:328] lost it\n" + strings.Repeat("I1127 20:32:08.673284 79 s.go:3] well\n",
			errorWithin+1): "I1127 20:32:08.673284 79 s.go:3] well",
		"log\npanic: no such member\n\ngoroutine 1 [running]:\nmain.main()\n\tmain.go:18 +0x5e\n":                     "panic: no such member",
		"fatal error: all goroutines are asleep - deadlock!\n\ngoroutine 1 [select]:\n":                               "fatal error: all goroutines are asleep - deadlock!",
		"unexpected fault address 0x1\nfatal error: fault\n[signal SIGSEGV]\n\ngoroutine 1 [running]:\nmain.main()\n": "unexpected fault address 0x1",
		"don't panic: all is well\nlast":                                 "last",
		"bad flag \x1b[2J\x1b]0;owned\x07 \x00end\tof\u202eline\xff\r\n": "bad flag [2J]0;owned end ofline",
		`{"level":"fatal","ts":"2026-11-22T16:09:41Z","caller":"etcdmain/etcd.go:204","msg":"discovery failed","error":"no\u001b room"}`: "discovery failed: no room",
		`{"level":"ERROR","msg":"run","err":"exit status 1"}`:                                                                            "run: exit status 1",
		`{"msg":"member","error":{"code":5}}`:                                                                                            "member",
		`{"note":"no log line"}`:                                                                                                         `{"note":"no log line"}`,
		strings.Repeat("x", lineLimit-1) +
			"é": strings.Repeat("x", lineLimit-1),
		strings.Repeat("x", lineLimit) +
			"y": strings.Repeat("x", lineLimit),
	} {
		if got := TellingLine(text); got != want {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
}

func TestAnEndInOrderNeedsNoExplanation(t *testing.T) {
	t.Parallel()
	tail := `{"level":"info","msg":"closed etcd server"}` + "\n"
	for _, tc := range []struct {
		exit Exit
		want string
	}{
		{Exit{Asked: true, Tail: tail}, "exited with code 0"},
		{Exit{Asked: true, Code: 1, Tail: tail}, "exited with code 1: closed etcd server"},
		{Exit{Tail: tail}, "exited with code 0: closed etcd server"},
		{Exit{Asked: true, Code: -1, Signal: "SIGKILL", Tail: tail}, "was killed by SIGKILL: closed etcd server"},
		{Exit{Asked: true, Code: -1, Signal: "SIGTERM", Tail: tail}, "was killed by SIGTERM"},
		{Exit{Code: -1, Signal: "SIGTERM", Tail: tail}, "was killed by SIGTERM: closed etcd server"},
	} {
		if got := tc.exit.String(); got != tc.want {
			t.Errorf("%q, want %q", got, tc.want)
		}
	}
}

// A log may say what a client asked for: root alone reads it, also one that an older version has made, or one put
// aside.
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
