package guest

import (
	"fmt"
	"net"
	"os"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"
)

// notifyPath is NOTIFY_SOCKET in a VM.
const notifyPath = "/run/quorate-notify.sock"

// notifySocket reads what the agent reports to its init (sd_notify(3)), with NotifyAccess=main: other processes are not
// heard.
type notifySocket struct {
	notices chan map[string]string
	main    atomic.Int64 // the agent's pid
}

func listenNotify() (*notifySocket, error) {
	conn, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: notifyPath, Net: "unixgram"})
	if err != nil {
		return nil, fmt.Errorf("make the notify socket: %w", err)
	}
	raw, err := conn.SyscallConn()
	if err != nil {
		return nil, fmt.Errorf("make the notify socket: %w", err)
	}
	var passErr error
	if err := raw.Control(func(fd uintptr) {
		passErr = unix.SetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_PASSCRED, 1)
	}); err != nil || passErr != nil {
		return nil, fmt.Errorf("make the notify socket: %w", passErr)
	}
	s := &notifySocket{notices: make(chan map[string]string)}
	go s.read(conn) // until the VM ends
	return s, os.Chmod(notifyPath, 0o777)
}

func (s *notifySocket) read(conn *net.UnixConn) {
	message, control := make([]byte, 64<<10), make([]byte, 4096)
	for {
		n, c, _, _, err := conn.ReadMsgUnix(message, control)
		if err != nil {
			fmt.Fprintf(os.Stderr, "%s: read the notify socket: %v\n", initStage, err)
			return
		}
		if sender(control[:c]) == s.main.Load() {
			s.notices <- parseNotice(string(message[:n]))
		}
	}
}

// sender is the pid of the process that sent the message, as the kernel vouches. Passed file descriptors (BARRIER=1
// waits for that) are closed.
func sender(control []byte) int64 {
	messages, err := unix.ParseSocketControlMessage(control)
	if err != nil {
		return -1
	}
	pid := int64(-1)
	for _, m := range messages {
		if c, err := unix.ParseUnixCredentials(&m); err == nil {
			pid = int64(c.Pid)
		} else if fds, err := unix.ParseUnixRights(&m); err == nil {
			for _, fd := range fds {
				_ = unix.Close(fd)
			}
		}
	}
	return pid
}

func parseNotice(message string) map[string]string {
	notice := map[string]string{}
	for line := range strings.Lines(message) {
		if key, value, ok := strings.Cut(strings.TrimRight(line, "\n"), "="); ok {
			notice[key] = value
		}
	}
	return notice
}

// notified takes in one message of the agent.
func (u *unit) notified(n map[string]string) {
	if u.status.PID == 0 {
		return // sent by an agent that is dead by now
	}
	if usec, err := strconv.ParseInt(n["WATCHDOG_USEC"], 10, 64); err == nil && usec > 0 {
		u.interval = time.Duration(usec) * time.Microsecond
	}
	status, changed := n["STATUS"]
	if changed {
		u.status.Status = status
	}
	switch {
	case n["READY"] == "1" && u.status.State == "starting":
		u.enter("ready")
		u.feed()
	case changed:
		u.tell()
	}
	switch n["WATCHDOG"] {
	case "1":
		u.feed()
	case "trigger":
		u.abort()
	}
}

// feed starts the watchdog's interval anew. Before READY=1 and while stopping it sleeps.
func (u *unit) feed() {
	if u.status.State == "ready" && u.interval > 0 {
		u.watchdog.Reset(u.interval)
	}
}
