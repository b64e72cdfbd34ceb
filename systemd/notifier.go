package systemd

import (
	"fmt"
	"log/slog"
	"net"
	"strings"
	"sync"
	"time"

	"github.com/coreos/go-systemd/v22/daemon"
)

// sendTimeout: systemd reads its socket at once or is itself in trouble, which must not become the agent's.
const sendTimeout = time.Second

// maxStatus keeps STATUS= to a line that systemctl shows.
const maxStatus = 250

// stage is how far the agent has reported itself to systemd.
type stage int

const (
	starting stage = iota
	running
	stopping
)

// Notifier tells systemd how far the agent is. Its methods never fail and never block for more than a second; a message
// that could not be sent is logged, at the first of a row. They may be called concurrently.
type Notifier struct {
	socket   string
	interval time.Duration
	log      *slog.Logger

	mu     sync.Mutex
	stage  stage
	failed bool
}

// NewNotifier makes a notifier for the environment that systemd gave; without a socket it sends nothing.
func NewNotifier(env Environment, log *slog.Logger) *Notifier {
	return &Notifier{socket: env.Socket, interval: env.Watchdog, log: log}
}

// Ready says that the start is complete.
func (n *Notifier) Ready() { n.enter(running, daemon.SdNotifyReady) }

// Stopping says that the agent stops. From here on no ping asks for more time.
func (n *Notifier) Stopping() { n.enter(stopping, daemon.SdNotifyStopping) }

// Status sets the line that systemctl status shows.
func (n *Notifier) Status(text string) {
	text = strings.Join(strings.Fields(text), " ")
	if len(text) > maxStatus {
		text = strings.ToValidUTF8(text[:maxStatus], "") + "…"
	}
	n.send("STATUS=" + text)
}

// ping feeds the watchdog. systemd counts WatchdogSec only from READY=1; before that the same ping keeps
// TimeoutStartSec from running out.
func (n *Notifier) ping() {
	n.mu.Lock()
	now := n.stage
	n.mu.Unlock()
	if now == starting {
		n.send(fmt.Sprintf("%s\nEXTEND_TIMEOUT_USEC=%d", daemon.SdNotifyWatchdog, n.interval.Microseconds()))
		return
	}
	n.send(daemon.SdNotifyWatchdog)
}

// enter notes a stage and says so. A stop is never taken back by a Ready that comes late.
func (n *Notifier) enter(s stage, message string) {
	n.mu.Lock()
	late := s < n.stage
	if !late {
		n.stage = s
	}
	n.mu.Unlock()
	if !late {
		n.send(message)
	}
}

// send sends one datagram, on a socket of its own: systemd's may be another after it executed itself anew.
func (n *Notifier) send(message string) {
	if n.socket == "" {
		return
	}
	err := n.datagram(message)
	n.mu.Lock()
	first := err != nil && !n.failed
	n.failed = err != nil
	n.mu.Unlock()
	if first {
		n.log.Warn("systemd cannot be notified", "socket", n.socket, "error", err)
	}
}

func (n *Notifier) datagram(message string) error {
	conn, err := net.DialUnix("unixgram", nil, &net.UnixAddr{Name: n.socket, Net: "unixgram"})
	if err != nil {
		return err
	}
	defer conn.Close()
	if err := conn.SetWriteDeadline(time.Now().Add(sendTimeout)); err != nil {
		return err
	}
	_, err = conn.Write([]byte(message))
	return err
}
