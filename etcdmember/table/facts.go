package table

import (
	"net/netip"
	"slices"
	"time"

	"github.com/quorate/quorate/internal/record"
	"github.com/quorate/quorate/internal/replica"
)

// Facts is everything that was read before a decision: values only, already read, with no judgement in them. Classify
// makes an Observation of it.
type Facts struct {
	Now time.Time
	// Me is who this VM is and Cluster the configured name of its cluster.
	Me      replica.Identity
	Cluster string
	// DiskID is the Compute API's id of the data disk that is mounted; empty: not known.
	DiskID string
	// Disk is what stands between us and the data disk, Directory what was found on it.
	Disk      DiskFacts
	Directory Directory
	// Agent is agent.json; the zero value where there is none. AgentErr: it is there but cannot be read.
	Agent    AgentFile
	AgentErr error
	// Record is one listing of the record; RecordErr: it could not be read, which is different from an empty View.
	Record    record.View
	RecordErr error
	// Snapshots are those in the record, oldest first, listed only where a restore is in sight; SnapshotsErr: they
	// could not be listed.
	Snapshots    []record.Snapshot
	SnapshotsErr error
	// Tries is what this agent has tried, and how that came out.
	Tries Tries
	// Beats are the newest marks that were observed, by member and by the boot that wrote them.
	Beats map[BeatKey]Beat
	// ListedBefore are the entries of the linearizable list of the observation before this one, by id, with their
	// names: that list is older than Record is.
	ListedBefore map[record.MemberID]string
	// Answers has one entry for each address that was asked, the own member's too while it runs.
	Answers []Answer
	// Compute is what the Compute API said.
	Compute Compute
	// Room is how full the data disk is, asked only where no member runs here, or a step failed for want of space.
	Room Room
	// ClusterVersion is etcd's cluster version as a peer said it, MemberVersion the lowest of the members that
	// answered, EtcdVersion ours: "3.7.3". Empty: not known.
	ClusterVersion, MemberVersion, EtcdVersion string
	// PeersAsked: those that answered were asked on their peer ports too, and say their ClusterVersion where that went
	// well.
	PeersAsked bool
	Policy     Policy
	// Preflight is why this VM is not fit to seed (room on the disk, ports, binaries); nil: it is.
	Preflight error
	// StartAnyway: an operator ran start-anyway, as root on this VM, for a record that cannot be read.
	StartAnyway bool
	// Superseded: an earlier observation of this boot found that this replica is superseded.
	Superseded bool
	// Alone is how long the member has run, observation after observation, without that anybody answered through its
	// quorum, itself included. Unheard is how long it has heard of no leader while somebody did.
	Alone, Unheard time.Duration
	// StrangerSince is Observation.StrangerSince of the observation before this one.
	StrangerSince time.Time
}

// DiskFacts is what was found about the data disk before anything on it was read.
type DiskFacts struct {
	// Wanted is the configured device name, empty where none is configured. Mounted says that it is mounted at the data
	// directory.
	Wanted  string
	Mounted bool
	// DataDir is the data directory.
	DataDir string
}

// Directory is what the etcd directory holds. While the own member runs it is not read: only Running is set, and
// MemberID, ClusterID, Term, LastIndex, Voters and Learners where the member itself says them.
type Directory struct {
	// Running: the own etcd child has the directory open.
	Running bool
	// Leaderless: it runs, and says that it hears of no leader. Silent: it says nothing, because etcd has not opened
	// its log and its database yet.
	Leaderless, Silent bool
	// Exists says that there is a directory with anything in it. An empty one counts as absent.
	Exists bool
	// Marker says that a seed or a restore finished building it.
	Marker bool
	// ReadErr is why it could not even be read (an I/O error, a permission), which says nothing of what it holds.
	ReadErr error
	// OpenErr is why the WAL or the database cannot be opened or is not valid; nil: both are.
	OpenErr error
	// ClusterID and MemberID are the WAL's own metadata.
	ClusterID, MemberID record.MemberID
	// Term is the newest one that the member has seen, which a member that nobody votes for raises by itself; LastTerm
	// and LastIndex are of the last entry: they say who holds more. Commit is the index that was known to be committed.
	Term, LastTerm, LastIndex, Commit uint64
	// Voters and Learners are the configuration where the log begins, which is the newest snapshot of etcd's own;
	// Changes are all that the log holds, committed or not. Of a running member Voters and Learners are the applied
	// ones, and the rest is not known.
	Voters, Learners []record.MemberID
	Changes          []record.ConfigChange
	// End is how etcd has ended on this directory in this boot, where it did so by itself.
	End MemberEnd
	// Archives are the directories that were archived on this disk, read only where a restore is in sight.
	Archives []Archive
}

