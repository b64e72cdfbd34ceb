package snapshot

import (
	"fmt"
	"slices"
	"time"

	"github.com/quorate/quorate/etcdmember/leader"
	"github.com/quorate/quorate/etcdmember/table"
	"github.com/quorate/quorate/internal/record"
	"github.com/quorate/quorate/internal/replica"
)

// Facts are what the duty of saving snapshots is decided on.
type Facts struct {
	Now      time.Time
	Interval time.Duration
	Record   record.View
	// Me and Leader are member ids; Members the applied list.
	Me, Leader record.MemberID
	Members    []table.Member
}

// Turn says when this replica saves the next snapshot.
type Turn struct {
	// At is when its turn comes, if nobody has saved one before; zero: it has none.
	At time.Time
	// Due is when the first replica's turn comes.
	Due time.Time
	// Why is WhySchedule, or the order that a snapshot goes before.
	Why string
	// Newest is the newest snapshot of the open epoch; its Name is empty where there is none.
	Newest record.Taken
	// Formed is when the open epoch was formed.
	Formed time.Time
}

// Decide needs no lease, and so no apiserver: the record says when the newest snapshot was taken, and all
// replicas read it. The voters take turns in the order of their ids, the leader last. One whose turn comes and who
// finds no newer snapshot saves one. Two that save at once, because one took longer than a turn or knows another
// leader, do double work and no harm: their names differ.
func Decide(f Facts) Turn {
	epoch := f.Record.Open()
	if epoch == nil {
		return Turn{}
	}
	t := Turn{Why: WhySchedule, Newest: newestSnapshot(f.Record, epoch.Number, f.Now), Formed: epoch.Outcome.Time}
	if f.Leader == 0 {
		return t // nobody can save one, and what there is matters most now
	}
	t.Due = t.Newest.Time.Add(f.Interval)
	if t.Newest.Name == "" {
		t.Due = epoch.Outcome.Time.Add(min(firstSnapshot, f.Interval))
	}
	step := scheduleStep
	if o, ok := f.orderBefore(t.Newest.Time); ok && o.Time.Before(t.Due) {
		t.Due, t.Why, step = o.Time, fmt.Sprintf("before order %d (%s)", o.Number, o.Kind), orderStep
	}
	rank := slices.Index(turns(f.Members, f.Leader), f.Me)
	if rank < 0 {
		return t
	}
	t.At = t.Due.Add(time.Duration(rank) * step)
	return t
}

// turns are the voters in the order of their turns.
func turns(members []table.Member, leader record.MemberID) (out []record.MemberID) {
	for _, m := range members {
		if !m.Learner && m.Started() && m.ID != leader {
			out = append(out, m.ID)
		}
	}
	slices.Sort(out)
	return append(out, leader)
}

// orderBefore is the newest planned change that a snapshot goes before and that the newest one is too old for. Only an
// order in force is planned: not one that was withdrawn, unless the withdrawal was, nor one that a newer word on the
// subject took back. Who is no member any more has left: etcd's list knows that before the record does, and with the
// one who left another's turn would come at once.
func (f Facts) orderBefore(newest time.Time) (out record.Order, ok bool) {
	states := table.OrderStates(f.Record.Orders, f.Now)
	for _, o := range f.Record.Orders {
		planned := o.Kind == record.OrderLeave && f.mayBeMember(o.Place) ||
			o.Kind == record.OrderReplicas && o.Replicas < len(f.Members)
		if o.Time.After(f.Now) {
			o.Time = f.Now // by the clock of a person's machine
		}
		if planned && states[o.Number].State == table.OrderInForce && o.Time.Sub(newest) > leader.SnapshotYoung {
			out, ok = o, true
		}
	}
	return out, ok
}

// mayBeMember says whether a place is in etcd's list, or an entry is there whose place is not known yet.
func (f Facts) mayBeMember(p *replica.Place) bool {
	return p == nil || slices.ContainsFunc(f.Members, func(m table.Member) bool {
		place, _, ok := table.ParseMemberName(m.Name)
		return !ok || place == *p
	})
}

// newestSnapshot is the newest snapshot of an epoch that was taken by now. One of the future was saved by a VM whose
// clock was wrong: it must not keep everybody from saving until its time has come.
func newestSnapshot(v record.View, epoch uint64, now time.Time) (newest record.Taken) {
	for _, t := range v.Taken {
		if t.Epoch == epoch && t.Time.After(newest.Time) && t.Time.Sub(now) <= clockSkew {
			newest = t
		}
	}
	return newest
}

// NewestOfFormed is the newest snapshot of the newest formed epoch, as the rows want it; nil: there is none.
func NewestOfFormed(v record.View, now time.Time) *table.SnapshotRef {
	if t := newestSnapshot(v, record.NumberOf(v.NewestFormed()), now); t.Name != "" {
		return &table.SnapshotRef{Name: t.Name, Epoch: t.Epoch, Revision: t.Revision, Time: t.Time}
	}
	return nil
}
