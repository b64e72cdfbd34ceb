package acts

import (
	"fmt"
	"slices"
	"time"

	"github.com/quorate/quorate/etcdmember/leader"
	"github.com/quorate/quorate/etcdmember/table"
	"github.com/quorate/quorate/internal/record"
)

// The invariants of docs/membership.md, section 8, as predicates of the walk's world. S4, that nothing is deleted,
// holds by what an act can do at all, the archive of a disk only grows; what a purge takes of it, checkPurge and
// checkSaved judge.

// broken ends a walk: an invariant does not hold.
type broken struct{ invariant, what string }

func (b broken) Error() string { return b.invariant + ": " + b.what }

func (w *world) fail(invariant, format string, args ...any) {
	panic(broken{invariant, fmt.Sprintf(format, args...)})
}

// acknowledge: what a quorum holds is acknowledged for ever, and in one cluster only (S1).
func (w *world) acknowledge(e *etcd, upTo int) {
	held := w.acked[e.cid]
	for i := range upTo {
		if i < len(held) {
			if held[i] != e.log[i].term {
				w.fail("S1", "two histories at index %d", i+1)
			}
			continue
		}
		held = append(held, e.log[i].term)
		if e.log[i].kind == write {
			if w.closed(e.cid) {
				w.fail("S1", "member %s acknowledges a write after its epoch was closed", e.id)
			}
			w.serving[e.cid] = true
		}
	}
	w.acked[e.cid] = held
	open := 0
	for cid := range w.serving {
		if !w.closed(cid) {
			open++
		}
	}
	if open > 1 {
		w.fail("S1", "two clusters acknowledged writes")
	}
}

// checkLeader: who leads holds all that was ever acknowledged.
func (w *world) checkLeader(e *etcd) {
	for i, term := range w.acked[e.cid] {
		if i >= len(e.log) || e.log[i].term != term {
			w.fail("S2", "member %s leads without the acknowledged write at index %d", e.id, i+1)
		}
	}
}

// checkFormed: an outcome is never another one (S1).
func (w *world) checkOutcome(e *record.Epoch) {
	formed := e.Outcome.Formed != nil
	if before, ok := w.outcomes[e.Number]; ok && before != formed {
		w.fail("S1", "epoch %d was formed and abandoned", e.Number)
	}
	w.outcomes[e.Number] = formed
}

