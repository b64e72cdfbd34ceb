package table

import (
	"slices"

	"github.com/quorate/quorate/internal/record"
)

// stopped/ says one thing: an incarnation has ended, as the instance that took it says. Nothing runs under that
// incarnation again. The replica, and the member whose directory it holds, may go on under a later one: once the order
// for which it stopped was taken back.

// findEnd finds whether the disk's incarnation has ended, and whether the record shows why. agent.json notes the order
// for which the replica stopped. A record in which that order is missing, or not accepted, is older than the disk.
func (h History) findEnd(o *Observation) {
	a := h.Agent
	if o.Local == L0 || h.AgentErr != nil {
		return
	}
	said := slices.ContainsFunc(h.Record.Replicas[h.Me.Place], func(i record.Incarnation) bool {
		return i.Number == a.Incarnation && a.Replica == h.Me.Place && h.hasEnded(i)
	})
	o.Ended = a.Phase == PhaseStopped || said
	if a.Phase != PhaseStopped || h.RecordErr != nil || a.Epoch != record.NumberOf(h.Formed) || h.Formed == nil ||
		h.Formed.Closed != nil {
		return
	}
	n := slices.IndexFunc(h.Record.Orders, func(x record.Order) bool { return x.Number == a.StoppedFor })
	switch {
	case a.StoppedFor == 0: // noted by an earlier version, which did not note the order
		o.EndUnproven = !said
	case n < 0 && h.Formed.Claim != nil && h.Formed.Claim.Source.Kind == record.SourceRebuilt:
		o.EndUnproven = true // orders are not brought back
	case n < 0 || h.Record.Orders[n].Accepted == nil:
		o.Ahead = true
	}
}

// findStopReport finds what this replica still has to say before a restore may take it for silent: that the newest
// incarnation of its instance has ended, and where the log on its disk ends. It says both under an incarnation of this
// very boot and disk; on a disk that cannot carry a new one, under the newest that the instance took. The report is
// owed until agent.json says it, too, or row 1 would start the directory once the record cannot be read. Of an epoch
// that was not formed nothing is said: stopped/ proves that one was, so the record would be damaged for everybody.
func (h History) findStopReport(o *Observation, mine []record.Incarnation) {
	if h.Formed == nil {
		return
	}
	var newest *record.Incarnation
	for n := range mine {
		if i := &mine[n]; i.InstanceID == h.Me.InstanceID && i.Epoch == h.Formed.Number {
			newest = i
		}
	}
	holds := o.Local == L1 && h.Agent.Epoch == h.Formed.Number
	silent := newest == nil || h.hasEnded(*newest)
	if silent && (!holds || h.logSaid() && h.Agent.Phase == PhaseStopped) {
		return
	}
	o.StopReport.Owed, o.StopReport.Next = true, mine[len(mine)-1].Number+1
	open := newest != nil && newest.Number == mine[len(mine)-1].Number && h.takenHere(*newest) && !h.spoken(*newest)
	carries := h.AgentErr == nil && h.Agent.Replica == h.Me.Place
	switch {
	case open && carries && h.Agent.Incarnation == newest.Number:
		o.StopReport.Incarnation, o.StopReport.WithLog = newest.Number, holds
	case open && newest.Started == nil && h.Agent.Incarnation < newest.Number && h.takesIncarnation(o):
		o.StopReport.Next = newest.Number // it was created, and agent.json was not written
	case h.takesIncarnation(o):
	case newest != nil && !h.spoken(*newest):
		o.StopReport.Incarnation = newest.Number
	default:
		// an earlier version's successor has taken the name: others wait until this VM is stopped
		o.StopReport = StopReport{}
		return
	}
	if holds {
		o.StopReport.MemberID = h.MemberID()
	}
}

// takesIncarnation: agent.json may carry a new incarnation. On a disk that was rolled back the number shows what is
// missing, and next to a directory of an unknown owner there must be none.
func (h History) takesIncarnation(o *Observation) bool {
	return h.AgentErr == nil && (o.Local == L0 || o.Local == L1 || o.Local == L5)
}

// logSaid: some instance of this place has said where the log ends that the disk holds.
func (h History) logSaid() bool {
	d := h.Directory
	return slices.ContainsFunc(h.Record.Replicas[h.Me.Place], func(i record.Incarnation) bool {
		s := h.Formed.StoppedBy(i)
		return s != nil && i.Epoch == h.Formed.Number && s.MemberID == h.MemberID() && s.Term == d.LastTerm &&
			s.LastIndex == d.LastIndex
	})
}
