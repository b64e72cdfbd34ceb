package etcdmember

import (
	"cmp"
	"context"
	"crypto/tls"
	"io"
	"io/fs"
	"log/slog"
	"net/netip"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"github.com/quorate/quorate/certs"
	"github.com/quorate/quorate/etcdmember/acts"
	"github.com/quorate/quorate/etcdmember/datadir"
	"github.com/quorate/quorate/etcdmember/hosts"
	"github.com/quorate/quorate/etcdmember/member"
	"github.com/quorate/quorate/etcdmember/restoredir"
	"github.com/quorate/quorate/etcdmember/table"
	"github.com/quorate/quorate/internal/durable"
	"github.com/quorate/quorate/internal/record"
	"github.com/quorate/quorate/internal/replica"
	"github.com/quorate/quorate/internal/waits"
)

// Record is what the membership needs of the record. Every create is write-once: it returns what the record holds
// afterwards, which may be another's, and whether that is ours. View tells "absent" (in the view) from "could not be
// read" (the error). The implementation tries transient faults again; we observe again after any error.
type Record interface {
	acts.Record
	// NoteDisk says the id of an incarnation's data disk that was not known when it was taken; View then has it in the
	// incarnation.
	NoteDisk(ctx context.Context, p replica.Place, number uint64, d record.DataDisk) (record.DataDisk, bool, error)
	CompleteOrder(ctx context.Context, number uint64, d record.Done) (record.Done, bool, error)
	WriteMark(ctx context.Context, m record.Mark) error
	// Snapshots lists what is whole, oldest first; ReadSnapshot writes one as etcd sent it, and fails where it is not
	// that.
	Snapshots(ctx context.Context) ([]record.Snapshot, error)
	ReadSnapshot(ctx context.Context, name string, to io.Writer) (record.Snapshot, error)
}

// ComputeAPI lists what exists in the project. An error is never taken for an empty list. It is called from one
// goroutine.
type ComputeAPI interface {
	// VMs lists the cluster's VMs. at is when the API answered, by its own clock; zero: it did not say.
	VMs(ctx context.Context) (vms []replica.VM, at time.Time, err error)
	// VM is the one that has a place's name, whatever it is labelled; found is false only where the API says so of this
	// very name.
	VM(ctx context.Context, p replica.Place) (vm replica.VM, found bool, err error)
	Disks(ctx context.Context) ([]replica.Disk, error)
	// Disk finds a disk by its id, whatever it is labelled; found false is the API's word about this very id.
	Disk(ctx context.Context, id string) (d replica.Disk, found bool, err error)
}

// Child is the process in which the member runs. Start returns once the process runs with the configuration at path;
// Stop once it, and all that it started, have exited; both may be called again and again.
type Child interface {
	Start(ctx context.Context, configPath string) error
	Stop(ctx context.Context) error
	Running() bool
	// Ended says how it last ended by itself, for a person; empty: it has not, or nothing is known of it.
	Ended() string
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
	// Waits tracks what is waited for; nil: New makes a tracker.
	Waits *waits.Tracker
	// DiskID returns the Compute API's id of the data disk; nil, or empty: it is not known yet. Once known it stays the
	// same.
	DiskID func() string
	// Preflight returns why this VM is not fit to seed; nil: it is.
	Preflight func(ctx context.Context) error
	// MakeDirectory does the work in a process of its own, which etcd's code may end (restoredir.Job.Make).
	MakeDirectory func(ctx context.Context, work restoredir.Job) error
	// AtStep is called before and after each step of an act, for tests that end the agent there; nil in production.
	AtStep func(s acts.Step, m acts.Moment)
	// Tests is the zero value in production.
	Tests   TestSettings
	Record  Record
	Compute ComputeAPI
	Child   Child
	// StartAnyway reports whether a person said so, as root on this VM and for this boot; nil: nobody can.
	StartAnyway func() bool
}

// TestSettings are what tests with several members on one machine have otherwise.
type TestSettings struct {
	// Local is where the member's clients of this machine come in; zero: loopback.
	Local netip.Addr
	// History is how much of it a compaction leaves; 0: historyWindow.
	History time.Duration
	// Deaf: the agent is not told what its member acknowledged.
	Deaf bool
}

