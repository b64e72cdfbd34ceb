package main

import (
	"bytes"
	"context"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/quorate/quorate/agent"
	"github.com/quorate/quorate/agent/status"
)

const (
	// stuckFor is how long stderr is of no use. The agent writes at the beginning and at the end of that time; it gives
	// up on the metadata server after 30 s. The scenarios have it for a minute.
	stuckFor = 3 * time.Second
	// testWatchdog is the unit's WatchdogSec in the tests: pings come after half of it.
	testWatchdog = 2 * time.Second
	// stopPatience is far above what the stop of an agent without children takes: the second that its log is given.
	stopPatience = 10 * time.Second
)

// realAgent is an agent in a process of its own, on a network where nobody answers: it waits for the metadata server.
type realAgent struct {
	*testing.T
	cmd   *exec.Cmd
	dir   string
	pings chan time.Time
	ended chan error
}

func startAgent(t *testing.T, stderr *os.File) *realAgent {
	t.Helper()
	return startAgentBy(t, stderr, `exec "$@"`)
}

// startAgentBy starts it by a line of the shell, which finds the agent's command line in its arguments.
func startAgentBy(t *testing.T, stderr *os.File, shell string) *realAgent {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("needs root, as the agent does")
	}
	dir, err := os.MkdirTemp("", "q") // short: the path of a socket is
	if err != nil {
		t.Fatal(err)
	}
	a := &realAgent{T: t, dir: dir, pings: make(chan time.Time, 1000), ended: make(chan error, 1)}
	notify, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: filepath.Join(dir, "notify"), Net: "unixgram"})
	if err != nil {
		t.Fatal(err)
	}
	// TestMain has put this program into the path as quorate.
	a.cmd = exec.Command("/bin/sh", "-c", shell, "sh",
		"quorate", "agent", "--run-dir", a.run(), "--log-dir", filepath.Join(dir, "log"))
	a.cmd.Stderr = stderr
	a.cmd.Env = append(os.Environ(), "NOTIFY_SOCKET="+filepath.Join(dir, "notify"),
		"WATCHDOG_USEC="+strconv.FormatInt(testWatchdog.Microseconds(), 10))
	a.cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWNET, Pdeathsig: syscall.SIGKILL}
	if err := a.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go func() { a.ended <- a.cmd.Wait() }()
	go a.hear(notify)
	t.Cleanup(func() {
		a.cmd.Process.Kill()
		<-a.ended
		notify.Close()
		os.RemoveAll(dir)
	})
	return a
}

func (a *realAgent) run() string { return filepath.Join(a.dir, "run") }

func (a *realAgent) hear(notify *net.UnixConn) {
	message := make([]byte, 4096)
	for {
		n, err := notify.Read(message)
		if err != nil {
			return
		}
		if strings.Contains(string(message[:n]), "WATCHDOG=1") {
			a.pings <- time.Now()
		}
	}
}

// answers waits for the agent's status.
func (a *realAgent) answers() status.Status {
	a.Helper()
	for begun := time.Now(); ; time.Sleep(20 * time.Millisecond) {
		s, err := agent.ReadStatus(a.Context(), agent.SocketPath(a.run()))
		if err == nil {
			return s
		}
		select {
		case err := <-a.ended:
			a.ended <- err
			a.Fatalf("it has ended: %v", err)
		default:
		}
		if time.Since(begun) > stopPatience {
			a.Fatalf("no answer: %v", err)
		}
	}
}

// lives fails unless the watchdog is content with the agent for so long.
func (a *realAgent) lives(d time.Duration) {
	a.Helper()
	end, last := time.After(d), time.Now()
	for {
		select {
		case last = <-a.pings:
		case err := <-a.ended:
			a.ended <- err
			a.Fatalf("it has ended: %v", err)
		case <-time.After(time.Until(last.Add(testWatchdog))):
			a.Fatalf("no ping for %s", testWatchdog)
		case <-end:
			return
		}
	}
}

// ends fails unless the agent ends in order and soon after a signal.
func (a *realAgent) ends(with syscall.Signal) {
	a.Helper()
	if err := a.cmd.Process.Signal(with); err != nil {
		a.Fatal(err)
	}
	select {
	case err := <-a.ended:
		a.ended <- err
		if err != nil {
			a.Errorf("it ended with %v", err)
		}
	case <-time.After(stopPatience):
		a.Errorf("%s after %s it has not ended", stopPatience, with)
	}
}

// pipe is one whose writes wait, as those to a journal or a terminal do.
func pipe(t *testing.T) (reader, writer *os.File) {
	t.Helper()
	var fds [2]int
	if err := syscall.Pipe2(fds[:], syscall.O_CLOEXEC); err != nil {
		t.Fatal(err)
	}
	reader, writer = os.NewFile(uintptr(fds[0]), "reader"), os.NewFile(uintptr(fds[1]), "writer")
	t.Cleanup(func() { reader.Close(); writer.Close() })
	return reader, writer
}

