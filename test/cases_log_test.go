package test

import (
	"bufio"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/quorate/quorate/internal/localgce"
	"github.com/quorate/quorate/internal/replica"
)

// This file holds what happens to a master whose log does not flow. The test is the reader of its agent's stderr, and
// its journal, to which --log-dir "" sends the output of the components.

const (
	guestStderr  = "/run/stderr"
	guestJournal = "/run/systemd/journal/stdout"
	// logWatchdog is the unit's WatchdogSec here: what is watched in steady state lasts longer.
	logWatchdog = 10 * time.Second
	// stopWithin is far above what the stop of a member without others takes, and a fraction of what GCE gives it.
	stopWithin = 20 * time.Second
)

// agentBehind is an agent that waits until the test has prepared the other ends.
var agentBehind = localgce.Agent{
	Command: []string{"/bin/sh", "-c", "until [ -e /run/go ]; do sleep 0.05; done; " +
		"exec /usr/local/bin/quorate agent --log-dir \"\" 2>" + guestStderr},
	Watchdog: logWatchdog,
}

// steadyTime is how long a master without a log is watched.
func steadyTime() time.Duration {
	if chaos {
		return time.Minute
	}
	return logWatchdog + 2*time.Second
}

// journal is what listens in the place of journald. It counts lines, unless it hangs.
type journal struct {
	listener net.Listener
	hangs    bool
	ended    sync.WaitGroup

	mu    sync.Mutex
	conns []net.Conn
	lines map[string]int // by identifier
}

func (c *cluster) beJournal(t *testing.T, vm string, hangs bool) *journal {
	t.Helper()
	path := c.guest(vm, guestJournal)
	c.must(t, os.MkdirAll(filepath.Dir(path), 0o755))
	listener, err := net.Listen("unix", path)
	c.must(t, err)
	j := &journal{listener: listener, hangs: hangs, lines: map[string]int{}}
	j.ended.Go(func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			j.mu.Lock()
			j.conns = append(j.conns, conn)
			j.mu.Unlock()
			if !hangs {
				j.ended.Go(func() { j.read(conn) })
			}
		}
	})
	t.Cleanup(j.close)
	return j
}

func (j *journal) read(conn net.Conn) {
	lines := bufio.NewScanner(conn)
	lines.Buffer(nil, 1<<20)
	lines.Scan()
	identifier := lines.Text()
	for range 6 { // what is left of the header
		lines.Scan()
	}
	for lines.Scan() {
		j.mu.Lock()
		j.lines[identifier]++
		j.mu.Unlock()
	}
}

func (j *journal) has(identifier string) error {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.lines[identifier] == 0 {
		return fmt.Errorf("no line of %s: %v", identifier, j.lines)
	}
	return nil
}

func (j *journal) close() {
	j.listener.Close()
	j.mu.Lock()
	for _, conn := range j.conns {
		conn.Close()
	}
	j.mu.Unlock()
	j.ended.Wait()
}

// A journal that hangs, one that is gone and a disk that is full, while a master boots, runs and stops: the agent and
// its children live, the watchdog is content, and the stop is as quick as any.
func TestAMasterWhoseLogDoesNotFlow(t *testing.T) {
	t.Parallel()
	c := bare(t, plan{vms: []string{only}, agent: agentBehind})
	for i, tc := range []struct {
		name string
		// stderr prepares the agent's stderr. What it returns is called once the agent has begun.
		stderr func(t *testing.T, path string) (begun func())
		hangs  bool // the journal
		loss   string
	}{
		{name: "hangs", stderr: hangingStderr, hangs: true},
		{name: "is gone", stderr: goneStderr, loss: "broken pipe"},
		{name: "is full", stderr: fullStderr, loss: "no space left on device"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			if i > 0 {
				c.must(t, c.StartVM(t.Context(), only))
			}
			j := c.beJournal(t, only, tc.hangs)
			begun := tc.stderr(t, c.guest(only, guestStderr))
			c.must(t, os.WriteFile(c.guest(only, "/run/go"), nil, 0o600))
			begun()
			await(t, "whole", c.membersWhole)
			c.steady(t, only, steadyTime())
			if !tc.hangs {
				if err := j.has("etcd"); err != nil {
					t.Error(err)
				}
			}
			s, err := c.status(only)
			c.must(t, err)
			if l := s.LogLoss; (l == nil) != (tc.loss == "") || l != nil &&
				(l.Lines == 0 || !strings.Contains(l.Error, tc.loss)) {
				t.Errorf("the status says of the log's losses: %+v", l)
			}
			c.stopsInOrder(t, only)
		})
	}
}

