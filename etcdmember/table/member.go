package table

import "github.com/quorate/quorate/internal/record"

// MemberStatus is how the member in the child is, from inside: raft's own view, which no client port shows, and which
// is there before the client port serves.
type MemberStatus struct {
	MemberID  record.MemberID `json:"memberID"`
	ClusterID record.MemberID `json:"clusterID"`
	// Leader is 0 while the member knows of none.
	Leader  record.MemberID `json:"leader"`
	Learner bool            `json:"learner"`
	// Ready says that the client port serves; Removed that the cluster has removed this member.
	Ready   bool `json:"ready"`
	Removed bool `json:"removed"`
	// Term, Committed and Applied are raft's.
	Term      uint64 `json:"term"`
	Committed uint64 `json:"committed"`
	Applied   uint64 `json:"applied"`
	// Revision is the newest that the member's storage has reported: while it commits to a slow disk, an earlier one.
	// Alarms are those that stand.
	Revision int64   `json:"revision,omitempty"`
	Alarms   []Alarm `json:"alarms,omitempty"`
	// Members are as this member has applied them.
	Members []Member `json:"members"`
	// Progress is what the leader knows of each member; empty elsewhere.
	Progress map[record.MemberID]PeerProgress `json:"progress,omitempty"`
	Database Database                         `json:"database,omitzero"`
}

// Database is how large a member's database is, in bytes.
type Database struct {
	// Bytes is its file's size, InUse what of that holds something; the rest is used again before the file grows.
	Bytes int64 `json:"bytes"`
	InUse int64 `json:"inUseBytes"`
	// Quota is what the member was started with: no write is taken that would have the file grow beyond it.
	Quota int64 `json:"quotaBytes"`
}

// PeerProgress is the leader's knowledge of one member, go.etcd.io/raft's tracker.Progress.
type PeerProgress struct {
	// Match is the newest entry known to be in the member's log.
	Match uint64 `json:"match"`
	// State is probe, replicate or snapshot.
	State string `json:"state"`
	// RecentActive says that the member was heard of within the last election time-out.
	RecentActive bool `json:"recentActive"`
	// StreamsActive says that the connection to the member is up (etcd's gauge etcd_network_active_peers); false where
	// it was not asked for.
	StreamsActive bool `json:"streamsActive"`
	Learner       bool `json:"learner"`
	// PendingSnapshot is the index of a snapshot on its way to the member; 0: none.
	PendingSnapshot uint64 `json:"pendingSnapshot,omitempty"`
}

// Successor is the best other voter for a leader that stops; 0: none is heard of. alone: there is none.
func (s MemberStatus) Successor() (best record.MemberID, alone bool) {
	alone = true
	for id, p := range s.Progress {
		if id == s.MemberID || p.Learner {
			continue
		}
		alone = false
		if p.RecentActive && (best == 0 || p.Match > s.Progress[best].Match) {
			best = id
		}
	}
	return best, alone
}

// Alarm is etcd's alarm on one member, or on id 0 where no majority says who is corrupt.
type Alarm struct {
	MemberID record.MemberID `json:"memberID"`
	Kind     AlarmKind       `json:"kind"`
}

// AlarmKind is what an alarm is about.
type AlarmKind string

// The alarms of etcd.
const (
	AlarmCorrupt AlarmKind = "CORRUPT"
	AlarmNoSpace AlarmKind = "NOSPACE"
)
