package leader

import (
	"slices"
	"time"

	"github.com/quorate/quorate/etcdmember/table"
	"github.com/quorate/quorate/internal/record"
	"github.com/quorate/quorate/internal/replica"
)

// ProgressState is how the leader's raft feeds a follower: also "probe", for which no row asks.
type ProgressState string

// The states of raft's progress tracker that rows ask for.
const (
	ProgressReplicate ProgressState = "replicate"
	ProgressSnapshot  ProgressState = "snapshot"
)

// Ring is everything that the leader loop read before one step: the linearizable list with the leader's own
// view of each member, the record and the Compute API.
type Ring struct {
	// At is when it was read: rows that need two polls compare it with the one before.
	At time.Time
	// Me and Cluster are this replica and its cluster's name: a list of instances counts only where it contains this
	// one.
	Me      replica.Identity
	Cluster string
	// Leader is the own member's id. LastIndex is the leader's last log entry.
	Leader    record.MemberID
	LastIndex uint64
	// ClusterVersion is the one that etcd's members have agreed on, the lowest of their own; empty: none yet.
	ClusterVersion string
	Members        []RingMember
	// Record is one listing; RecordErr: it could not be read, and nothing is done.
	Record    record.View
	RecordErr error
	// Ahead: agent.json here has seen more than the record holds, so the record was rolled back: what it says of orders
	// and replicas is the past.
	Ahead   bool
	Compute table.Compute
	Alarms  []table.Alarm
	// Policy is the configuration's; an order may say otherwise.
	Policy table.Policy
	// Balanced: replicas are behind a load balancer, which one that leaves leaves first.
	Balanced bool
	// SnapshotInFlight: the leader is sending its state to somebody, or did less than 30 s ago.
	SnapshotInFlight bool
	// CompactedSince: history was compacted a moment ago, so that doing it again would give nothing up.
	CompactedSince bool
	// SnapshotAt is when the newest verified snapshot was taken; zero: none.
	SnapshotAt time.Time
}

// RingMember is one member as the leader sees it.
type RingMember struct {
	table.Member
	// Match, State, RecentActive are the leader's raft progress; PendingSnapshot is the index of a snapshot on its way,
	// 0: none.
	Match           uint64
	State           ProgressState
	RecentActive    bool
	PendingSnapshot uint64
	// Version is a learner's own, as its peer port says it; empty: not known. It is not asked of voters.
	Version string
	// StreamsActive: both peer streams to it are up.
	StreamsActive bool
	// UnreachableSince is when RecentActive or the streams were last lost; zero: it is reachable.
	UnreachableSince time.Time
	// MovedAt is when Match last grew.
	MovedAt time.Time
	// FreedAt is when the others became a quorum without it: first seen in this leadership, or again after they had
	// been none for StaysDrained or longer. Shorter gaps leave it as it was.
	FreedAt time.Time
	// DBSize, DBInUse and Quota are bytes as the member's status said; 0: not known. DefragmentedAt is when we last did
	// it.
	DBSize, DBInUse, Quota int64
	DefragmentedAt         time.Time
	// Hash is the member's HashKV at HashRevision, the same revision for all, of the same compacted history; 0: not
	// known.
	Hash         uint32
	HashRevision int64
}

// reachable: the leader hears of it and both streams to it are up. The leader itself always is.
func (r Ring) reachable(m RingMember) bool {
	return m.ID == r.Leader || m.RecentActive && m.StreamsActive
}

// connected counts the reachable voters other than the one left out (0: none is).
func (r Ring) connected(without record.MemberID) (n int) {
	for _, m := range r.Members {
		if !m.Learner && m.ID != without && r.reachable(m) {
			n++
		}
	}
	return n
}

// restHasQuorum: without this voter the others are a quorum of themselves, connected now.
func (r Ring) restHasQuorum(id record.MemberID) bool {
	voters := 0
	for _, m := range r.Members {
		if !m.Learner {
			voters++
		}
	}
	return voters > 1 && r.connected(id) >= table.QuorumOf(voters-1)
}

// Needs reports whether the others that are connected would be no quorum without this member.
func (r Ring) Needs(m RingMember) bool { return !m.Learner && !r.restHasQuorum(m.ID) }

// Own is the leader's entry.
func (r Ring) Own() table.Member {
	i := slices.IndexFunc(r.Members, func(m RingMember) bool { return m.ID == r.Leader })
	if i < 0 {
		return table.Member{}
	}
	return r.Members[i].Member
}
