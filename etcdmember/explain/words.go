package explain

import (
	"fmt"
	"slices"

	"github.com/quorate/quorate/etcdmember/table"
	"github.com/quorate/quorate/internal/record"
)

// diskInWords says what the disk's class means, with what proves it.
func diskInWords(o table.Observation) string {
	switch o.Local {
	case table.L0:
		return "no etcd directory"
	case table.LF:
		return "the disk is another replica's"
	case table.L5:
		return "the directory is half made, or half put away: nothing on it was ever acknowledged"
	case table.L2, table.L3:
		return o.BrokenText()
	}
	if o.Running {
		return "etcd runs on the directory"
	}
	return "log and database are valid"
}

var diskEpochWords = map[table.DiskEpoch]string{
	table.DiskNone:         "the disk belongs to no epoch, or it is not known to which",
	table.DiskCurrent:      "the newest epoch that is formed or claimed",
	table.DiskBelowClaimed: "older than the newest epoch, which is claimed and not formed yet",
	table.DiskBelowFormed:  "older than the newest formed epoch",
	table.DiskAbandoned:    "an epoch that was abandoned",
	table.DiskAbove:        "newer than any that the record knows",
}

// recordInWords says what the record's class means, with what proves it.
func recordInWords(o table.Observation) string {
	switch o.Record {
	case table.RUnreadable:
		return "it cannot be read: " + o.Names.RecordErr
	case table.RLost:
		return "lost, damaged, or the wrong bucket: " + o.Names.Damage
	case table.R0:
		return "nothing was ever formed"
	case table.Rs:
		whose := "by " + o.Names.Seeder
		if o.Mine {
			whose += ", which counts as this replica's"
		}
		return fmt.Sprintf("epoch %d is claimed %s, without outcome", o.Names.NewestEpoch, whose)
	case table.Rf:
		return fmt.Sprintf("epoch %d is formed and open", o.Names.FormedEpoch)
	case table.Rc:
		return fmt.Sprintf("epoch %d is closed, and nothing newer is formed or claimed", o.Names.FormedEpoch)
	}
	return string(o.Record)
}

var remoteWords = map[table.RemoteClass]string{
	table.Quorum:  "a member of this epoch answers through quorum",
	table.Answers: "something answers, but nothing through quorum",
	table.Nobody:  "nobody answers",
}

// found are the predicates that hold, as sentences in the order in which the rows ask for them.
func found(o table.Observation) []string {
	n := o.Names
	out := []string{}
	say := func(holds bool, format string, args ...any) {
		if holds {
			out = append(out, fmt.Sprintf(format, args...))
		}
	}
	say(o.Fault != "", "Before any row: %s.", o.Fault)
	say(o.Phase != "", "agent.json says %s%s.", o.Phase,
		map[bool]string{true: ", in this boot of this instance"}[o.SameBoot])
	say(n.MemberID != 0, "The disk's member is %s.", n.MemberID)
	say(o.Unusable != "", "etcd ends by itself, again and again, and says of the directory: %s.", o.Unusable)
	say(o.Superseded, "Instance %s has taken this place.", n.NewestInstance)
	say(o.StartAnyway, "A person said start-anyway in this boot.")
	say(o.Ahead, "The disk has seen more than the record holds.")
	say(o.DiskClosed, "The disk's epoch has ended.")
	say(o.SeederGone, "The claim's seeder, %s, is proven gone.", n.Seeder)
	say(!o.StrangerSince.IsZero(), "%s answers although nothing is formed.", n.Answered)
	say(o.NoList, "The Compute API gave no list that says whom to ask.")
	say(o.Preflight != "", "This VM is not fit to seed: %s.", o.Preflight)
	say(o.EndedByOrder, "Restore order %d ends the epoch.", n.RestoreNumber)
	say(o.ToAccept, "Restore order %d ends nothing before this replica has found that it can carry it out.",
		n.RestoreNumber)
	say(o.OrderNamesMe, "It names this replica.")
	say(len(o.Unproven) > 0, "These could still serve the epoch that is to end: %s.", o.UnprovenText())
	say(o.Left, "The newest order for this replica is leave.")
	say(o.Paused, "Changes of the membership are paused by order.")
	say(o.Ended, "The disk's incarnation has ended, as it said itself.")
	say(o.Remote == table.Quorum && n.MemberID != 0 && o.Listed, "The member list has the disk's member.")
	say(o.Remote == table.Quorum && n.MemberID != 0 && !o.Listed, "The member list does not have the disk's member.")
	say(o.Listed && !o.OwnPlace, "Its entry is of another place.")
	say(o.Removed, "A peer says that the disk's member was removed.")
	former := slices.DeleteFunc(slices.Clone(o.Former), func(id record.MemberID) bool {
		return o.Local == table.L1 &&
			id == n.MemberID
	})
	say(len(former) > 0, "Entries of this place's past are in the member list: %v.", former)
	say(o.Reusable, "The member list has the entry that was added for this disk.")
	say(o.PeersSilent, "No member answers on its peer port.")
	say(o.NoRoom != "", "A copy of the state does not fit here: %s.", o.NoRoom)
	say(o.OwnIncarnation, "Incarnation %d was taken by this boot, and is %s.", n.Incarnation,
		map[bool]string{true: "confirmed", false: "not confirmed for this member"}[o.Confirmed])
	say(n.PolicyText != "", "A policy: %s.", n.PolicyText)
	return out
}

// rowsInWords says what each row is about.
var rowsInWords = map[table.Row]string{
	0: "a newer VM has this place", 1: "the record cannot be read, and etcd ran in this boot",
	2: "the record cannot be read",
	3: "the record is damaged, and etcd ran in this boot", 4: "the record is lost or damaged",
	5: "the record is behind a valid disk", 6: "the record is behind the disk", 7: "the disk is another replica's",
	8: "the epoch has ended, or is ended by order", 9: "this replica restores", 10: "the disk's epoch was abandoned",
	11: "the seeder is gone, or another is ordered to restore", 12: "the disk's epoch is older",
	13: "the directory is half made",
	14: "nothing was ever formed: claim it", 15: "somebody answers though nothing is formed",
	16: "the claim is this replica's: seed",
	17: "the directory was seeded: form the epoch", 18: "the seed cannot be used", 19: "another replica seeds",
	22: "policy: the survivors hold everything",
	23: "join", 24: "the disk is empty and there is no quorum", 25: "valid, with a quorum that lists it: start",
	26: "removed while away",
	27: "a peer says that it was removed", 28: "valid, without a quorum: it is needed, start",
	29: "broken, with a quorum: replace it",
	30: "broken, without a quorum", 40: "a voter is gone with its disk", 41: "a voter is gone, its disk is left",
	42: "a voter cannot be reached",
	43: "a learner does not come up, or stands still", 44: "promote a learner",
	45: "orders: who leaves, and two of three",
	46: "one member is corrupt and the others agree", 47: "members differ, and nobody can say who is wrong",
	48: "a database is full",
	49: "the number of voters", table.RowHalt: "no row covers it", table.RowFault: "an error before any row",
	table.RowStoppedID:   "the disk's member has stopped for an order that nothing shows",
	table.RowEndAhead:    "the record was rolled back, and by it the epoch ends",
	table.RowWithdrawing: "an order to restore is being taken back",
	table.RowLeft:        "ordered to leave", table.RowPaused: "paused by order", table.RowRunning: "the member runs",
	table.RowQuiet: "nothing needs to be done",
}