// checkChange is S3 at the moment of the leader's decision: what happens to the member between that and the act is
// nobody's fault.
func (w *world) checkChange(l *vm, p table.Plan) {
	c := l.etcd.conf
	for _, id := range c.voters {
		if u := w.peer(l, id); u != nil && u.etcd.term > l.etcd.term {
			return // deposed, and it hears so with its next message
		}
	}
	if alarmed := c.alarmed(table.AlarmCorrupt); slices.Contains(alarmed, 0) && !w.said47() && !w.oneTruth(l) {
		w.fail("S2", "row %s: %s %s while the members' data differ and nobody said who is right", p.Row, p.Act,
			p.MemberID)
	}
	n, alive := len(c.voters), w.connected(l, 0)
	switch p.Act {
	case table.ActPromote:
		if u := w.peer(l, p.MemberID); u != nil && (l.etcd.copying(p.MemberID) ||
			(len(l.etcd.log)-len(u.etcd.log))*indexUnit > leader.MaxLag) {
			w.fail("S3", "learner %s is promoted, and lacks what the cluster has written", p.MemberID)
		}
		if w.peer(l, p.MemberID) == nil {
			w.fail("S3", "learner %s is promoted and does not run", p.MemberID)
		}
		learners := 0
		for _, id := range c.learners {
			if w.peer(l, id) != nil {
				learners++
			}
		}
		if n == 1 && learners < 2 && !w.leaves(c.places[c.voters[0]]) {
			w.fail("S3", "promoting %s makes a pair of voters, which survives nothing and has two that can fail",
				p.MemberID)
		}
		if alive+1-table.QuorumOf(n+1) < min(alive-table.QuorumOf(n), 0) {
			w.fail("S3", "promoting %s takes the quorum", p.MemberID)
		}
	case table.ActRemoveMember:
		if !slices.Contains(c.voters, p.MemberID) {
			if p.Row == 43 && l.etcd.copying(p.MemberID) && w.peer(l, p.MemberID) != nil {
				w.fail("S3", "learner %s is removed while a copy of the state is on its way to it", p.MemberID)
			}
			return
		}
		i, _ := table.HistoryOf(table.Facts{Now: w.now, Record: w.view}).IncarnationOf(p.MemberID)
		owner := w.byInstance(i.InstanceID)
		if w.ordered(c.places[p.MemberID], p.MemberID) {
			if w.connected(l, p.MemberID) < table.QuorumOf(n-1) {
				w.fail("S3", "removing %s, by order, takes the quorum", p.MemberID)
			}
			return
		}
		named := slices.Contains(c.alarmed(table.AlarmCorrupt), p.MemberID) && w.peer(l, p.MemberID) == nil
		if named || w.outvoted(l, p.MemberID) {
			// it counts as failed; one that etcd has named and that is out of reach, too, whatever its disk is by now
			return
		}
		// A host that the cloud has given up counts as failed, and so does one that an older VM of its place has
		// superseded.
		taken := w.view.Replicas[places[c.places[p.MemberID]]]
		superseded := owner != nil && owner.etcd == nil && len(taken) > 0 && taken[len(taken)-1].InstanceID != owner.id
		if owner != nil && !owner.ghost && !superseded && owner.said != "ABSENT" &&
			w.now.Sub(owner.foundAgain) > 2*time.Minute {
			w.fail("S3", "voter %s is removed by another, and its VM %s exists", p.MemberID, owner.id)
		}
		if w.connected(l, p.MemberID)-table.QuorumOf(n-1) < alive-table.QuorumOf(n) {
			w.fail("S3", "removing %s lowers what is survived", p.MemberID)
		}
	}
}

// checkOwnRemoval: at boot an agent asks only for entries of its own place to be removed (S3). A former VM that has
// taken its place's newest incarnation, its first one, has superseded its successor (DESIGN.md, known limits).
func (w *world) checkOwnRemoval(v *vm, p table.Plan, o table.Observation) {
	taken := w.view.Replicas[places[v.place]]
	newest := len(taken) > 0 && taken[len(taken)-1].InstanceID == v.id
	for _, u := range w.vms {
		if v.ghost && v.newer == nil && !newest && !u.ghost && u.place == v.place && u.etcd != nil &&
			u.etcd.id == p.MemberID &&
			slices.Contains(u.etcd.conf.voters, p.MemberID) && u.etcd.conf.names[p.MemberID] == w.me(u).MemberName() {
			w.fail("S3", "%s removes member %s of its successor %s, row %s", v.id, p.MemberID, u.id, p.Row)
		}
	}
	for _, u := range w.vms {
		if u.etcd == nil {
			continue
		}
		if place, ok := u.etcd.conf.places[p.MemberID]; ok && place != v.place {
			w.fail("S3", "%s removes another place's member %s, row %s, %s", v.id, p.MemberID, p.Row, o.Cell())
		}
	}
}

// limit ends a walk that has come to what nothing can detect (DESIGN.md, known limits): what happens after it says
// nothing of the deciders.
type limit struct{}

