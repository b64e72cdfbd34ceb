package leader

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/quorate/quorate/etcdmember/table"
	"github.com/quorate/quorate/internal/record"
	"github.com/quorate/quorate/internal/replica"
)

// maxVoters is where more voters only make writes slower.
const maxVoters = 7

// isDead: unreachable for a minute and proven gone, or declared so by an override; nobody has come back for its id or
// disk.
func (v view) isDead(m RingMember) (i record.Incarnation, dead bool) {
	if v.unreachableFor(m) < DeadAfter {
		return i, false
	}
	i, ok := v.instance(m)
	if v.h.Orders.Overrides(42, m.ID) {
		return i, true
	}
	return i, ok && v.h.Gone(i.Place, i.InstanceID) && !v.returning(m, i)
}

// returning: a newer incarnation of its place claims its id or its disk.
func (v view) returning(m RingMember, i record.Incarnation) bool {
	return slices.ContainsFunc(v.Record.Replicas[i.Place], func(later record.Incarnation) bool {
		newer := later.Number > i.Number || later.Number == i.Number && later.InstanceID != i.InstanceID
		return newer && (table.IncarnationMember(later) == m.ID || later.DiskID != "" && later.DiskID == i.DiskID)
	})
}

func (v view) removeDead(m RingMember, why string) (table.Plan, bool) {
	if !v.restHasQuorum(m.ID) {
		return wait(table.WaitNoQuorumWithoutIt,
			fmt.Sprintf("%s is gone, but the others that are connected would be no "+
				"quorum without it.", Title(m)), "It is removed when enough of the others are back."), true
	}
	return table.Plan{Act: table.ActRemoveMember, MemberID: m.ID, Reason: Title(m) + " " + why}, true
}

// deadVoter is row 40.
func (v view) deadVoter() (table.Plan, bool) {
	for _, m := range v.voters {
		i, dead := v.isDead(m)
		if !dead {
			continue
		}
		if v.h.Orders.Overrides(42, m.ID) {
			return v.removeDead(m, "is unreachable, and an operator's override says that it is gone")
		}
		if v.h.GoneWithDisk(i) {
			return v.removeDead(m, "is proven gone with its disk")
		}
	}
	return table.Plan{}, false
}

// deadVoterWithDisk is row 41.
func (v view) deadVoterWithDisk() (table.Plan, bool) {
	for _, m := range v.voters {
		i, dead := v.isDead(m)
		if !dead || v.h.GoneWithDisk(i) {
			continue
		}
		if len(v.learners) > 0 || v.unreachableFor(m) >= diskWait {
			return v.removeDead(m, "is proven gone, and its disk has not come back or a replacement is waiting")
		}
		return wait(table.WaitMemberDiskLeft, fmt.Sprintf("%s is proven gone, and its data disk still exists or is "+
				"not known.", Title(m)),
				"Recreate the VM with its disk. After ten minutes, or when a replacement joins, the member is "+
					"removed."),
			true
	}
	return table.Plan{}, false
}

// unreachableVoter is row 42.
func (v view) unreachableVoter() (table.Plan, bool) {
	for _, m := range v.voters {
		if _, dead := v.isDead(m); dead || v.unreachableFor(m) < DeadAfter {
			continue
		}
		return wait(table.WaitMemberUnreachable,
			fmt.Sprintf("%s has been unreachable for %s, and nothing proves that it "+
				"is gone.", Title(m), v.unreachableFor(m).Round(time.Second)),
			fmt.Sprintf("Run `quorate status` on that replica first: it says what its member waits for, "+
				"such as a full disk. Else repair or recreate its VM. "+
				"Only if it can never come back, `quorate override unreachable-voter %s "+
				"--reason TEXT` removes it.", m.ID)), true
	}
	return table.Plan{}, false
}

