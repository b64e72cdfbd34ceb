package etcdmember

import (
	"context"
	"crypto/tls"
	"fmt"
	"log/slog"
	"net/netip"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"github.com/quorate/quorate/certs"
	"github.com/quorate/quorate/internal/record"
	"github.com/quorate/quorate/internal/replica"
)

// Record is what the membership needs of the record. Every create is write-once: it returns what the record holds
// afterwards, which may be another's, and whether that is ours. View tells "absent" (in the view) from "could not be read"
// (the error). The implementation tries transient faults again; we observe again after any error.
type Record interface {
	View(ctx context.Context) (record.View, error)
	CreateClaim(ctx context.Context, epoch uint64, c record.Claim) (record.Claim, bool, error)
	CreateOutcome(ctx context.Context, epoch uint64, o record.Outcome) (record.Outcome, bool, error)
	CreateStopped(ctx context.Context, epoch uint64, s record.Stopped) (record.Stopped, bool, error)
	CreateIncarnation(ctx context.Context, i record.Incarnation) (record.Incarnation, bool, error)
	ConfirmIncarnation(ctx context.Context, p replica.Place, number uint64, s record.Started) (record.Started, bool, error)
	WriteMark(ctx context.Context, m record.Mark) error
}

// VM is one instance of this cluster as the Compute API lists it.
type VM struct {
	replica.Place
	InstanceID string
	Status     string
	Addresses  []netip.Addr
}

// ComputeAPI lists what exists in the project. An error is never taken for an empty list. It is called from one goroutine.
type ComputeAPI interface {
	VMs(ctx context.Context) ([]VM, error)
	DiskIDs(ctx context.Context) ([]string, error)
}

// Child is the process in which the member runs. Start returns once the process runs with the configuration at path; Stop
// once it, and all that it started, have exited; both may be called again and again.
type Child interface {
	Start(ctx context.Context, configPath string) error
	Stop(ctx context.Context) error
	Running() bool
}

// Config says whose membership is looked after, and with what.
type Config struct {
	Log     *slog.Logger
	Me      replica.Identity
	Cluster *replica.Cluster
	// Files are where the leaves of etcd and of the agent's etcd client are. TLS makes the client's configuration; it
	// returns nil before there are certificates.
	Files certs.Files
	TLS   func() *tls.Config
	// RunDir is a tmpfs: the child's configuration and its status socket. HostsFile is /etc/hosts where it is empty.
	RunDir, HostsFile string
	// DiskID is the Compute API's id of the data disk; empty where it is not known.
	DiskID string
	// Preflight returns why this VM is not fit to seed; nil: it is.
	Preflight func(ctx context.Context) error
	// StopPlane stops all that uses etcd on this replica, before etcd itself stops for good.
	StopPlane func(ctx context.Context) error
	Record    Record
	Compute   ComputeAPI
	Child     Child
	// StartAnyway is the operator's word, given on this VM, for a record that cannot be read.
	StartAnyway bool
}

// Membership looks after this replica's place in the etcd cluster: it observes, decides (Decide) and takes one step, and then
// observes again. Nothing in it remembers a decision: after any error, time-out or crash the next observation says where
// things stand.
type Membership struct {
	cfg Config

	// Only the loop (Claim, Settle, Keep) touches these.
	agent         AgentFile
	agentErr      error
	directory     *Directory // nil: to be read again
	keeping       bool       // Keep has begun: the supervisor starts the child again
	compute       Compute
	vms           []VM // of the newest list, with their addresses
	strangerSince time.Time

	mu    sync.Mutex
	shown Shown
	// shownBeside are the waits of the leader's rows, while the leader is here.
	shownBeside []BlockedSince
}

// Shown is what the agent's status shows of the membership.
type Shown struct {
	ClusterUID  string
	Epoch       uint64
	ClusterID   record.MemberID
	Incarnation uint64
	Blocked     []BlockedSince
}

// BlockedSince is a wait and when it began.
type BlockedSince struct {
	Blocked
	Since time.Time
}

// New opens the membership of this replica. It reads agent.json and nothing else.
func New(cfg Config) (*Membership, error) {
	m := &Membership{cfg: cfg}
	m.agent, m.agentErr = loadAgentFile(m.agentPath())
	return m, nil
}

// Shown returns what there is to show. It may be called at any time.
func (m *Membership) Shown() Shown {
	m.mu.Lock()
	defer m.mu.Unlock()
	s := m.shown
	s.Blocked = slices.Concat(s.Blocked, m.shownBeside)
	return s
}

// Status asks the running member; an error means that none answers.
func (m *Membership) Status(ctx context.Context) (MemberStatus, error) {
	return ReadStatus(ctx, m.StatusSocket())
}

// StatusSocket is where the child answers.
func (m *Membership) StatusSocket() string { return SocketOf(m.configPath()) }

// SocketOf is the status socket of the child that runs with the configuration at a path.
func SocketOf(configPath string) string { return filepath.Join(filepath.Dir(configPath), "etcd.sock") }

// ConfigOf is the inverse of SocketOf.
func ConfigOf(socket string) string { return filepath.Join(filepath.Dir(socket), "etcd.json") }