// checkEarlier: an older copy that nothing on the disk or in the record tells from the disk is not used where a leader
// that could be asked has its word for more. Beside a quorum it may start where no leader has; anything else that uses
// it is beyond what can be known.
func (w *world) checkEarlier(v *vm, f table.Facts, p table.Plan) {
	d := v.disk.dir
	if d == nil || !d.earlier {
		return
	}
	switch p.Act {
	case table.ActWait, table.ActHalt, table.ActKeep, table.ActStop, table.ActArchive,
		table.ActRemoveMember, table.ActTakeIncarnation, table.ActConfirmIncarnation:
		return
	case table.ActStart:
		if p.Row != 25 {
			panic(limit{})
		}
	case table.ActWriteStopped:
		if !p.WithLog {
			return
		}
		panic(limit{})
	default:
		panic(limit{})
	}
	for _, l := range w.vms {
		if l.etcd == nil || l.newer != nil || !l.etcd.leads || l.etcd.cid != d.cid || l.etcd.match[d.id] <= len(d.log) {
			continue
		}
		if slices.ContainsFunc(f.Answers, func(a table.Answer) bool {
			return a.InstanceID == l.id &&
				a.Reach == table.ReachLinearizable
		}) {
			w.fail("S2", "member %s starts on an older copy, and the leader, %s, had its word for more", d.id, l.id)
		}
		panic(limit{})
	}
}

// checkLivingBoot: one instance id has one living boot. A boot that has taken an incarnation, and reads of a later one
// of its own instance, runs nothing (S1).
func (w *world) checkLivingBoot(v *vm, f table.Facts, p table.Plan) {
	took := false
	for _, i := range f.Record.Replicas[places[v.place]] {
		switch own := i.InstanceID == v.id; {
		case own && i.BootID == f.Me.BootID:
			took = true
		case own && took && p.Act != table.ActStop && p.Act != table.ActHalt && p.Act != table.ActWait:
			w.fail("S1", "%s goes on, row %s: %s, though its boot %s has a successor", v.id, p.Row, p.Act, f.Me.BootID)
		}
	}
}

// checkOwnWords: a boot that has said in stopped/ that its incarnation has ended counts as silent from then on, for
// every order that comes, so it runs nothing under it again (S1). The word of another boot of its instance counts only
// once its marks have ended: checkSilence judges that.
func (w *world) checkOwnWords() {
	for _, v := range w.vms {
		if v.etcd == nil || v.fenced {
			continue
		}
		own := record.Incarnation{Place: places[v.place], Number: v.disk.agent.Incarnation, InstanceID: v.id}
		for n := range w.view.Epochs {
			e := &w.view.Epochs[n]
			f, said := e.Formed(), e.StoppedBy(own)
			if f != nil && f.ClusterID == v.etcd.cid && said != nil && said.BootID == w.me(v).BootID {
				w.fail("S1", "%s runs member %s under incarnation %d, of which it said that it has ended", v.id,
					v.etcd.id, own.Number)
			}
		}
	}
}

// checkOffer: a snapshot is offered only where no disk is left that holds what was acknowledged after it (S2).
func (w *world) checkOffer(v *vm, snapshot string) {
	if v.newer != nil { // an older boot that has taken no incarnation cannot know that it is one
		panic(limit{})
	}
	var disks []*data // a copy that somebody keeps is no disk that anybody could ask for
	for _, v := range w.vms {
		if v.newer == nil { // what a host holds that was left behind is nobody's disk
			disks = append(disks, v.disk)
		}
	}
	for _, d := range w.parked {
		disks = append(disks, d)
	}
	of := w.snapshot(snapshot).birth
	for _, d := range disks {
		if d.dir != nil && w.disks[d.id] && !d.dir.corrupt && !d.dir.page && d.dir.version == w.ever[d.dir.who()] &&
			min(len(w.acked[d.dir.cid]), d.dir.commit) > len(of.terms) &&
			d.dir.cid == of.from {
			w.fail("S2", "a snapshot of %d entries is offered, and disk %s holds %d", len(of.terms), d.id, d.dir.commit)
		}
	}
}

// checkPurge: of the archive's own history everything that was acknowledged and stands in it is in a snapshot, or in
// the log of a leader that a quorum confirms (S4).
func (w *world) checkPurge(d *dir) {
	held := 0
	for _, s := range w.snapshots {
		if s.birth.from == d.cid {
			held = max(held, len(s.birth.terms))
		}
	}
	if l := w.reigning(); l != nil && l.etcd.cid == d.cid {
		held = max(held, len(l.etcd.log))
	}
	if n := min(len(d.log), len(w.acked[d.cid])); n > held && !w.savedLater(d.cid) {
		w.fail("S4", "an archive goes with %d acknowledged entries, and %d are elsewhere", n, held)
	}
	if r := table.HistoryOf(table.Facts{Now: w.now, Record: w.view}).Orders.Restore; r != nil && r.Done == nil &&
		r.Restore.From.MemberID == d.id {
		w.fail("S4", "the source of order %d is purged", r.Number)
	}
}

