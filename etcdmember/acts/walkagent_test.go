package acts

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/quorate/quorate/etcdmember/leader"
	"github.com/quorate/quorate/etcdmember/table"
	"github.com/quorate/quorate/internal/record"
	"github.com/quorate/quorate/internal/replica"
)

// The agent of the walk: facts are read from the world, the real deciders of table and leader choose, and the real
// Actor takes the act, one write an event, so that anything can happen between two of them.

// variant is what decides in a walk: the real deciders, or ones with a planted fault.
type variant struct {
	classify func(f table.Facts) table.Observation // nil: Classify
	decide   func(now time.Time, o table.Observation) table.Plan
	beside   func(now time.Time, previous, ring leader.Ring) table.Plan
	facts    func(f *table.Facts)       // what is wrong with the facts; nil: nothing
	reads    func(commit, last int) int // how much of its source a restore reads; nil: all
	purge    func(f *table.PurgeFacts)  // what is wrong with the facts of a purge; nil: nothing
	// keepsAlarms: a restore takes over the alarms of its source, whose members are gone.
	keepsAlarms bool
	// staysFull: a learner does not defragment itself.
	staysFull bool
}

var asItIs = variant{decide: table.Decide, beside: leader.Decide}

// indexUnit is how many log entries one entry of the model stands for, so that a lag of three is too long for a
// promotion.
const indexUnit = 400

// What the agent's own constants say: how often it lists, from which start on that came to nothing it reads the
// database whole, how much history a compaction leaves and for how long one counts.
const (
	listPeriod        = 10 * time.Second
	startsBeforeCheck = 3
	compactionCounts  = 6 * time.Second
)

// movement is how far a member's log reached, and since when.
type movement struct {
	match uint64
	at    time.Time
}

func (w *world) me(v *vm) replica.Identity {
	return replica.Identity{Place: places[v.place], InstanceID: v.id, BootID: fmt.Sprint(v.boot), ProjectNumber: "7"}
}

func (w *world) facts(v *vm) table.Facts {
	if v.view == nil {
		w.readRecord(v)
	}
	w.list(v)
	f := table.Facts{Now: v.viewed, Me: w.me(v), Cluster: testCluster, DiskID: v.disk.id,
		Disk: table.DiskFacts{Wanted: "data",
			Mounted: true},
		Directory: w.directory(v), Agent: v.actor.Agent.File, Compute: v.compute, Policy: w.policy(),
		Snapshots:     w.listed(),
		StrangerSince: v.strangerSince, AgentErr: v.actor.Agent.Err, Superseded: v.superseded, RecordErr: v.viewErr,
		Record: *v.view, Beats: maps.Clone(v.beats), ListedBefore: v.listed, Tries: v.tries}
	f.Compute.Runs = maps.Clone(v.runs)
	v.view = nil
	f.Answers = w.answers(v, f)
	v.silences.Note(&f)
	if a, ok := table.QuorumAnswer(f); ok {
		v.listed = map[record.MemberID]string{}
		for _, m := range a.Members {
			v.listed[m.ID] = m.Name
		}
	}
	if w.by.facts != nil {
		w.by.facts(&f)
	}
	return f
}

// readRecord reads the record for the next decision. What is read after it, the answers above all, may be younger.
func (w *world) readRecord(v *vm) {
	v.view, v.viewed = new(record.View), w.now
	if v.viewErr = w.unreadable(v); v.viewErr != nil {
		return
	}
	*v.view = w.copyOfView()
	w.note(v)
}

// copyOfView is the record as it is now. What the world changes in place is copied.
func (w *world) copyOfView() record.View {
	v := w.view
	v.Epochs, v.Orders = slices.Clone(v.Epochs), slices.Clone(v.Orders)
	v.Marks, v.Replicas = maps.Clone(v.Marks), maps.Clone(v.Replicas)
	for p, incarnations := range v.Replicas {
		v.Replicas[p] = slices.Clone(incarnations)
	}
	return v
}

