package etcdmember

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/quorate/quorate/internal/local"
	"github.com/quorate/quorate/internal/record"
)

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
	// Revision is the newest that the member's storage has told of: while it commits to a slow disk, an earlier one.
	// Alarms are those that stand.
	Revision int64   `json:"revision,omitempty"`
	Alarms   []Alarm `json:"alarms,omitempty"`
	// Members are as this member has applied them.
	Members []Member `json:"members"`
	// Progress is what the leader knows of each member; empty elsewhere.
	Progress map[record.MemberID]PeerProgress `json:"progress,omitempty"`
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

// statusTimeout bounds the question for the status. The child is on this machine: one second is a hang.
const statusTimeout = time.Second

// ReadStatus asks the child how its member is. An error means that no child answers.
func ReadStatus(ctx context.Context, socket string) (MemberStatus, error) {
	return readStatus(ctx, socket, "/status")
}

// readStreams is ReadStatus with PeerProgress.StreamsActive filled.
func readStreams(ctx context.Context, socket string) (MemberStatus, error) {
	return readStatus(ctx, socket, "/status?streams")
}

func readStatus(ctx context.Context, socket, path string) (s MemberStatus, err error) {
	ctx, cancel := context.WithTimeout(ctx, statusTimeout)
	defer cancel()
	if err := local.Call(ctx, socket, http.MethodGet, path, &s); err != nil {
		return MemberStatus{}, fmt.Errorf("ask the member's status: %w", err)
	}
	return s, nil
}

// Alive asks the child whether its member could do without another start, for as long as ctx lets it. A slow disk is no
// reason for one.
func Alive(ctx context.Context, socket string) error {
	var stuck *local.Refusal
	err := local.Call(ctx, socket, http.MethodGet, "/alive", nil)
	if errors.As(err, &stuck) {
		return fmt.Errorf("the member is stuck: %w", err)
	}
	if err != nil {
		return fmt.Errorf("ask the member whether it is alive: %w", err)
	}
	return nil
}

// HandOver asks the child to move the leadership to the best other voter, if it has it. It returns nil when the member
// is not the leader (any more), or is alone.
func HandOver(ctx context.Context, socket string) error {
	return postHandOver(ctx, socket, "/hand-over")
}

// handOverTo is HandOver to one member and no other.
func handOverTo(ctx context.Context, socket string, to record.MemberID) error {
	return postHandOver(ctx, socket, "/hand-over?to="+to.String())
}

// postHandOver waits for as long as ctx lets it: a transfer takes up to an election time-out.
func postHandOver(ctx context.Context, socket, path string) error {
	if err := local.Call(ctx, socket, http.MethodPost, path, nil); err != nil {
		return fmt.Errorf("hand over leadership: %w", err)
	}
	return nil
}
