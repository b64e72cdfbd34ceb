package etcdmember

import (
	"slices"
	"time"

	"github.com/quorate/quorate/internal/record"
	"github.com/quorate/quorate/internal/replica"
)

// Orders other than restores in the walk: who leaves, how many are wanted, pauses, and an override of row 42.

// orderSize gives one of them.
func (w *world) orderSize() {
	given := ordersOf(w.view.Orders, w.now)
	o := record.Order{By: "person"}
	switch w.random.IntN(6) {
	case 0, 1:
		p := places[w.random.IntN(w.places)]
		if given.left(p) != nil || w.staying() < 2 {
			return
		}
		o.Kind, o.Place = record.OrderLeave, &p
	case 2:
		o.Kind, o.Replicas = record.OrderReplicas, 1+w.random.IntN(w.places)
	case 3:
		o.Kind = record.OrderPause
	case 4:
		o.Kind = record.OrderResume
	case 5:
		id := w.unreachable()
		if id == 0 {
			return
		}
		o.Kind, o.Row, o.MemberID = record.OrderOverride, 42, id
	}
	w.asks--
	w.order(o, promise{})
}

// staying counts the places that are not ordered to leave.
func (w *world) staying() int {
	given := ordersOf(w.view.Orders, w.now)
	return len(slices.DeleteFunc(slices.Clone(places[:w.places]), func(p replica.Place) bool { return given.left(p) != nil }))
}

// leaves: the place is ordered to leave.
func (w *world) leaves(place int) bool {
	return ordersOf(w.view.Orders, w.now).left(places[place]) != nil
}

// unreachable is a voter that the leader has not heard of for the time that row 42 waits; 0: there is none.
func (w *world) unreachable() record.MemberID {
	for _, v := range w.vms {
		if v.etcd == nil || !v.etcd.leads {
			continue
		}
		for _, id := range v.etcd.conf.voters {
			if since := v.silent[id]; !since.IsZero() && w.now.Sub(since) > time.Minute {
				return id
			}
		}
	}
	return 0
}

// resume ends a pause, as the waits ask for, and calls back some of those that were to leave.
func (w *world) resume() {
	given := ordersOf(w.view.Orders, w.now)
	if given.paused {
		w.order(record.Order{Kind: record.OrderResume, By: "person"}, promise{})
	}
	for p := range w.places {
		if o := given.left(places[p]); o != nil && w.chance(30) {
			w.order(record.Order{Kind: record.OrderWithdraw, By: "person", Withdraws: o.Number}, promise{})
		}
	}
}

// ordered: a person's word removes the member: its place is to leave, two replicas are wanted, or it is declared gone.
func (w *world) ordered(place int, id record.MemberID) bool {
	given := ordersOf(w.view.Orders, w.now)
	return given.left(places[place]) != nil || given.replicas == 2 || given.overrides(42, id)
}

// moveLeader hands leadership to a voter that has everything.
func (w *world) moveLeader(l *vm, to record.MemberID) bool {
	if l.etcd == nil || !l.etcd.leads {
		return false
	}
	u := w.peer(l, to)
	return u != nil && u.etcd.upToDate(l.etcd.dir) && w.elect(u)
}