// note is what the agent remembers of the record: the newest epoch, durably, whom it named, and when a mark was written
// anew.
func (w *world) note(v *vm) {
	if w.unreadable(v) != nil {
		return
	}
	table.NoteBeats(v.beats, w.view, w.now)
	a := v.actor.Agent
	if n := len(w.view.Epochs); n > 0 && a.Err == nil && a.File.Replica == places[v.place] &&
		a.File.ClusterUID == "uid" && w.view.Inception != nil {
		newest := max(a.File.NewestEpoch, w.view.Epochs[n-1].Number)
		a.Set(func(f *table.AgentFile) { f.NewestEpoch = newest }) // where it fails the next observation notes it
	}
	unknown := false
	see := func(id string) {
		unknown = unknown || !v.seen[id]
		v.seen[id] = true
	}
	for _, e := range w.view.Epochs {
		if e.Claim != nil {
			see(e.Claim.Seeder.InstanceID)
		}
	}
	for _, incarnations := range w.view.Replicas {
		for _, i := range incarnations {
			see(i.InstanceID)
		}
	}
	for _, o := range w.view.Orders {
		if o.Restore != nil {
			see(fmt.Sprintf("order %d, accepted %t", o.Number, o.Accepted != nil))
		}
	}
	if unknown {
		v.compute = table.Compute{}
		table.ForgetStops(v.runs)
	}
}

// list asks the Compute API, as the agent paces it.
func (w *world) list(v *vm) {
	c := &v.compute
	if c.Second.Err == nil && w.now.Sub(c.Second.Time) < listPeriod {
		return
	}
	if c.Second.Err == nil && !c.Second.Time.IsZero() {
		c.First = c.Second
	}
	c.Second = w.listing()
	if w.unreadable(v) == nil {
		table.NoteRuns(v.runs, c.Second, w.view, v.id)
	}
}

func (w *world) directory(v *vm) table.Directory {
	d := v.disk.dir
	var archives []table.Archive
	for _, a := range v.disk.archives {
		old := table.Archive{MemberID: a.id, ClusterID: a.cid, Term: a.lastTerm(),
			LastIndex: uint64(len(a.log)) * indexUnit}
		if a.corrupt {
			old.OpenErr = errWalk
		}
		archives = append(archives, old)
	}
	if d == nil {
		return table.Directory{Archives: archives}
	}
	out := table.Directory{Exists: true, Marker: d.marker, MemberID: d.id, ClusterID: d.cid, Term: d.term,
		LastTerm: d.lastTerm(), LastIndex: uint64(len(d.log)) * indexUnit,
		Commit: uint64(d.commit) * indexUnit, Voters: d.conf.voters, Learners: d.conf.learners}
	began := d.began()
	if v.etcd != nil { // it does not say where its log ends
		out.Running, out.LastIndex, out.LastTerm, out.Changes = true, 0, 0, nil
		out.Leaderless = w.leaderOf(v) == nil
		return out.AsRead(v.read)
	}
	out.Archives, out.Voters, out.Learners = archives, began.voters, began.learners
	if d.corrupt || d.page && v.tries.Starts.Runs >= startsBeforeCheck { // then the database is read whole
		out.OpenErr = errWalk
	}
	for i, e := range d.log[d.snapAt:] {
		if e.isChange() {
			kind := map[entryKind]string{addLearner: "add-learner", addVoter: "add-voter", remove: "remove"}[e.kind]
			out.Changes = append(out.Changes, record.ConfigChange{Index: uint64(d.snapAt+i+1) * indexUnit, Type: kind,
				MemberID: e.id})
		}
	}
	v.read = out
	return out
}

