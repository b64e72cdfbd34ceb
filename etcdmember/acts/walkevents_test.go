package acts

import (
	"fmt"
	"slices"
	"time"

	"github.com/quorate/quorate/etcdmember/table"
	"github.com/quorate/quorate/internal/record"
)

// What happens in the walk's world: one event after the other at random, and rounds in which all goes well.

// event is one thing that happens.
func (w *world) event() {
	w.pass()
	v := w.vms[w.random.IntN(len(w.vms))]
	often := 1
	if w.restless {
		often = 5
	}
	if w.random.IntN(1000) < 12*often {
		w.person(v)
	}
	if w.takeBacks > 0 && w.random.IntN(1000) < 20*often {
		w.takeBack()
	}
	if w.restless && w.takeBacks > 0 && slices.ContainsFunc(w.vms, (*vm).closes) && w.chance(20) {
		w.takeBack() // at the last moment
	}
	if n := len(w.view.Orders); w.restless && w.asks > 0 && n > 0 && w.view.Orders[n-1].Kind == record.OrderWithdraw &&
		w.random.IntN(1000) < 8 {
		w.orderFrom(v) // and then it is given again
	}
	if w.restless && w.joins() && w.chance(8) {
		w.orderFrom(v)
	}
	if w.restless && w.takeBacks > 0 && w.stoppedEmpty() && w.chance(10) {
		w.takeBack()
	}
	switch n := w.random.IntN(100); {
	case n < 4 && w.faults > 0:
		w.fault()
	case n < 55:
		w.step(v)
	case n < 57:
		w.ease(v)
	case n < 58:
		w.purge(v)
	case v.etcd == nil || v.suspended:
	case n < 60:
		w.elect(v)
	case n < 64:
		w.mark(v)
	default:
		w.raft(v)
	}
	w.checkOwnWords()
}

// joins: somebody has taken an incarnation for a join, and no more.
func (w *world) joins() bool {
	return w.asks > 0 && slices.ContainsFunc(w.vms, func(v *vm) bool {
		return v.on && v.disk.dir == nil &&
			v.disk.agent.Incarnation > 0
	})
}

// stoppedEmpty: somebody has stopped for a restore before it had a member.
func (w *world) stoppedEmpty() bool {
	f := table.HistoryOf(table.Facts{Now: w.now, Record: w.view}).Formed
	return f != nil && f.Closed == nil &&
		slices.ContainsFunc(f.Stopped, func(s record.Stopped) bool { return s.MemberID == 0 })
}

// pass is the time that passes between two events: mostly little, and now and then long enough for every timer.
func (w *world) pass() {
	d := time.Duration(20+w.random.IntN(300)) * time.Millisecond
	switch n := w.random.IntN(200); {
	case n < 4:
		d = time.Duration(10+w.random.IntN(10)) * time.Second
	case n < 5:
		d = time.Duration(60+w.random.IntN(600)) * time.Second
	}
	w.goOn(d)
}

// goOn lets time pass. What does not stop for it: agents write marks, and a host that has lost its way fails in the
// end.
func (w *world) goOn(d time.Duration) {
	w.now = w.now.Add(d)
	for _, v := range w.vms {
		if !v.fails.IsZero() && w.now.After(v.fails) {
			w.off(v)
			v.fails, v.said = time.Time{}, ""
			w.log("the host of %s fails for good", v.id)
		}
		a := v.disk.agent
		if w.noMarks || !v.on || v.suspended || v.etcd == nil || a.Phase != table.PhaseStarted ||
			w.unreadable(v) != nil {
			continue
		}
		m, ok := w.view.Marks[v.etcd.id]
		if ok && m.BootID == w.me(v).BootID && w.now.Sub(m.Written) < table.MarkPeriod {
			continue
		}
		if m.Epoch != a.Epoch {
			m = record.Mark{}
		}
		m.MemberID, m.Epoch, m.BootID, m.Written, m.Beat = v.etcd.id, a.Epoch, w.me(v).BootID, w.now, w.now
		w.view.Marks[v.etcd.id] = m
	}
}

// raft is what a member does by itself: the leader sends and commits, a follower that hears of no leader stands, a
// client writes.
func (w *world) raft(v *vm) {
	if v.fenced || w.expelled(v) {
		return
	}
	if w.chance(3) {
		v.etcd.snap()
	}
	l := w.leaderOf(v)
	switch {
	case l == nil:
		w.elect(v)
	case l != v && w.chance(50):
		if v.disk.agent.Phase == table.PhaseStarted && !slices.Contains(l.etcd.conf.learners, v.etcd.id) {
			w.propose(v, logEntry{kind: write})
		}
	default:
		w.lead(l)
	}
}

// lead sends to one or all, and commits.
func (w *world) lead(l *vm) {
	if l.fenced {
		return
	}
	for _, id := range slices.Concat(l.etcd.conf.voters, l.etcd.conf.learners) {
		if l.etcd == nil || !w.calm && w.chance(40) {
			continue
		}
		to := len(l.etcd.log)
		if !w.calm && w.chance(20) {
			to = max(l.etcd.commit, to-1-w.random.IntN(3))
		}
		w.replicate(l, id, min(to, len(l.etcd.log)))
	}
	if l.etcd == nil {
		return
	}
	w.commitAll(l)
	if l.etcd != nil && w.chance(20) && l.disk.agent.Phase == table.PhaseStarted {
		w.propose(l, logEntry{kind: write})
	}
	w.publishNames(l)
	if l.etcd != nil && (w.calm || w.chance(10)) {
		w.raiseAlarms(l)
	}
}

