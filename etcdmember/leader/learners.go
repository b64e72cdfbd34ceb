package leader

import (
	"fmt"
	"slices"

	"github.com/quorate/quorate/etcdmember/table"
	"github.com/quorate/quorate/internal/record"
)

// MaxLag is how many entries a learner may be behind when it is promoted. etcd's own rule is a tenth of the whole log.
const MaxLag = 1000

// stuckLearner is row 43. A learner that is heard of has started, whether it has published its name or not: an idle
// cluster can hold that back for ever, and promotion ends it.
func (v view) stuckLearner() (table.Plan, bool) {
	for _, m := range v.learners {
		if why := v.stuck(m); why != "" {
			return table.Plan{Act: table.ActRemoveMember, MemberID: m.ID,
					Reason: Title(m) + " " + why + "; its agent joins again"},
				true
		}
	}
	return table.Plan{}, false
}

func (v view) stuck(m RingMember) string {
	i, known := v.h.IncarnationOf(m.ID)
	if !m.Started() && !v.reachable(m) {
		// When it was confirmed, the clock of its VM says, which may be an hour wrong: this replica's own has to
		// agree, and is enough in the end.
		away := v.unreachableFor(m)
		switch confirmed := known && i.Started != nil; {
		case confirmed && away >= unheardTime && v.now.Sub(i.Started.Time) >= startTime:
			return "was confirmed two minutes ago and has not started"
		case confirmed && away >= stallTime:
			return "was confirmed, and has not been heard of for five minutes"
		case !confirmed && away >= stallTime:
			return "was added, and its agent never confirmed it"
		}
		return ""
	}
	sending := m.State == ProgressSnapshot || m.PendingSnapshot != 0 || v.SnapshotInFlight
	if m.Match < v.LastIndex && !sending && !m.MovedAt.IsZero() && v.now.Sub(m.MovedAt) >= stallTime {
		return "is behind and has not moved for five minutes"
	}
	return ""
}

// promotable is row 44 with the rule of section 5.
func (v view) promotable() (table.Plan, bool) {
	var ready []RingMember
	why := ""
	var other []RingMember
	for _, m := range v.learners {
		switch w := v.notReady(m); {
		case w == "" && !v.sameVersion(m):
			other = append(other, m)
		case w == "":
			ready = append(ready, m)
		case why == "":
			why = Title(m) + " " + w
		}
	}
	if len(ready) == 0 {
		if len(other) > 0 {
			return v.otherVersion(other[0]), true
		}
		if why == "" {
			return table.Plan{}, false
		}
		next := "It is promoted as soon as it is ready."
		if v.pair() {
			next = "As one of two replicas it stays a learner; it catches up by itself as soon as it is heard of."
		}
		return wait(table.WaitLearnerNotReady, why+".", next), true
	}
	if w := v.mayGrow(len(ready)); w != "" {
		if v.pair() {
			return table.Plan{}, false // the learner is where it belongs
		}
		if len(other) > 0 {
			return v.otherVersion(other[0]), true
		}
		return wait(table.WaitThirdReplicaMissing, w, "Both are promoted as soon as a third replica has caught up."),
			true
	}
	return table.Plan{Act: table.ActPromote, MemberID: ready[0].ID, Reason: Title(ready[0]) + " has caught up"}, true
}

// pair: two replicas, as wanted.
func (v view) pair() bool { return v.h.Wanted() <= 2 && len(v.Members) <= 2 }

// mayGrow is the two-replica rule: one voter becomes two only on the way to three, or to give its place up. It says why
// not.
func (v view) mayGrow(ready int) string {
	switch n := len(v.voters); {
	case n == 1 && ready < 2 && !v.voterLeaves():
		return "two voters would survive no failure and have two that can fail, so the second replica stays a learner."
	case n >= maxVoters:
		return fmt.Sprintf("there are %d voters already.", n)
	}
	return ""
}

// voterLeaves: the only voter is ordered to leave, so its learner takes over.
func (v view) voterLeaves() bool {
	p, ok := v.placeOf(v.voters[0])
	return ok && v.h.Orders.Left(p) != nil
}

// notReady says what a learner lacks to be promoted; empty: nothing. etcd itself would promote one that has been dead
// for 8 s.
func (v view) notReady(m RingMember) string {
	if why := v.lacks(v.Ring, m.ID); why != "" {
		return why
	}
	gap := v.At.Sub(v.previous.At)
	if gap < PollGap || gap > pollStale || v.lacks(v.previous, m.ID) != "" {
		return "was not caught up yet at the poll before"
	}
	i, ok := v.h.IncarnationOf(m.ID)
	switch {
	case !ok || !v.newestConfirmed(i, m.ID):
		return "is not the member that its place's newest confirmed incarnation names"
	case v.h.Orders.Left(i.Place) != nil:
		return "is ordered to leave"
	case slices.ContainsFunc(v.Alarms, func(a table.Alarm) bool { return a.MemberID == m.ID }):
		return "has an alarm"
	case v.connected(0)+1 < table.QuorumOf(len(v.voters)+1):
		return "would make a quorum necessary that is not connected"
	}
	return ""
}

// lacks is the part that must hold on two polls.
func (v view) lacks(r Ring, id record.MemberID) string {
	n := slices.IndexFunc(r.Members, func(m RingMember) bool { return m.ID == id })
	if n < 0 {
		return "was not there at the poll before"
	}
	return r.Members[n].Lacks(r.LastIndex)
}

// Lacks is what the leader's raft says of a learner, whose own log ends at last.
func (m RingMember) Lacks(last uint64) string {
	switch {
	case !m.RecentActive || !m.StreamsActive:
		return "is not heard of by the leader"
	case m.State == ProgressSnapshot:
		return "is receiving the state"
	case m.Match+MaxLag < last:
		return fmt.Sprintf("is %d entries behind", last-m.Match)
	}
	return ""
}

// newestConfirmed: the newest confirmed incarnation of the place is for this member.
func (v view) newestConfirmed(i record.Incarnation, id record.MemberID) bool {
	current := v.Record.Current(i.Place)
	return len(current) > 0 && current[0].Started != nil && current[0].Started.MemberID == id
}

// sameVersion: the learner's etcd is of the cluster's minor version. etcd itself refuses one that is older (it does not
// start), and would let a newer one become a voter: that would begin an upgrade with the one member that has no past.
func (v view) sameVersion(m RingMember) bool { return table.SameMinor(m.Version, v.ClusterVersion) }

func (v view) otherVersion(m RingMember) table.Plan {
	says, cluster := "runs etcd "+m.Version, "the cluster's version is "+v.ClusterVersion
	if m.Version == "" {
		says = "does not say which etcd it runs"
	}
	if v.ClusterVersion == "" {
		cluster = "the cluster's version is not decided yet"
	}
	return wait(table.WaitLearnerOtherVersion, fmt.Sprintf("%s %s, and %s.", Title(m), says, cluster),
		"It is promoted once it runs the version of the others: recreate its VM with their image, or upgrade those "+
			"with their disks.")
}
