package table

import (
	"fmt"
	"slices"

	"github.com/quorate/quorate/internal/record"
)

// findPolicies finds what can be restored from where quorum is gone for good, in an open epoch: the newest snapshot of
// a single replica, a learner's warm copy, or, by row 22, what the survivors hold; and the order that would do it. The
// first two are offered only: what they lose is for a person to see first.
func (h History) findPolicies(o *Observation) {
	if o.Record != Rf || h.Orders.Restore != nil {
		return
	}
	if h.Orders.withdrawnRestore(h.Record.Orders, h.Formed.Number) {
		h.Policy.Survivors = false // a person said no
	}
	h.findSnapshotOffer(o)
	if o.Local != L1 || o.DiskEpoch != DiskCurrent || o.Ended || len(h.me().certain()) == 0 {
		return
	}
	h.findWarmCopy(o)
	h.findSurvivors(o)
}

// findSnapshotOffer: one replica is wanted, no other one of this epoch can hold newer data, and there is a verified
// snapshot. That one is wanted does not prove that there is only one: the others are asked for by the record.
func (h History) findSnapshotOffer(o *Observation) {
	if h.Wanted() != 1 || o.Local != L0 && o.Local != L2 {
		return
	}
	if h.directoryCanBeRestored(o) || !h.nothingNewer() {
		return // agent.json alone is lost: the directory holds more than any snapshot, and a person can restore from it
	}
	s := h.Policy.Snapshot
	if s == nil || s.Epoch != h.Formed.Number {
		return
	}
	o.SnapshotOffered = true
	o.Names.PolicyText = fmt.Sprintf("the newest verified snapshot is %s of %s", s.Name,
		s.Time.UTC().Format("2006-01-02 15:04:05Z"))
}

// nothingNewer: every disk that a confirmed incarnation of this epoch was on, of this place too, is proven gone, but
// for the one that is here; and every other instance is silent. A disk that is detached may come back with everything.
func (h History) nothingNewer() bool {
	for _, incarnations := range h.Record.Replicas {
		for n, i := range incarnations {
			if i.Epoch != h.Formed.Number || i.Started == nil {
				continue
			}
			here := i.Place == h.Me.Place && i.DiskID == h.DiskID && (i.DiskID != "" || i.InstanceID == h.Me.InstanceID)
			if !here && !h.diskGone(i) || h.speaks(i, incarnations[n+1:]) != "" {
				return false
			}
		}
	}
	return true
}

// diskGone: both lists of disks lack the incarnation's.
func (h History) diskGone(i record.Incarnation) bool {
	c := h.Compute
	return i.DiskID != "" && h.twoLists() && c.First.DisksErr == nil && c.Second.DisksErr == nil &&
		!slices.Contains(c.First.Disks, i.DiskID) && !slices.Contains(c.Second.Disks, i.DiskID)
}

// findWarmCopy: one voter, which is gone with its disk, and this replica its learner.
func (h History) findWarmCopy(o *Observation) {
	id, voters := h.MemberID(), h.me().certain()
	if len(voters) != 1 || voters[0] == id || !h.isLearner(id) || !h.voterLost(voters[0]) {
		return
	}
	for _, v := range slices.Concat(h.me().possible()...) {
		if v != id && v != voters[0] {
			return // another may hold more
		}
	}
	o.WarmCopyOffered = true
	o.Names.PolicyText = "the only voter is gone with its disk, and this learner's copy " + h.lag(voters[0])
}

// isLearner: the id was added as a learner and, as far as is certain, neither promoted nor removed.
func (h History) isLearner(id record.MemberID) bool {
	is := slices.Contains(h.Directory.Learners, id)
	for _, c := range h.Directory.Changes {
		if c.MemberID == id && c.Index <= h.Directory.Commit {
			is = c.Type == "add-learner"
		}
	}
	return is
}

// lag says how far the own log is behind the gone voter's newest mark.
func (h History) lag(voter record.MemberID) string {
	m, ok := h.Record.Marks[voter]
	if !ok {
		return fmt.Sprintf("ends at index %d; the voter left no mark to compare it with", h.Directory.LastIndex)
	}
	if m.Applied <= h.Directory.LastIndex {
		return fmt.Sprintf("reaches beyond the voter's last mark of %s", m.Time.UTC().Format("15:04:05Z"))
	}
	return fmt.Sprintf("lacks at least %d entries of the voter's last mark", m.Applied-h.Directory.LastIndex)
}

// voterGone: the member's newest incarnation is known, and its VM is proven gone with its disk.
func (h History) voterGone(id record.MemberID) bool {
	i, ok := h.IncarnationOf(id)
	return ok && h.GoneWithDisk(i)
}

// voterLost: and the disk is in no list, also where a successor stands on another one, and the VM is silent.
func (h History) voterLost(id record.MemberID) bool {
	i, ok := h.IncarnationOf(id)
	return ok && h.voterGone(id) && h.diskGone(i) && h.speaks(i, nil) == ""
}

// IncarnationOf is the newest incarnation that carries the member id.
func (h History) IncarnationOf(id record.MemberID) (record.Incarnation, bool) {
	var found record.Incarnation
	for _, incarnations := range h.Record.Replicas {
		for _, i := range incarnations {
			if IncarnationMember(i) == id && i.Epoch == record.NumberOf(h.Formed) {
				found = i
			}
		}
	}
	return found, found.Number != 0
}
