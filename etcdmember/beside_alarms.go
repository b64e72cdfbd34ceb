package etcdmember

import (
	"fmt"
	"slices"
	"time"

	"github.com/quorate/quorate/internal/record"
)

const (
	// fullAt is the part of its quota, in percent, from which a database is worth defragmenting; below it an alarm may be disarmed.
	fullAt = 90
	// freePart is the part of its quota, in percent, that a database must have to give back to be defragmented again.
	freePart = 10
	// defragPause and defragAgain are how long after a defragmentation the next may follow, where a compaction has freed that much since,
	// and where it has not. One that failed lets the others go first.
	defragPause = 10 * time.Second
	defragAgain = 10 * time.Minute
)

// corrupt are the ids with a CORRUPT alarm, those of members that are gone too.
func (v besideView) corrupt() []record.MemberID {
	var out []record.MemberID
	for _, a := range v.Alarms {
		if a.Kind == AlarmCorrupt {
			out = append(out, a.MemberID)
		}
	}
	return out
}

func (v besideView) isMember(id record.MemberID) bool {
	return slices.ContainsFunc(v.Members, func(m RingMember) bool { return m.ID == id })
}

// corruptUnknown is row 47: nobody can say who is right, so nothing is done at all, and nothing disarmed.
func (v besideView) corruptUnknown() (Plan, bool) {
	ids := v.corrupt()
	present := slices.DeleteFunc(slices.Clone(ids), func(id record.MemberID) bool { return id != 0 && !v.isMember(id) })
	text := ""
	switch {
	case len(present) == 0:
		return Plan{}, false
	case slices.Contains(present, 0):
		text = "the members' data differ, and no majority says who is wrong."
	case len(present) > 1:
		text = fmt.Sprintf("%d members are corrupt.", len(present))
	case v.h.orders.overrides(47, present[0]):
		return Plan{}, false
	default:
		if text = v.noMajority(present[0]); text == "" {
			return Plan{}, false
		}
	}
	return halt("corrupt", text, "All automation stands still, and the alarm is not disarmed. Compare the members, then `quorate override 47 MEMBER --reason TEXT` or `quorate restore`."), true
}

// noMajority says why the others cannot outvote the corrupt one; empty: they can.
func (v besideView) noMajority(id record.MemberID) string {
	n := slices.IndexFunc(v.voters, func(m RingMember) bool { return m.ID == id })
	switch {
	case n < 0:
		return "" // a learner: nobody relies on it
	case len(v.voters) < 3:
		return fmt.Sprintf("member %s is corrupt by etcd's word, and of %d voters no majority is left to say so.", id, len(v.voters))
	}
	var first RingMember
	for _, m := range v.voters {
		switch {
		case m.ID == id:
		case m.Hash == 0 || m.HashRevision == 0:
			return fmt.Sprintf("member %s is corrupt by etcd's word, and %s has not told its hash.", id, title(m))
		case first.ID == 0:
			first = m
		case m.Hash != first.Hash || m.HashRevision != first.HashRevision:
			return fmt.Sprintf("member %s is corrupt by etcd's word, and %s and %s differ too.", id, title(first), title(m))
		}
	}
	return ""
}

// corruptOne is row 46: the one member is removed, its agent puts the directory away and joins again, and then the alarm of the id
// that is no longer there is disarmed: it blocks writes until then.
func (v besideView) corruptOne() (Plan, bool) {
	ids := v.corrupt()
	if len(ids) == 0 {
		return Plan{}, false
	}
	id := ids[0]
	n := slices.IndexFunc(v.Members, func(m RingMember) bool { return m.ID == id })
	why := fmt.Sprintf("member %s is corrupt, and the others agree", id)
	switch {
	case n < 0:
		return Plan{Act: ActDisarm, Alarm: Alarm{MemberID: id, Kind: AlarmCorrupt}, MemberID: id, Reason: "the corrupt member is removed"}, true
	case v.Members[n].Learner:
	case id == v.Leader:
		return v.handOver(why)
	case !v.restHasQuorum(id):
		return wait("corrupt-member", why+", but those that are connected would be no quorum without it.", "Bring the others back."), true
	}
	return Plan{Act: ActRemoveMember, MemberID: id, Reason: why}, true
}

// noSpace is row 48: compact, defragment the followers and last the leader, disarm.
func (v besideView) noSpace() (Plan, bool) {
	alarms := slices.DeleteFunc(slices.Clone(v.Alarms), func(a Alarm) bool { return a.Kind != AlarmNoSpace })
	if len(alarms) == 0 {
		return Plan{}, false
	}
	if !v.CompactedSince {
		return Plan{Act: ActCompact, Reason: "NOSPACE: old revisions are given up first"}, true
	}
	for _, m := range v.Members {
		if m.ID != v.Leader && v.worthDefrag(m) {
			return v.defragment(m)
		}
	}
	for _, m := range v.Members {
		if m.ID == v.Leader && v.worthDefrag(m) {
			if len(v.voters) > 1 {
				return v.handOver("NOSPACE: the leader is defragmented last, as a follower")
			}
			return v.defragment(m)
		}
	}
	for _, m := range v.Members {
		if m.Quota == 0 || full(m) {
			return wait("no-space", title(m)+"'s database is at its quota, or its size is not known, and writes are refused.", "Raise etcd.quotaBytes, or delete what fills it."), true
		}
	}
	return Plan{Act: ActDisarm, Alarm: alarms[0], MemberID: alarms[0].MemberID, Reason: "every database has room again"}, true
}

func (v besideView) defragment(m RingMember) (Plan, bool) {
	if v.SnapshotInFlight {
		return wait("no-space", "a database is full, and a member is receiving the state.", "It is defragmented when that is done."), true
	}
	return Plan{Act: ActDefragment, MemberID: m.ID, Reason: "NOSPACE: " + title(m) + " has room to give back"}, true
}

// full: at nine tenths of the quota or more.
func full(m RingMember) bool { return m.Quota > 0 && m.DBSize*100 >= m.Quota*fullAt }

// worthDefrag: full, with free pages to give back, reachable, and not just done.
func (v besideView) worthDefrag(m RingMember) bool {
	since := v.now.Sub(m.DefragmentedAt)
	again := since > defragAgain || since > defragPause && (m.DBSize-m.DBInUse)*100 >= m.Quota*freePart
	return full(m) && v.reachable(m) && m.DBInUse*100 < m.Quota*fullAt && again
}
