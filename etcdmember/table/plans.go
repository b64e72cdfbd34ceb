package table

import (
	"fmt"
	"time"

	"github.com/quorate/quorate/internal/record"
	"github.com/quorate/quorate/internal/replica"
)

func wait(name, reason, next string) Plan { return Plan{Act: ActWait}.Waiting(name, reason, next) }
func halt(name, reason, next string) Plan { return Plan{Act: ActHalt}.Waiting(name, reason, next) }

// Waiting says for the status what the plan waits for, or what is wrong although it acts.
func (p Plan) Waiting(name, reason, next string) Plan {
	p.Blocked = &replica.Wait{Row: p.Row.String(), Name: name, Reason: reason, Next: next}
	if p.Reason == "" {
		p.Reason = reason
	}
	return p
}

// stopFirst stops the running member before the plan may touch its directory.
func (o Observation) stopFirst(p Plan) Plan {
	if !o.Running {
		return p
	}
	return Plan{Act: ActStop, Reason: p.Reason, Blocked: p.Blocked}
}

// startAsIs starts the directory without taking an incarnation, which needs a record.
func (o Observation) startAsIs(reason string) Plan {
	if o.Running {
		return Plan{Act: ActKeep, Reason: reason}
	}
	return Plan{Act: ActStart, Reason: reason, Epoch: o.Names.DiskEpochNumber, MemberID: o.Names.MemberID}
}

func (o Observation) archive(reason string) Plan {
	return o.stopFirst(Plan{Act: ActArchive, Reason: reason, MemberID: o.Names.MemberID,
		Epoch: o.Names.DiskEpochNumber})
}

func doSuperseded(o Observation, _ time.Time) Plan {
	if o.Names.LaterBoot {
		return o.stopFirst(halt(WaitSuperseded,
			fmt.Sprintf("this very instance, %s, was started again on another host and runs there as %s.",
				o.Names.NewestInstance, o.Names.Place),
			"The newest boot is the one that counts. Nothing is started here, and no byte is changed; this boot ends "+
				"with its host."))
	}
	return o.stopFirst(halt(WaitSuperseded,
		fmt.Sprintf("instance %s has taken this place, %s, and this instance had it before.", o.Names.NewestInstance,
			o.Names.Place),
		"Delete this instance. Its disk is kept as it is, and no member is removed from here."))
}

func doStartUnread(o Observation, _ time.Time) Plan {
	return o.startAsIs("the record cannot be read, and etcd ran on this directory in this boot").Waiting(
		WaitRecordUnreadable,
		"the record cannot be read: "+o.Names.RecordErr+".",
		"The member runs as it is. Make the bucket readable; until then nothing can join, be replaced or be restored.")
}

func doWaitUnread(o Observation, _ time.Time) Plan {
	if o.StartAnyway && o.Local == L1 && o.Phase == PhaseStarted && !o.Ended {
		return o.startAsIs("an operator ran start-anyway on this VM").Waiting(WaitRecordUnreadable,
			"the record cannot be read: "+o.Names.RecordErr+". The member was started by an operator's start-anyway.",
			"Make the bucket readable.")
	}
	return wait(WaitRecordUnreadable, "the record cannot be read: "+o.Names.RecordErr+".",
		"Make the bucket readable. If that cannot be done and this replica is needed, `quorate etcd start-anyway`, "+
			"as root on this VM, says what it risks and asks.")
}

func doStartLost(o Observation, _ time.Time) Plan {
	if o.OnlyOutcomeMissing && o.Names.ClusterID != 0 {
		return Plan{Act: ActFormedAgain, Epoch: o.Names.NewestEpoch, ClusterID: o.Names.ClusterID,
			MemberID: o.Names.SeederMember,
			Reason:   o.Names.Damage}.Waiting(WaitRecordLost, o.Names.Damage+".",
			"This replica holds the epoch's token and creates the object again.")
	}
	return o.startAsIs("the record is damaged, and etcd ran on this directory in this boot").Waiting(WaitRecordLost,
		"the record is damaged: "+o.Names.Damage+".",
		"The member runs as it is. Only `quorate record rebuild` brings back what is lost; if this is the wrong "+
			"bucket, name the right one.")
}

