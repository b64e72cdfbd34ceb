package order

import (
	"time"

	"github.com/quorate/quorate/etcdmember/table"
	"github.com/quorate/quorate/internal/record"
	"github.com/quorate/quorate/internal/replica"
)

// Restore is a record as a restore uses it: the epoch that is to end, and what the next one can begin from.
type Restore struct {
	Record record.View
	// Ends is the epoch; the zero value where none was ever formed.
	Ends record.Epoch
	// Snapshots are those in the record, oldest first. Nothing but a choice of the source needs them.
	Snapshots []record.Snapshot
	// Now is by this machine's clock.
	Now time.Time
}

// RestoreOf is a restore that ends the newest formed epoch of a record, without the snapshots.
func RestoreOf(v record.View, now time.Time) Restore {
	r := Restore{Record: v, Now: now}
	if e := v.NewestFormed(); e != nil {
		r.Ends = *e
	}
	return r
}

// InForce is the order to restore by which the agents go: the newest that ends the epoch, by their own rule
// (table.OrdersOf). One that was accepted and is being withdrawn stays in force until its verdict, because the epoch
// may be closed at any moment. by is the order that withdraws it; 0: none does.
func (r Restore) InForce() (o record.Order, by uint64, ok bool) {
	followed := table.OrdersOf(r.Record.Orders, r.Ends.Number, r.Now).Restore
	if followed == nil {
		return record.Order{}, 0, false
	}
	if s := NewLog(r.Record, r.Now).State(followed.Number); s.State == table.OrderBeingWithdrawn {
		by = s.By
	}
	return *followed, by, true
}

// ToFollow is the order in force that nobody withdraws: it has to be followed, and no other given.
func (r Restore) ToFollow() (record.Order, bool) {
	o, by, ok := r.InForce()
	return o, ok && by == 0
}

// FurthestMark is how far the epoch's quorum is known to have come.
func (r Restore) FurthestMark() (furthest record.Mark, ok bool) {
	for _, m := range r.Record.Marks {
		if m.Epoch == r.Ends.Number && (!ok || m.Applied > furthest.Applied) {
			furthest, ok = m, true
		}
	}
	return furthest, ok
}

// NotStopped are the instances of which neither they nor a person have said that they stopped, and for which the
// restorer waits. The agents also ask witnesses, which the record does not hold.
func (r Restore) NotStopped(restorer replica.Place) []record.Incarnation {
	var its string
	if i := r.Record.Last(restorer); i != nil {
		its = i.InstanceID
	}
	return table.NotStopped(r.Record, &r.Ends, r.saidSilent(), its)
}

// saidSilent are the instances of which a person has said that they run nothing any more, in the order that is in
// force: the agents do not hear what an earlier order says.
func (r Restore) saidSilent() []string {
	if o, _, ok := r.InForce(); ok {
		return o.Restore.Silent
	}
	return nil
}

// VMStopped: `quorate restore --stop-vms` has noted that it stopped the instance, for an order that ends the epoch.
func (r Restore) VMStopped(i record.Incarnation) bool {
	_, stopped := table.OrdersOf(r.Record.Orders, r.Ends.Number, r.Now).VMStopped(i, r.Ends.Number)
	return stopped
}

// instance is the newest incarnation of the epoch that an instance took.
func (r Restore) instance(id string) (found record.Incarnation, known bool) {
	for _, p := range r.Record.Places() {
		for _, i := range r.Record.Replicas[p] {
			if i.InstanceID == id && i.Epoch == r.Ends.Number {
				found, known = i, true
			}
		}
	}
	return found, known
}

// IsNewest: no other instance has followed at its place.
func (r Restore) IsNewest(i record.Incarnation) bool {
	return i.InstanceID == r.Record.Last(i.Place).InstanceID
}

// settled: an order to restore is carried out, and waits for nobody any more.
func (r Restore) settled(o record.Order) bool {
	return r.Ends.Closed != nil || o.Verdict != nil && o.Verdict.Closing
}

// Progress is how far a restore has come.
type Progress struct {
	Stage Stage
	// Order is the one that is in force, or is being withdrawn by By; the zero value where there is none.
	Order record.Order
	By    uint64
	// Next is the epoch that follows, from StageBuilding on.
	Next record.Epoch
	// NotStopped are those for whom the order waits.
	NotStopped []record.Incarnation
}

// Stage is a stage of a restore.
type Stage string

// The stages of a restore, in their order.
const (
	// StageNone: no order wants it any more.
	StageNone Stage = "none"
	// StageWithdrawing: its order is being taken back.
	StageWithdrawing Stage = "withdrawing"
	// StageOrdered: the restorer has not yet accepted it.
	StageOrdered Stage = "ordered"
	// StageWaiting: the restorer waits until nobody can serve the old epoch.
	StageWaiting Stage = "waiting"
	// StageClosing: the verdict is there, so it cannot be withdrawn any more.
	StageClosing Stage = "closing"
	// StageEnded: the old epoch has ended.
	StageEnded Stage = "ended"
	// StageBuilding: the next epoch is claimed.
	StageBuilding Stage = "building"
	// StageFormed: the next epoch is formed.
	StageFormed Stage = "formed"
)

// Follow is the record as the end of an epoch is followed in it, and how far that has come.
func Follow(v record.View, ends uint64, now time.Time) (Restore, Progress) {
	r := Restore{Record: v, Now: now}
	var p Progress
	for _, e := range v.Epochs {
		formed := e.Formed() != nil
		switch {
		case e.Number == ends:
			r.Ends = e
		case e.Number > ends && p.Next.Outcome == nil && (formed || e.Outcome == nil && e.Claim != nil):
			p.Next = e
		}
	}
	o, by, ordered := r.InForce()
	p.Order = o
	switch {
	case p.Next.Outcome != nil:
		p.Stage = StageFormed
	case p.Next.Claim != nil:
		p.Stage = StageBuilding
	case !ordered:
		p.Stage = StageNone
	case r.Ends.Closed != nil:
		p.Stage = StageEnded
	case by != 0:
		p.Stage, p.By = StageWithdrawing, by
	case r.settled(o):
		p.Stage = StageClosing
	case o.Accepted == nil:
		p.Stage = StageOrdered
	default:
		p.Stage, p.NotStopped = StageWaiting, r.NotStopped(o.Restore.Replica)
	}
	return r, p
}
