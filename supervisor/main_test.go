package supervisor

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// childMark makes the test binary a child: what the tests supervise is this same program.
const childMark = "SUPERVISOR_TEST_CHILD=1"

// childLifetime ends a child that a broken test has left behind.
const childLifetime = time.Minute

func TestMain(m *testing.M) {
	if os.Getenv("SUPERVISOR_TEST_CHILD") == "1" {
		time.AfterFunc(childLifetime, func() { os.Exit(97) })
		childMain(os.Args[1], os.Args[2:])
		os.Exit(99)
	}
	// A child whose test forgot the mark would run all tests, which start children: it multiplied until the machine
	// stood still. go test always passes flags of its own.
	if !slices.ContainsFunc(os.Args[1:], func(arg string) bool { return strings.HasPrefix(arg, "-test.") }) {
		fmt.Println("this test binary is run by go test, or with flags that begin with -test.")
		os.Exit(96)
	}
	os.Exit(m.Run())
}

// childMain is what a child does; the modes are named for how they behave.
func childMain(mode string, args []string) {
	terms := make(chan os.Signal, 16)
	signal.Notify(terms, syscall.SIGTERM)
	switch mode {
	case "polite": // FILE NAME: notes its start and SIGTERM, and ends
		note(args[0], args[1]+" start")
		<-terms
		time.Sleep(20 * time.Millisecond) // a second SIGTERM would be seen
		if len(terms) > 0 {
			note(args[0], args[1]+" second term")
		}
		note(args[0], args[1]+" term")
		os.Exit(0)
	case "deaf": // FILE NAME: notes each SIGTERM, and goes on
		note(args[0], args[1]+" start")
		for range terms {
			note(args[0], args[1]+" term")
		}
	case "exit": // CODE TEXT
		code, _ := strconv.Atoi(args[0])
		fmt.Println(args[1])
		os.Exit(code)
	case "parent": // FILE SETSID: starts a deaf one that holds its output, and ends at SIGTERM
		cmd := exec.Command(os.Args[0], "deaf", args[0], "grandchild")
		cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
		cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: args[1] == "setsid"}
		if err := cmd.Start(); err != nil {
			fmt.Println(err)
			os.Exit(1)
		}
		note(args[0]+".pid", strconv.Itoa(cmd.Process.Pid))
		<-terms
		os.Exit(0)
	case "flood": // FILE: writes far more than all buffers hold, notes that it could, waits for SIGTERM
		line := strings.Repeat("x", 1023) + "\n"
		for range 8 << 10 {
			fmt.Print(line)
		}
		note(args[0], "flooded")
		<-terms
		os.Exit(0)
	case "env": // FILE: notes its environment
		note(args[0], strings.Join(os.Environ(), "\n"))
		<-terms
		os.Exit(0)
	case "hang": // FILE: accepts connections and never answers
		listener, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			fmt.Println(err)
			os.Exit(1)
		}
		note(args[0], listener.Addr().String())
		<-terms
		os.Exit(0)
	case "only": // LOCK FILE: notes if another one runs
		lock, _ := os.OpenFile(args[0], os.O_CREATE|os.O_RDWR, 0o600)
		if err := syscall.Flock(int(lock.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
			note(args[1], "two at once")
		}
		<-terms
		os.Exit(0)
	case "delegated":
		delegatedMain()
	}
}

// note appends a line, whole, so that several processes may share a file.
func note(path, line string) {
	f, err := os.OpenFile(path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		fmt.Println(err)
		os.Exit(98)
	}
	fmt.Fprintln(f, line)
	f.Close()
}

func notes(t *testing.T, path string) []string {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil && !os.IsNotExist(err) {
		t.Fatal(err)
	}
	return strings.Fields(strings.ReplaceAll(strings.TrimSpace(string(data)), " ", "_"))
}

// childSpec is a Spec for a child of a mode.
func childSpec(t *testing.T, name string, args ...string) Spec {
	t.Helper()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	return Spec{Name: name, Path: exe, Args: args, Env: []string{childMark}, StopTimeout: 5 * time.Second}
}

// begin begins a supervisor, which the end of the test stops.
func begin(t *testing.T, cfg Config) *Supervisor {
	t.Helper()
	s, _ := beginUntil(t, cfg)
	return s
}

// beginUntil also returns what ends it early and waits for it.
func beginUntil(t *testing.T, cfg Config) (*Supervisor, func()) {
	t.Helper()
	if cfg.LogDir == "" {
		cfg.LogDir = t.TempDir()
	}
	cfg.Log = slog.New(slog.NewTextHandler(logTo{t}, nil))
	s := New(cfg)
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- s.Run(ctx) }()
	done := false
	end := func() {
		if done {
			return
		}
		done = true
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	}
	t.Cleanup(end)
	return s, end
}

type logTo struct{ t *testing.T }

func (l logTo) Write(line []byte) (int, error) {
	l.t.Log(strings.TrimSpace(string(line)))
	return len(line), nil
}

// patience is far above what anything here takes, because the machine may be busy.
const patience = 20 * time.Second

func within(t *testing.T) context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	t.Cleanup(cancel)
	return ctx
}

func start(t *testing.T, s *Supervisor, specs ...Spec) {
	t.Helper()
	for _, spec := range specs {
		if err := s.Start(spec); err != nil {
			t.Fatal(err)
		}
	}
}

func ready(t *testing.T, s *Supervisor, names ...string) {
	t.Helper()
	for _, name := range names {
		if err := s.WaitReady(within(t), name); err != nil {
			t.Fatal(err)
		}
	}
}

func stop(t *testing.T, s *Supervisor, name string) {
	t.Helper()
	if err := s.Stop(within(t), name); err != nil {
		t.Fatal(err)
	}
}

func status(t *testing.T, s *Supervisor, name string) Status {
	t.Helper()
	st, ok := s.board.get(name)
	if !ok {
		t.Fatalf("no process %s", name)
	}
	return st
}

// await waits until the process's status is as wanted.
func await(t *testing.T, s *Supervisor, name, what string, wanted func(Status) bool) Status {
	t.Helper()
	ctx := within(t)
	for {
		changed := s.Changed()
		st := status(t, s, name)
		if wanted(st) {
			return st
		}
		select {
		case <-changed:
		case <-ctx.Done():
			t.Fatalf("%s: waited for: %s; is %+v", name, what, st)
		}
	}
}

// pidOf is the number of a process that may have noted its start before the supervisor has published it. A signal to
// number 0 would stop the tests themselves.
func pidOf(t *testing.T, s *Supervisor, name string) int {
	t.Helper()
	return await(t, s, name, "a pid", func(st Status) bool { return st.PID != 0 }).PID
}

// eventually waits for something outside the supervisor.
func eventually(t *testing.T, what string, holds func() bool) {
	t.Helper()
	for ctx := within(t); !holds(); time.Sleep(5 * time.Millisecond) {
		if ctx.Err() != nil {
			t.Fatalf("waited for: %s", what)
		}
	}
}

// lives says whether the process is there and no zombie.
func lives(pid int) bool {
	stat, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "stat"))
	if err != nil {
		return false
	}
	fields := strings.Fields(string(stat[strings.LastIndexByte(string(stat), ')')+1:]))
	return fields[0] != "Z" && fields[0] != "X"
}

// expectError fails unless the error holds all the words.
func expectError(t *testing.T, what string, err error, words ...string) {
	t.Helper()
	if err == nil {
		t.Errorf("%s: no error", what)
		return
	}
	for _, word := range words {
		if !strings.Contains(err.Error(), word) {
			t.Errorf("%s: %q does not hold %q", what, err, word)
		}
	}
}