func doWaitLost(o Observation, _ time.Time) Plan {
	return wait(WaitRecordLost, "the record is lost or damaged, or this is the wrong bucket: "+o.Names.Damage+".",
		"Check the bucket's name. A new cluster needs `quorate record init`; a damaged record needs `quorate record "+
			"rebuild`.")
}

func doStartAhead(o Observation, _ time.Time) Plan {
	return o.startAsIs("the disk has seen more than the record holds").Waiting(WaitRecordRolledBack, o.aheadText(),
		"The member runs as it is and is never archived. Bring the record's newer objects back, or run `quorate "+
			"record rebuild`.")
}

func doKeepAhead(o Observation, _ time.Time) Plan {
	return halt(WaitRecordRolledBack, o.aheadText(),
		"Nothing is started, and the bytes are kept. Bring the record's newer objects back, or run `quorate record "+
			"rebuild`.")
}

// doEndAhead is of a member on a record that was rolled back, whose epoch ends by that record: it stops, and says
// nothing, because what it would say is about an incarnation that the record has lost.
func doEndAhead(o Observation, _ time.Time) Plan {
	return o.stopFirst(halt(WaitRecordRolledBack, o.aheadText()+" By the record its epoch ends, so it stops all "+
		"the same.",
		"The bytes are kept. Bring the record's newer objects back, or run `quorate record rebuild`."))
}

// doSettleWithdrawal lets the record say that the order was taken back, before anybody starts again: the restorer may
// be closing the epoch.
func doSettleWithdrawal(o Observation, _ time.Time) Plan {
	return Plan{Act: ActSettle, Epoch: o.Names.FormedEpoch, OrderNumber: o.Withdrawing,
		Reason: "an operator takes the order to restore back"}
}

func (o Observation) aheadText() string {
	return fmt.Sprintf("the record was rolled back, or is another cluster's: agent.json (epoch %d) knows an epoch, "+
		"an incarnation or a token that the record, whose newest epoch is %d, does not.",
		o.Names.DiskEpochNumber, o.Names.NewestEpoch)
}

func doForeign(o Observation, _ time.Time) Plan {
	if o.Remote == Quorum || o.DiskClosed || o.DiskEpoch == DiskBelowFormed || o.DiskEpoch == DiskAbandoned {
		return o.archive("the disk was another replica's; its member is not touched")
	}
	return wait(WaitForeignDisk, "the data disk carries another replica's member, which may be needed.",
		"Attach each disk to its own replica. It is put away by itself once a quorum answers or its epoch has ended.")
}

func doArchiveAbandoned(o Observation, _ time.Time) Plan {
	return o.archive("the directory's epoch was abandoned, so nothing on it was ever acknowledged")
}

func doAbandonSeeder(o Observation, _ time.Time) Plan {
	why := "its seeder " + o.Names.Seeder + " is proven gone"
	if !o.SeederGone {
		why = fmt.Sprintf("restore order %d, newer than the claim, names %s", o.Names.RestoreNumber, o.Names.Place)
	}
	return Plan{Act: ActAbandon, Epoch: o.Names.NewestEpoch, Reason: why}
}

func doOlder(o Observation, _ time.Time) Plan {
	if o.DiskEpoch == DiskBelowFormed {
		return o.archive("the directory is of an older epoch, and a newer one is formed")
	}
	return o.stopFirst(wait(WaitOlderEpoch,
		fmt.Sprintf("the directory is of epoch %d, and epoch %d is claimed by %s.", o.Names.DiskEpochNumber,
			o.Names.NewestEpoch, o.Names.Seeder),
		"It waits, with its bytes kept, until the newer epoch is formed or abandoned."))
}

func doArchiveHalfMade(o Observation, _ time.Time) Plan {
	return o.archive("the directory was being made, or being put away, and nothing on it was acknowledged")
}

