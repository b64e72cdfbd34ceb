package table

import (
	"fmt"
	"strings"
	"time"

	"github.com/quorate/quorate/internal/record"
)

// The steps of a restore, as section 7 of the specification (docs/membership.md) numbers them.
const (
	restoreAccept  = 0 // before anything stops
	restoreSilence = 1
	restoreClose   = 2
	restoreClaim   = 3
	restoreMake    = 4
	restoreForm    = 5
)

// doEnd is row 8: this place falls silent; then the replica that the order names restores, and the others wait.
func doEnd(o Observation, now time.Time) Plan {
	if o.ToAccept {
		return o.accept(now)
	}
	if o.Running {
		return Plan{Act: ActStop, Epoch: o.Names.FormedEpoch, OrderNumber: o.Names.RestoreNumber,
			Reason: "its epoch has ended, or is ended by order"}
	}
	if p, ok := o.sayStopped("its epoch has ended, or is ended by order"); ok {
		return p
	}
	if o.OrderNamesMe && o.Record != Rs {
		return o.restore()
	}
	reason, next := "epoch "+fmt.Sprint(o.Names.FormedEpoch)+" has ended, and no order says from what to go on.",
		"Give one with `quorate restore`."
	if r := o.Names.Restore; r != nil {
		reason = fmt.Sprintf("epoch %d is ended by restore order %d, which %s carries out.", r.Ends,
			o.Names.RestoreNumber, r.Replica)
		next = "When the next epoch is formed this replica joins it with an empty disk. If that replica is lost, " +
			"`quorate restore --from SOURCE` orders it of another."
	}
	return wait(WaitEpochClosed, reason, next)
}

// accept comes before anything stops: the replica that the order names finds out whether it can carry it out. A member
// that runs goes on. One that it found it cannot carry out is tried again, with a quorum only after a rest.
func (o Observation) accept(now time.Time) Plan {
	switch {
	case !o.Running && o.Local == L5:
		return doArchiveHalfMade(o, time.Time{}) // it may be the source itself, put away halfway
	case !o.Running && !o.SourceHere:
		return o.sourceGone()
	}
	p := Plan{Act: ActAccept, Step: restoreAccept, Epoch: o.Names.FormedEpoch, OrderNumber: o.Names.RestoreNumber,
		Source: o.Names.Restore.From,
		Reason: "the restore order names this replica, and ends nothing before it is known that it can be carried out"}
	if !o.Unfit {
		return p
	}
	if now.Before(o.Tries.Unfit.Until) {
		p = p.putOff()
	}
	return p.Waiting(WaitUnfit, fmt.Sprintf("restore order %d cannot be carried out here: %s.", p.OrderNumber,
		o.Tries.Unfit.Why),
		"This order has ended nothing. It is tried again by itself; or `quorate restore --from SOURCE` orders it "+
			"of another, and `quorate orders withdraw` takes it back.")
}

func (o Observation) sourceGone() Plan {
	return Plan{Act: ActWait, Step: restoreMake, Epoch: o.Names.FormedEpoch,
		OrderNumber: o.Names.RestoreNumber}.Waiting(WaitSourceGone,
		"what the order names as its source is not on this replica, or does not reach as far as the order demands.",
		"Bring its disk back, or give a newer order: `quorate restore --from SOURCE`.")
}

// UnprovenText names the VMs that could still serve the old history, and says of each what would prove otherwise.
func (o Observation) UnprovenText() string {
	var texts []string
	for _, u := range o.Unproven {
		texts = append(texts, u.String())
	}
	return strings.Join(texts, "; ")
}

// restore is steps 1 to 3, by the replica that the order names. Its own place is silent already.
func (o Observation) restore() Plan {
	p := Plan{Epoch: o.Names.FormedEpoch, OrderNumber: o.Names.RestoreNumber}
	switch {
	case len(o.Unproven) > 0:
		p.Act, p.Step = ActWait, restoreSilence
		return p.Waiting(WaitRestoreWaits, "these could still serve the old history: "+o.UnprovenText()+".",
			"Each must write that it has stopped, or be proven silent. `quorate restore --stop-vms` stops VMs that "+
				"cannot be reached; "+
				"`quorate restore --silent INSTANCE` says on your responsibility that one runs nothing any more.")
	case o.Local == L5:
		return doArchiveHalfMade(o, time.Time{}) // it may be the source itself, put away halfway
	case o.Better != nil:
		p.Act, p.Order, p.Reason = ActOrderRestore, o.Better,
			fmt.Sprintf("%s has stopped with a longer log than the source of order %d", o.Better.Replica,
				o.Names.RestoreNumber)
		return p
	case !o.SourceHere:
		return o.sourceGone()
	case o.Record != Rc && !o.Closing:
		p.Act, p.Step, p.Closing, p.Reason = ActSettle, restoreClose, true,
			"every other incarnation of the epoch is silent"
		return p
	case o.Record != Rc:
		p.Act, p.Step, p.Reason = ActCloseEpoch, restoreClose, "every other incarnation of the epoch is silent"
		return p
	}
	p.Act, p.Step, p.Epoch, p.Reason = ActClaim, restoreClaim, o.Names.NewestEpoch+1, "the old epoch is closed"
	p.Source = o.Names.Restore.From
	p.Source.Order = o.Names.RestoreNumber
	if p.Source.Kind == record.SourceDirectory {
		// The order may name a disk of which this one is a copy: who has that one must not take the claim for its own.
		p.Source.DiskID = o.Names.DiskID
	}
	return p
}

// doRestoreClaimed is row 9: from the claim on, by whoever holds it.
func doRestoreClaimed(o Observation, now time.Time) Plan {
	p := Plan{Epoch: o.Names.NewestEpoch, Source: o.Names.Claimed, OrderNumber: o.Names.Claimed.Order,
		Step: restoreMake}
	switch {
	case o.NewerOrderForMe:
		p.Act, p.Reason = ActAbandon, fmt.Sprintf("restore order %d is newer than the claim", o.Names.RestoreNumber)
	case o.HasToken && o.broken():
		return doAbandonOwn(o, now)
	case o.Local == L5: // before the source is judged: it may be that, put away halfway
		return doArchiveHalfMade(o, now)
	case o.HasToken && o.Marked && o.Local == L1:
		p = doForm(o, now)
		p.Step = restoreForm
		return p
	case !o.SourceHere && o.SourceUnread != "": // it may be the source: no epoch is given up for want of it
		p.Act = ActWait
		return p.Waiting(WaitSourceGone, fmt.Sprintf("the source of restore order %d is not found on this disk, and "+
			"not every archive can be read: %s.", o.Names.Claimed.Order, o.SourceUnread),
			"Repair what is named, and it goes on by itself; or `quorate restore --from SOURCE` orders it of another.")
	case !o.SourceHere:
		p.Act, p.Reason = ActAbandon,
			"source-gone: the source is not on this replica, or does not reach as far as the order demands"
	case o.Local != L0 && !o.DirectoryIsSource:
		return o.archive("it is in the way of the restore and is not its source")
	default:
		p.Act, p.Incarnation, p.Reason = ActRestore, o.Names.NextIncarnation, "the epoch is claimed for this source"
		if o.OwnIncarnation && o.Pending && o.Local == L0 {
			p.Incarnation = o.Names.Incarnation // a restore that was broken off goes on with what it took
		}
		if !o.DirectoryIsSource {
			p.Archive = o.Names.SourceArchive
		}
	}
	return o.stopFirst(p)
}
