package acts

import (
	"slices"

	"github.com/quorate/quorate/etcdmember/table"
	"github.com/quorate/quorate/internal/record"
)

// What a person does in the walk: snapshots (the duty's work), orders, and at the end what the waits ask for.

// person gives an order, or the snapshot duty has its turn.
func (w *world) person(v *vm) {
	f := table.HistoryOf(table.Facts{Now: w.now, Record: w.view})
	w.overrideUnusable()
	n := w.random.IntN(10)
	if w.sizes {
		n -= w.random.IntN(2) * 4 // fewer restores
	}
	switch {
	case w.sizes && n < 2 && w.asks > 0 && f.Formed != nil:
		w.orderSize()
	case n < 5:
		w.save(v)
	case w.asks == 0 || f.Formed == nil:
	case n < 7:
		w.orderFrom(v)
	case n < 8:
		if len(w.snapshots) > 0 {
			w.orderSnapshot(v, w.snapshots[w.random.IntN(len(w.snapshots))])
		}
	case n < 9:
		w.obeyOffer(v)
	default:
		w.takeBack()
	}
}

// orderFrom orders a restore from a VM's directory, as `quorate restore` would show it.
func (w *world) orderFrom(v *vm) bool {
	f := table.HistoryOf(table.Facts{Now: w.now, Record: w.view}).Formed
	d := v.disk.dir
	if f == nil || !w.restorable(v, f) || v.ghost || !v.on || v.suspended || v.blind {
		return false
	}
	r := &record.RestoreOrder{Ends: f.Number, Replica: places[v.place], Term: d.log[d.commit-1].term,
		Commit: uint64(d.commit) * indexUnit,
		From:   record.Source{Kind: record.SourceDirectory, MemberID: d.id, DiskID: v.disk.id}}
	w.asks--
	w.order(record.Order{Kind: record.OrderRestore, By: "person", Restore: r}, w.shows(r, false))
	return true
}

// restorable: a person would restore from the VM's directory: it is valid, or holds all that the member ever wrote,
// though agent.json is lost or the disk is a copy, which nobody but that person can know.
func (w *world) restorable(v *vm, f *record.Epoch) bool {
	d := v.disk.dir
	if d == nil || d.cid != f.Outcome.Formed.ClusterID || d.commit == 0 || d.corrupt || d.page {
		return false
	}
	return d.version == w.ever[d.who()] || table.Classify(w.facts(v)).Local == table.L1
}

// takeBack withdraws the newest order to restore, accepted or not, unless it is carried out already.
func (w *world) takeBack() {
	r := table.HistoryOf(table.Facts{Now: w.now, Record: w.view}).Orders.Restore
	if r == nil || r.Verdict != nil || r.By != "person" {
		return
	}
	w.takeBacks--
	w.order(record.Order{Kind: record.OrderWithdraw, By: "person", Withdraws: r.Number}, promise{})
	if w.chance(50) { // the command writes the verdict, too, where it is not interrupted
		w.writeVerdict(nil, r.Number, false)
	}
}

// orderSnapshot orders a restore from a snapshot of the newest formed epoch on a VM.
func (w *world) orderSnapshot(v *vm, s saved) bool {
	f := table.HistoryOf(table.Facts{Now: w.now, Record: w.view}).Formed
	if s.Epoch != f.Number || v.ghost {
		return false
	}
	r := &record.RestoreOrder{Ends: f.Number, Replica: places[v.place], From: record.Source{Kind: record.SourceSnapshot,
		Snapshot: s.Name}}
	w.asks--
	w.order(record.Order{Kind: record.OrderRestore, By: "person", Restore: r}, w.shows(r, false))
	return true
}

// obeyOffer gives the order that a replica offers. Where it says that the survivors hold everything, that must be so;
// and a snapshot is offered only where nothing newer is left.
func (w *world) obeyOffer(v *vm) {
	if !v.on || v.etcd != nil || w.unreadable(v) != nil || v.busy() {
		return
	}
	o := table.Classify(w.facts(v))
	if o.Record != table.Rf || o.Remote == table.Quorum {
		return
	}
	switch {
	case o.Survivors22 == table.PolicyOffers:
		w.asks--
		w.order(record.Order{Kind: record.OrderRestore, By: "person, as offered", Restore: o.Names.PolicyOrder},
			w.shows(o.Names.PolicyOrder, true))
	case o.SnapshotOffered && o.Remote == table.Nobody:
		s := w.policy().Snapshot
		w.checkOffer(v, s.Name)
		w.orderSnapshot(v, w.snapshot(s.Name))
	}
}

// ending: the newest formed epoch ends, or has ended, and no newer one is formed.
func (w *world) ending() bool {
	h := table.HistoryOf(table.Facts{Now: w.now, Record: w.view})
	return h.Formed != nil && (h.Formed.Closed != nil || h.Orders.Restore != nil)
}

// sourceHolds: a restore is ordered, and its source is where the order says, so that it must come to its end without
// another word.
func (w *world) sourceHolds() bool {
	h := table.HistoryOf(table.Facts{Now: w.now, Record: w.view})
	r := h.Orders.Restore
	if r == nil {
		return false
	}
	v := w.inPlace(r.Restore)
	if v == nil || w.foreign(v) {
		return false
	}
	if r.Restore.From.Kind == record.SourceSnapshot {
		return true
	}
	if o := w.by.observe(w.facts(v)); o.Local == table.L2 && (v.disk.agentErr == nil || v.disk.dir.page) {
		return false
	}
	for _, d := range append(slices.Clone(v.disk.archives), v.disk.dir) {
		if d != nil && d.id == r.Restore.From.MemberID && !d.corrupt && !d.page && d.version == w.ever[d.who()] &&
			v.disk.id == r.Restore.From.DiskID {
			return true
		}
	}
	return false
}

// foreign: it waits with another replica's disk, and can do nothing before that is put right.
func (w *world) foreign(v *vm) bool {
	return v.disk.dir != nil && v.disk.agent.Replica != places[v.place]
}

func (w *world) inPlace(r *record.RestoreOrder) *vm {
	for _, v := range w.vms {
		if places[v.place] == r.Replica && !v.ghost {
			return v
		}
	}
	return nil
}

// rescue is what a person does when nothing else helps: the newest snapshot, or the directory that reaches furthest.
func (w *world) rescue() bool {
	h := table.HistoryOf(table.Facts{Now: w.now, Record: w.view})
	if h.Formed == nil || w.sourceHolds() {
		return false
	}
	var best *vm
	for _, v := range w.vms {
		d := v.disk.dir
		if d == nil || !w.restorable(v, h.Formed) {
			continue
		}
		if best == nil || d.upToDate(best.disk.dir) {
			best = v
		}
	}
	if best != nil {
		if !best.on { // it was stopped for a restore that is not to be had any more
			w.boot(best)
		}
		return w.orderFrom(best)
	}
	for _, s := range slices.Backward(w.snapshots) {
		on := slices.IndexFunc(w.vms, func(v *vm) bool { return v.on && !w.foreign(v) })
		if s.Epoch == h.Formed.Number && on >= 0 {
			return w.orderSnapshot(w.vms[on], s)
		}
	}
	return false
}
