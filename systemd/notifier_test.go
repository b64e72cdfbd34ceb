package systemd

import (
	"bytes"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"
)

// listen is systemd's end of the socket.
func listen(t *testing.T, name string) func() string {
	t.Helper()
	conn, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: name, Net: "unixgram"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	return func() string {
		t.Helper()
		buf := make([]byte, 4096)
		conn.SetReadDeadline(time.Now().Add(5 * time.Second))
		n, err := conn.Read(buf)
		if err != nil {
			t.Fatal(err)
		}
		return string(buf[:n])
	}
}

func TestNotifierSaysWhatSystemdReads(t *testing.T) {
	for _, socket := range []string{filepath.Join(t.TempDir(), "notify"), "@quorate-test-" +
		filepath.Base(t.TempDir()) + "-" + t.Name()} {
		read := listen(t, socket)
		n := NewNotifier(Environment{Socket: socket, Watchdog: 30 * time.Second}, slog.New(slog.DiscardHandler))
		for _, tc := range []struct {
			say  func()
			want string
		}{
			{func() { n.Status("phase 2: record\n  waiting") }, "^STATUS=phase 2: record waiting$"},
			{func() { n.Status(strings.Repeat("é", 500)) }, "^STATUS=é{125}…$"},
			{n.ping, "^WATCHDOG=1\nEXTEND_TIMEOUT_USEC=30000000$"},
			{n.Ready, "^READY=1$"},
			{n.ping, "^WATCHDOG=1$"},
			{n.Stopping, "^STOPPING=1$"},
			{n.ping, "^WATCHDOG=1$"},
			{func() { n.Ready(); n.Status("a late Ready is not sent") }, "^STATUS=a late"},
		} {
			tc.say()
			if got := read(); !regexp.MustCompile(tc.want).MatchString(got) {
				t.Errorf("on %s: got %q, want %q", socket, got, tc.want)
			}
		}
	}
}

func TestWithoutSocketNothingIsSaid(t *testing.T) {
	var log bytes.Buffer
	n := NewNotifier(Environment{}, slog.New(slog.NewTextHandler(&log, nil)))
	n.Ready()
	n.Status("a")
	n.ping()
	n.Stopping()
	if log.Len() > 0 {
		t.Errorf("it logged %s", log.String())
	}
}

func TestSocketThatIsGoneIsLoggedOnce(t *testing.T) {
	var log bytes.Buffer
	socket := filepath.Join(t.TempDir(), "notify")
	n := NewNotifier(Environment{Socket: socket}, slog.New(slog.NewTextHandler(&log, nil)))
	n.Status("a")
	n.Status("b")
	if lines := strings.Count(log.String(), "\n"); lines != 1 || !strings.Contains(log.String(), socket) {
		t.Errorf("two failures made %d lines: %s", lines, log.String())
	}
	read := listen(t, socket)
	n.Status("c")
	if got := read(); got != "STATUS=c" {
		t.Errorf("got %q", got)
	}
}

// A systemd that does not read must not stop the agent.
func TestFullSocketDoesNotBlock(t *testing.T) {
	socket := filepath.Join(t.TempDir(), "notify")
	listen(t, socket)
	fill(t, socket)
	n := NewNotifier(Environment{Socket: socket}, slog.New(slog.DiscardHandler))
	started := time.Now()
	n.Status("one too many")
	if took := time.Since(started); took < sendTimeout || took > 5*sendTimeout {
		t.Errorf("it took %s", took)
	}
}

// fill writes to the socket until it takes no more.
func fill(t *testing.T, socket string) {
	t.Helper()
	fd, err := syscall.Socket(syscall.AF_UNIX, syscall.SOCK_DGRAM|syscall.SOCK_NONBLOCK, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer syscall.Close(fd)
	for range 100000 {
		if err := syscall.Sendto(fd, []byte("x"), 0, &syscall.SockaddrUnix{Name: socket}); err == syscall.EAGAIN {
			return
		} else if err != nil {
			t.Fatal(err)
		}
	}
	t.Fatal("the socket never fills")
}

func TestTakeEnvironmentLeavesNothingForChildren(t *testing.T) {
	for name, value := range map[string]string{"NOTIFY_SOCKET": "/run/systemd/notify", "WATCHDOG_USEC": "30000000",
		"LISTEN_FDS": "1", "LISTEN_PID": "1", "LISTEN_FDNAMES": "a"} {
		t.Setenv(name, value)
	}
	env, err := TakeEnvironment()
	if want := (Environment{Socket: "/run/systemd/notify", Watchdog: 30 * time.Second}); env != want || err != nil {
		t.Errorf("got %+v, %v", env, err)
	}
	for _, kv := range os.Environ() {
		if regexp.MustCompile("^(NOTIFY_SOCKET|WATCHDOG_|LISTEN_)").MatchString(kv) {
			t.Errorf("a child would see %s", kv)
		}
	}
	if env, err := TakeEnvironment(); env != (Environment{}) || err != nil {
		t.Errorf("without systemd: got %+v, %v", env, err)
	}
}

func TestTakeEnvironmentOfAnotherProcess(t *testing.T) {
	t.Setenv("WATCHDOG_USEC", "30000000")
	t.Setenv("WATCHDOG_PID", "1")
	if env, err := TakeEnvironment(); env.Watchdog != 0 || err != nil {
		t.Errorf("got %+v, %v", env, err)
	}
	t.Setenv("WATCHDOG_USEC", "often")
	if _, err := TakeEnvironment(); err == nil || !strings.Contains(err.Error(), "WATCHDOG_USEC") {
		t.Errorf("got %v", err)
	}
}
