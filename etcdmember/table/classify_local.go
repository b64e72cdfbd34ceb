package table

import (
	"fmt"

	"github.com/quorate/quorate/internal/record"
)

// classifyLocal finds the disk's class, tested in the order of the membership table.
func (h History) classifyLocal(o *Observation) {
	o.Local = h.localClass(o)
	if o.Local == L0 && h.Agent.Epoch != record.NumberOf(h.Formed) {
		o.Phase = "" // of a join into another epoch, or of a seed whose directory is gone: it says nothing of this one
	}
}

func (h History) localClass(o *Observation) LocalClass {
	a, d := h.Agent, h.Directory
	switch {
	case d.Running:
		return L1
	case !d.Exists:
		return L0
	case h.AgentErr != nil:
		o.Names.DirectoryErr = "agent.json cannot be read: " + h.AgentErr.Error()
		return L2
	case a.Phase == PhaseArchiving:
		return L5
	case a.Phase == "":
		o.Names.DirectoryErr = "no agent.json says whose directory it is"
		return L2
	case a.Replica != h.Me.Place:
		return LF
	case h.halfMade():
		return L5
	}
	if o.Names.DirectoryErr = h.corrupt(); o.Names.DirectoryErr != "" {
		return L2
	}
	if o.Names.RolledBack = h.rolledBack(); o.Names.RolledBack != "" {
		return L3
	}
	return L1
}

// halfMade: a seed or a restore did not reach its marker. Once the epoch is formed the marker has served its purpose:
// the directory was whole then, and losing the marker must not make a needed member look worthless. A join is judged by
// agent.json.
func (h History) halfMade() bool {
	switch h.Agent.Phase {
	case PhaseAdding, PhaseAdded:
		return true
	case PhaseSeeding:
		return !h.Directory.Marker && h.Record.Epoch(h.Agent.Epoch).Formed() == nil
	}
	return false
}

// corrupt says why the directory cannot be used, or is not the one that agent.json describes.
func (h History) corrupt() string {
	a, d := h.Agent, h.Directory
	if d.OpenErr != nil {
		return d.OpenErr.Error()
	}
	if a.Epoch == 0 {
		return "agent.json names no epoch"
	}
	if a.MemberID != 0 && d.MemberID != 0 && a.MemberID != d.MemberID {
		return fmt.Sprintf("its log is of member %s, agent.json names %s", d.MemberID, a.MemberID)
	}
	if h.MemberID() == 0 {
		return "neither its log nor agent.json names the member" // it would seem removed in any list
	}
	formed := h.Record.Epoch(a.Epoch).Formed()
	if formed != nil && d.ClusterID != 0 && d.ClusterID != formed.ClusterID {
		return fmt.Sprintf("its log is of etcd cluster %s, epoch %d formed %s", d.ClusterID, a.Epoch, formed.ClusterID)
	}
	return ""
}

// rolledBack says by which of its tests the disk is older than what this replica has been, or another than that was on;
// empty: by none.
func (h History) rolledBack() string {
	if h.RecordErr != nil {
		return ""
	}
	for _, i := range h.Record.Replicas[h.Me.Place] {
		if i.Started != nil && i.Number > h.Agent.Incarnation {
			return fmt.Sprintf("it is of incarnation %d, and %d is confirmed", h.Agent.Incarnation, i.Number)
		}
	}
	if was, n := h.diskToBe(); was != "" && h.DiskID != "" && was != h.DiskID {
		return fmt.Sprintf("incarnation %d was on disk %s, this is disk %s", n, was, h.DiskID)
	}
	mark, ok := h.Record.Marks[h.MemberID()]
	if ok && mark.Epoch == h.Agent.Epoch && (h.Directory.Term < mark.Term || h.Directory.LastIndex < mark.Applied) {
		return fmt.Sprintf("its log ends at term %d, index %d, and the member has been at %d, %d",
			h.Directory.Term, h.Directory.LastIndex, mark.Term, mark.Applied)
	}
	return h.forgotten()
}

// diskToBe is the disk that the record expects under this member, and the incarnation that says so; empty: none does.
// It is that of agent.json's incarnation. Until that is confirmed it is that of the same member's newest confirmed one:
// where a restore begins from a disk and from a copy of it at once, both make the same member, and only one forms the
// epoch.
func (h History) diskToBe() (disk string, incarnation uint64) {
	for _, i := range h.Record.Replicas[h.Me.Place] {
		d := i.Disk()
		same := i.Started != nil && i.Epoch == h.Agent.Epoch && IncarnationMember(i) == h.MemberID()
		own := i.Number == h.Agent.Incarnation && (i.Started != nil || disk == "")
		if d != "" && (own || same && i.Number < h.Agent.Incarnation) {
			disk, incarnation = d, i.Number
		}
	}
	return disk, incarnation
}

// relateDisk compares the disk with the record: its epoch, and whether it has seen more than the record holds.
func (h History) relateDisk(o *Observation) {
	o.DiskEpoch = DiskNone
	if h.RecordErr != nil || h.AgentErr != nil {
		return
	}
	o.OtherHistory = h.otherHistory()
	o.Ahead = h.Ahead()
	if o.Local == L0 || h.Agent.Epoch == 0 {
		return
	}
	n := h.Agent.Epoch
	o.Names.DiskEpochNumber = n
	e := h.Record.Epoch(n)
	o.DiskClosed = e != nil && e.Closed != nil
	switch {
	case n > record.NumberOf(h.newest):
		o.DiskEpoch = DiskAbove
	case e != nil && e.Outcome != nil && e.Outcome.Abandoned != nil:
		o.DiskEpoch = DiskAbandoned
	case n < record.NumberOf(h.Formed):
		o.DiskEpoch = DiskBelowFormed
	case n < record.NumberOf(h.newest) && h.newest.Outcome == nil:
		o.DiskEpoch = DiskBelowClaimed
	default:
		o.DiskEpoch = DiskCurrent
	}
}

// Ahead: agent.json knows an epoch or an incarnation that the record does not, or another token for the same epoch. The
// newest epoch seen counts too, also without a directory: a disk that was archived and is to join again must not seed
// on a record that was rolled back.
func (h History) Ahead() bool {
	a := h.Agent
	if max(a.Epoch, a.NewestEpoch) > record.NumberOf(h.newest) {
		return true
	}
	newest := uint64(0)
	for _, i := range h.Record.Replicas[a.Replica] {
		newest = max(newest, i.Number)
	}
	if a.Incarnation > newest {
		return true
	}
	return h.otherHistory()
}

// otherHistory: agent.json names another token for its epoch than the claim does.
func (h History) otherHistory() bool {
	e := h.Record.Epoch(h.Agent.Epoch)
	return e != nil && e.Claim != nil && h.Agent.Token != "" && h.Agent.Token != e.Claim.Token
}