// steady wants the same processes all the time, and an agent that answers.
func (c *cluster) steady(t *testing.T, vm string, d time.Duration) {
	t.Helper()
	before := c.processes(vm)
	for end := time.Now().Add(d); time.Now().Before(end); time.Sleep(500 * time.Millisecond) {
		if _, err := c.status(vm); err != nil {
			t.Fatal(err)
		}
	}
	after := c.processes(vm)
	for _, kind := range []string{"agent", "etcd", replica.APIServer} {
		if len(before[kind]) != 1 || !slices.Equal(before[kind], after[kind]) {
			t.Errorf("%s: process %v, was %v", kind, after[kind], before[kind])
		}
	}
	if n := c.vm(vm).Agent.Restarts; n != 0 {
		t.Errorf("%d agents have ended: %s", n, c.vm(vm).Agent.LastExit)
	}
}

func (c *cluster) stopsInOrder(t *testing.T, vm string) {
	t.Helper()
	onlyProcessVMs(t)
	log := c.vm(vm).Log
	begun := time.Now()
	c.must(t, c.StopVM(t.Context(), vm))
	took := time.Since(begun).Round(time.Millisecond)
	t.Logf("the stop took %s", took)
	b, err := os.ReadFile(log)
	c.must(t, err)
	ends := strings.Split(string(b), "the agent has ended: ")
	if took > stopWithin || !strings.HasPrefix(ends[len(ends)-1], "exit status 0\n") {
		t.Errorf("the stop took %s, and the agent ended with %.40q", took, ends[len(ends)-1])
	}
}

// hangingStderr takes nothing: a pipe that is full.
func hangingStderr(t *testing.T, path string) (begun func()) {
	fd := openPipe(t, path, syscall.O_RDWR)
	for size := 4096; size > 0; {
		if _, err := syscall.Write(fd, make([]byte, size)); errors.Is(err, syscall.EAGAIN) {
			size /= 2
		} else if err != nil {
			t.Fatal(err)
		}
	}
	return func() {}
}

// goneStderr loses its reader at the agent's first line.
func goneStderr(t *testing.T, path string) (begun func()) {
	fd := openPipe(t, path, syscall.O_RDONLY)
	return func() {
		await(t, "the agent's first line", func() error {
			if n, err := syscall.Read(fd, make([]byte, 1)); n != 1 {
				return fmt.Errorf("read %d: %w", n, err)
			}
			return nil
		})
		if err := syscall.Close(fd); err != nil {
			t.Fatal(err)
		}
	}
}

func fullStderr(t *testing.T, path string) (begun func()) {
	if err := os.Symlink("/dev/full", path); err != nil {
		t.Fatal(err)
	}
	return func() {}
}

// openPipe makes a named pipe and opens one end or both, which do not wait.
func openPipe(t *testing.T, path string, how int) (fd int) {
	t.Helper()
	if err := syscall.Mkfifo(path, 0o600); err != nil {
		t.Fatal(err)
	}
	fd, err := syscall.Open(path, how|syscall.O_NONBLOCK|syscall.O_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	if how == syscall.O_RDWR {
		t.Cleanup(func() { syscall.Close(fd) })
	}
	return fd
}