// leaving is row 45. What section 5 says of three to two is a row of its own below it: a pause holds that back. Of
// several that are to leave, those that are away go first, because the others count on them in vain; and one that has
// to wait holds no other up.
func (v view) leaving() (waits table.Plan, found bool) {
	members := slices.Clone(v.Members)
	slices.SortStableFunc(members, func(a, b RingMember) int { return cmp.Compare(away(v, a), away(v, b)) })
	for _, m := range members {
		p, ok := v.placeOf(m)
		order := v.h.Orders.Left(p)
		if !ok || order == nil {
			continue
		}
		plan := v.leaveByOrder(m, p, *order)
		if plan.Act != table.ActWait {
			return plan, true
		}
		if !found {
			waits, found = plan, true
		}
	}
	return waits, found
}

// away sorts those that the leader does not hear of before the others.
func away(v view, m RingMember) int {
	if v.reachable(m) {
		return 1
	}
	return 0
}

// leaveByOrder is what is done for one member that is ordered to leave: a voter leaves after a snapshot, if one can be
// had, and each once it serves nobody any more, if it can be asked.
func (v view) leaveByOrder(m RingMember, p replica.Place, order record.Order) table.Plan {
	plan, _ := v.leave(m, fmt.Sprintf("order %d says that %s leaves", order.Number, p))
	switch {
	case plan.Act == table.ActWait:
	case !m.Learner && v.snapshotOld() && !longAgo(v.now, order.Time, leavePatience):
		plan = wait(table.WaitSnapshotFirst,
			fmt.Sprintf("order %d says that %s leaves, and a snapshot is saved before.",
				order.Number, p),
			fmt.Sprintf("A voter saves one by itself. Without one %s leaves %s after the order was given.", p,
				leavePatience))
	case plan.Act == table.ActRemoveMember && v.drains(m, order):
		plan = waitDrained(fmt.Sprintf("order %d says that %s leaves", order.Number, p), "after the order was given")
	}
	plan.OrderNumber = order.Number
	return plan
}

// drains reports whether a replica may still serve clients and is going to end that. Its word is the order's
// acceptance. While it could not be removed it went on serving, or began again, whatever it had said before.
func (v view) drains(m RingMember, order record.Order) bool {
	since, drained := order.Time, order.Accepted != nil
	if m.FreedAt.After(since) {
		since = m.FreedAt
		drained = drained && m.FreedAt.Sub(order.Accepted.Time) < StaysDrained
	}
	return v.Balanced && v.reachable(m) && !drained && !longAgo(v.now, since, drainPatience)
}

// waitDrained is for a replica that says on its order that it serves nobody any more.
func waitDrained(why, since string) table.Plan {
	return wait(table.WaitDrainsFirst, why+", and it leaves the load balancer before.",
		fmt.Sprintf("It says so by itself once it serves nobody any more. Without a word this waits no longer than %s "+
			"%s.", drainPatience, since))
}

// snapshotOld reports that there is no snapshot young enough to go before a planned change.
func (v view) snapshotOld() bool {
	return v.SnapshotAt.IsZero() || v.now.Sub(v.SnapshotAt) > SnapshotYoung
}

// leave removes a member by order. A learner counts for nothing, a voter must leave a quorum behind.
func (v view) leave(m RingMember, why string) (table.Plan, bool) {
	switch {
	case m.Learner:
		return table.Plan{Act: table.ActRemoveMember, MemberID: m.ID, Reason: why}, true
	case len(v.voters) == 1:
		return wait(table.WaitLeaveLastVoter, Title(m)+" is the only voter.",
			"Add a replica: it is promoted in its place. Or take the order back: `quorate orders withdraw N`."), true
	case !v.restHasQuorum(m.ID):
		return wait(table.WaitLeaveNeedsQuorum,
			"without "+Title(m)+" the voters that are connected would be no quorum.",
			"Bring the others back, or take the order back: `quorate orders withdraw N`."), true
	case m.ID == v.Leader:
		return v.handOver(why)
	}
	return table.Plan{Act: table.ActRemoveMember, MemberID: m.ID, Reason: why}, true
}

