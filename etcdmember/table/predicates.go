package table

import "fmt"

// The conditions of the rows at boot, in the terms of docs/membership.md and its order. Each may rely on the rows
// before it not having held.

// row 0
func (o Observation) superseded() bool { return o.Superseded }

// startedHere: the agent was restarted, not the VM, and the directory is valid.
func (o Observation) startedHere() bool {
	return o.Local == L1 && o.Phase == PhaseStarted && o.SameBoot && !o.Ended
}

// row 1
func (o Observation) unreadableButStarted() bool { return o.Record == RUnreadable && o.startedHere() }

// row 3
func (o Observation) lostButStarted() bool { return o.Record == RLost && o.startedHere() }

// row 5: never a directory that was being seeded, which may start only towards `formed`.
func (o Observation) recordBehindValidDisk() bool {
	return o.Ahead && o.Local == L1 && o.Phase == PhaseStarted && !o.Ended
}

// end-ahead: before row 5, which would let it run on after the epoch is closed.
func (o Observation) endsAhead() bool {
	return o.Ahead && !o.OtherHistory && o.Local == L1 && o.DiskEpoch == DiskCurrent &&
		(o.Record == Rc || o.EndedByOrder)
}

// withdrawing: before row 8, which would stop the members for an order that is being taken back.
func (o Observation) withdraws() bool { return o.Withdrawing != 0 }

// row 6, and also without a directory where agent.json has seen more than the record holds: a record that was rolled
// back to its inception must not pass for a new cluster to a replica that is about to join again.
func (o Observation) recordBehind() bool { return o.Ahead }

// row 7
func (o Observation) foreignDisk() bool { return o.Local == LF }

// row 8: until this place is silent; then the replica that restores goes on with the claim in rows 9 and 11.
func (o Observation) epochEnds() bool {
	if o.Record != Rc && !o.EndedByOrder && (!o.ToAccept || o.goesOnAllTheSame()) {
		return false
	}
	goesOn := o.Record == Rs && (o.Mine && o.HasSource || o.OrderNamesMe && o.seederGone())
	return !goesOn || !o.silent()
}

// goesOnAllTheSame: the order names this replica, which cannot carry it out, and which has a member that starts, or
// joins where there is a quorum. What ends nothing keeps nobody out: a VM that is booted again meanwhile would else be
// one voter less. The order is checked again while the member runs.
func (o Observation) goesOnAllTheSame() bool {
	if o.Running || !o.Unfit && o.SourceHere {
		return false
	}
	starts := !o.EndUnproven && (o.listedAndValid() || o.neededAndValid() && !o.Removed)
	joins := o.Remote == Quorum && !o.Left && !o.Paused
	return starts || joins
}

// silent: etcd does not run, and this replica has said so.
func (o Observation) silent() bool { return !o.Running && !o.StopReport.Owed }

// row 9
func (o Observation) restoring() bool { return o.Record == Rs && o.Mine && o.HasSource }

// row 10
func (o Observation) diskAbandoned() bool { return o.DiskEpoch == DiskAbandoned }

// olderEpoch: the disk's epoch is below the newest that is formed or claimed.
func (o Observation) olderEpoch() bool {
	return o.DiskEpoch == DiskBelowFormed || o.DiskEpoch == DiskBelowClaimed
}

// row 11, also where a directory was being put away for the claim when its holder was lost.
func (o Observation) seederGone() bool {
	// its agent.json is lost: it may be the source of the next claim
	unknown := o.Local == L2 && o.DiskEpoch == DiskNone
	if o.Record != Rs || o.Mine || o.Local != L0 && o.Local != L5 && !unknown && !o.olderEpoch() {
		return false
	}
	return o.Remote == Nobody && o.SeederGone || o.NewerOrderForMe
}

// row 12
func (o Observation) diskOlder() bool { return o.olderEpoch() }

// row 13
func (o Observation) halfMade() bool { return o.Local == L5 }

// left: `leave` is the newest order, and there is nothing here that is a member.
func (o Observation) staysOut() bool {
	return o.Left && o.Local == L0 && (o.Record == R0 || o.Record == Rf && o.Remote == Quorum)
}

