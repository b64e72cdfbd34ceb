package acts

import (
	"maps"
	"slices"
	"time"

	"github.com/quorate/quorate/etcdmember/table"
	"github.com/quorate/quorate/internal/record"
	"github.com/quorate/quorate/internal/replica"
)

// Orders other than restores in the walk: who leaves, how many are wanted, pauses, and overrides.

// orderSize gives one of them.
func (w *world) orderSize() {
	given := table.OrdersOf(w.view.Orders, 0, w.now)
	o := record.Order{By: "person"}
	switch w.random.IntN(6) {
	case 0, 1:
		p := places[w.random.IntN(w.places)]
		if given.Left(p) != nil || w.staying() < 2 {
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

// overrideUnusable gives an override of row 30, which is no way to start what cannot be used.
func (w *world) overrideUnusable() {
	if id := w.unusable(); id != 0 && !table.OrdersOf(w.view.Orders, 0, w.now).Overrides(30, id) {
		w.order(record.Order{Kind: record.OrderOverride, Row: 30, MemberID: id, By: "person"}, promise{})
	}
}

// unusable is a member whose directory cannot be used; 0: there is none.
func (w *world) unusable() record.MemberID {
	for _, v := range w.vms {
		if v.row == 30 && v.disk.dir != nil {
			return v.disk.dir.id
		}
	}
	return 0
}

// wrong is a member that differs from what most voters hold, where etcd says that members differ; 0: there is none.
// Voters first: who leads sends its data to those that join. Where all that run agree, and are a quorum, it is the one
// that does not run.
func (w *world) wrong() record.MemberID {
	l := w.reigning()
	if l == nil || len(l.etcd.conf.alarmed(table.AlarmCorrupt)) == 0 {
		return 0
	}
	held, data := map[int]int{}, map[record.MemberID]int{}
	for _, v := range w.vms {
		if v.etcd == nil || v.newer != nil || v.etcd.cid != l.etcd.cid || !l.etcd.conf.has(v.etcd.id) {
			continue
		}
		data[v.etcd.id] = v.etcd.flipped
		if slices.Contains(l.etcd.conf.voters, v.etcd.id) {
			held[v.etcd.flipped]++
		}
	}
	right := 0
	for _, d := range slices.Sorted(maps.Keys(held)) {
		if held[d] > held[right] {
			right = d
		}
	}
	for _, id := range slices.Concat(l.etcd.conf.voters, l.etcd.conf.learners) {
		if d, runs := data[id]; runs && d != right {
			return id
		}
	}
	for _, id := range l.etcd.conf.voters {
		if _, runs := data[id]; !runs && held[right] >= table.QuorumOf(len(l.etcd.conf.voters)) {
			return id
		}
	}
	return 0
}

// nameWrong is a person's word on members that differ (row 47): which one is wrong, or, where that has not helped, a
// restore from one that is right.
func (w *world) nameWrong() {
	id := w.wrong()
	if !slices.ContainsFunc(w.vms, func(v *vm) bool {
		return v.leaderBlocked != nil &&
			v.leaderBlocked.Name == "corrupt"
	}) {
		return
	}
	l, given := w.reigning(), table.OrdersOf(w.view.Orders, 0, w.now)
	if l == nil {
		return
	}
	n := len(l.etcd.conf.voters)
	switch {
	case id == 0 && n > 1:
		return
	case !given.Overrides(47, id) && n > 1:
		w.order(record.Order{Kind: record.OrderOverride, Row: 47, MemberID: id, By: "person"}, promise{})
		return
	case n > 1 && w.connected(l, id) >= table.QuorumOf(n-1) && !given.Paused:
		w.fail("S5", "a person named member %s, and it is not replaced", id)
	}
	for _, v := range w.vms {
		if v.etcd != nil && v.etcd.id != id && w.orderFrom(v) {
			return
		}
	}
}

// complete writes that an order has been carried out.
func (w *world) complete(p table.Plan) bool {
	for i := range w.view.Orders {
		if o := &w.view.Orders[i]; o.Number == p.OrderNumber && o.Done == nil {
			o.Done = &record.Done{Time: w.now, What: p.Reason}
		}
	}
	return true
}

// staying counts the places that are not ordered to leave.
func (w *world) staying() int {
	given := table.OrdersOf(w.view.Orders, 0, w.now)
	return len(slices.DeleteFunc(slices.Clone(places[:w.places]),
		func(p replica.Place) bool { return given.Left(p) != nil }))
}

// leaves: the place is ordered to leave.
func (w *world) leaves(place int) bool {
	return table.OrdersOf(w.view.Orders, 0, w.now).Left(places[place]) != nil
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
	given := table.OrdersOf(w.view.Orders, 0, w.now)
	if given.Paused {
		w.order(record.Order{Kind: record.OrderResume, By: "person"}, promise{})
	}
	for p := range w.places {
		if o := given.Left(places[p]); o != nil && w.chance(30) {
			w.order(record.Order{Kind: record.OrderWithdraw, By: "person", Withdraws: o.Number}, promise{})
		}
	}
}

// ordered: a person's word removes the member: its place is to leave, two replicas are wanted, or it is declared gone
// or wrong.
func (w *world) ordered(place int, id record.MemberID) bool {
	given := table.OrdersOf(w.view.Orders, 0, w.now)
	return given.Left(places[place]) != nil || given.Replicas == 2 || given.Overrides(42, id) || given.Overrides(47, id)
}

// moveLeader hands leadership to a voter that has everything.
func (w *world) moveLeader(l *vm, to record.MemberID) bool {
	if l.etcd == nil || !l.etcd.leads {
		return false
	}
	u := w.peer(l, to)
	return u != nil && u.etcd.upToDate(l.etcd.dir) && w.elect(u)
}
