package table

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/quorate/quorate/internal/record"
	"github.com/quorate/quorate/internal/replica"
)

// survivor is a place with a valid directory, known by its stopped/ object or because it is this one.
type survivor struct {
	place       replica.Place
	id          record.MemberID
	disk        string
	term, index uint64
	commit      uint64
	voters      []record.MemberID
	changes     []record.ConfigChange
}

// findSurvivors is row 22's condition: quorum is gone for good, but each quorum that can ever have acknowledged a write
// has a member among the survivors, so the newest log among them holds every acknowledged write.
func (h History) findSurvivors(o *Observation) {
	s := h.survivors()
	now := s[0].certain()
	alive, back := 0, 0
	for _, v := range now {
		switch {
		case v == h.MemberID():
			alive++
		case h.memberEnded(v) || h.voterGone(v):
		case h.vmGone(v):
			back++
		default:
			alive++
		}
	}
	switch {
	case alive >= QuorumOf(len(now)):
		return
	case alive+back >= QuorumOf(len(now)):
		o.Survivors22 = PolicyWaitsForDisk
		return
	}
	if why := h.notEnough(s); why != "" {
		o.Survivors22, o.Names.PolicyText = PolicyNotEnough, why
		return
	}
	o.Survivors22 = PolicyOffers
	if h.Policy.Survivors {
		o.Survivors22 = PolicyActs
	}
	best := newestLog(s)
	o.Names.PolicyText = fmt.Sprintf("the survivors hold every acknowledged write; the newest log is that of %s, at "+
		"term %d, index %d", best.place, best.term, best.index)
	o.Names.PolicyOrder = best.order(h.Formed.Number)
}

// order is the order to restore from the survivor's directory, or from that of one that turns out to reach further.
func (s survivor) order(ends uint64) *record.RestoreOrder {
	return &record.RestoreOrder{Ends: ends, Replica: s.place, Term: s.term, Commit: s.index, Newest: true,
		From: record.Source{Kind: record.SourceDirectory, MemberID: s.id, DiskID: s.disk}}
}

// me is this replica as a survivor.
func (h History) me() survivor {
	d := h.Directory
	return survivor{place: h.Me.Place, id: h.MemberID(), disk: h.DiskID, term: d.LastTerm, index: d.LastIndex,
		commit: d.Commit,
		voters: d.Voters, changes: d.Changes}
}

// survivors are this replica, first, and those whose stopped/ object carries the end of a log.
func (h History) survivors() []survivor {
	out := []survivor{h.me()}
	for _, s := range h.stoppedSurvivors() {
		if s.id != h.MemberID() {
			out = append(out, s)
		}
	}
	return out
}

// stoppedSurvivors are the members whose newest incarnation has ended as it said itself, with the end of its log, and
// whose disk has not gone since.
func (h History) stoppedSurvivors() (out []survivor) {
	for _, s := range h.Formed.Stopped {
		if s.LastIndex == 0 || s.MemberID == 0 || h.voterGone(s.MemberID) {
			continue
		}
		i, ok := h.IncarnationOf(s.MemberID)
		if !ok || i.Place != s.Place || i.Number != s.Incarnation || h.Formed.StoppedBy(i) == nil {
			continue
		}
		out = append(out, survivor{place: s.Place, id: s.MemberID, disk: i.DiskID, term: s.Term, index: s.LastIndex,
			commit: s.CommitIndex,
			voters: s.Voters, changes: s.Changes})
	}
	return out
}

// memberEnded: the newest incarnation that carries the member has ended as it said itself.
func (h History) memberEnded(id record.MemberID) bool {
	i, ok := h.IncarnationOf(id)
	return ok && h.Formed.StoppedBy(i) != nil
}

// notEnough says which possible configuration has a quorum without a survivor in it, or a voter that may still come
// back.
func (h History) notEnough(s []survivor) string {
	for _, one := range s {
		for _, voters := range one.possible() {
			held := 0
			for _, v := range voters {
				switch {
				case slices.ContainsFunc(s, func(x survivor) bool { return x.id == v }):
					held++
				case !h.memberEnded(v) && !h.voterGone(v):
					return fmt.Sprintf("voter %s is neither proven gone with its disk nor stopped", v)
				}
			}
			if need := len(voters) - QuorumOf(len(voters)) + 1; held < need {
				return fmt.Sprintf("of %d possible voters %d survive, and %d are needed to hold every "+
					"acknowledged write", len(voters), held, need)
			}
		}
	}
	return ""
}

// vmGone: the voter's VM is proven gone, its disk is not.
func (h History) vmGone(id record.MemberID) bool {
	i, ok := h.IncarnationOf(id)
	return ok && h.Gone(i.Place, i.InstanceID)
}

// certain is the configuration that raft will use: the one before the log with the changes that are known to be
// committed.
func (s survivor) certain() []record.MemberID {
	configurations, at := s.configurations()
	return configurations[at]
}

// possible are the configurations by which an entry that this log may lack can have been acknowledged: the certain one,
// each that the changes behind it would make, and the one before its last change, because etcd uses a configuration
// from when it is applied: what comes right after a change in the log can be committed together with it, by a quorum of
// the configuration before.
func (s survivor) possible() [][]record.MemberID {
	configurations, at := s.configurations()
	return configurations[max(at-1, 0):]
}

// configurations are all that the log knows of, and which of them is the certain one.
func (s survivor) configurations() (all [][]record.MemberID, certain int) {
	v := s.voters
	all = append(all, v)
	for _, c := range s.changes {
		v = ApplyChange(v, c)
		all = append(all, v)
		if c.Index <= s.commit {
			certain = len(all) - 1
		}
	}
	return all, certain
}

// ApplyChange is the set of voters after one change.
func ApplyChange(voters []record.MemberID, c record.ConfigChange) []record.MemberID {
	others := slices.DeleteFunc(slices.Clone(voters), func(v record.MemberID) bool { return v == c.MemberID })
	switch c.Type {
	case "add-voter":
		return append(others, c.MemberID)
	case "remove":
		return others
	}
	return voters
}

// newestLog is the survivor that raft would elect: by its last entry. The term that a member has seen says nothing: one
// that nobody votes for raises it with each try.
func newestLog(s []survivor) survivor {
	return slices.MaxFunc(s, func(a, b survivor) int {
		if a.term != b.term {
			return cmp.Compare(a.term, b.term)
		}
		return cmp.Compare(a.index, b.index)
	})
}

// QuorumOf of n voters.
func QuorumOf(n int) int { return n/2 + 1 }

// Configuration is every member, learners too, that the end of the log knows, whether the last changes were committed
// or not.
func (d Directory) Configuration() []record.MemberID {
	ids := append(append([]record.MemberID{}, d.Voters...), d.Learners...)
	for _, c := range d.Changes {
		if c.Type != "remove" {
			c.Type = "add-voter" // a learner is a member too
		}
		ids = ApplyChange(ids, c)
	}
	return ids
}
