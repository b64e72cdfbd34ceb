package acts

import (
	"slices"

	"github.com/quorate/quorate/etcdmember/table"
	"github.com/quorate/quorate/internal/record"
)

// etcd's own rules in the walk: what a leader answers, and which changes of the membership it accepts.

// connected counts the voters that the leader reaches and that follow it, itself too.
func (w *world) connected(l *vm, besides record.MemberID) int {
	n := 0
	for _, id := range l.etcd.conf.voters {
		if u := w.peer(l, id); id != besides && u != nil && u.etcd.term <= l.etcd.term {
			n++
		}
	}
	return n
}

// linearizable: a leader that a quorum confirms now, and that has committed in its own term.
func (w *world) linearizable(l *vm) bool {
	e := l.etcd
	if l.fenced {
		// a voter that is alone answers reads of the past for a while, and nobody can tell; what it acknowledges is
		// what counts
		return false
	}
	ok := e.commit > 0 && e.log[e.commit-1].term == e.term && w.connected(l, 0) >= table.QuorumOf(len(e.conf.voters))
	if ok && w.closed(e.cid) {
		w.fail("S1", "member %s serves after its epoch was closed", e.id)
	}
	if ok && e.commit < len(w.acked[e.cid]) {
		w.fail("S2", "a linearizable read through %s lacks an acknowledged write", e.id)
	}
	return ok
}

// refuses is etcd's own rule on a change: strict reconfiguration, the learner limit, removed ids, one change at a time.
func (w *world) refuses(l *vm, e logEntry) bool {
	c := l.etcd.conf
	pending := slices.ContainsFunc(l.etcd.log[l.etcd.commit:], logEntry.isChange)
	ownTerm := l.etcd.commit > 0 && l.etcd.log[l.etcd.commit-1].term == l.etcd.term
	started := func(besides record.MemberID) int {
		n := 0
		for _, id := range c.voters {
			if c.names[id] != "" && id != besides {
				n++
			}
		}
		return n
	}
	if e.isChange() && (pending || !ownTerm) {
		return true
	}
	switch e.kind {
	case write:
		return len(c.alarms) > 0
	case addLearner:
		return c.removed[e.id] || c.has(e.id) || len(c.learners) >= table.MaxLearners || w.connected(l,
			0) < len(c.voters)
	case addVoter: // on Match alone, whether the learner lives or not
		return !slices.Contains(c.learners, e.id) || l.etcd.match[e.id]*10 < len(l.etcd.log)*9 ||
			started(0)+1 < table.QuorumOf(len(c.voters)+1)
	case remove:
		if slices.Contains(c.learners, e.id) {
			return false
		}
		n := len(c.voters) - 1
		alive := w.peer(l, e.id) != nil
		return !c.has(e.id) || n == 0 || started(e.id) < table.QuorumOf(n) || alive && w.connected(l,
			e.id) < table.QuorumOf(n)
	}
	return false
}

// answer is how a request to change something ended.
type answer int

const (
	refused answer = iota
	ambiguous
	done
)

// propose asks for an entry through any member. Its answer may be lost, and the entry may or may not be committed then.
func (w *world) propose(via *vm, e logEntry) answer {
	l := w.leaderOf(via)
	if l == nil || w.refuses(l, e) {
		return refused
	}
	w.append(l, e)
	n, cid := len(l.etcd.log), l.etcd.cid
	for range 2 {
		for _, id := range slices.Concat(l.etcd.conf.voters, l.etcd.conf.learners) {
			if l.etcd != nil && (w.calm || w.chance(80)) {
				w.replicate(l, id, len(l.etcd.log))
			}
		}
		if l.etcd != nil {
			w.commitAll(l)
		}
		if l.etcd == nil {
			break
		}
	}
	if len(w.acked[cid]) < n || !w.calm && w.chance(10) {
		return ambiguous
	}
	return done
}
