package acts

import (
	"fmt"
	"slices"

	"github.com/quorate/quorate/etcdmember/table"
	"github.com/quorate/quorate/internal/record"
)

// Restores in the walk: orders, snapshots, and what a restored history holds of the one before it.

// birth is what a restored directory was made of: a cluster, and the terms of the entries of its log that it holds.
type birth struct {
	from  record.MemberID
	terms []uint64
	order uint64 // by which
}

// saved is a verified snapshot.
type saved struct {
	table.SnapshotRef
	birth
	// whole: what was acknowledged before is in it, as snapshot.Save sees to. The walk saves others, too.
	whole bool
}

// promise is what an order showed to whoever gave it: what a restore by it holds at least.
type promise struct {
	birth
	all bool // everything that was ever acknowledged
}

// terms of the first n entries of a log.
func (d *dir) terms(n int) []uint64 {
	var out []uint64
	for _, e := range d.log[:n] {
		out = append(out, e.term)
	}
	return out
}

// order writes an order under the next number.
func (w *world) order(o record.Order, p promise) {
	o.Number, o.Time = uint64(len(w.view.Orders)+1), w.now
	w.view.Orders = append(w.view.Orders, o)
	w.promises[o.Number] = p
	w.log("order %d by %s: %s %s", o.Number, o.By, o.Kind, spell(o))
}

func spell(o record.Order) string {
	if r := o.Restore; r != nil {
		return fmt.Sprintf("ends %d from %s %s%s on %s term %d commit %d", r.Ends, r.From.Kind, r.From.Snapshot,
			r.From.MemberID, r.Replica, r.Term, r.Commit)
	}
	return fmt.Sprint(o.Withdraws, o.Replicas, o.Place, o.MemberID)
}

// shows is what an order to restore shows: the snapshot, or the log of the directory as it is now.
func (w *world) shows(r *record.RestoreOrder, all bool) promise {
	p := promise{all: all}
	if r.From.Kind == record.SourceSnapshot {
		p.birth = w.snapshot(r.From.Snapshot).birth
		return p
	}
	for _, v := range w.vms {
		if d := v.disk.dir; d != nil && places[v.place] == r.Replica && d.id == r.From.MemberID &&
			len(d.log) > len(p.terms) {
			p.birth = birth{from: d.cid, terms: d.terms(min(len(d.log), int(r.Commit/indexUnit)))}
		}
	}
	return p
}

func (w *world) snapshot(name string) saved {
	i := slices.IndexFunc(w.snapshots, func(s saved) bool { return s.Name == name })
	if i < 0 {
		return saved{}
	}
	return w.snapshots[i]
}

// save takes a snapshot of a member: what it has applied.
func (w *world) save(v *vm) {
	f := table.HistoryOf(table.Facts{Now: w.now, Record: w.view}).Formed
	if f == nil || v.etcd == nil || v.etcd.cid != f.Outcome.Formed.ClusterID || v.etcd.commit == 0 ||
		w.unreadable(v) != nil {
		return
	}
	s := saved{table.SnapshotRef{Name: fmt.Sprintf("s%d", w.next()), Epoch: f.Number, Revision: int64(v.etcd.commit),
		Time: w.now},
		birth{from: v.etcd.cid, terms: v.etcd.terms(v.etcd.commit)}, v.etcd.commit >= len(w.acked[v.etcd.cid])}
	w.snapshots = append(w.snapshots, s)
	if !slices.Contains(w.view.Snapshots, f.Number) {
		w.view.Snapshots = append(w.view.Snapshots, f.Number)
	}
}

// policy is the configuration, with the newest snapshot of the newest formed epoch.
func (w *world) policy() table.Policy {
	p := table.Policy{Replicas: w.places, Survivors: w.survivors}
	f := table.HistoryOf(table.Facts{Now: w.now, Record: w.view}).Formed
	for i := range w.snapshots {
		if s := &w.snapshots[i]; s.Epoch == record.NumberOf(f) && (p.Snapshot == nil ||
			s.Revision > p.Snapshot.Revision) {
			p.Snapshot = &s.SnapshotRef
		}
	}
	return p
}

// listed are the snapshots as the record lists them.
func (w *world) listed() (out []record.Snapshot) {
	for _, s := range w.snapshots {
		out = append(out, record.Snapshot{Name: s.Name, Epoch: s.Epoch, Revision: s.Revision, Time: s.Time,
			Written: s.Time, ClusterID: s.from, Term: s.terms[len(s.terms)-1], Index: uint64(len(s.terms)) * indexUnit})
	}
	return out
}

