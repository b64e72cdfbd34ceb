package acts

import (
	"maps"
	"slices"

	"github.com/quorate/quorate/etcdmember/table"
	"github.com/quorate/quorate/internal/record"
)

// The model of etcd in the walk: raft's logs, terms and votes on the disks, and etcd's own rules for changes of the
// membership. It is a small one: messages are exchanged at once or not at all, only a copy of the state takes its time
// (walkcopies_test.go), and there are no leases, so that more elections are possible than etcd would hold.

type entryKind int

const (
	noOp entryKind = iota
	write
	addLearner
	addVoter // the seed's own, or a promotion
	remove
	publish
	raise   // an alarm
	disarm  // it is taken back
	compact // the keys' history is given up
)

type logEntry struct {
	term  uint64
	kind  entryKind
	id    record.MemberID
	place int
	name  string
	alarm table.AlarmKind
}

func (e logEntry) isChange() bool {
	return e.kind == addLearner || e.kind == addVoter || e.kind == remove
}

// conf is the applied configuration. It is never changed in place.
type conf struct {
	voters, learners []record.MemberID
	names            map[record.MemberID]string
	places           map[record.MemberID]int
	removed          map[record.MemberID]bool
	alarms           []table.Alarm
	compactions      int
}

func without(ids []record.MemberID, id record.MemberID) []record.MemberID {
	return slices.DeleteFunc(slices.Clone(ids), func(x record.MemberID) bool { return x == id })
}

func (c conf) apply(e logEntry) conf {
	switch e.kind {
	case addLearner, addVoter:
		c.voters, c.learners = without(c.voters, e.id), without(c.learners, e.id)
		if e.kind == addVoter {
			c.voters = append(c.voters, e.id)
		} else {
			c.learners = append(c.learners, e.id)
		}
		if _, ok := c.places[e.id]; !ok {
			c.places = maps.Clone(c.places)
			if c.places == nil {
				c.places = map[record.MemberID]int{}
			}
			c.places[e.id] = e.place
		}
	case remove:
		c.voters, c.learners = without(c.voters, e.id), without(c.learners, e.id)
		c.removed = maps.Clone(c.removed)
		if c.removed == nil {
			c.removed = map[record.MemberID]bool{}
		}
		c.removed[e.id] = true
	case publish:
		c.names = maps.Clone(c.names)
		if c.names == nil {
			c.names = map[record.MemberID]string{}
		}
		c.names[e.id] = e.name
	case raise, disarm:
		c.alarms = slices.DeleteFunc(slices.Clone(c.alarms), func(a table.Alarm) bool { return a == e.about() })
		if e.kind == raise {
			c.alarms = append(c.alarms, e.about())
		}
	case compact:
		c.compactions++
	}
	return c
}

func (c conf) has(id record.MemberID) bool {
	return slices.Contains(c.voters, id) || slices.Contains(c.learners, id)
}

// dir is an etcd directory. version counts the durable changes of the member: a copy that is put back has an older one.
type dir struct {
	cid, id record.MemberID
	log     []logEntry
	term    uint64
	voted   record.MemberID
	commit  int
	conf    conf
	marker  bool
	corrupt bool
	left    bool // it is a copy on a host that was left behind
	page    bool // one of its database is damaged: it opens, and etcd ends on it
	version uint64
	snapAt  int   // etcd's own snapshot, where a reader of the directory begins
	first   int   // what is below it in the log was given up: who lacks it gets a copy of the state
	birth   birth // of the first member of a restored cluster
	// an older copy, put back in place, that nothing on the disk or in the record tells from the disk; not started
	// since
	earlier bool
	space       // of its database
	flipped int // another than the others': its data is not what the log made of it
}

// began is the configuration at the directory's own snapshot.
func (d *dir) began() conf {
	var c conf
	for _, e := range d.log[:d.snapAt] {
		c = c.apply(e)
	}
	return c
}

// snap is etcd's own snapshot, one in 10 000 entries: not right after a change, which is left out (DESIGN.md, known
// limits).
func (d *dir) snap() {
	for _, e := range d.log[max(0, d.commit-8):d.commit] {
		if e.isChange() {
			return
		}
	}
	d.snapAt = d.commit
	d.first = max(d.first, d.snapAt-keptEntries)
}

// etcd is a running process on the directory of its VM's disk.
type etcd struct {
	*dir
	leads  bool
	match  map[record.MemberID]int
	copies map[record.MemberID]*stateCopy // on their way
}

// identity is whose promises a directory carries.
type identity struct{ cid, id record.MemberID }

func (d *dir) who() identity { return identity{d.cid, d.id} }

// touch is every durable write of a member.
func (w *world) touch(d *dir) {
	if d.left {
		return // what a host writes that was left behind reaches nobody
	}
	w.ever[d.who()]++
	d.version = w.ever[d.who()]
}

// launch starts etcd on the VM's directory. This is S2: the id has never started, or this is all that it ever wrote.
func (w *world) launch(v *vm) {
	d := v.disk.dir
	again := !w.formedCluster(d.cid) // a seed that was broken off, maybe on another disk: nothing was acknowledged
	// only row 25 comes here with one (checkEarlier): a quorum of the others has all that was ever acknowledged
	if d.earlier {
		d.earlier = false
		w.forgetful++
	} else if d.version != w.ever[d.who()] && !again && !d.left {
		// what a host runs that was left behind reaches nobody
		w.fail("S2", "member %s starts on a directory at version %d of %d", d.id, d.version, w.ever[d.who()])
	}
	if again {
		delete(w.acked, d.cid)
	}
	for _, other := range w.vms {
		// The cloud starts an instance again while its former host may still run it; that one hears of it with its next
		// reading of the record.
		leftBehind := other.newer != nil || v.newer != nil // an older boot may have decided to start before that
		if other != v && other.etcd != nil && other.etcd.who() == d.who() && !leftBehind {
			w.fail("S2", "member %s runs twice", d.id)
		}
	}
	w.touch(d)
	v.etcd = &etcd{dir: d, match: map[record.MemberID]int{}}
}

