package record

import (
	"net/netip"
	"time"

	"github.com/quorate/quorate/internal/replica"
)

// Inception is inception.json: the cluster was created on purpose. Without it nobody seeds and nobody makes a CA.
// `quorate record init` writes it, never an agent.
type Inception struct {
	UID           string    `json:"uid"`
	Name          string    `json:"name"`
	ProjectNumber string    `json:"projectNumber"`
	Region        string    `json:"region"`
	Time          time.Time `json:"time"`
}

// Claim is epochs/<e>/claim.json: its writer, and nobody else, may form epoch e.
type Claim struct {
	// Token is etcd's initial cluster token: random, so two epochs never have one cluster id.
	Token  string `json:"token"`
	Seeder Seeder `json:"seeder"`
	// MaxLearners is fixed for the epoch: members with different values would apply different memberships.
	MaxLearners int       `json:"maxLearners"`
	Source      Source    `json:"source"`
	Time        time.Time `json:"time"`
}

// Seeder is the VM that claimed an epoch.
type Seeder struct {
	replica.Place
	InstanceID string `json:"instanceID"`
}

// SourceKind says what an epoch is formed from.
type SourceKind string

// The kinds of source.
const (
	SourceEmpty     SourceKind = "empty"
	SourceSnapshot  SourceKind = "snapshot"
	SourceDirectory SourceKind = "directory"
	// SourceRebuilt: the claim was lost, and written again from what disks say, which do not hold its source. Nothing
	// is ever formed from it: it is written after its outcome, so it proves that the epoch was formed.
	SourceRebuilt SourceKind = "rebuilt"
)

// Source says what an epoch is formed from. Order, Member and DiskID are set for every kind but empty and rebuilt.
type Source struct {
	Kind     SourceKind `json:"kind"`
	Order    uint64     `json:"order,omitempty"`
	MemberID MemberID   `json:"memberID,omitempty"`
	DiskID   string     `json:"diskID,omitempty"`
	// Snapshot is the object's name, for a snapshot.
	Snapshot string `json:"snapshot,omitempty"`
}

// Outcome is epochs/<e>/outcome.json: exactly one of the two is set, and because it is one object only one can ever be
// true.
type Outcome struct {
	Formed    *Formed    `json:"formed,omitempty"`
	Abandoned *Abandoned `json:"abandoned,omitempty"`
	Time      time.Time  `json:"time"`
}

// Formed says that the epoch's first member served a linearizable read.
type Formed struct {
	ClusterID MemberID `json:"clusterID"`
	MemberID  MemberID `json:"memberID"`
}

// Abandoned says that the epoch was given up before anything was acknowledged in it.
type Abandoned struct {
	By  string `json:"by"`
	Why string `json:"why"`
}

// Closed is epochs/<e>/closed.json: the restorer ended this epoch.
type Closed struct {
	By    string    `json:"by"`
	Order uint64    `json:"order"`
	Time  time.Time `json:"time"`
}

// Stopped is epochs/<e>/stopped/<zone>.<name>.<k>.json: incarnation k has ended. Its etcd and apiserver have exited,
// and nothing runs under this number again; the replica may go on under a later one. The instance that took the
// incarnation writes it, and nobody else.
type Stopped struct {
	replica.Place
	Incarnation uint64 `json:"incarnation"`
	// InstanceID is the writer's. Earlier versions let a successor write the object of another instance's incarnation:
	// such an object says nothing (Epoch.StoppedBy).
	InstanceID string `json:"instanceID,omitempty"`
	// BootID is the writer's boot; empty: not said by an earlier version.
	BootID string `json:"bootID,omitempty"`
	// MemberID and the log below are set where the disk held a valid directory of the epoch.
	MemberID MemberID `json:"memberID,omitempty"`
	// Term and LastIndex are of the last entry of its log.
	Term        uint64 `json:"term,omitempty"`
	LastIndex   uint64 `json:"lastIndex,omitempty"`
	CommitIndex uint64 `json:"commitIndex,omitempty"`
	// Voters and Learners are the applied configuration; Changes are the configuration changes in the log behind it.
	Voters   []MemberID     `json:"voters,omitempty"`
	Learners []MemberID     `json:"learners,omitempty"`
	Changes  []ConfigChange `json:"changes,omitempty"`
	Time     time.Time      `json:"time"`
}

