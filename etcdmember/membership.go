package etcdmember

import (
	"context"
	"crypto/tls"
	"io"
	"io/fs"
	"log/slog"
	"net/netip"
	"os"
	"sync"
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
	AtStep  func(s acts.Step, m acts.Moment)
	Record  Record
	Compute ComputeAPI
	Child   Child
	// StartAnyway reports whether a person said so, as root on this VM and for this boot; nil: nobody can.
	StartAnyway func() bool
}

// Membership looks after this replica's place in the etcd cluster: it observes, decides (Decide) and takes one step,
// and then observes again. Nothing in it remembers a decision: after any error, time-out or crash the next observation
// says where things stand.
type Membership struct {
	cfg     Config
	disk    disk
	ownDisk *ownDisk
	own     *ownMember
	// mountinfo is the kernel's list of mounts.
	mountinfo string
	// local is where the own member's clients of this machine come in.
	local netip.Addr
	// history is how much of it a compaction leaves.
	history time.Duration
	// served waits for a linearizable read through the own member.
	served func(ctx context.Context) (clusterID, memberID record.MemberID, err error)
	asks   *asker
	// room asks how full the data disk is.
	room func(dir string) (table.Room, error)

	// waits are this replica's own, leaderWaits those of the leader's rows, while the leader is here.
	waits, leaderWaits *waits.Source

	// Only the loop (Claim, Settle, Keep) touches these.
	opened        bool // the data disk is there, and agent.json was read from it
	agent         *acts.AgentStore
	actor         acts.Actor
	directory     *table.Directory
	directoryKey  string          // of what directory was read from
	lastRead      table.Directory // what it was, when the member was last stopped
	keeping       bool            // Keep has begun: the supervisor starts the child again
	lists         *computeLists
	beats         map[table.BeatKey]table.Beat
	superseded    bool                       // in this boot
	listed        map[record.MemberID]string // the newest linearizable list, with the names
	strangerSince time.Time
	tries         table.Tries
	checkedAt     int             // after how many starts the database was last read whole; 0: not in this story
	damage        *datadir.Damage // that it found, until it is written down
	silences      table.Silences

	archives *datadir.Archives
	// choosing keeps an archive from being accepted as the source of a restore and purged at once.
	choosing sync.Mutex

	mu    sync.Mutex
	shown shown
	// seen is the record as it was last read; nil: not yet.
	seen *record.View
	told table.Last
	// recordRead is when the record was last read, steps the acts that were taken.
	recordRead time.Time
	steps      []StepCount
}

// disk is how the membership writes what has to survive a power cut. Tests cut the power at each of its steps.
type disk struct {
	write  func(path string, data []byte, perm fs.FileMode) error
	rename func(from, to string) error
	remove func(path string) error
}

// shown is what Report and its like show of the record, and of the waits of this replica itself.
type shown struct {
	clusterUID  string
	epoch       uint64
	clusterID   record.MemberID
	incarnation uint64
}

// New opens the membership of this replica. It reads agent.json, if the data disk is there, and nothing else.
func New(cfg Config) *Membership {
	if cfg.HostsFile == "" {
		cfg.HostsFile = hosts.Path
	}
	if cfg.Waits == nil {
		cfg.Waits = waits.New(cfg.Log, "")
	}
	m := &Membership{cfg: cfg, disk: disk{durable.WriteFile, durable.Rename, os.Remove},
		mountinfo: "/proc/self/mountinfo", local: member.Loopback, history: historyWindow,
		lists: newComputeLists(cfg.Compute, cfg.Me, cfg.DiskID), beats: map[table.BeatKey]table.Beat{}}
	m.archives = &datadir.Archives{Dir: cfg.dir().Archives()}
	m.asks = newAsker(cfg)
	m.served, m.room = m.waitServing, roomOf
	m.ownDisk = &ownDisk{cfg: cfg, files: &m.disk, archives: m.archives.Read}
	m.own = &ownMember{cfg: cfg, local: m.local, starting: m.noteStart,
		served: func(ctx context.Context) (record.MemberID, record.MemberID, error) { return m.served(ctx) }}
	m.agent = acts.NewAgentStore(m.ownDisk.writeAgent)
	m.actor = m.newActor()
	m.waits = cfg.Waits.Source("member", "row", 0)
	m.leaderWaits = cfg.Waits.Source("leader", "row", besidePatience)
	m.superseded = m.wasSuperseded()
	m.openDisk()
	return m
}

// Established reports whether etcd has run on this very disk as this replica's member, so that the disk holds all that
// it needs to run again and the record alone has to be asked, or not even that (rows 1, 25, 28). It is asked before the
// first of the loops.
func (m *Membership) Established() bool {
	return m.agent.Err == nil && m.agent.File.Phase == table.PhaseStarted && m.agent.File.Replica == m.cfg.Me.Place
}

// Status asks the running member; an error means that none answers.
func (m *Membership) Status(ctx context.Context) (table.MemberStatus, error) {
	return member.ReadStatus(ctx, m.StatusSocket())
}

// StatusSocket is where the child answers.
func (m *Membership) StatusSocket() string { return m.cfg.statusSocket() }

// newActor takes the acts of this membership by the adapters of this machine.
func (m *Membership) newActor() acts.Actor {
	return acts.Actor{
		Log: m.cfg.Log, Me: m.cfg.Me, Record: m.cfg.Record, Disk: m.ownDisk, Agent: m.agent, DiskID: m.lists.ownDisk,
		Member:  m.own,
		Cluster: &changes{cluster: m.cfg.Cluster.Name, dnsName: m.dnsName(), tls: m.cfg.TLS},
		Now:     time.Now, Choosing: &m.choosing, AtStep: m.cfg.AtStep,
	}
}

// noteStart notes that the member is being started: its directory is its own from then on. joins: as one that joins.
func (m *Membership) noteStart(joins bool) {
	m.directory = nil
	m.tries.Starts = m.tries.Starts.Again(joins, time.Now())
}

// act takes the one step of a plan. The caller observes again after it, whatever it returned.
func (m *Membership) act(ctx context.Context, f table.Facts, p table.Plan) error {
	m.directory = nil
	begin := time.Now()
	err := m.actor.Take(ctx, f, p)
	if p.Act == table.ActAccept {
		m.noteAccept(f, p, begin, err)
	}
	return err
}

// at takes one step that is no act's.
func (m *Membership) at(s acts.Step, do func() error) error { return s.Take(m.cfg.AtStep, do) }

func (m *Membership) dnsName() string { return m.cfg.dnsName() }

func (c *Config) dir() datadir.Dir     { return datadir.Dir(c.Cluster.Etcd.DataDir) }
func (c *Config) statusSocket() string { return member.SocketIn(c.RunDir) }
func (c *Config) configPath() string   { return member.ConfigOf(c.statusSocket()) }
func (c *Config) dnsName() string      { return c.Me.DNSName(c.Cluster.Name) }