func (w *world) formedCluster(cid record.MemberID) bool {
	return slices.ContainsFunc(w.view.Epochs, func(e record.Epoch) bool {
		return e.Outcome != nil && e.Outcome.Formed != nil && e.Outcome.Formed.ClusterID == cid
	})
}

// peer is the running process of a member that v reaches.
func (w *world) peer(v *vm, id record.MemberID) *vm {
	for _, u := range w.vms {
		if u.etcd != nil && u.etcd.cid == v.etcd.cid && u.etcd.id == id && w.reach(v, u) {
			return u
		}
	}
	return nil
}

func (d *dir) lastTerm() uint64 {
	if len(d.log) == 0 {
		return 0
	}
	return d.log[len(d.log)-1].term
}

func (d *dir) upToDate(than *dir) bool {
	return d.lastTerm() > than.lastTerm() || d.lastTerm() == than.lastTerm() && len(d.log) >= len(than.log)
}

// elect lets v stand for leader among those that it reaches.
func (w *world) elect(v *vm) bool {
	e := v.etcd
	if !slices.Contains(e.conf.voters, e.id) || e.leads || v.fenced {
		return false
	}
	e.term++
	e.voted = e.id
	w.touch(e.dir)
	votes := 1
	for _, id := range e.conf.voters {
		u := w.peer(v, id)
		if u == nil || u == v || u.etcd.term > e.term || u.etcd.term == e.term && u.etcd.voted != e.id {
			continue
		}
		if u.etcd.term < e.term {
			u.etcd.term, u.etcd.voted, u.etcd.leads = e.term, 0, false
		}
		if e.upToDate(u.etcd.dir) {
			u.etcd.voted = e.id
			votes++
		}
		w.touch(u.etcd.dir)
	}
	if votes < table.QuorumOf(len(e.conf.voters)) {
		return false
	}
	w.checkLeader(e)
	e.leads, e.match, e.copies = true, map[record.MemberID]int{}, map[record.MemberID]*stateCopy{}
	w.append(v, logEntry{kind: noOp})
	return true
}

func (w *world) append(v *vm, e logEntry) {
	e.term = v.etcd.term
	v.etcd.log = append(slices.Clip(v.etcd.log), e)
	w.touch(v.etcd.dir)
}

// replicate sends the leader's log up to an index to one member, and its commit index.
func (w *world) replicate(l *vm, id record.MemberID, upTo int) {
	u := w.peer(l, id)
	if u == nil || u == l || !l.etcd.leads {
		delete(l.etcd.copies, id) // its connection ends
		return
	}
	from, to := l.etcd, u.etcd
	if to.term > from.term {
		from.leads = false
		return
	}
	if to.term < from.term {
		to.term, to.voted, to.leads = from.term, 0, false
	}
	if min(from.match[id], from.commit) > len(to.log) {
		// etcd panics: tocommit is out of range
		w.fail("S2", "member %s runs, and the leader has its word for more than its log holds", id)
	}
	same := 0
	for same < min(len(to.log), upTo) && to.log[same].term == from.log[same].term {
		same++
	}
	if same < from.first {
		w.copyState(l, u)
		return
	}
	delete(from.copies, id)
	if same < upTo {
		if same < to.commit {
			w.fail("S2", "what member %s has committed is overwritten", id)
		}
		to.log = append(slices.Clip(to.log[:same]), from.log[same:upTo]...)
	}
	from.match[id] = max(from.match[id], upTo)
	w.touch(to.dir)
	w.advance(u, min(from.commit, upTo))
}

// advance applies what is committed. A member that reads of its own removal exits.
func (w *world) advance(v *vm, commit int) {
	d := v.etcd.dir
	for ; d.commit < commit; d.commit++ {
		d.conf = d.conf.apply(d.log[d.commit])
	}
	maps.DeleteFunc(v.etcd.copies, func(id record.MemberID, _ *stateCopy) bool { return !d.conf.has(id) })
	if d.conf.removed[d.id] {
		v.etcd = nil
	}
}

// commit moves the leader's commit index to what a quorum of voters holds: all that is acknowledged.
func (w *world) commitAll(l *vm) {
	e := l.etcd
	if l.fenced {
		return
	}
	for n := len(e.log); n > e.commit && e.leads; n-- {
		held := 0
		for _, id := range e.conf.voters {
			if id == e.id || e.match[id] >= n {
				held++
			}
		}
		if held >= table.QuorumOf(len(e.conf.voters)) && e.log[n-1].term == e.term {
			w.acknowledge(e, n)
			w.advance(l, n)
			return
		}
	}
}

// leads finds the leader that a member would send a request to.
func (w *world) leaderOf(v *vm) *vm {
	var best *vm
	for _, u := range w.vms {
		if v.etcd == nil || u.etcd == nil || !u.etcd.leads || u.etcd.cid != v.etcd.cid || !w.reach(v, u) {
			continue
		}
		if u.etcd.conf.has(v.etcd.id) && (best == nil || u.etcd.term > best.etcd.term) {
			best = u
		}
	}
	return best
}