// ConfigChange is one membership change in a log, not known to be committed.
type ConfigChange struct {
	Index    uint64   `json:"index"`
	Type     string   `json:"type"` // add-voter (also a promotion), add-learner, remove
	MemberID MemberID `json:"memberID"`
}

// Incarnation is replicas/<zone>.<name>/<k>.json: one boot of one VM on one disk in a place.
type Incarnation struct {
	replica.Place
	Number     uint64   `json:"number"`
	InstanceID string   `json:"instanceID"`
	BootID     string   `json:"bootID"`
	Epoch      uint64   `json:"epoch"`
	MemberID   MemberID `json:"memberID,omitempty"`
	// DiskID is the Compute API's id of the data disk. Where it was not known yet, <k>.disk.json says it later.
	DiskID    string       `json:"diskID,omitempty"`
	Addresses []netip.Addr `json:"addresses"`
	Time      time.Time    `json:"time"`
	// EmptyDisk: the data disk held no etcd directory when the incarnation was taken. It decides nothing: the former
	// disk may come back.
	EmptyDisk bool `json:"emptyDisk,omitempty"`
	// Written is when the object was written, by the store's clock.
	Written time.Time `json:"-"`
	// Started is the content of <k>.started.json, which confirms the incarnation; nil while it is pending.
	Started *Started `json:"-"`
}

// Disk is the id of the disk that the incarnation was confirmed on, or else taken on; empty: not known.
func (i Incarnation) Disk() string {
	if i.Started != nil && i.Started.DiskID != "" {
		return i.Started.DiskID
	}
	return i.DiskID
}

// Started is replicas/<zone>.<name>/<k>.started.json: what the incarnation was when its etcd was about to start.
type Started struct {
	Epoch    uint64    `json:"epoch"`
	MemberID MemberID  `json:"memberID,omitempty"`
	DiskID   string    `json:"diskID,omitempty"`
	Time     time.Time `json:"time"`
}

// DataDisk is replicas/<zone>.<name>/<k>.disk.json: the id of the incarnation's data disk, learned after the
// incarnation was taken.
type DataDisk struct {
	DiskID string    `json:"diskID"`
	Time   time.Time `json:"time"`
}

// Mark is marks/<member id>.json, the only object that is overwritten: how far that member has certainly come, and,
// because it is written each 30 s, that its agent lives. It may only ever make an agent refuse.
type Mark struct {
	MemberID MemberID `json:"memberID"`
	Epoch    uint64   `json:"epoch"`
	// BootID is of the boot that wrote it: one instance id can have two living boots after a host error.
	BootID string `json:"bootID,omitempty"`
	// Term and Applied are how far it has come; Time is when that was last more than before, by the writer's clock.
	Term    uint64    `json:"term"`
	Applied uint64    `json:"applied"`
	Time    time.Time `json:"time"`
	// Beat is when this very mark was written, by the writer's clock; Written is the same by the store's.
	Beat    time.Time `json:"beat,omitzero"`
	Written time.Time `json:"-"`
}

// OrderKind is what an operator wants.
type OrderKind string

// The kinds of order; membership.md section 6.
const (
	OrderReplicas OrderKind = "replicas"
	OrderLeave    OrderKind = "leave"
	OrderPause    OrderKind = "pause"
	OrderResume   OrderKind = "resume"
	OrderOverride OrderKind = "override"
	OrderRestore  OrderKind = "restore"
	OrderWithdraw OrderKind = "withdraw"
)

// Order is orders/<n>.json. The newest word on a subject wins.
type Order struct {
	Number uint64    `json:"number"`
	Time   time.Time `json:"time"`
	By     string    `json:"by"`
	Kind   OrderKind `json:"kind"`
	// Replicas is the wanted number, for replicas.
	Replicas int `json:"replicas,omitempty"`
	// Place is whom the order concerns, for leave.
	Place *replica.Place `json:"place,omitempty"`
	// Until ends a pause by itself.
	Until *time.Time `json:"until,omitempty"`
	// Row, MemberID and Reason are an override's.
	Row      int      `json:"row,omitempty"`
	MemberID MemberID `json:"memberID,omitempty"`
	Reason   string   `json:"reason,omitempty"`
	// Restore is a restore's.
	Restore *RestoreOrder `json:"restore,omitempty"`
	// Withdraws is the number of the order that a withdraw takes back.
	Withdraws uint64 `json:"withdraws,omitempty"`
	// Done is the content of <n>.done.json; nil while nobody has completed the order.
	Done *Done `json:"-"`
	// Accepted is the content of <n>.accepted.json, which orders to restore, to leave and for two replicas get; nil
	// while the replica that it is about has not found that it can carry it out, or still serves clients.
	Accepted *Accepted `json:"-"`
	// Verdict is the content of <n>.verdict.json, which only orders to restore get; nil while it is open whether the
	// order is carried out.
	Verdict *Verdict `json:"-"`
	// VMStops are the contents of <n>.vm-stopped.<instance id>.json, by instance id.
	VMStops map[string]VMStop `json:"-"`
}

