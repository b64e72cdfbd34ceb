package order

import (
	"cmp"
	"slices"

	"github.com/quorate/quorate/internal/record"
	"github.com/quorate/quorate/internal/replica"
)

// Candidate is one replica's directory of the epoch, as far as the record knows of it.
type Candidate struct {
	Place       replica.Place
	Incarnation record.Incarnation
	// Stopped is its own report that it has ended, with the end of its log where that was known; nil: there is none.
	Stopped *record.Stopped
	// Mark is the newest of its member; nil: there is none.
	Mark *record.Mark
	// Emptied is the pending incarnation that stands on another, empty disk now; nil: none does. The former disk may
	// come back.
	Emptied *record.Incarnation
}

// DiskState is what is known of a candidate's disk, for people.
type DiskState string

// The states of a candidate's disk.
const (
	DiskWhole      DiskState = "stopped, whole"
	DiskNotStopped DiskState = "has not stopped"
	DiskNoLog      DiskState = "stopped, log not known"
	DiskEmpty      DiskState = "its disk is empty now"
)

// bestFirst are the states in the order in which candidates are preferred.
var bestFirst = []DiskState{DiskWhole, DiskNotStopped, DiskNoLog, DiskEmpty}

// Whole: its disk is, by its own report.
func (c Candidate) Whole() bool { return c.Stopped != nil && c.Stopped.LastIndex > 0 }

// State says how it stands.
func (c Candidate) State() DiskState {
	switch {
	case c.Emptied != nil:
		return DiskEmpty
	case c.Whole():
		return DiskWhole
	case c.Stopped != nil:
		return DiskNoLog
	}
	return DiskNotStopped
}

// Reaches is how far its log reaches, at the least.
func (c Candidate) Reaches() (term, index uint64) {
	switch {
	case c.Whole():
		return c.Stopped.Term, c.Stopped.LastIndex
	case c.Mark != nil:
		return c.Mark.Term, c.Mark.Applied
	}
	return 0, 0
}

// Candidates lists each place that had a member in the epoch, those that stopped with the longest log first, then those
// that have not stopped, and last those whose disk is another one now.
func (r Restore) Candidates() (out []Candidate) {
	for _, p := range r.Record.Places() {
		all := r.Record.Replicas[p]
		for n, i := range slices.Backward(all) {
			if i.Epoch != r.Ends.Number || i.Started == nil || i.Started.MemberID == 0 {
				continue
			}
			c := Candidate{Place: p, Incarnation: i, Stopped: r.lastReport(all[n:]), Emptied: emptied(all[n:])}
			if m, ok := r.Record.Marks[i.Started.MemberID]; ok && m.Epoch == r.Ends.Number {
				c.Mark = &m
			}
			out = append(out, c)
			break
		}
	}
	slices.SortStableFunc(out, func(a, b Candidate) int {
		at, ai := a.Reaches()
		bt, bi := b.Reaches()
		return cmp.Or(cmp.Compare(slices.Index(bestFirst, a.State()), slices.Index(bestFirst, b.State())),
			cmp.Compare(bt, at), cmp.Compare(bi, ai))
	})
	return out
}

// lastReport is what the first of the incarnations, or one that followed it with the same member, has said of its end;
// nil: nothing. What was said under an earlier incarnation is no longer true of a member that went on.
func (r Restore) lastReport(incarnations []record.Incarnation) (last *record.Stopped) {
	first := incarnations[0]
	for _, i := range incarnations {
		s := r.Ends.StoppedBy(i)
		if s == nil || i.Epoch != first.Epoch {
			continue
		}
		same := s.MemberID == first.Started.MemberID
		own := i.InstanceID == first.InstanceID && s.MemberID == 0 // where the log ends was not known
		if last == nil && own || same && (last == nil || s.LastIndex >= last.LastIndex) {
			last = s
		}
	}
	return last
}

// emptied is the newest of the incarnations of an epoch where it is pending, and on an empty disk that is not the
// first one's.
func emptied(incarnations []record.Incarnation) *record.Incarnation {
	first := incarnations[0]
	for _, i := range slices.Backward(incarnations[1:]) {
		if i.Epoch != first.Epoch {
			continue
		}
		disk := first.Disk()
		other := i.InstanceID != first.InstanceID || i.DiskID != "" && disk != "" && i.DiskID != disk
		if i.Started == nil && i.EmptyDisk && other {
			return &i
		}
		return nil
	}
	return nil
}