// writeVerdict writes the verdict on an order to restore; the first one stays.
func (w *world) writeVerdict(v *vm, n uint64, closing bool) {
	for i := range w.view.Orders {
		o := &w.view.Orders[i]
		if o.Number != n || o.Verdict != nil {
			continue
		}
		if closing {
			w.checkSilence(v, o.Restore.Ends)
		}
		o.Verdict = &record.Verdict{Closing: closing, Withdrawn: !closing, Time: w.now}
		w.log("order %d is settled, closing %v", n, closing)
	}
}

// checkSilence: whoever counts as silent runs nothing that could acknowledge anything, when it counts (S1).
func (w *world) checkSilence(v *vm, epoch uint64) {
	e := w.epoch(epoch)
	for _, u := range w.vms {
		if u != v && u.etcd != nil && !u.fenced && u.etcd.cid == e.Outcome.Formed.ClusterID {
			if u.said == "ABSENT" && u.ghost && w.unreadable(u) != nil {
				panic(limit{}) // the API has lost it, another VM has its name, and it cannot reach the record
			}
			w.fail("S1", "epoch %d is to be closed while %s runs member %s", epoch, u.id, u.etcd.id)
		}
	}
}

// restored reads the source, a surviving directory whole: its commit index is raised to its last entry.
func (w *world) restored(v *vm, p table.Plan) *dir {
	d := &dir{id: record.MemberID(v.place+1)<<40 | record.MemberID(p.Epoch)<<32, term: 1}
	d.log = []logEntry{{term: 1, kind: addVoter, id: d.id, place: v.place}}
	d.commit, d.conf = 1, conf{}.apply(d.log[0])
	d.snapAt, d.first = 1, 1 // it begins with a database, and no log says what is in that
	if p.Source.Kind == record.SourceSnapshot {
		d.birth = w.snapshot(p.Source.Snapshot).birth
		d.birth.order = p.OrderNumber
		d.birth.terms = d.birth.terms[:w.by.read(len(d.birth.terms), len(d.birth.terms))]
		return d
	}
	for _, from := range append(slices.Clone(v.disk.archives), v.disk.dir) {
		if from == nil || from.id != p.Source.MemberID || from.corrupt || from.page {
			continue
		}
		n := w.by.read(from.commit, len(from.log))
		if n > len(d.birth.terms) {
			d.birth, d.flipped = birth{from.cid, from.terms(n), p.OrderNumber}, from.flipped
			if w.by.keepsAlarms {
				d.conf.alarms = from.conf.alarms
			}
		}
	}
	if d.birth.from == 0 {
		return nil
	}
	return d
}

// read is how much of its source a restore reads.
func (v variant) read(commit, last int) int {
	if v.reads == nil {
		return last
	}
	return v.reads(commit, last)
}

// clusterOf is the id of the cluster that a token makes.
func (w *world) clusterOf(token string) record.MemberID {
	if w.tokens[token] == 0 {
		w.tokens[token] = record.MemberID(0xc000 + len(w.tokens))
	}
	return w.tokens[token]
}

// checkRestored compares a restored history, once it is formed, with what was acknowledged in the one before and with
// what its order showed.
func (w *world) checkRestored(e *record.Epoch, d *dir) {
	before := w.formedBelow(e.Number)
	if before == 0 {
		if d.birth.from != 0 {
			w.fail("S1", "epoch %d is restored from nothing that was formed", e.Number)
		}
		return
	}
	if d.birth.from != before {
		w.fail("S1", "epoch %d goes on from cluster %s, and not from %s", e.Number, d.birth.from, before)
	}
	p := w.promises[d.birth.order]
	n := len(w.acked[before])
	if !p.all {
		n = min(n, len(p.terms))
	}
	for i, term := range w.acked[before][:n] {
		shown := p.all || p.terms[i] == term
		if shown && (i >= len(d.birth.terms) || d.birth.terms[i] != term) {
			w.fail("S2", "the restore of epoch %d by order %d lacks the acknowledged entry %d, which it was to hold",
				e.Number, d.birth.order, i+1)
		}
	}
}

// formedBelow is the cluster of the newest formed epoch below this one; 0: there is none.
func (w *world) formedBelow(n uint64) record.MemberID {
	var id record.MemberID
	for _, e := range w.view.Epochs {
		if e.Number < n && e.Outcome != nil && e.Outcome.Formed != nil {
			id = e.Outcome.Formed.ClusterID
		}
	}
	return id
}

// closed: the epoch of this cluster has ended.
func (w *world) closed(cid record.MemberID) bool {
	return slices.ContainsFunc(w.view.Epochs, func(e record.Epoch) bool {
		return e.Closed != nil && e.Outcome != nil && e.Outcome.Formed != nil && e.Outcome.Formed.ClusterID == cid
	})
}
