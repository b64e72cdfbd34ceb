package leader

import (
	"fmt"
	"slices"

	"github.com/quorate/quorate/etcdmember/table"
	"github.com/quorate/quorate/internal/record"
)

// Rows 46 and 47: members whose data differ. What etcd says about who is wrong is not enough: one of its checks takes
// the leader to be right. So a member is replaced where a majority of hashes outvotes it, or where a person's override
// of row 47 names it, whomever the alarms are about.

// corrupt are the ids with a CORRUPT alarm, those of members that are gone too.
func (v view) corrupt() []record.MemberID {
	var out []record.MemberID
	for _, a := range v.Alarms {
		if a.Kind == table.AlarmCorrupt {
			out = append(out, a.MemberID)
		}
	}
	return out
}

func (v view) isMember(id record.MemberID) bool {
	return slices.ContainsFunc(v.Members, func(m RingMember) bool { return m.ID == id })
}

// corruptUnknown is row 47: nobody can say who is right, so nothing is done at all, and nothing disarmed.
func (v view) corruptUnknown() (table.Plan, bool) {
	ids := v.corrupt()
	present := slices.DeleteFunc(slices.Clone(ids), func(id record.MemberID) bool { return id != 0 && !v.isMember(id) })
	if len(present) == 0 {
		return table.Plan{}, false
	}
	if _, ok := v.namedWrong(); ok || v.settled() {
		return table.Plan{}, false
	}
	text := ""
	switch {
	case slices.Contains(present, 0):
		text = "the members' data differ, and no majority says who is wrong."
	case len(present) > 1:
		text = fmt.Sprintf("%d members are corrupt.", len(present))
	default:
		if text = v.noMajority(present[0]); text == "" {
			return table.Plan{}, false
		}
	}
	return table.Plan{Act: table.ActHalt}.Waiting(table.WaitCorrupt, text,
		"All automation stands still, and the alarm is not disarmed. Compare the members, "+
			"then `quorate override members-differ MEMBER --reason TEXT` or `quorate restore`."), true
}

// namedWrong is a member that an override of row 47 names, of those that can go: the last voter is the data.
func (v view) namedWrong() (RingMember, bool) {
	for _, m := range v.Members {
		if v.h.Orders.Overrides(47, m.ID) && (m.Learner || len(v.voters) > 1) {
			return m, true
		}
	}
	return RingMember{}, false
}

// settled: the data differ no more, so the alarms that are left can be disarmed: all voters that can be asked hold the
// same. Two cases need an override as well, by which a person has said who was wrong, and whose member is gone. One is
// a single voter, which agrees with itself. The other is an alarm that names nobody while a voter has not given its
// hash: that one may be the one that differs, and be back in a moment.
func (v view) settled() bool {
	named := slices.ContainsFunc(v.h.Orders.All, func(o record.Order) bool {
		return o.Kind == record.OrderOverride && o.Row == 47 && o.Done == nil && !v.isMember(o.MemberID)
	})
	silent := slices.ContainsFunc(v.voters, func(m RingMember) bool { return m.Hash == 0 || m.HashRevision == 0 })
	return (named || len(v.voters) > 1 && !(silent && slices.Contains(v.corrupt(), 0))) && v.sameData(0) == ""
}

// noMajority says why the others cannot outvote the corrupt one; empty: they can.
func (v view) noMajority(id record.MemberID) string {
	switch {
	case !slices.ContainsFunc(v.voters, func(m RingMember) bool { return m.ID == id }):
		return "" // a learner: nobody relies on it
	case len(v.voters) < 3:
		return fmt.Sprintf("member %s is corrupt as etcd says, and of %d voters no majority is left to say so.", id,
			len(v.voters))
	}
	if why := v.sameData(id); why != "" {
		return fmt.Sprintf("member %s is corrupt as etcd says, and %s.", id, why)
	}
	return ""
}

// sameData says why the voters besides one (0: besides none) are not known to hold the same. One that is out of reach
// may be dead, and nobody would remove it while all stands still: it is not waited for where a quorum of all voters
// agrees without it.
func (v view) sameData(besides record.MemberID) string {
	if len(v.voters) == 1 {
		return ""
	}
	var first RingMember
	given, silent := 0, ""
	for _, m := range v.voters {
		switch known := m.Hash != 0 && m.HashRevision != 0; {
		case m.ID == besides:
		case !known && v.reachable(m):
			return Title(m) + " has not given its hash"
		case !known:
			silent = Title(m)
		case given == 0:
			first, given = m, 1
		case m.Hash != first.Hash || m.HashRevision != first.HashRevision:
			return fmt.Sprintf("%s and %s differ too", Title(first), Title(m))
		default:
			given++
		}
	}
	if given < table.QuorumOf(len(v.voters)) {
		return silent + " has not given its hash"
	}
	return ""
}

// corruptOne is row 46: the one member is removed, its agent puts the directory away and joins again, and then the
// alarm of the id that is no longer there is disarmed: it blocks writes until then.
func (v view) corruptOne() (table.Plan, bool) {
	ids := v.corrupt()
	if len(ids) == 0 {
		return table.Plan{}, false
	}
	if m, ok := v.namedWrong(); ok {
		return v.replaceCorrupt(m, fmt.Sprintf("an operator's override says that member %s is the one that is wrong",
			m.ID))
	}
	id := ids[0]
	n := slices.IndexFunc(v.Members, func(m RingMember) bool { return m.ID == id })
	switch {
	case n < 0 && id != 0:
		return v.disarmCorrupt(id, "the corrupt member is removed")
	case n < 0 || v.settled() && v.agrees(v.Members[n]):
		return v.disarmCorrupt(id, "the members that differed are gone, and all voters agree")
	}
	return v.replaceCorrupt(v.Members[n], fmt.Sprintf("member %s is corrupt, and the others agree", id))
}

// agrees: its hash is the voters'. One that has not given it is not known to agree: it may be the one that differs, out
// of reach for a moment. A single voter has only itself to agree with.
func (v view) agrees(m RingMember) bool {
	return !m.Learner && len(v.voters) == 1 || m.Hash != 0 &&
		slices.ContainsFunc(v.voters, func(x RingMember) bool {
			return x.Hash == m.Hash &&
				x.HashRevision == m.HashRevision
		})
}

func (v view) disarmCorrupt(id record.MemberID, why string) (table.Plan, bool) {
	return table.Plan{Act: table.ActDisarm, Alarm: table.Alarm{MemberID: id, Kind: table.AlarmCorrupt}, MemberID: id,
		Reason: why}, true
}

// replaceCorrupt removes a member whose data is wrong; the leader hands over first.
func (v view) replaceCorrupt(m RingMember, why string) (table.Plan, bool) {
	switch {
	case m.Learner:
	case m.ID == v.Leader:
		return v.handOver(why)
	case !v.restHasQuorum(m.ID):
		return wait(table.WaitCorruptMember, why+", but those that are connected would be no quorum without it.",
			"Bring the others back."), true
	}
	return table.Plan{Act: table.ActRemoveMember, MemberID: m.ID, Reason: why}, true
}
