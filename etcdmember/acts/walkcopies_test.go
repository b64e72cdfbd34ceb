package acts

import (
	"slices"

	"github.com/quorate/quorate/etcdmember/leader"
	"github.com/quorate/quorate/internal/record"
)

// Copies of the state in the walk: a member that lacks what the leader's log has given up is sent the whole state. That
// takes many events, and meanwhile the leader can change, the connection break, the log grow and be compacted again.

// keptEntries is how many entries a log keeps below its newest snapshot, as etcd's catch-up entries.
const keptEntries = 3

// stateCopy is a copy on its way to one member.
type stateCopy struct {
	index   int // of the last entry in it
	term    uint64
	conf    conf
	space   space
	flipped int
	left    int // as many messages as it still takes
}

// copyState goes on with the copy for u, or begins one of what the leader has applied.
func (w *world) copyState(l, u *vm) {
	from, to := l.etcd, u.etcd
	c := from.copies[to.id]
	if c == nil {
		c = &stateCopy{index: from.commit, term: from.log[from.commit-1].term, conf: from.conf, space: from.space,
			flipped: from.flipped, left: 2}
		if !w.calm {
			c.left += w.random.IntN(12) * w.random.IntN(6)
		}
		from.copies[to.id] = c
		w.log("%s begins a copy of the state, up to %d, for %s", l.id, c.index, to.id)
	}
	if c.left--; c.left > 0 {
		return
	}
	delete(from.copies, to.id)
	if c.index <= to.commit {
		w.fail("S5", "a copy of the state up to %d was sent to member %s, which has committed %d", c.index, to.id,
			to.commit)
	}
	w.copied++
	if c.index < from.first {
		w.stale++
	}
	w.install(u, c, from.log[:c.index])
	from.match[to.id] = max(from.match[to.id], c.index)
}

// install puts a copy that has arrived in the place of the member's log and database.
func (w *world) install(u *vm, c *stateCopy, log []logEntry) {
	d := u.etcd.dir
	d.log = slices.Clone(log)
	d.commit, d.conf, d.snapAt, d.first = c.index, c.conf, c.index, c.index
	d.space, d.flipped = c.space, c.flipped
	w.touch(d)
	if d.conf.removed[d.id] {
		u.etcd = nil
	}
}

// copying: a copy is on its way to the member.
func (e *etcd) copying(id record.MemberID) bool { return e.copies[id] != nil }

// progress is what the leader's raft says of a member.
func (e *etcd) progress(id record.MemberID) (leader.ProgressState, uint64) {
	if c := e.copies[id]; c != nil {
		return leader.ProgressSnapshot, uint64(c.index) * indexUnit
	}
	return leader.ProgressReplicate, 0
}