// answers asks the newest incarnation of each place, and while nothing is formed all that the Compute API lists.
func (w *world) answers(v *vm, f table.Facts) []table.Answer {
	var ask []*vm
	formed := false
	if f.RecordErr == nil {
		formed = f.Record.Newest().Formed() != nil
		for p, incarnations := range f.Record.Replicas {
			if u := w.byInstance(incarnations[len(incarnations)-1].InstanceID); u != nil && p != places[v.place] {
				ask = append(ask, u)
			}
		}
	}
	slices.SortFunc(ask, func(a, b *vm) int { return a.place - b.place })
	if v.etcd != nil {
		ask = append(ask, v)
	}
	for _, i := range v.compute.Second.Instances {
		if u := w.byInstance(i.InstanceID); !formed && u != nil && u != v && !slices.Contains(ask, u) {
			ask = append(ask, u)
		}
	}
	var out []table.Answer
	for _, u := range ask {
		out = append(out, w.ask(v, u))
	}
	return out
}

func (w *world) ask(v, u *vm) table.Answer {
	a := table.Answer{Place: places[u.place], InstanceID: u.id}
	if !w.reach(v, u) || u.etcd == nil {
		return a
	}
	c := u.etcd.conf
	a.Reach, a.ClusterID = table.ReachAnswers, u.etcd.cid
	a.Removed = v.disk.dir != nil && v.disk.dir.cid == u.etcd.cid && c.removed[v.disk.dir.id]
	if l := w.leaderOf(u); l != nil && slices.Contains(c.voters, u.etcd.id) && w.linearizable(l) {
		a.Reach, c = table.ReachLinearizable, l.etcd.conf
	}
	if u.etcd.leads && v.disk.dir != nil && v.etcd == nil {
		a.Acknowledged = w.acknowledged(u, v.disk.dir.id, a.Reach) * indexUnit
	}
	a.Members = listOf(c)
	return a
}

// acknowledged is what a leader knows a member to have acknowledged; one that does not answer through quorum is
// believed in what is committed.
func (w *world) acknowledged(l *vm, id record.MemberID, r table.Reach) uint64 {
	n := l.etcd.match[id]
	if r != table.ReachLinearizable {
		n = min(n, l.etcd.commit)
	}
	return uint64(n)
}

func listOf(c conf) []table.Member {
	var out []table.Member
	for _, id := range slices.Concat(c.voters, c.learners) {
		out = append(out, table.Member{ID: id, Name: c.names[id], Learner: slices.Contains(c.learners, id),
			PeerURLs: []string{table.PeerURL(places[c.places[id]].DNSName(testCluster))}})
	}
	return out
}

// step is one event of an agent: the next write of the act that it is taking, or a new look and a decision.
func (w *world) step(v *vm) {
	if !v.on || v.suspended {
		return
	}
	if v.paused--; v.paused > 0 && !w.calm {
		return
	}
	if v.busy() {
		// its machine stands still for a while, with the act decided and not taken
		if often, long := 4, 15; !w.calm && v.paused < 0 {
			if v.closes() {
				often, long = 30, 40 // what is decided by then cannot be taken back: let much happen
			}
			if w.chance(often) {
				v.paused = w.random.IntN(long)
				return
			}
		}
		w.goOnWith(v)
		return
	}
	if !w.calm && v.view == nil && w.chance(30) { // the record now, and who answers only later
		w.readRecord(v)
		v.slow = w.random.IntN(3) * w.random.IntN(4)
		return
	}
	if v.slow--; v.slow > 0 && !w.calm {
		return
	}
	if v.etcd != nil && v.etcd.leads && !v.fenced {
		w.beside(v)
	} else {
		v.previous, v.silent, v.compacted, v.defragmented = leader.Ring{}, nil, time.Time{}, nil
	}
	if v.etcd != nil && !v.fenced && !w.by.staysFull {
		w.ownSpace(v)
	}
	if !v.busy() && (v.etcd == nil || w.calm || w.chance(30)) {
		w.decide(v)
	}
}

// closes: it is about to settle an order to restore, or to close an epoch.
func (v *vm) closes() bool {
	return v.busy() && (v.act == table.ActSettle || v.act == table.ActCloseEpoch)
}

// observe is what the variant makes of the facts.
func (v variant) observe(f table.Facts) table.Observation {
	if v.classify != nil {
		return v.classify(f)
	}
	return table.Classify(f)
}