func doStayOut(o Observation, _ time.Time) Plan {
	return wait(WaitLeft, "an operator ordered "+o.Names.Place+" to leave.",
		"Delete the VM; or `quorate orders` lists the order's number, and `quorate orders withdraw N` brings it back "+
			"by itself.")
}

func doClaim(o Observation, _ time.Time) Plan {
	if o.Preflight != "" {
		return wait(WaitPreflight, "this VM is not fit to seed: "+o.Preflight+".",
			"Repair what is named, or let another replica seed.")
	}
	return Plan{Act: ActClaim, Epoch: o.Names.NewestEpoch + 1, Source: record.Source{Kind: record.SourceEmpty},
		Reason: "nothing was ever formed, the disk is empty and nobody answers"}
}

func doUnknownCluster(o Observation, now time.Time) Plan {
	if o.NoList && o.StrangerSince.IsZero() {
		return wait(WaitNoInstanceList, "nothing was ever formed, and the Compute API gave no list with this "+
			"instance in it, so it is not known whom to ask.",
			"Let the VM's service account list instances, or wait until the Compute API answers.")
	}
	text := fmt.Sprintf("nothing is formed by the record, but %s answers.", o.Names.Answered)
	if now.Sub(o.StrangerSince) < strangerGap {
		return wait(WaitUnknownCluster, text, "It observes again: somebody may have formed the cluster just now.")
	}
	return halt(WaitUnknownCluster, text,
		"Nothing is seeded meanwhile. If it is this cluster, its record was lost or rolled back: `quorate record "+
			"rebuild` brings it back. Else stop what answers there.")
}

func doSeed(o Observation, _ time.Time) Plan {
	k := o.Names.NextIncarnation
	if o.OwnIncarnation && o.Pending {
		k = o.Names.Incarnation // a seed that was broken off goes on with what it took
	}
	return Plan{Act: ActSeed, Epoch: o.Names.NewestEpoch, Incarnation: k,
		Reason: "the newest claim is this replica's, and its disk is empty"}
}

func doForm(o Observation, _ time.Time) Plan {
	if !o.Running && !o.OwnIncarnation {
		return o.takeIncarnation(o.Names.NewestEpoch, "before the seeded directory starts")
	}
	return Plan{Act: ActForm, Epoch: o.Names.DiskEpochNumber, Incarnation: o.Names.Incarnation,
		Reason: "the directory carries the claim's token"}
}

func doAbandonOwn(o Observation, _ time.Time) Plan {
	return Plan{Act: ActAbandon, Epoch: o.Names.NewestEpoch, Reason: "the directory of the seed cannot be used (" +
		o.BrokenText() + "), and one token never seeds twice"}
}

func doWaitSeed(o Observation, _ time.Time) Plan {
	return wait(WaitSeedInProgress, fmt.Sprintf("%s is forming epoch %d.", o.Names.Seeder, o.Names.NewestEpoch),
		"It goes on when the epoch is formed. If that VM is proven gone (recreated, or missing from two lists of "+
			"instances), the claim is abandoned by itself.")
}

// doSurvivorsRestore is row 22. A running member stops first: how far its log reaches, and which changes stand in it,
// is read from the directory.
func doSurvivorsRestore(o Observation, _ time.Time) Plan {
	return o.stopFirst(Plan{Act: ActOrderRestore, Order: o.Names.PolicyOrder, Reason: o.Names.PolicyText})
}

func doPause(o Observation, _ time.Time) Plan {
	return wait(WaitPaused, "changes of the membership are paused by order, and the next step would be one.",
		"`quorate resume` lets it go on.")
}

// BrokenText says why the directory of class L2 or L3, or one that etcd refuses, cannot be used.
func (o Observation) BrokenText() string {
	switch {
	case o.Local == L3:
		return "it is rolled back: " + o.Names.RolledBack
	case o.Unusable != "":
		return "etcd cannot run on it: " + o.Unusable
	}
	return "it is corrupt: " + o.Names.DirectoryErr
}