// handOver moves leadership to the reachable voter that is furthest on.
func (v view) handOver(why string) (table.Plan, bool) {
	others := slices.DeleteFunc(slices.Clone(v.voters), func(m RingMember) bool {
		return m.ID == v.Leader ||
			!v.reachable(m)
	})
	if len(others) == 0 {
		return wait(table.WaitNoSuccessor,
			"leadership should be handed over ("+why+"), and no other voter is reachable.",
			"Bring another voter back."), true
	}
	best := slices.MaxFunc(others, func(a, b RingMember) int { return cmp.Compare(a.Match, b.Match) })
	return table.Plan{Act: table.ActMoveLeader, MemberID: best.ID, Reason: why}, true
}

// threeToTwo: two voters are left, two replicas are ordered, and nobody is on the way. The second
// becomes a warm copy: once it serves nobody any more it is removed and joins again as a learner. Two voters by
// accident are not asked: nobody ordered two.
func (v view) threeToTwo() (table.Plan, bool) {
	members := make([]table.Member, len(v.Members))
	for i, m := range v.Members {
		members[i] = m.Member
	}
	order := v.h.ToCopy(members)
	if order == nil || v.connected(0) != 2 {
		return table.Plan{}, false
	}
	if v.snapshotOld() {
		return wait(table.WaitSnapshotFirst,
			"two replicas are ordered, and the second voter becomes a learner after a "+
				"snapshot.", "A voter saves one by itself; `quorate snapshot save` on one saves one now."), true
	}
	for _, m := range v.voters {
		if m.ID == v.Leader {
			continue
		}
		if v.Balanced && !acceptedBy(*order, m) && !longAgo(v.now, v.twoSince(*order), drainPatience) {
			return waitDrained("two replicas are ordered: "+Title(m)+" joins again as a learner",
				"after the third has left"), true
		}
		return table.Plan{Act: table.ActRemoveMember, MemberID: m.ID,
			Reason: "two replicas are ordered: the second joins again as a learner"}, true
	}
	return table.Plan{}, false
}

// acceptedBy: it is this member that has accepted the order. Once the other one leads, its word is of no use.
func acceptedBy(o record.Order, m RingMember) bool {
	return o.Accepted != nil && o.Accepted.By == m.Name
}

// twoSince is about when two became the only ones: when their number was ordered, or the last one that was ordered to
// leave had left. That one is done a tick after its member is gone; until then it is now.
func (v view) twoSince(o record.Order) time.Time {
	since := o.Time
	for _, x := range v.h.Orders.All {
		switch {
		case x.Kind != record.OrderLeave:
		case x.Done == nil:
			return v.now
		case x.Done.Time.After(since):
			since = x.Done.Time
		}
	}
	return since
}

// evenVoters is row 49, and what a number of replicas that was ordered lacks: it names nobody, so it takes nobody out.
func (v view) evenVoters() (table.Plan, bool) {
	n := len(v.voters)
	if wanted := v.h.Orders.Replicas; wanted > 0 && len(v.Members) > wanted {
		return wait(table.WaitReplicasAboveWanted, fmt.Sprintf("%d replicas are ordered, and %d are members.", wanted,
			len(v.Members)),
			"Say which one leaves: `quorate orders give leave REPLICA`."), true
	}
	pending := len(v.learners) > 0 || v.connected(0) < n
	if pending || n%2 == 1 && n <= maxVoters {
		return table.Plan{}, false
	}
	if n%2 == 0 {
		return wait(table.WaitEvenVoters,
			fmt.Sprintf("there are %d voters: they survive no more failures than %d would.", n,
				n-1), "Add or remove a replica."), true
	}
	return wait(table.WaitManyVoters,
		fmt.Sprintf("there are %d voters: more than %d make writes slower and survive too "+
			"little more.", n, maxVoters), "Remove replicas."), true
}
