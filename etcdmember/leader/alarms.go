package leader

import (
	"slices"
	"time"

	"github.com/quorate/quorate/etcdmember/table"
)

const (
	// fullAt is the part of its quota, in percent, from which a database is worth defragmenting; below it an alarm may
	// be disarmed.
	fullAt = 90
	// freePart is the part of its quota, in percent, that a database must have to give back to be defragmented again.
	freePart = 10
)

// noSpace is row 48: compact, defragment the followers and last the leader, disarm. Learners defragment themselves
// (DefragmentsItself), because etcd does not do it for another.
func (v view) noSpace() (table.Plan, bool) {
	alarms := slices.DeleteFunc(slices.Clone(v.Alarms),
		func(a table.Alarm) bool { return a.Kind != table.AlarmNoSpace })
	if len(alarms) == 0 {
		return table.Plan{}, false
	}
	if !v.CompactedSince {
		return table.Plan{Act: table.ActCompact, Reason: "NOSPACE: old revisions are given up first"}, true
	}
	for _, m := range v.voters {
		if m.ID != v.Leader && v.worthDefrag(m) {
			return v.defragment(m)
		}
	}
	for _, m := range v.voters {
		if m.ID == v.Leader && v.worthDefrag(m) {
			if len(v.voters) > 1 {
				return v.handOver("NOSPACE: the leader is defragmented last, as a follower")
			}
			return v.defragment(m)
		}
	}
	for _, m := range v.Members {
		if p, stays := v.staysFull(m); stays {
			return p, true
		}
	}
	return table.Plan{Act: table.ActDisarm, Alarm: alarms[0], MemberID: alarms[0].MemberID,
		Reason: "every database in reach has room again"}, true
}

// staysFull: a database in reach is full, or may be. One that is out of reach must not keep the cluster from writing
// until it is back: if it is full then, etcd raises the alarm again. So it does for a learner of unknown size, which
// may take minutes to begin to serve.
func (v view) staysFull(m RingMember) (table.Plan, bool) {
	switch {
	case !v.reachable(m) || m.Learner && m.Quota == 0:
		return table.Plan{}, false
	case m.Learner && full(m) && v.inUse(m)*100 < m.Quota*fullAt:
		return wait(table.WaitNoSpace, Title(m)+"'s database is at its quota, and writes are refused.",
			"As a learner it is defragmented by its own agent."), true
	case m.Quota == 0 || full(m):
		return wait(table.WaitNoSpace,
			Title(m)+"'s database is at its quota, or its size is not known, and writes are refused.",
			"Raise etcd.quotaBytes, or delete what fills it."), true
	}
	return table.Plan{}, false
}

// DefragmentsItself reports whether a learner's agent has its member give its free pages back, for row 48. full is
// since when this agent knows that it is full while NOSPACE stands, done when this was done last; zero: never. Before
// anything was freed the leader compacts, and what that frees may not be counted yet (see inUse): with time passing, it
// is done without.
func DefragmentsItself(now time.Time, d table.Database, full, done time.Time) bool {
	frees := (d.Bytes-d.InUse)*100 >= d.Quota*freePart
	switch {
	case done.IsZero():
		return frees && now.Sub(full) >= learnerPause || now.Sub(full) >= learnerPatience
	case frees:
		return now.Sub(done) > defragPause
	}
	return now.Sub(done) > defragAgain
}

// IsFull reports whether a member is at nine tenths of its quota or more, and NOSPACE stands.
func IsFull(s table.MemberStatus) bool {
	return slices.ContainsFunc(s.Alarms, func(a table.Alarm) bool { return a.Kind == table.AlarmNoSpace }) &&
		full(RingMember{DBSize: s.Database.Bytes, Quota: s.Database.Quota})
}

func (v view) defragment(m RingMember) (table.Plan, bool) {
	if v.SnapshotInFlight {
		return wait(table.WaitNoSpace, "a database is full, and a member is receiving the state.",
			"It is defragmented when that is done."), true
	}
	return table.Plan{Act: table.ActDefragment, MemberID: m.ID, Reason: "NOSPACE: " + Title(m) +
			" has room to give back"},
		true
}

// full: at nine tenths of the quota or more.
func full(m RingMember) bool { return m.Quota > 0 && m.DBSize*100 >= m.Quota*fullAt }

// worthDefrag: full, with free pages to give back, reachable, and not just done.
func (v view) worthDefrag(m RingMember) bool {
	since := v.now.Sub(m.DefragmentedAt)
	again := since > defragAgain || since > defragPause && (m.DBSize-m.DBInUse)*100 >= m.Quota*freePart
	return full(m) && v.reachable(m) && v.inUse(m)*100 < m.Quota*fullAt && again
}

// inUse is what the data need in a member's database: the least that a member in reach has in use. All hold the same.
// One that has written nothing since a compaction may count the freed pages as used, and while there is no space nobody
// writes (bbolt counts free pages when a transaction ends, and frees those of the one before when it begins).
func (v view) inUse(m RingMember) int64 {
	least := m.DBInUse
	for _, other := range v.Members {
		if v.reachable(other) && other.Quota > 0 {
			least = min(least, other.DBInUse)
		}
	}
	return least
}