// RestoreOrder says which epoch a restore ends, from what, and who carries it out.
type RestoreOrder struct {
	Ends    uint64        `json:"ends"`
	From    Source        `json:"from"`
	Replica replica.Place `json:"replica"`
	// Term and Commit are how far the source must reach: the term and the index of an entry.
	Term   uint64 `json:"term,omitempty"`
	Commit uint64 `json:"commit,omitempty"`
	// Newest: a replica that turns out, once it has stopped, to have a longer log than the named one is to be named
	// instead.
	Newest bool `json:"newest,omitempty"`
	// Silent are the ids of instances of which a person says that they run nothing any more, though no witness does.
	Silent []string `json:"silent,omitempty"`
}

// Done is orders/<n>.done.json.
type Done struct {
	By   string    `json:"by"`
	Time time.Time `json:"time"`
	What string    `json:"what,omitempty"`
}

// Accepted is orders/<n>.accepted.json: the replica that an order to restore names has read the source and has room for
// it; until then the order ends nothing. Or the replica whose member an order removes serves nobody any more: the one
// that an order to leave names, or the second of two that gives its vote up.
type Accepted struct {
	By   string    `json:"by"`
	Time time.Time `json:"time"`
}

// Verdict is orders/<n>.verdict.json: one object, so an order to restore is either carried out or taken back, and
// everybody reads the same. The restorer writes Closing before it closes the epoch; Withdrawn is written by whoever
// takes the order back, and by agents that find a withdrawal. Nobody closes an epoch, and nobody that stopped for the
// order starts again, before it has read the verdict back.
type Verdict struct {
	Closing   bool      `json:"closing,omitempty"`
	Withdrawn bool      `json:"withdrawn,omitempty"`
	By        string    `json:"by"`
	Time      time.Time `json:"time"`
}

// VMStop is orders/<n>.vm-stopped.<instance id>.json: an operation of the Compute API that stopped the instance has
// ended without an error. `quorate restore --stop-vms` writes it for the operation that it has given itself.
type VMStop struct {
	InstanceID string    `json:"instanceID"`
	By         string    `json:"by"`
	Time       time.Time `json:"time"`
	// Written is when the object was written, by the store's clock.
	Written time.Time `json:"-"`
}

// Epoch is all that the record holds of one epoch.
type Epoch struct {
	Number  uint64    `json:"number"`
	Claim   *Claim    `json:"claim"` // nil: lost, the record is damaged
	Outcome *Outcome  `json:"outcome"`
	Closed  *Closed   `json:"closed,omitempty"`
	Stopped []Stopped `json:"stopped"`
}

// StoppedBy is the stopped/ object that the incarnation's own instance wrote; nil: there is none. An object that
// another instance wrote for it, as earlier versions did, is none: its writer never ran under the incarnation. One
// without a writer is from before that was noted, when only the instance itself wrote.
func (e *Epoch) StoppedBy(i Incarnation) *Stopped {
	for n := range e.Stopped {
		s := &e.Stopped[n]
		if s.Place == i.Place && s.Incarnation == i.Number && (s.InstanceID == i.InstanceID || s.InstanceID == "") {
			return s
		}
	}
	return nil
}

// View is the whole record as one listing found it: the input of every decision. Slices are sorted by number.
type View struct {
	// Inception is nil where there is none.
	Inception *Inception
	Epochs    []Epoch
	// Replicas holds the incarnations of each place, pending ones too, oldest first.
	Replicas map[replica.Place][]Incarnation
	Marks    map[MemberID]Mark
	Orders   []Order
	// Bundle is the newest generation of the sealed bundle; 0: there is none.
	Bundle uint64
	// Snapshots are the epochs that have at least one snapshot: proof that they were formed.
	Snapshots []uint64
	// Taken are the snapshots that count, oldest first, as far as their names tell: no object is read for them.
	Taken []Taken
}