// fill writes to a pipe until it takes nothing more.
func fill(t *testing.T, writer *os.File) {
	t.Helper()
	fd := int(writer.Fd())
	if err := syscall.SetNonblock(fd, true); err != nil {
		t.Fatal(err)
	}
	for size := 4096; size > 0; {
		if _, err := syscall.Write(fd, make([]byte, size)); err == syscall.EAGAIN {
			size /= 2
		} else if err != nil {
			t.Fatal(err)
		}
	}
	if err := syscall.SetNonblock(fd, false); err != nil {
		t.Fatal(err)
	}
}

// A journal that hangs, a full disk and a terminal that is gone cost lines of the log, and neither the agent nor its
// orderly stop.
func TestTheAgentOutlivesItsStderr(t *testing.T) {
	for name, tc := range map[string]struct {
		begin func(t *testing.T) (stderr *os.File, before func()) // before is called before the stop
		lost  bool
	}{
		"nobody reads it": {begin: func(t *testing.T) (*os.File, func()) {
			_, writer := pipe(t)
			fill(t, writer)
			return writer, func() {}
		}},
		"nobody reads it when the agent is to stop": {begin: func(t *testing.T) (*os.File, func()) {
			_, writer := pipe(t)
			return writer, func() { fill(t, writer) }
		}},
		"its reader is gone": {lost: true, begin: func(t *testing.T) (*os.File, func()) {
			reader, writer := pipe(t)
			reader.Close()
			return writer, func() {}
		}},
		"its reader goes before the agent is to stop": {begin: func(t *testing.T) (*os.File, func()) {
			reader, writer := pipe(t)
			return writer, func() { reader.Close() }
		}},
		"its disk is full": {lost: true, begin: func(t *testing.T) (*os.File, func()) {
			full, err := os.OpenFile("/dev/full", os.O_WRONLY, 0)
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { full.Close() })
			return full, func() {}
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			stderr, before := tc.begin(t)
			a := startAgent(t, stderr)
			a.answers()
			a.lives(stuckFor)
			loss := a.answers().LogLoss
			if shown := loss != nil && loss.Lines > 0 && loss.Error != ""; shown != tc.lost {
				t.Errorf("the status says of the log's losses: %+v", loss)
			}
			before()
			a.ends(syscall.SIGTERM)
		})
	}
}

// Also an agent that cannot begin says so on a stream that nobody reads, and ends.
func TestAnAgentWithoutALogEndsWithItsCode(t *testing.T) {
	_, writer := pipe(t)
	fill(t, writer)
	a := startAgent(t, writer)
	a.answers()
	ctx, cancel := context.WithTimeout(t.Context(), stopPatience)
	defer cancel()
	second := exec.CommandContext(ctx, a.cmd.Path)
	second.Args, second.Env, second.Stderr = a.cmd.Args, a.cmd.Env, writer
	if err := second.Run(); ctx.Err() != nil || second.ProcessState.ExitCode() != exitRunning {
		t.Errorf("a second agent: %v (%v)", err, ctx.Err())
	}
}

// A terminal that closes ends the agent as SIGTERM does, unless nohup was asked for.
func TestHangUpStopsTheAgentInOrder(t *testing.T) {
	for name, tc := range map[string]struct {
		shell string
		lives bool
	}{
		"a terminal": {shell: `exec env --default-signal=HUP "$@"`}, // also where this test run was started with nohup
		"nohup":      {shell: `trap "" HUP; exec "$@"`, lives: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			log, err := os.Create(filepath.Join(t.TempDir(), "log"))
			if err != nil {
				t.Fatal(err)
			}
			defer log.Close()
			a := startAgentBy(t, log, tc.shell)
			a.answers()
			if tc.lives {
				if err := a.cmd.Process.Signal(syscall.SIGHUP); err != nil {
					t.Fatal(err)
				}
				a.lives(testWatchdog)
				a.ends(syscall.SIGTERM)
			} else {
				a.ends(syscall.SIGHUP)
			}
			b, err := os.ReadFile(log.Name())
			if err != nil || !bytes.Contains(b, []byte(`msg="asked to stop" phase=identity`)) {
				t.Errorf("%v\n%s", err, b)
			}
		})
	}
}

// `quorate ... | head -1`: the reader has what it wanted, and nobody wants to hear of it.
func TestAReaderThatHasEnoughEndsACommandQuietly(t *testing.T) {
	reader, writer := pipe(t)
	reader.Close()
	cmd := exec.Command("quorate", "--help")
	var stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = writer, &stderr
	_ = cmd.Run()
	if status := cmd.ProcessState.Sys().(syscall.WaitStatus); status.Signal() != syscall.SIGPIPE || stderr.Len() > 0 {
		t.Errorf("%s: %s", cmd.ProcessState, stderr.String())
	}
}