// checkSaved: what was acknowledged and stands in the archive is in a snapshot, whatever the members' disks hold (S4).
func (w *world) checkSaved(d *dir) {
	n, held := 0, 0
	for n < min(len(d.log), len(w.acked[d.cid])) && d.log[n].term == w.acked[d.cid][n] {
		n++
	}
	for _, s := range w.snapshots {
		if s.birth.from == d.cid {
			held = max(held, len(s.birth.terms))
		}
	}
	if n > held && !w.savedLater(d.cid) {
		w.fail("S4", "an archive goes with %d acknowledged entries, and the snapshots hold %d", n, held)
	}
}

// savedLater: a snapshot of a later epoch holds what was to be kept of this cluster.
func (w *world) savedLater(cid record.MemberID) bool {
	own := record.NumberOf(w.view.OfCluster(cid))
	return slices.ContainsFunc(w.view.Epochs, func(e record.Epoch) bool {
		return e.Number > own && e.Formed() != nil && slices.Contains(w.view.Snapshots, e.Number)
	})
}

// checkSaid: what waits says so (S5).
func (w *world) checkSaid(v *vm, p table.Plan) {
	if (p.Act == table.ActWait || p.Act == table.ActHalt) && (p.Blocked == nil || p.Blocked.Name == "" ||
		p.Blocked.Reason == "" ||
		p.Blocked.Next == "") {
		w.fail("S5", "%s waits in row %s without a word", v.id, p.Row)
	}
	if p.Row == table.RowHalt {
		w.fail("S5", "no row covers %s: %s", v.id, p.Reason)
	}
}

// whole: every place's VM runs a member that the leader lists and that is as far as it, voters as many as can be.
func (w *world) whole() bool {
	l := w.reigning()
	if l == nil {
		return false
	}
	if f := table.HistoryOf(table.Facts{Now: w.now,
		Record: w.view}).Formed; f == nil || f.Outcome.Formed.ClusterID != l.etcd.cid ||
		w.ending() {
		return false
	}
	c := l.etcd.conf
	if len(c.alarms) > 0 {
		return false
	}
	if members := len(c.voters) + len(c.learners); members != w.staying() || members != 2 && len(c.learners) > 0 {
		return false
	}
	for _, v := range w.vms {
		if w.leaves(v.place) && v.etcd == nil && v.row == table.RowLeft {
			continue
		}
		if v.etcd == nil || v.etcd.cid != l.etcd.cid || v.disk.agent.Phase != table.PhaseStarted ||
			v.etcd.commit != l.etcd.commit || v.etcd.flipped != l.etcd.flipped || v.etcd.full {
			return false
		}
	}
	return len(w.serving) == 0 || w.serving[l.etcd.cid]
}

// reigning is the leader that a quorum confirms.
func (w *world) reigning() *vm {
	for _, v := range w.vms {
		if v.etcd != nil && v.etcd.leads && w.linearizable(v) {
			return v
		}
	}
	return nil
}

