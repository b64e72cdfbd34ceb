package etcdmember

import (
	"context"
	"crypto/tls"
	"io"
	"io/fs"
	"log/slog"
	"net/netip"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/quorate/quorate/certs"
	"github.com/quorate/quorate/etcdmember/datadir"
	"github.com/quorate/quorate/etcdmember/hosts"
	"github.com/quorate/quorate/etcdmember/table"
	"github.com/quorate/quorate/internal/durable"
	"github.com/quorate/quorate/internal/record"
	"github.com/quorate/quorate/internal/replica"
)

// Record is what the membership needs of the record. Every create is write-once: it returns what the record holds
// afterwards, which may be another's, and whether that is ours. View tells "absent" (in the view) from "could not be
// read" (the error). The implementation tries transient faults again; we observe again after any error.
type Record interface {
	View(ctx context.Context) (record.View, error)
	CreateClaim(ctx context.Context, epoch uint64, c record.Claim) (record.Claim, bool, error)
	CreateOutcome(ctx context.Context, epoch uint64, o record.Outcome) (record.Outcome, bool, error)
	CreateStopped(ctx context.Context, epoch uint64, s record.Stopped) (record.Stopped, bool, error)
	CreateIncarnation(ctx context.Context, i record.Incarnation) (record.Incarnation, bool, error)
	ConfirmIncarnation(ctx context.Context, p replica.Place, number uint64, s record.Started) (record.Started, bool,
		error)
	// NoteDisk says the id of an incarnation's data disk that was not known when it was taken; View then has it in the
	// incarnation.
	NoteDisk(ctx context.Context, p replica.Place, number uint64, d record.DataDisk) (record.DataDisk, bool, error)
	AcceptOrder(ctx context.Context, number uint64, a record.Accepted) (record.Accepted, bool, error)
	SettleOrder(ctx context.Context, number uint64, v record.Verdict) (record.Verdict, bool, error)
	CompleteOrder(ctx context.Context, number uint64, d record.Done) (record.Done, bool, error)
	WriteMark(ctx context.Context, m record.Mark) error
	CreateClosed(ctx context.Context, epoch uint64, c record.Closed) (record.Closed, bool, error)
	// CreateOrder takes the next free number. After an error the order may be there all the same.
	CreateOrder(ctx context.Context, o record.Order) (record.Order, error)
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
	// DiskID returns the Compute API's id of the data disk; nil, or empty: it is not known yet. Once known it stays the
	// same.
	DiskID func() string
	// Preflight returns why this VM is not fit to seed; nil: it is.
	Preflight func(ctx context.Context) error
	// MakeDirectory does the work in a process of its own, which etcd's code may end (Making.Make).
	MakeDirectory func(ctx context.Context, work Making) error
	// AtStep is called before and after each step of an act, for tests that end the agent there; nil in production.
	AtStep  func(s Step, m Moment)
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
	cfg  Config
	disk disk
	// mountinfo is the kernel's list of mounts.
	mountinfo string
	// local is where the own member's clients of this machine come in.
	local netip.Addr
	// history is how much of it a compaction leaves.
	history time.Duration
	// served waits for a linearizable read through the own member.
	served func(ctx context.Context) (clusterID, memberID record.MemberID, err error)

	// raft asks a member for what it publishes of raft.
	raft func(ctx context.Context, a table.Answer) (raftStatus, error)
	// room asks how full the data disk is.
	room func(dir string) (table.Room, error)

	// Only the loop (Claim, Settle, Keep) touches these.
	opened        bool // the data disk is there, and agent.json was read from it
	agent         table.AgentFile
	agentErr      error // agent.json is there and cannot be read
	unsure        bool  // a write of agent.json failed: what the disk holds is not known
	directory     *table.Directory
	directoryKey  string          // of what directory was read from
	lastRead      table.Directory // what it was, when the member was last stopped
	keeping       bool            // Keep has begun: the supervisor starts the child again
	compute       table.Compute
	vms           []replica.VM         // of the newest list, with their addresses
	instances     map[string]bool      // all that the record ever named
	runs          map[string]table.Run // of lists that say of an instance that it is absent, or stopped
	beats         map[table.BeatKey]table.Beat
	superseded    bool                       // in this boot
	listed        map[record.MemberID]string // the newest linearizable list, with the names
	strangerSince time.Time
	// peerPatience is how long the next question to the peers' ports may take.
	peerPatience time.Duration
	tries        table.Tries
	checkedAt    int             // after how many starts the database was last read whole; 0: not in this story
	damage       *datadir.Damage // that it found, until it is written down
	silences     table.Silences
	waiting      waiting
	adds         int // tries to add this replica to the members

	shelf    sync.Mutex               // guards archives: Keep and PurgeArchives read them
	archives map[string]table.Archive // those that were read: an archive never changes
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
	// shownBeside are the waits of the leader's rows, while the leader is here.
	shownBeside []Wait
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
	blocked     []Wait
}

// New opens the membership of this replica. It reads agent.json, if the data disk is there, and nothing else.
func New(cfg Config) *Membership {
	if cfg.HostsFile == "" {
		cfg.HostsFile = hosts.Path
	}
	m := &Membership{cfg: cfg, disk: disk{durable.WriteFile, durable.Rename, os.Remove},
		mountinfo: "/proc/self/mountinfo", local: loopback, history: historyWindow,
		instances: map[string]bool{}, runs: map[string]table.Run{}, beats: map[table.BeatKey]table.Beat{}}
	m.served, m.raft, m.room = m.waitServing, m.raftStatus, roomOf
	m.superseded = m.wasSuperseded()
	m.openDisk()
	return m
}

// Established reports whether etcd has run on this very disk as this replica's member, so that the disk holds all that
// it needs to run again and the record alone has to be asked, or not even that (rows 1, 25, 28). It is asked before the
// first of the loops.
func (m *Membership) Established() bool {
	return m.agentErr == nil && m.agent.Phase == table.PhaseStarted && m.agent.Replica == m.cfg.Me.Place
}

// Status asks the running member; an error means that none answers.
func (m *Membership) Status(ctx context.Context) (table.MemberStatus, error) {
	return ReadStatus(ctx, m.StatusSocket())
}

// StatusSocket is where the child answers.
func (m *Membership) StatusSocket() string { return SocketOf(m.configPath()) }

// SocketOf is the status socket of the child that runs with the configuration at a path.
func SocketOf(configPath string) string { return filepath.Join(filepath.Dir(configPath), "etcd.sock") }

// ConfigOf is the inverse of SocketOf.
func ConfigOf(socket string) string { return filepath.Join(filepath.Dir(socket), "etcd.json") }

func (m *Membership) etcdDir() string { return filepath.Join(m.cfg.Cluster.Etcd.DataDir, "etcd") }
func (m *Membership) archivesDir() string {
	return filepath.Join(m.cfg.Cluster.Etcd.DataDir, "archive")
}
func (m *Membership) agentPath() string {
	return filepath.Join(m.cfg.Cluster.Etcd.DataDir, "agent.json")
}
func (m *Membership) configPath() string { return ConfigOf(filepath.Join(m.cfg.RunDir, "etcd.sock")) }
func (m *Membership) dnsName() string    { return m.cfg.Me.DNSName(m.cfg.Cluster.Name) }