// Membership looks after this replica's place in the etcd cluster: it observes, decides (Decide) and takes one step,
// and then observes again. Nothing in it remembers a decision: after any error, time-out or crash the next observation
// says where things stand.
type Membership struct {
	cfg Config
	// files is how everything below writes what has to survive a power cut.
	files *files
	own   *ownMember
	// disk is what the data disk says, reported what people are told.
	disk     *diskState
	reported *lastReported
	// markWaits are for marks that cannot be written.
	markWaits *waits.Source
	// Only the loop (Claim, Settle, Keep) touches these.
	observer   *observer
	reconciler *reconciler

	purger *purger
	// leaves is the order to leave, which Keep notes and anybody may ask for.
	leaves atomic.Uint64
	// history is how much of it a compaction leaves.
	history time.Duration
}

// files is how the membership writes what has to survive a power cut. Tests cut the power at each of its steps.
type files struct {
	write  func(path string, data []byte, perm fs.FileMode) error
	rename func(from, to string) error
	remove func(path string) error
}

// New opens the membership of this replica. It reads agent.json, if the data disk is there, and nothing else.
func New(cfg Config) *Membership {
	if cfg.HostsFile == "" {
		cfg.HostsFile = hosts.Path
	}
	if cfg.Waits == nil {
		cfg.Waits = waits.New(cfg.Log, "")
	}
	m := &Membership{cfg: cfg, files: &files{durable.WriteFile, durable.Rename, os.Remove},
		history: cmp.Or(cfg.Tests.History, historyWindow),
		reported: &lastReported{waits: cfg.Waits.Source("member", "row", 0),
			leaderWaits: cfg.Waits.Source("leader", "row", leaderPatience)},
		markWaits: cfg.Waits.Source("marks", "row", 0)}
	archives := &datadir.Archives{Dir: cfg.dir().Archives()}
	steps := &diskSteps{cfg: cfg, files: m.files, archives: archives.Read}
	m.own = &ownMember{cfg: cfg, local: cmp.Or(cfg.Tests.Local, member.Loopback)}
	m.own.served = m.own.waitServing
	m.disk = newDiskState(cfg, m.files, m.own, acts.NewAgentStore(steps.writeAgent), m.reported)
	m.own.starting = m.disk.noteStart
	m.observer = newObserver(cfg, m.own, m.disk, archives, m.reported)
	choosing := &sync.Mutex{} // an archive is not accepted as the source of a restore and purged at once
	m.reconciler = &reconciler{cfg: cfg, observer: m.observer, disk: m.disk, steps: steps, reported: m.reported,
		actor: acts.Actor{
			Log: cfg.Log, Me: cfg.Me, Record: cfg.Record, Disk: steps, Agent: m.disk.agent,
			DiskID: m.observer.lists.ownDisk, Member: m.own,
			Cluster: &changes{cluster: cfg.Cluster.Name, dnsName: cfg.dnsName(), tls: cfg.TLS},
			Now:     time.Now, Choosing: choosing, AtStep: cfg.AtStep,
		}}
	m.purger = &purger{cfg: cfg, files: m.files, archives: archives, disk: m.disk, own: m.own, reported: m.reported,
		choosing: choosing}
	m.disk.open()
	return m
}

// Established reports whether etcd has run on this very disk as this replica's member, so that the disk holds all that
// it needs to run again and the record alone has to be asked, or not even that (rows 1, 25, 28). It is asked before the
// first of the loops.
func (m *Membership) Established() bool {
	return m.disk.established()
}

// Status asks the running member; an error means that none answers.
func (m *Membership) Status(ctx context.Context) (table.MemberStatus, error) {
	return m.own.Status(ctx)
}

// StatusSocket is where the child answers.
func (m *Membership) StatusSocket() string { return m.cfg.statusSocket() }

// at takes one step that is no act's.
func (c *Config) at(s acts.Step, do func() error) error { return s.Take(c.AtStep, do) }

func (c *Config) dir() datadir.Dir     { return datadir.Dir(c.Cluster.Etcd.DataDir) }
func (c *Config) statusSocket() string { return member.SocketIn(c.RunDir) }
func (c *Config) configPath() string   { return member.ConfigOf(c.statusSocket()) }
func (c *Config) dnsName() string      { return c.Me.DNSName(c.Cluster.Name) }