func (w *world) decide(v *vm) {
	f := w.facts(v)
	o := w.by.observe(f)
	v.strangerSince, v.superseded = o.StrangerSince, v.superseded || o.Superseded
	p := w.by.decide(f.Now, o)
	if !v.tries.Failed.Of(p) {
		v.tries.Failed = table.Failure{}
	}
	v.blocked, v.row, v.act = p.Blocked, p.Row, p.Act
	w.checkEarlier(v, f, p)
	w.checkSaid(v, p)
	w.checkLivingBoot(v, f, p)
	w.rows[p.Row]++
	if p.Act == table.ActRemoveMember {
		w.checkOwnRemoval(v, p, o)
	}
	if p.Act != table.ActKeep && p.Act != table.ActWait && p.Act != table.ActHalt {
		w.log("%s row %s: %s %s, %s", v.id, p.Row, p.Act, p.MemberID, o.Cell())
	}
	w.take(v, f, p)
}

// beside is a tick on the leader.
func (w *world) beside(v *vm) {
	ring := w.ring(v)
	p := w.by.beside(w.now, v.previous, ring)
	v.previous = ring
	w.leaderRows[p.Row]++
	v.leaderBlocked = p.Blocked
	if p.Act == table.ActKeep || p.Act == table.ActWait || p.Act == table.ActHalt {
		return
	}
	w.checkChange(v, p)
	w.checkAlarmAct(v, p)
	w.log("%s beside row %s: %s %s", v.id, p.Row, p.Act, p.MemberID)
	w.begin(v, func() error {
		v.stands("on the leader")
		if v.etcd != nil {
			w.changeOnLeader(v, p)
		}
		return nil
	})
}

// changeOnLeader is the one write of an act on the leader.
func (w *world) changeOnLeader(v *vm, p table.Plan) {
	switch p.Act {
	case table.ActMoveLeader:
		w.moveLeader(v, p.MemberID)
	case table.ActDisarm, table.ActCompact, table.ActDefragment:
		w.actOnAlarm(v, p)
	case table.ActCompleteOrder:
		if w.unreadable(v) == nil {
			w.complete(p)
		}
	case table.ActPromote:
		w.propose(v, logEntry{kind: addVoter, id: p.MemberID})
	case table.ActRemoveMember:
		w.propose(v, logEntry{kind: remove, id: p.MemberID})
	}
}

func (w *world) ring(v *vm) leader.Ring {
	w.note(v)
	w.list(v)
	v.view = nil
	e := v.etcd
	r := leader.Ring{At: w.now, Me: w.me(v), Cluster: testCluster, Leader: e.id,
		LastIndex: uint64(len(e.log)) * indexUnit,
		Record:    w.view,
		RecordErr: w.unreadable(v), Compute: v.compute, Policy: w.policy(), ClusterVersion: "3.7.0"}
	for _, s := range w.snapshots {
		r.SnapshotAt = s.Time
	}
	if v.silent == nil {
		v.silent, v.moved, v.defragmented = map[record.MemberID]time.Time{}, map[record.MemberID]movement{},
			map[record.MemberID]time.Time{}
	}
	for _, m := range listOf(e.conf) {
		match := uint64(e.match[m.ID]) * indexUnit
		u := w.peer(v, m.ID)
		heard := u != nil
		switch {
		case heard:
			delete(v.silent, m.ID)
		case v.silent[m.ID].IsZero():
			v.silent[m.ID] = w.now
		}
		if before, ok := v.moved[m.ID]; !ok || before.match != match {
			v.moved[m.ID] = movement{match, w.now}
		}
		if m.ID == e.id {
			match = r.LastIndex
		}
		state, pending := e.progress(m.ID)
		r.SnapshotInFlight = r.SnapshotInFlight || pending != 0
		r.Members = append(r.Members, leader.RingMember{Member: m, Version: "3.7.3", Match: match, State: state,
			PendingSnapshot: pending, RecentActive: heard, StreamsActive: heard,
			UnreachableSince: v.silent[m.ID], MovedAt: v.moved[m.ID].at})
	}
	w.alarmed(v, &r)
	return r
}
