package agent

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/quorate/quorate/agent/accounts"
	"github.com/quorate/quorate/etcdmember/member"
	"github.com/quorate/quorate/supervisor"
)

// etcdName is the child in which the member runs.
const etcdName = accounts.Etcd

// etcdChild runs the member as a supervised process: this program as `quorate run-etcd`.
type etcdChild struct {
	supervisor *supervisor.Supervisor
	self       string
	// account is whom it runs as; nil: as the agent.
	account *supervisor.Account
}

// etcdChild is the child of this agent.
func (a *Agent) etcdChild() *etcdChild {
	return &etcdChild{supervisor: a.supervisor, self: a.cfg.Self, account: a.accounts.Of(etcdName)}
}

// Start starts the member anew with a configuration and returns once its process exists, or could not be made. One that
// waits to be started again is forgotten first: it was of an earlier decision.
func (c *etcdChild) Start(ctx context.Context, configPath string) error {
	if err := c.Stop(ctx); err != nil {
		return err
	}
	if c.account != nil {
		if err := giveMember(configPath, *c.account); err != nil {
			return err
		}
	}
	if err := c.supervisor.Start(c.spec(member.SocketOf(configPath))); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeoutCause(ctx, launchLimit, fmt.Errorf("the launch of %s hangs for %s", c.self,
		launchLimit))
	defer cancel()
	for {
		changed := c.supervisor.Changed()
		if s, ok := c.supervisor.StatusOf(etcdName); ok && (s.PID != 0 || s.State == supervisor.Backoff) {
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
		_, err := member.ReadStatus(ctx, socket)
		return err
	}
	alive := func(ctx context.Context) error { return member.Alive(ctx, socket) }
	return supervisor.Spec{
		Name: etcdName, Path: c.self, Args: []string{"run-etcd", "--config", member.ConfigOf(socket)},
		RunAs:       c.account,
		StopTimeout: etcdStopTimeout,
		// A member that copies its state, or waits for a quorum, is well: only one that does not answer at all hangs.
		Start: &supervisor.Probe{Period: startPeriod, Timeout: startTimeout, Limit: startLimit, Check: answers},
		Live:  &supervisor.Probe{Period: livePeriod, Timeout: liveTimeout, Limit: liveLimit, Check: alive},
		Ready: &supervisor.Probe{Period: time.Second, Timeout: time.Second, Check: memberReady(socket, alive)},
	}
}

// memberReady checks that the member knows a leader, and each livePeriod also that it is alive. The supervisor asks for
// the latter only while the former fails, and a member whose storage is stuck answers and goes on knowing its leader.
func memberReady(socket string, alive func(context.Context) error) func(context.Context) error {
	var wasAlive time.Time
	return func(ctx context.Context) error {
		s, err := member.ReadStatus(ctx, socket)
		if err != nil {
			return err
		}
		if s.Leader == 0 {
			return fmt.Errorf("member %s knows of no leader", s.MemberID)
		}
		if time.Since(wasAlive) < livePeriod {
			return nil
		}
		if err = alive(ctx); err == nil {
			wasAlive = time.Now()
		}
		return err
	}
}

// Stop ends the member, or the wait for its next start. That there is none is no error.
func (c *etcdChild) Stop(ctx context.Context) error {
	if _, ok := c.supervisor.StatusOf(etcdName); !ok {
		return nil
	}
	return c.supervisor.Stop(ctx, etcdName)
}

// Running reports whether the process exists or is being made: its directory is its own then.
func (c *etcdChild) Running() bool { return etcdRuns(c.supervisor) }

func etcdRuns(s *supervisor.Supervisor) bool {
	etcd, ok := s.StatusOf(etcdName)
	return ok && (etcd.PID != 0 || etcd.State == supervisor.Starting)
}

// Ended says how the process last ended by itself.
func (c *etcdChild) Ended() string {
	if exit, ok := c.supervisor.Exited(etcdName); ok && !exit.Asked {
		return exit.String()
	}
	return ""
}

// giveMember hands over what the member's process writes: its directory, and its folder on the tmpfs. What the agent
// itself has put into them is handed over at the next start.
func giveMember(configPath string, account supervisor.Account) error {
	cfg, err := member.LoadConfig(configPath)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(cfg.Dir, 0o700); err != nil {
		return fmt.Errorf("make etcd's directory: %w", err)
	}
	return errors.Join(accounts.GiveTree(filepath.Dir(configPath), account), accounts.GiveTree(cfg.Dir, account))
}

// crashLoop is how often an etcd member may end without getting ready in between. Then its directory is checked.
const crashLoop = 3

// watch returns an error when the member has to be decided on again.
func (c *etcdChild) watch(ctx context.Context) error {
	ends := etcdEnds{last: time.Now()}
	for {
		changed := c.supervisor.Changed()
		if err := c.observe(&ends); err != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return nil
		case <-changed:
		}
	}
}

// etcdEnds are the ends of the member that watch has seen.
type etcdEnds struct {
	last   time.Time // when the newest was; older ones are from before the boot decided anew
	failed int       // how many there were since the member was last ready
}

// observe reports a member that was removed, or that does not come up: starting it again and again changes nothing.
func (c *etcdChild) observe(ends *etcdEnds) error {
	if s, ok := c.supervisor.StatusOf(etcdName); ok && s.State == supervisor.Ready {
		ends.failed = 0
	}
	exit, ok := c.supervisor.Exited(etcdName)
	if !ok || !exit.At.After(ends.last) {
		return nil
	}
	ends.last = exit.At
	if exit.Code == member.RemovedExitCode {
		return member.ErrRemoved
	}
	if ends.failed++; ends.failed >= crashLoop {
		return fmt.Errorf("etcd does not come up: %s", exit)
	}
	return nil
}