func (m *Membership) etcdDir() string { return filepath.Join(m.cfg.Cluster.Etcd.DataDir, "etcd") }
func (m *Membership) agentPath() string {
	return filepath.Join(m.cfg.Cluster.Etcd.DataDir, "agent.json")
}
func (m *Membership) configPath() string { return ConfigOf(filepath.Join(m.cfg.RunDir, "etcd.sock")) }
func (m *Membership) dnsName() string    { return m.cfg.Me.DNSName(m.cfg.Cluster.Name) }

// show brings what the status shows up to date. A wait keeps its beginning as long as its row and name stay.
func (m *Membership) show(f Facts, plan Plan) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.shown.Incarnation = m.agent.Incarnation
	if f.RecordErr == nil && f.Record.Inception != nil {
		m.shown.ClusterUID = f.Record.Inception.UID
		for _, e := range f.Record.Epochs {
			m.shown.Epoch = e.Number
			if e.Outcome != nil && e.Outcome.Formed != nil {
				m.shown.ClusterID = e.Outcome.Formed.ClusterID
			}
		}
	}
	m.shown.Blocked = m.follow(m.shown.Blocked, plan.Blocked, f.Now)
}

func (m *Membership) follow(before []BlockedSince, now *Blocked, at time.Time) []BlockedSince {
	if now == nil {
		if len(before) > 0 {
			m.cfg.Log.Info("no longer blocked", "row", before[0].Row.String(), "name", before[0].Name)
		}
		return nil
	}
	if len(before) > 0 && before[0].Row == now.Row && before[0].Name == now.Name {
		return []BlockedSince{{Blocked: *now, Since: before[0].Since}}
	}
	m.cfg.Log.Warn("blocked", "row", now.Row.String(), "name", now.Name, "reason", now.Reason, "next", now.Next)
	return []BlockedSince{{Blocked: *now, Since: at}}
}

// The pauses of the loop. Boot is a sequence of peers that come up within seconds, so it looks often; listing a bucket ten
// times a second for longer would cost money, so a long wait looks at the pace of the running replica.
const (
	bootPause  = 100 * time.Millisecond
	longPause  = 2 * time.Second
	keepPause  = 10 * time.Second
	bootWindow = 15 * time.Second
	errorPause = 500 * time.Millisecond
)

// Claim is the part of the boot before there are certificates: it ends when this replica can have some, because the record
// has a bundle, or because this replica holds the newest claim and is the one to make it.
func (m *Membership) Claim(ctx context.Context) (holder bool, err error) {
	holder = false
	err = m.loop(ctx, func(f Facts, o Observation) bool {
		holder = o.Record == Rs && o.Mine
		return f.RecordErr == nil && (f.Record.Bundle > 0 || holder)
	})
	return holder, err
}

// Settle is the rest of the boot: it ends when the member runs, knows a leader and has applied all that was committed when it
// looked, as a voter or as the learner that it has to be.
func (m *Membership) Settle(ctx context.Context) error {
	return m.loop(ctx, func(f Facts, _ Observation) bool {
		if !f.Directory.Running || m.agent.Phase != PhaseStarted {
			return false
		}
		s, err := m.Status(ctx)
		return err == nil && s.Leader != 0 && s.Applied > 0 && s.Applied >= s.Committed
	})
}

// WaitVoter waits until the member is a voter whose client port serves, at most for d.
func (m *Membership) WaitVoter(ctx context.Context, d time.Duration) {
	for end := time.Now().Add(d); time.Now().Before(end); {
		if s, err := m.Status(ctx); err == nil && !s.Learner && s.Ready {
			return
		}
		if sleep(ctx, 50*time.Millisecond) != nil {
			return
		}
	}
}

// loop observes, decides and acts until done, asked before each decision, says so.
func (m *Membership) loop(ctx context.Context, done func(Facts, Observation) bool) error {
	begin := time.Now()
	for {
		f := m.observe(ctx)
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		o := Classify(f)
		if done(f, o) {
			m.show(f, Plan{})
			return nil
		}
		plan := Decide(f.Now, o)
		m.strangerSince = o.StrangerSince
		m.show(f, plan)
		pause := time.Duration(0)
		switch plan.Act {
		case ActKeep, ActWait, ActHalt:
			pause = bootPause
			if time.Since(begin) > bootWindow {
				pause = longPause
			}
		default:
			m.cfg.Log.Info("step", "row", plan.Row.String(), "act", string(plan.Act), "reason", plan.Reason)
			if err := m.act(ctx, f, plan); err != nil {
				m.cfg.Log.Warn("step failed", "row", plan.Row.String(), "act", string(plan.Act), "err", err.Error())
				pause = errorPause
			}
		}
		if err := sleep(ctx, pause); err != nil {
			return err
		}
	}
}

func sleep(ctx context.Context, d time.Duration) error {
	if d <= 0 {
		return ctx.Err()
	}
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return fmt.Errorf("interrupted: %w", context.Cause(ctx))
	case <-t.C:
		return nil
	}
}
