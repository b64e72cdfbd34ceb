package table

import (
	"fmt"
	"time"
)

// takeIncarnation is the first half of an incarnation: the number stands in the record before it stands on the disk.
func (o Observation) takeIncarnation(epoch uint64, why string) Plan {
	return Plan{Act: ActTakeIncarnation, Epoch: epoch, Incarnation: o.Names.NextIncarnation, MemberID: o.Names.MemberID,
		Reason: why}
}

// doStartUnderIncarnation is rows 25 and 28: the incarnation is taken and confirmed, then the directory starts.
func doStartUnderIncarnation(o Observation, _ time.Time) Plan {
	epoch := o.Names.DiskEpochNumber
	switch {
	case o.OwnIncarnation && o.Confirmed:
		return o.WithOffer(Plan{Act: ActStart, Epoch: epoch, Incarnation: o.Names.Incarnation,
			MemberID: o.Names.MemberID,
			Reason:   "the directory is valid and of the open epoch"})
	case o.OwnIncarnation && o.Pending:
		return Plan{Act: ActConfirmIncarnation, Epoch: epoch, Incarnation: o.Names.Incarnation,
			MemberID: o.Names.MemberID, Reason: "the disk carries the incarnation"}
	}
	return o.takeIncarnation(epoch, "another instance, boot or disk than the last one")
}

// WithOffer adds what can be restored from, where no row may do it, or can, without a person.
func (o Observation) WithOffer(p Plan) Plan {
	text := o.Names.PolicyText
	command := "A new history can be begun with `quorate restore`, which shows what would be lost, and asks."
	switch {
	case o.Remote == Quorum || o.Record != Rf:
	case o.SnapshotOffered, o.WarmCopyOffered, o.Survivors22 == PolicyOffers:
		return p.Waiting(WaitRestoreOffered, "quorum is gone for good: "+text+".", command)
	case o.Survivors22 == PolicyWaitsForDisk:
		return p.Waiting(WaitSurvivorWaitsForDisk,
			"quorum is gone, but the disk of a voter whose VM is gone still exists.",
			"Recreate that VM with its disk. "+command)
	case o.Survivors22 == PolicyNotEnough:
		return p.Waiting(WaitSurvivorsNotEnough, "quorum is gone for good, and the survivors may lack acknowledged "+
			"writes: "+text+".", command)
	}
	return p
}

// sayStopped is the next step towards the stopped/ object of this replica; false: all is said.
func (o Observation) sayStopped(why string) (Plan, bool) {
	w, epoch := o.StopReport, o.Names.FormedEpoch
	switch {
	case !w.Owed:
		return Plan{}, false
	case w.Incarnation == 0:
		return Plan{Act: ActTakeIncarnation, Epoch: epoch, Incarnation: w.Next, MemberID: w.MemberID,
			Reason: "to say under it that this replica has stopped"}, true
	}
	return Plan{Act: ActWriteStopped, Epoch: epoch, Incarnation: w.Incarnation, MemberID: w.MemberID,
		WithLog: w.WithLog, OrderNumber: o.Names.EndOrder, Reason: why}, true
}

// doWaitEmpty is row 24. The former disk of this place may come back whole, so nothing is said of its member. The
// incarnation shows who stands in the place now, and that its disk is empty. It stops a former VM that still runs,
// which may be needed, so that one has to be silent first.
func doWaitEmpty(o Observation, _ time.Time) Plan {
	switch {
	case o.Left:
		return doStayOut(o, time.Time{})
	case !o.OwnIncarnation && o.FormerSilent && !o.Paused:
		return o.takeIncarnation(o.Names.FormedEpoch, "the disk is empty, and no quorum answers to join")
	}
	return o.WithOffer(wait(WaitNoQuorumEmptyDisk, "the cluster exists and its members do not answer with a quorum, "+
		"while this replica's disk is empty: seeding now would begin a second history.",
		"Start the other replicas with their disks; this one joins as soon as they have a quorum. If this replica's "+
			"own disk still exists, attach it again and restart the VM. If they are lost, `quorate restore` begins a "+
			"new history from what is left."))
}

