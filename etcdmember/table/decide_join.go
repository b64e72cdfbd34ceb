package table

import (
	"fmt"
	"time"
)

// The steps of a join, as docs/membership.md numbers them. Step 5 (agent.json `added`) belongs to the act of step 4,
// step 9 (caught up) is seen by the leader.
const (
	joinPending = 1
	joinFormer  = 2
	joinMark    = 3
	joinAdd     = 4
	joinSeen    = 6
	joinConfirm = 7
	joinStart   = 8
)

// doJoin is row 23: the next step of a join, found from the record, agent.json and the member list alone. It begins
// only where a member could start: each try that comes to nothing leaves an incarnation in the record for ever.
func doJoin(o Observation, _ time.Time) Plan {
	epoch := o.Names.FormedEpoch
	p := Plan{Epoch: epoch, Incarnation: o.Names.Incarnation, MemberID: o.Names.MemberID}
	switch {
	case o.PeersSilent:
		p.Act = ActWait
		p = p.Waiting(WaitPeersDoNotConnect, "the members answer this replica on their client ports, and none on "+
			"its peer port, where a member that joins begins.",
			fmt.Sprintf("Open port %d between the masters, in both directions; if it is open, etcd's logs say which "+
				"certificate is refused.", PeerPort))
		p.Blocked.Patience = portPatience
	case o.Successor != "":
		return o.waitForRecord()
	case !o.ownsJoin():
		p = Plan{Act: ActTakeIncarnation, Epoch: epoch, Incarnation: o.Names.NextIncarnation, Step: joinPending,
			Reason: "before anything is changed under this incarnation"}
	case len(o.Former) > 0:
		p = Plan{Act: ActRemoveMember, MemberID: o.Former[0], Step: joinFormer,
			Reason: "an entry of this place's own past, whose disk is gone"}
	case o.NoRoom != "" && !o.Reusable:
		p.Act = ActWait
		p = p.Waiting(WaitNoRoom, "a copy of the cluster's state does not fit on the data disk: "+o.NoRoom+".",
			"Make the data disk larger, or move the oldest directories in `archive/` on it to another disk: they are "+
				"purged only once this replica is a voter again. It goes on by itself.")
	case o.Reusable && !o.ListedByAll:
		p.Act, p.Step = ActWait, joinSeen
		p = p.Waiting(WaitJoinNotSeenByAll, "not every connected member lists the new learner yet.",
			"It goes on by itself.")
	case o.Reusable && o.Pending:
		p.Act, p.Step, p.Reason = ActConfirmIncarnation, joinConfirm,
			"the learner was added for this disk and every member lists it"
	case o.Reusable:
		p.Act, p.Step, p.Reason = ActStartJoined, joinStart, "the incarnation is confirmed"
	case o.Phase != PhaseAdding:
		p = Plan{Act: ActMarkAdding, Epoch: epoch, Step: joinMark, Reason: "no entry of this place is in the list"}
	default:
		p = Plan{Act: ActAddLearner, Epoch: epoch, Step: joinAdd, Reason: "no entry of this place is in the list"}
	}
	return p
}

// Joins: the plan starts a member that joins, or takes the incarnation that comes first.
func (p Plan) Joins() bool {
	return p.Wants() == ActStartJoined || p.Wants() == ActTakeIncarnation && p.Step == joinPending
}

// ownsJoin: the incarnation is this join's own. One that is confirmed belongs to the member that it was confirmed
// for: where that entry is not the one added for this disk, the next member needs the next incarnation, because
// started.json is written once and the leader promotes only the id that it names.
func (o Observation) ownsJoin() bool {
	return o.OwnIncarnation && (o.Pending || o.Confirmed && o.Reusable)
}
