package agent

import (
	"context"
	"fmt"
	"time"

	"github.com/quorate/quorate/etcdmember"
	"github.com/quorate/quorate/supervisor"
)

// etcdName is the child in which the member runs.
const etcdName = "etcd"

// etcdStopTimeout is enough for a leader to hand over and for the database to be closed.
const etcdStopTimeout = 15 * time.Second

// How often a member that starts is asked whether it answers, and how long that may take.
const (
	startPeriod   = 50 * time.Millisecond
	startPatience = 10 * time.Minute
)

// etcdChild runs the member as a supervised process: this program as `quorate run-etcd`.
type etcdChild struct {
	supervisor *supervisor.Supervisor
	self       string
}

// Start starts the member anew with a configuration and returns once its process exists, or could not be made. One that waits to
// be started again is forgotten first: it was of an earlier decision.
func (c *etcdChild) Start(ctx context.Context, configPath string) error {
	if err := c.Stop(ctx); err != nil {
		return err
	}
	if err := c.supervisor.Start(c.spec(etcdmember.SocketOf(configPath))); err != nil {
		return err
	}
	for {
		changed := c.supervisor.Changed()
		if s, ok := find(c.supervisor, etcdName); ok && (s.PID != 0 || s.State == supervisor.Backoff) {
			return nil
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-changed:
		}
	}
}

func (c *etcdChild) spec(socket string) supervisor.Spec {
	answers := func(ctx context.Context) error {
		_, err := etcdmember.ReadStatus(ctx, socket)
		return err
	}
	return supervisor.Spec{
		Name: etcdName, Path: c.self, Args: []string{"run-etcd", "--config", etcdmember.ConfigOf(socket)}, StopTimeout: etcdStopTimeout,
		// A member that copies its state, or waits for a quorum, is well: only one that does not answer at all hangs. It answers once it
		// has read its log and its database, which may take minutes on a slow disk: breaking that off would make it begin again.
		Start: &supervisor.Probe{Check: answers, Period: startPeriod, Timeout: time.Second, Failures: int(startPatience / startPeriod)},
		Live:  &supervisor.Probe{Check: func(ctx context.Context) error { return etcdmember.Alive(ctx, socket) }, Period: 5 * time.Second, Timeout: 3 * time.Second, Failures: 4},
		Ready: &supervisor.Probe{Period: time.Second, Timeout: time.Second, Check: func(ctx context.Context) error {
			s, err := etcdmember.ReadStatus(ctx, socket)
			if err == nil && s.Leader == 0 {
				err = fmt.Errorf("member %s knows of no leader", s.MemberID)
			}
			return err
		}},
	}
}

// Stop ends the member, or the wait for its next start. That there is none is no error.
func (c *etcdChild) Stop(ctx context.Context) error {
	if _, ok := find(c.supervisor, etcdName); !ok {
		return nil
	}
	return c.supervisor.Stop(ctx, etcdName)
}

// Running reports whether the process exists or is being made: its directory is its own then.
func (c *etcdChild) Running() bool {
	s, ok := find(c.supervisor, etcdName)
	return ok && (s.PID != 0 || s.State == supervisor.Starting || s.State == supervisor.Stopping)
}

func find(s *supervisor.Supervisor, name string) (supervisor.Status, bool) {
	for _, st := range s.Status() {
		if st.Name == name {
			return st, true
		}
	}
	return supervisor.Status{}, false
}
