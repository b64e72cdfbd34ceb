package acts

import (
	"maps"
	"slices"
	"time"

	"github.com/quorate/quorate/etcdmember/leader"
	"github.com/quorate/quorate/etcdmember/table"
	"github.com/quorate/quorate/internal/record"
)

// Alarms in the walk: databases that are full, and data that differs. Etcd raises an alarm with an entry in its log,
// and refuses writes while one stands. Compaction, defragmentation and the members' hashes are as much of them as the
// rows 46 to 48 see.

// space is the room of a member's database.
type space struct {
	full   bool
	before int // the compactions before it was full: a later one lets a defragmentation give its pages back
}

func (e logEntry) about() table.Alarm { return table.Alarm{MemberID: e.id, Kind: e.alarm} }

func (c conf) alarmed(k table.AlarmKind) []record.MemberID {
	var out []record.MemberID
	for _, a := range c.alarms {
		if a.Kind == k {
			out = append(out, a.MemberID)
		}
	}
	return out
}

// defragment gives back what a compaction has freed.
func (d *dir) defragment() {
	if d.conf.compactions > d.before {
		d.full = false
	}
}

// ownSpace is a learner's tick for its own database.
func (w *world) ownSpace(v *vm) {
	e := v.etcd
	size, inUse, quota := e.sizes()
	s := table.MemberStatus{Database: table.Database{Bytes: size, InUse: inUse, Quota: quota}, Alarms: e.conf.alarms}
	switch {
	case !slices.Contains(e.conf.learners, e.id) || !leader.IsFull(s):
		v.full = time.Time{}
	case v.full.IsZero():
		v.full = w.now
	case leader.DefragmentsItself(w.now, s.Database, v.full, v.emptied):
		w.log("%s defragments itself", v.id)
		v.emptied = w.now
		e.defragment()
	}
}

// sizes of a database as its member's status says them, of a quota of 100.
func (d *dir) sizes() (size, inUse, quota int64) {
	switch {
	case !d.full:
		return 20, 10, 100
	case d.conf.compactions > d.before:
		return 100, 10, 100
	}
	return 100, 99, 100
}

// hash of a member's data at the leader's revision: the same for all whose data is what the log made of it.
func (d *dir) hash() uint32 { return uint32(1 + d.flipped) }

// raiseAlarms is what etcd finds by itself: each member its own full database, the leader members that differ.
func (w *world) raiseAlarms(l *vm) {
	e := l.etcd
	for _, id := range slices.Concat(e.conf.voters, e.conf.learners) {
		if u := w.peer(l, id); l.etcd != nil && u != nil && u.etcd.full {
			w.raise(l, id, table.AlarmNoSpace)
		}
	}
	if l.etcd == nil || len(e.conf.voters) == 1 && len(e.conf.learners) == 0 {
		return
	}
	for _, id := range w.differing(l) {
		w.raise(l, id, table.AlarmCorrupt)
	}
}

func (w *world) raise(l *vm, id record.MemberID, k table.AlarmKind) {
	if l.etcd == nil || slices.Contains(l.etcd.conf.alarms, table.Alarm{MemberID: id, Kind: k}) {
		return
	}
	if w.propose(l, logEntry{kind: raise, id: id, alarm: k}) != refused {
		w.log("alarm %s of member %s", k, id)
	}
}

// differing are the members for which etcd raises CORRUPT: by its one check those that differ from the leader, which it
// takes to be right; by the other those that differ from a majority, and 0 where there is none.
func (w *world) differing(l *vm) (out []record.MemberID) {
	hashes, of := map[uint32]int{}, map[record.MemberID]uint32{}
	for _, id := range slices.Concat(l.etcd.conf.voters, l.etcd.conf.learners) {
		if u := w.peer(l, id); u != nil && u.etcd.commit == l.etcd.commit {
			of[id] = u.etcd.hash()
			if slices.Contains(l.etcd.conf.voters, id) {
				hashes[of[id]]++
			}
		}
	}
	right := l.etcd.hash()
	if byMajority := w.chance(50); byMajority && len(hashes) > 1 {
		right = 0
		for h, n := range hashes {
			if n >= table.QuorumOf(len(l.etcd.conf.voters)) {
				right = h
			}
		}
		if right == 0 {
			return []record.MemberID{0}
		}
	}
	for _, id := range slices.Sorted(maps.Keys(of)) {
		if of[id] != right {
			out = append(out, id)
		}
	}
	return out
}