// row 14
func (o Observation) mayClaim() bool { return o.Record == R0 && o.Local == L0 && o.Remote == Nobody }

// row 15: something answers that is not ours, or it is not known whom to ask.
func (o Observation) unknownCluster() bool {
	unformed := o.Record == R0 || o.Record == Rs && o.Mine
	return unformed && (!o.StrangerSince.IsZero() || o.NoList)
}

// row 16
func (o Observation) maySeed() bool { return o.Record == Rs && o.Mine && o.Local == L0 }

// row 17, and the seeder that runs but has not yet written that it read `formed`.
func (o Observation) seeded() bool {
	if o.Local != L1 || !o.HasToken {
		return false
	}
	return o.Record == Rs && o.Mine || o.Record == Rf && o.Running && o.Phase == PhaseSeeding
}

// row 18
func (o Observation) seedBroken() bool { return o.Record == Rs && o.Mine && o.broken() }

// row 19
func (o Observation) seedInProgress() bool { return o.Record == Rs && !o.Mine }

// broken: corrupt or rolled back.
func (o Observation) broken() bool { return o.Local == L2 || o.Local == L3 }

// row 22: the configuration lets the agent write the order.
func (o Observation) survivorsRestore() bool {
	return o.validWithoutQuorum() && o.Survivors22 == PolicyActs && !o.Paused
}

func (o Observation) validWithoutQuorum() bool {
	return o.Record == Rf && o.Local == L1 && o.Remote != Quorum
}

// paused: the next step would change the membership, or put away what only that makes superfluous. A pause does not
// hold `leave` back.
func (o Observation) pausedBeforeChange() bool {
	return o.Paused && (o.mayJoin() || o.removedWhileAway() && !o.Left || o.brokenWithQuorum() || o.stoppedID() &&
		o.Remote == Quorum)
}

// row 23
func (o Observation) mayJoin() bool { return o.Record == Rf && o.Local == L0 && o.Remote == Quorum }

// row 24
func (o Observation) emptyWithoutQuorum() bool {
	return o.Record == Rf && o.Local == L0 && o.Remote != Quorum
}

// stopped-id: it has ended, and nothing shows for which order: that order may have been carried out, in what a record
// that was rolled back has lost. Nor does a member run on under an incarnation that has ended: it stops, and starts
// under the next.
func (o Observation) stoppedID() bool {
	return o.ofThisEpoch() && (o.EndUnproven || o.Running && o.Ended) && !o.removedWhileAway()
}

// ofThisEpoch: a valid directory of the open epoch.
func (o Observation) ofThisEpoch() bool {
	return o.Record == Rf && o.Local == L1 && o.DiskEpoch == DiskCurrent
}

// row 25: the entry must be of this place; a valid directory whose id belongs to another place's entry is for a person.
func (o Observation) listedAndValid() bool {
	return o.ofThisEpoch() && o.Remote == Quorum && o.Listed && o.OwnPlace && o.Unusable == ""
}

// row 26
func (o Observation) removedWhileAway() bool {
	return o.ofThisEpoch() && o.Remote == Quorum && !o.Listed
}

// row 27
func (o Observation) saidRemoved() bool { return o.neededAndValid() && o.Removed }

// row 28
func (o Observation) neededAndValid() bool { return o.ofThisEpoch() && o.Remote != Quorum }

// row 29, and where etcd itself says, again and again, that it cannot run on the directory. Without a quorum that is no
// reason to keep it out: what it lacks is what another leader wants of it, and it may be needed.
func (o Observation) brokenWithQuorum() bool {
	refused := o.ofThisEpoch() && o.Unusable != ""
	return o.Record == Rf && o.Remote == Quorum && (o.broken() || refused)
}

// row 30
func (o Observation) brokenWithoutQuorum() bool {
	return o.Record == Rf && o.broken() && o.Remote != Quorum
}

func (o Observation) running() bool { return o.Running }

// Cell names the cell of the table for a person: the classes.
func (o Observation) Cell() string {
	record := string(o.Record)
	if o.Mine {
		record += " (mine)"
	}
	return fmt.Sprintf("disk %s (epoch: %s), record %s, remote %s", o.Local, o.DiskEpoch, record, o.Remote)
}
