package etcdmember

import (
	"context"
	"time"

	"github.com/quorate/quorate/etcdmember/snapshot"
)

// SnapshotTurn decides the duty on what was observed last; interval is the time between two snapshots. ok is false
// where there is nothing to decide on: no member runs, or the record was not read yet.
func (m *Membership) SnapshotTurn(ctx context.Context, now time.Time, interval time.Duration) (turn snapshot.Turn,
	ok bool) {
	seen := m.reported.record()
	s, err := m.own.lately(ctx)
	if err != nil || seen == nil || s.MemberID == 0 {
		return snapshot.Turn{}, false
	}
	return snapshot.Decide(snapshot.Facts{Now: now, Interval: interval, Record: *seen, Me: s.MemberID,
		Leader: s.Leader, Members: s.Members}), true
}
