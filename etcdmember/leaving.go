package etcdmember

import (
	"context"
	"slices"
	"time"

	"github.com/quorate/quorate/etcdmember/leader"
	"github.com/quorate/quorate/etcdmember/table"
	"github.com/quorate/quorate/internal/record"
)

// OrderToLeave is the order, not yet done, because of which this replica's member is removed soon: it leaves, or it is
// the second of two and gives its vote up. The running member's last round found it; 0: there is none, or it cannot be
// followed now. It may be called at any time.
func (m *Membership) OrderToLeave() uint64 { return m.leaves.Load() }

// SayDrained says on that order that this replica serves nobody any more. etcd's leader waits for that for a while
// before it removes the member.
func (m *Membership) SayDrained(ctx context.Context, order uint64) error {
	_, _, err := m.cfg.Record.AcceptOrder(ctx, order, record.Accepted{By: m.cfg.Me.MemberName(), Time: time.Now()})
	return err
}

// noteLeaving notes whether this replica is about to leave by order. A record that cannot be read, or that was rolled
// back, says nothing of it, nor does a member that knows no leader.
func (k *keeper) noteLeaving(f table.Facts, s table.MemberStatus) {
	h := table.HistoryOf(f)
	if f.RecordErr != nil || h.Ahead() || s.Leader == 0 {
		return
	}
	n := uint64(0)
	if o := h.Orders.Left(k.cfg.Me.Place); o != nil && o.Done == nil {
		n = k.toLeave(f, s, *o)
	} else if o := h.ToCopy(s.Members); o != nil && s.Leader != s.MemberID {
		n = k.toCopy(f, h, *o)
	}
	k.leaves.Store(n)
}

// toCopy is the order's number, if the leader is about to have it followed: nothing pauses it, and the snapshot that
// comes first is there. Who stands aside already goes on with that when the snapshot grows old.
func (k *keeper) toCopy(f table.Facts, h table.History, o record.Order) uint64 {
	saved := f.Policy.Snapshot
	young := saved != nil && f.Now.Sub(saved.Time) <= leader.SnapshotYoung
	if h.Orders.Paused || !young && k.leaves.Load() != o.Number {
		return 0
	}
	return o.Number
}

// toLeave is the order's number, if the leader can follow it: without this member the voters that answer would be a
// quorum (leader, view.leave). Where they are none the replica goes on serving. One that stands aside already does that
// only when it has been so for a while: an answer may be late.
func (k *keeper) toLeave(f table.Facts, s table.MemberStatus, o record.Order) uint64 {
	switch {
	case goesWithout(f, s):
		k.leftAt = f.Now
		return o.Number
	case k.leaves.Load() == o.Number && f.Now.Sub(k.leftAt) < leader.StaysDrained && anotherVotes(s):
		return o.Number
	}
	return 0
}

// anotherVotes: this member is not the only voter, which never leaves.
func anotherVotes(s table.MemberStatus) bool {
	return slices.ContainsFunc(s.Members, func(m table.Member) bool { return !m.Learner && m.ID != s.MemberID })
}

// goesWithout: there is a leader, so a learner can go where another member votes. A voter leaves a quorum behind, which
// the only one cannot.
func goesWithout(f table.Facts, s table.MemberStatus) bool {
	voters, answer := 0, 0
	for _, m := range s.Members {
		switch {
		case m.ID == s.MemberID && m.Learner:
			return true
		case m.ID == s.MemberID || m.Learner:
			continue
		}
		voters++
		place, _, ok := table.ParseMemberName(m.Name)
		if ok && slices.ContainsFunc(f.Answers, func(a table.Answer) bool {
			return a.Place == place && a.Reach >= table.ReachAnswers
		}) {
			answer++
		}
	}
	return voters > 0 && answer >= table.QuorumOf(voters)
}
