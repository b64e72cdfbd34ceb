package systemd

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"
)

// Check is one thing that must hold for the agent to count as alive. It asks the agent's own loops and locks, never
// etcd's quorum, the apiserver or a cloud service: those being away must not get agents killed.
type Check struct {
	Name string
	// Run returns nil if all is well. It should return when ctx ends; if it does not, which is just what a deadlock
	// looks like, that is found too.
	Run func(ctx context.Context) error
}

// Watchdog pings systemd at half the interval, as long as every check passes. When one does not, the ping is withheld,
// the log says which and why, and after the interval systemd ends the agent with SIGABRT and starts it again.
type Watchdog struct {
	interval time.Duration
	ping     func()
	log      *slog.Logger
	checks   []*asked
}

// asked is a check and its run that has not returned yet, if there is one.
type asked struct {
	Check
	since  time.Time
	result chan error
}

// errStillRunning says that a check did not return within its time.
var errStillRunning = errors.New("the check has not returned")

// NewWatchdog makes a watchdog over a notifier. Where systemd does not wait for pings, Run does nothing.
func NewWatchdog(n *Notifier, log *slog.Logger, checks ...Check) *Watchdog {
	w := &Watchdog{interval: n.interval, ping: n.ping, log: log}
	for _, c := range checks {
		w.checks = append(w.checks, &asked{Check: c})
	}
	return w
}

// Run pings until ctx ends and returns ctx's error. It is to be started before the phases of the boot, since the pings
// also keep the start from timing out. A check that never returns is left behind: waiting for it would turn a wedged
// check into a wedged stop.
func (w *Watchdog) Run(ctx context.Context) error {
	if w.interval <= 0 {
		<-ctx.Done()
		return ctx.Err()
	}
	tick := time.NewTicker(w.interval / 2)
	defer tick.Stop()
	withheld := false
	for ctx.Err() == nil {
		name, err := w.firstFailure(ctx)
		switch {
		case ctx.Err() != nil:
			return ctx.Err()
		case err != nil:
			w.log.Error("watchdog ping withheld", "check", name, "error", err)
		default:
			if withheld {
				w.log.Info("watchdog ping resumed")
			}
			w.ping()
		}
		withheld = err != nil
		select {
		case <-tick.C:
		case <-ctx.Done():
		}
	}
	return ctx.Err()
}

// firstFailure runs the checks one after the other. All of them have a quarter of the interval, so that a ping is never
// older than three quarters of it.
func (w *Watchdog) firstFailure(ctx context.Context) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, w.interval/4)
	defer cancel()
	for _, c := range w.checks {
		if err := c.ask(ctx); err != nil {
			return c.Name, err
		}
	}
	return "", nil
}

// ask runs the check, unless its last run still goes on. A result that comes late is dropped: it is of another time.
func (a *asked) ask(ctx context.Context) error {
	select {
	case <-a.result:
		a.result = nil
	default:
	}
	if a.result == nil {
		a.since, a.result = time.Now(), make(chan error, 1)
		go func(result chan<- error) { result <- a.Run(ctx) }(a.result)
	}
	select {
	case err := <-a.result:
		a.result = nil
		return err
	case <-ctx.Done():
		return fmt.Errorf("%w for %s", errStillRunning, time.Since(a.since).Round(time.Millisecond))
	}
}