// Reach says how far a question to one address came.
type Reach int

// From nothing to a linearizable answer.
const (
	// ReachNothing: refused, unreachable, or silent for 2 s.
	ReachNothing Reach = iota
	// ReachTCP: the port accepted a connection, which is all that can be known without certificates.
	ReachTCP
	// ReachAnswers: it speaks, but gave no linearizable member list.
	ReachAnswers
	// ReachLinearizable: it answered a linearizable member list.
	ReachLinearizable
)

// Answer is what one address said.
type Answer struct {
	// Place and InstanceID are whom the record or the Compute API expects there; Address is what was asked.
	replica.Place
	InstanceID string
	Address    netip.Addr
	Reach      Reach
	// ClusterID and Members are the answer. With ReachAnswers, Members is the member's own (serializable) list or nil.
	ClusterID record.MemberID
	Members   []Member
	// Removed: it answered our member's id with 410, gone.
	Removed bool
	// Acknowledged is the newest log entry that this disk's member is known to have acknowledged, where this is the
	// leader; 0: not known.
	Acknowledged uint64
	// Version is its etcd version, ClusterVersion the one that its cluster has agreed on; empty: not said.
	Version, ClusterVersion string
	// Database is the size of its database in bytes; 0: not said. Leads: it says that it leads.
	Database int64
	Leads    bool
}

// Member is one entry of etcd's member list.
type Member struct {
	ID record.MemberID
	// Name is <zone>.<name>.<instance id>; empty until the member has started and published it.
	Name     string
	PeerURLs []string
	Learner  bool
}

// Started says that the member has published its name. That it has not does not prove that it never ran.
func (m Member) Started() bool { return m.Name != "" }

// Compute is two listings of the cluster's instances and disks, 10 s apart. First is the older one.
type Compute struct {
	First, Second Listing
	// Runs says, by instance id, since which listing all of them say the same that no running VM is said to be: that it
	// is absent, or stopped.
	Runs map[string]Run
}

// Listing is one whole answer of the Compute API.
type Listing struct {
	// Time is by this replica's clock, ServerTime by the API's, in which it says when a VM was stopped; zero: it did
	// not say.
	Time, ServerTime time.Time
	// Err: there is no answer, and the slices mean nothing.
	Err       error
	Instances []Instance
	// Disks are the ids of all data disks; DisksErr: they could not be listed.
	Disks    []string
	DisksErr error
	// Users are the VMs that each of these disks is attached to, by its id. A disk that is gone has none.
	Users map[string][]replica.Place
}

// Instance is one VM of this cluster as the Compute API lists it.
type Instance struct {
	replica.Place
	InstanceID string
	// Status is what the Compute API says: RUNNING, TERMINATED, ...
	Status string
	// LastStop is when the VM was last stopped, by the API's clock; zero: not said.
	LastStop time.Time
}

// Policy is what the configuration allows and wants.
type Policy struct {
	// Replicas is the wanted number where no order says otherwise.
	Replicas int
	// Survivors turns row 22 on.
	Survivors bool
	// Snapshot is the newest verified snapshot of the newest formed epoch; nil: there is none.
	Snapshot *SnapshotRef
}

// SnapshotRef names one verified snapshot in the record.
type SnapshotRef struct {
	Name     string
	Epoch    uint64
	Revision int64
	Time     time.Time
}

// AsRead adds to what a running member says what was read of its directory when it was stopped, as long as that
// explains the configuration that it applies now. What it has written since is not known, so this may only ever keep a
// policy from acting: one that acts stops it and reads again.
func (d Directory) AsRead(before Directory) Directory {
	s := survivor{voters: before.Voters, changes: before.Changes, commit: d.Commit}
	sorted := func(ids []record.MemberID) []record.MemberID { return slices.Sorted(slices.Values(ids)) }
	if before.MemberID == d.MemberID && before.ClusterID == d.ClusterID &&
		slices.Equal(sorted(s.certain()), sorted(d.Voters)) {
		d.Voters, d.Learners, d.Changes = before.Voters, before.Learners, before.Changes
	}
	return d
}

// AddDisk adds a disk that exists, with the VMs that it is attached to.
func (l *Listing) AddDisk(d replica.Disk) {
	l.Disks, l.Users[d.ID] = append(l.Disks, d.ID), d.Users
}