// alarmed finds what the leader's agent asks the members for, where an alarm stands.
func (w *world) alarmed(v *vm, r *leader.Ring) {
	r.Alarms = v.etcd.conf.alarms
	r.CompactedSince = !v.compacted.IsZero() && w.now.Sub(v.compacted) < compactionCounts
	for i := range r.Members {
		m := &r.Members[i]
		u := w.peer(v, m.ID)
		if u == nil {
			continue
		}
		if len(v.etcd.conf.alarmed(table.AlarmNoSpace)) > 0 {
			m.DBSize, m.DBInUse, m.Quota = u.etcd.sizes()
			m.DefragmentedAt = v.defragmented[m.ID]
		}
		if len(v.etcd.conf.alarmed(table.AlarmCorrupt)) > 0 && u.etcd.commit >= v.etcd.lastWrite() {
			m.Hash, m.HashRevision = u.etcd.hash(), int64(v.etcd.lastWrite())
		}
	}
}

// lastWrite is the leader's revision: the last entry that wrote.
func (d *dir) lastWrite() int {
	for n := d.commit; n > 0; n-- {
		if d.log[n-1].kind == write {
			return n
		}
	}
	return 1
}

// actOnAlarm takes one act of the alarms' rows.
func (w *world) actOnAlarm(v *vm, p table.Plan) {
	switch u := w.peer(v, p.MemberID); p.Act {
	case table.ActDisarm:
		w.propose(v, logEntry{kind: disarm, id: p.Alarm.MemberID, alarm: p.Alarm.Kind})
	case table.ActCompact:
		v.compacted = w.now
		w.propose(v, logEntry{kind: compact})
	case table.ActDefragment:
		v.defragmented[p.MemberID] = w.now
		if u != nil && slices.Contains(v.etcd.conf.voters, p.MemberID) { // etcd refuses it on a learner
			u.etcd.defragment()
		}
	}
}

// checkAlarmAct is what no act for an alarm may do, at the moment of its decision.
func (w *world) checkAlarmAct(l *vm, p table.Plan) {
	c := l.etcd.conf
	switch {
	case p.Act == table.ActDefragment && p.MemberID == l.etcd.id && len(c.voters) > 1:
		w.fail("S3", "the leader %s is defragmented, and serves nothing meanwhile", p.MemberID)
	case p.Act == table.ActDefragment && len(l.etcd.copies) > 0:
		w.fail("S3", "%s is defragmented while a copy of the state is on its way", p.MemberID)
	case p.Act == table.ActDisarm && p.Alarm.Kind == table.AlarmNoSpace:
		for _, v := range w.vms {
			if v.etcd != nil && v.etcd.cid == l.etcd.cid && c.has(v.etcd.id) && v.etcd.full &&
				w.peer(l, v.etcd.id) == v {
				w.fail("S5", "NOSPACE is disarmed while the database of %s, which is in reach, is full", v.etcd.id)
			}
		}
	case p.Act == table.ActDisarm && (p.Alarm.MemberID == 0 || c.has(p.Alarm.MemberID)):
		if !w.oneTruth(l) {
			w.fail("S2", "CORRUPT of %s is disarmed, and the members differ", p.Alarm.MemberID)
		}
	}
}

// said47: a person named a member that is wrong.
func (w *world) said47() bool {
	return slices.ContainsFunc(table.OrdersOf(w.view.Orders, 0, w.now).All, func(o record.Order) bool {
		return o.Kind == record.OrderOverride && o.Row == 47
	})
}

// oneTruth: all voters that the leader reaches hold the same data.
func (w *world) oneTruth(l *vm) bool {
	return !slices.ContainsFunc(l.etcd.conf.voters, func(id record.MemberID) bool {
		u := w.peer(l, id)
		return u != nil && u.etcd.flipped != l.etcd.flipped
	})
}

// outvoted: etcd says that the member is corrupt, and a quorum agrees with each other and differs from it. One that is
// out of reach may be corrupt as well.
func (w *world) outvoted(l *vm, id record.MemberID) bool {
	c := l.etcd.conf
	flipped := map[record.MemberID]int{}
	for _, v := range w.vms {
		d := v.disk.dir // its member may not run at this moment
		if d == nil || d.cid != l.etcd.cid || !slices.Contains(c.voters, d.id) {
			continue
		}
		if _, seen := flipped[d.id]; v.etcd != nil || !seen { // of a disk and its copy, the one that runs is the member
			flipped[d.id] = d.flipped
		}
	}
	own, ok := flipped[id]
	if !ok {
		own = -1 // its directory may have been put away already
	}
	agree, most := map[int]int{}, 0
	for _, n := range flipped {
		agree[n]++
		if n != own {
			most = max(most, agree[n])
		}
	}
	return slices.Contains(c.alarmed(table.AlarmCorrupt), id) && most >= 2 && most >= table.QuorumOf(len(c.voters))
}