// repairable: one of the voters whose VM has, on a disk of its own place, all that it ever wrote could be elected by
// the others of them. Nobody but a person can help where none could. That a quorum of the newest configuration is left
// is not enough: one that has the removal of a lost voter, not knowing that it was committed, and one that knows but
// has a shorter log, elect nobody, in etcd's raft as well.
func (w *world) repairable() bool {
	formed := table.HistoryOf(table.Facts{Now: w.now, Record: w.view}).Formed
	if formed == nil {
		return true
	}
	if w.ending() {
		return w.sourceHolds()
	}
	intact := map[record.MemberID]*dir{}
	for _, v := range w.vms {
		d := v.disk.dir
		if d == nil || d.cid != formed.Outcome.Formed.ClusterID || d.corrupt || d.version != w.ever[d.who()] {
			continue
		}
		if d.page || v.disk.agentErr != nil || table.Classify(w.facts(v)).Local == table.L3 {
			continue // no member, but what a person may restore from: rescue
		}
		if v.disk.agent.Replica == w.me(v).Place && slices.Contains([]table.Phase{table.PhaseStarted,
			table.PhaseSeeding, table.PhaseStopped},
			v.disk.agent.Phase) {
			intact[d.id] = d
		}
	}
	var newest *dir // who is elected commits what it knows, so a quorum of its configuration has to be left, too
	for _, d := range intact {
		if newest == nil || d.commit > newest.commit {
			newest = d
		}
	}
	if newest == nil || newest.votersLeft(intact) < table.QuorumOf(len(newest.conf.voters)) {
		return false
	}
	for _, c := range intact {
		votes := 0
		for _, id := range c.conf.voters {
			// One that knows of its removal does not run, and one that knows of the other's does not listen to it.
			if d := intact[id]; d != nil && !d.conf.removed[id] && !d.conf.removed[c.id] && c.upToDate(d) {
				votes++
			}
		}
		if slices.Contains(c.conf.voters, c.id) && votes >= table.QuorumOf(len(c.conf.voters)) {
			return true
		}
	}
	return false
}

// votersLeft counts the voters of the directory's configuration whose disks are intact.
func (d *dir) votersLeft(intact map[record.MemberID]*dir) (n int) {
	for _, id := range d.conf.voters {
		if intact[id] != nil {
			n++
		}
	}
	return n
}

// beyondRepair are the waits in which a replica may stay for good where a quorum's disks are lost.
var beyondRepair = []string{"no-quorum-empty-disk", "needed-but-broken", "stopped-id", "foreign-disk",
	"restore-offered", "survivor-waits-for-disk",
	"survivors-not-enough", "restore-unfit", "removed", "left", "source-gone", "epoch-closed"}

// formersClaim: the newest claim is that of a former VM of the place which took no incarnation, a known limit: the VM
// that took it up, and was made again, waits in row 19 for a newer order.
func (w *world) formersClaim(v *vm) bool {
	e := w.view.Epochs[len(w.view.Epochs)-1]
	return v.blocked.Name == "seed-in-progress" && e.Claim != nil && e.Outcome == nil &&
		e.Claim.Source.Kind == record.SourceDirectory && e.Claim.Seeder.Place == places[v.place] &&
		w.byInstance(e.Claim.Seeder.InstanceID) == nil
}

// checkEnd is S5 once the faults have ended and time has passed. A member that runs without a quorum is not asked for a
// word: the acting side says it (no-quorum), once it has lasted.
func (w *world) checkEnd() {
	if w.whole() {
		return
	}
	if w.repairable() {
		w.fail("S5", "it can be whole, and is not: %s", w)
	}
	for _, v := range w.vms {
		says := v.blocked != nil && (slices.Contains(beyondRepair, v.blocked.Name) || w.formersClaim(v) ||
			v.act == table.ActRestore && v.blocked.Name == table.WaitStepFailed) // its source was damaged since
		if v.on && v.etcd == nil && !says {
			w.fail("S5", "beyond repair, and %s does not say so: %s", v.id, w)
		}
	}
}

// checkAccepted: nobody is made to stop for a source that its replica could not read (S5).
func (w *world) checkAccepted(v *vm, o *record.Order) {
	r := o.Restore
	if r == nil || r.From.Kind == record.SourceSnapshot || v.etcd != nil {
		return
	}
	from := walkDisk{w, v}.source(record.Source{MemberID: r.From.MemberID})
	if from != nil && from.page && r.From.DiskID == v.disk.id {
		w.fail("S5", "%s accepts order %d, and the database of its source is damaged", v.id, o.Number)
	}
}