func doStoppedID(o Observation, _ time.Time) Plan {
	if o.Running && !o.EndUnproven {
		return Plan{Act: ActStop, Reason: "its incarnation has ended: it goes on under the next"}
	}
	if o.Remote == Quorum {
		return o.stopFirst(o.replaceOwn("it has ended for a restore, and nothing shows that this was taken back"))
	}
	return o.stopFirst(o.WithOffer(wait(WaitStoppedID, fmt.Sprintf("member %s has stopped for a restore, and the "+
		"record shows neither that order nor its end.", o.Names.MemberID),
		"With a quorum it is replaced by itself. Without one, `quorate restore` can begin a new history from this "+
			"directory.")))
}

// replaceOwn removes the disk's member, only where its entry is of this place, and puts the directory away; then row
// 23.
func (o Observation) replaceOwn(why string) Plan {
	if o.Successor != "" {
		return o.waitForRecord()
	}
	if o.Listed && o.OwnPlace {
		return Plan{Act: ActRemoveMember, MemberID: o.Names.MemberID, Reason: why}
	}
	return o.archive(why)
}

// waitForRecord: the list names a successor that the record, read a moment before, does not know. The next observation
// has a newer record.
func (o Observation) waitForRecord() Plan {
	return wait(WaitListNewerThanRecord, fmt.Sprintf("the member list names instance %s for this place, and the "+
		"record that was read before it does not know it.", o.Successor),
		"The record is read again by itself.")
}

func doArchiveRemoved(o Observation, _ time.Time) Plan {
	return o.archive("the member was removed while it was away")
}

func doWaitRemoved(o Observation, _ time.Time) Plan {
	return wait(WaitRemoved, "a peer, or its own log, says that this member was removed, and no quorum answers.",
		"It is put away and joins again as soon as a quorum answers.")
}

func doReplaceOwn(o Observation, _ time.Time) Plan { return o.replaceOwn(o.BrokenText()) }

func doKeepBroken(o Observation, _ time.Time) Plan {
	return o.WithOffer(wait(WaitNeededButBroken, "the cluster has no quorum, and this replica's directory cannot "+
		"be used: "+o.BrokenText()+".",
		"The bytes are kept. Start the other replicas with their disks; if they are lost, `quorate restore` begins a "+
			"new history."))
}

func doKeep(o Observation, _ time.Time) Plan {
	return o.WithOffer(Plan{Act: ActKeep, MemberID: o.Names.MemberID, Reason: "the member runs"})
}

// waitForPeers says of a plan that leaves the running member alone what the member lacks to serve.
func (o Observation) waitForPeers(p Plan) Plan {
	switch keeps := p.Act == ActKeep && p.Blocked == nil; {
	case keeps && o.Alone && o.Silent:
		return p.Waiting(WaitEtcdStarts, "etcd was started, and does not answer this agent yet: it opens its log and "+
			"its database, or it ends each time.",
			"A database of gigabytes is open within a minute. If this goes on, the end of etcd's log says why.")
	case keeps && o.Alone && o.OnlyVoter:
		return p.Waiting(WaitNoQuorum, "this member is the only voter, and serves nobody: nothing can be written.",
			"The end of etcd's log says why: most often its disk is slow or full.")
	case keeps && o.Alone:
		return p.Waiting(WaitNoQuorum, "this member runs, and no majority of the voters answers it: nothing can be "+
			"written.",
			"Start the other replicas with their disks, or heal the network; if they are lost, `quorate restore` "+
				"begins a new history.")
	case keeps && o.Unheard:
		return p.Waiting(WaitPeersDoNotConnect, "a majority of the voters answers this replica on their client "+
			"ports, and its own member hears no leader: it and its peers do not connect.",
			fmt.Sprintf("Open port %d between the masters, in both directions; if it is open, etcd's log says which "+
				"certificate is refused.", PeerPort))
	}
	return p
}