// publishNames lets members that run, and are heard of, publish their names.
func (w *world) publishNames(l *vm) {
	if l.etcd == nil {
		return
	}
	for _, id := range slices.Concat(l.etcd.conf.voters, l.etcd.conf.learners) {
		if u := w.peer(l, id); u != nil && l.etcd.conf.names[id] == "" && (w.calm || w.chance(50)) {
			w.propose(l, logEntry{kind: publish, id: id, name: w.me(u).MemberName()})
			return
		}
	}
}

// expelled: a peer tells a removed member so (410), and it exits.
func (w *world) expelled(v *vm) bool {
	for _, u := range w.vms {
		if u.etcd != nil && v.etcd != nil && u.etcd.cid == v.etcd.cid && w.reach(u, v) &&
			u.etcd.conf.removed[v.etcd.id] {
			v.etcd = nil
		}
	}
	return v.etcd == nil
}

// mark is what Keep writes each 30 s.
func (w *world) mark(v *vm) {
	a := v.disk.agent
	if w.unreadable(v) == nil && a.Phase == table.PhaseStarted && v.etcd.commit > 0 {
		w.view.Marks[v.etcd.id] = record.Mark{MemberID: v.etcd.id, Epoch: a.Epoch,
			Term: v.etcd.log[v.etcd.commit-1].term, Applied: uint64(v.etcd.commit) * indexUnit,
			BootID: w.me(v).BootID, Written: w.now, Beat: w.now}
	}
}

// round lets everything that can go well go well once.
func (w *world) round(d time.Duration) {
	w.goOn(d)
	for _, v := range slices.Clone(w.vms) {
		w.step(v)
		for i := 0; v.busy() && i < 20; i++ {
			w.step(v)
		}
	}
	for _, v := range w.vms {
		if v.etcd != nil && !v.fenced && !v.suspended && !w.expelled(v) && (w.leaderOf(v) == nil || v.etcd.leads &&
			w.connected(v, 0) < table.QuorumOf(len(v.etcd.conf.voters))) {
			v.etcd.leads = false
			w.elect(v)
		}
	}
	for _, v := range w.vms {
		if v.etcd != nil && v.etcd.leads && !v.suspended {
			w.lead(v)
		}
		if v.etcd != nil && v.etcd.leads && !v.suspended {
			w.lead(v)
		}
		w.purge(v)
	}
	w.checkOwnWords()
}

// settle ends the faults, does what a person is told to do, and lets time pass until the world is whole.
func (w *world) settle() {
	w.heal()
	w.calm = true
	w.rounds()
	for i := 0; i < 3 && !w.whole() && !w.repairable() && w.rescue(); i++ {
		w.rounds()
	}
}

// rounds lets time pass until the world is whole.
func (w *world) rounds() {
	for i := range 240 {
		d := 300 * time.Millisecond
		if i > 60 && i%4 == 0 {
			d = 15 * time.Second
		}
		w.round(d)
		if i%20 == 19 {
			w.obey()
		}
		if i > 4 && i%4 == 3 && w.whole() {
			return
		}
	}
}

// purge is the purge of archives. Nothing goes that holds what nobody else does (S4). The day of the rule passes at
// once: a snapshot counts from the moment on at which the incarnation was written.
func (w *world) purge(v *vm) {
	if v.etcd == nil || len(v.disk.archives) < 2 || w.unreadable(v) != nil || v.busy() {
		return
	}
	f := w.facts(v)
	o := w.by.observe(f)
	c := v.etcd.conf
	s := table.MemberStatus{MemberID: v.etcd.id, ClusterID: v.etcd.cid, Ready: true,
		Learner: slices.Contains(c.learners, v.etcd.id), Members: listOf(c)}
	if l := w.leaderOf(v); l != nil {
		s.Leader = l.etcd.id
	}
	facts := table.PurgeFacts{Now: w.now, Observed: o, ObservedAt: w.now, Member: s, Record: f.Record}
	for n, s := range w.listed() {
		if w.snapshots[n].whole {
			s.Time, s.Written = s.Time.Add(table.ArchiveAge), s.Written.Add(table.ArchiveAge)
			facts.Snapshots = append(facts.Snapshots, s)
		}
	}
	for n, d := range v.disk.archives {
		facts.Archives = append(facts.Archives, table.Archive{Name: fmt.Sprint(n), MemberID: d.id, ClusterID: d.cid,
			Term: d.lastTerm(), LastIndex: uint64(len(d.log)) * indexUnit, Time: t0.Add(time.Duration(n))})
	}
	if w.by.purge != nil {
		w.by.purge(&facts)
	}
	purged, err := table.DecidePurge(facts)
	if err != nil || purged == nil {
		return
	}
	n := slices.IndexFunc(facts.Archives, func(a table.Archive) bool { return a.Name == purged.Archive.Name })
	w.checkPurge(v.disk.archives[n])
	w.checkSaved(v.disk.archives[n])
	w.log("%s purges archive %d: %s", v.id, n, purged.Reason)
	v.disk.archives = slices.Delete(slices.Clone(v.disk.archives), n, n+1)
	w.purged++
}
