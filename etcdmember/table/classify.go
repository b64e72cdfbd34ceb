package table

import (
	"fmt"
	"slices"

	"github.com/quorate/quorate/internal/record"
)

// Classify judges what was read: which class of disk, record and remote side it is, and which of the predicates hold
// that the rows name. It is pure. The tests of each class stand in the classify_ files.
func Classify(f Facts) Observation {
	h := HistoryOf(f)
	o := Observation{
		Fault:       Fault(f, h),
		Running:     f.Directory.Running,
		Phase:       f.Agent.Phase,
		SameBoot:    f.Agent.InstanceID == f.Me.InstanceID && f.Agent.BootID == f.Me.BootID,
		StartAnyway: f.StartAnyway,
		Alone:       f.Alone >= QuorumPatience,
		Unheard:     f.Unheard >= QuorumPatience,
		Silent:      f.Directory.Running && f.Directory.Silent,
		OnlyVoter: f.Directory.Running && slices.Equal(f.Directory.Voters,
			[]record.MemberID{f.Directory.MemberID}),
		Tries:     f.Tries,
		LastWords: f.Directory.End.Text,
		Room:      f.Room,
	}
	if !f.Directory.Running {
		o.Unusable = f.Directory.End.Unusable()
	}
	o.Names.Place, o.Names.DataDir = f.Me.Place.String(), f.Disk.DataDir
	o.Names.MemberID, o.Names.ClusterID = h.MemberID(), f.Directory.ClusterID
	if f.Preflight != nil {
		o.Preflight = f.Preflight.Error()
	}
	h.classifyRecord(&o)
	h.classifyLocal(&o)
	h.relateDisk(&o)
	h.classifyRemote(&o)
	h.findClaim(&o)
	h.findIncarnation(&o)
	h.findOrders(&o)
	h.findEntries(&o)
	h.findRoom(&o)
	h.findPolicies(&o)
	return o
}

// Fault is an error before any row, as a sentence.
func Fault(f Facts, h History) string {
	if f.Disk.Wanted != "" && !f.Disk.Mounted {
		return fmt.Sprintf("the configured data disk %q is not mounted at the data directory; attach and mount it",
			f.Disk.Wanted)
	}
	if err := f.Directory.ReadErr; err != nil {
		return fmt.Sprintf("the etcd directory cannot be read: %v", err)
	}
	if text := versionFault(f, h.Formed != nil); text != "" {
		return text
	}
	in := h.Record.Inception
	if f.RecordErr != nil || in == nil {
		return ""
	}
	switch {
	case f.Agent.ClusterUID != "" && f.Agent.ClusterUID != in.UID:
		return fmt.Sprintf("the data disk belongs to the cluster with uid %s, the record to %s (%s)",
			f.Agent.ClusterUID, in.Name, in.UID)
	case in.ProjectNumber != "" && f.Me.ProjectNumber != in.ProjectNumber:
		return fmt.Sprintf("this instance is in project number %s, the cluster's inception names %s",
			f.Me.ProjectNumber, in.ProjectNumber)
	case in.Region != "" && f.Me.Region() != in.Region:
		return fmt.Sprintf("this instance is in region %s, the cluster's inception names %s", f.Me.Region(), in.Region)
	case f.Now.Before(in.Time):
		return fmt.Sprintf("the clock says %s, before the cluster's inception at %s",
			f.Now.UTC().Format("2006-01-02T15:04:05Z"), in.Time.UTC().Format("2006-01-02T15:04:05Z"))
	}
	return learnersFault(h)
}

// learnersFault: etcd checks the number of learners where a change is applied, so a member that allows another number
// than the others would come to another list than they have.
func learnersFault(h History) string {
	for _, e := range []*record.Epoch{h.Formed, h.newest} {
		if e != nil && e.Claim != nil && e.Claim.MaxLearners != MaxLearners &&
			(e.Outcome == nil || e.Formed() != nil) {
			return fmt.Sprintf("epoch %d was claimed for at most %d learners at a time, and this quorate allows %d: "+
				"run the release that the others run",
				e.Number, e.Claim.MaxLearners, MaxLearners)
		}
	}
	return ""
}

// History is the facts with the record's epochs sorted out: the newest of all, and the newest that was formed.
type History struct {
	Facts
	newest, Formed *record.Epoch
	Orders         Orders
}

// HistoryOf sorts the facts' record out.
func HistoryOf(f Facts) History {
	h := History{Facts: f, newest: f.Record.Newest(), Formed: f.Record.NewestFormed()}
	h.Orders = OrdersOf(f.Record.Orders, record.NumberOf(h.Formed), f.Now)
	return h
}

// MemberID is the disk's: agent.json's, or the WAL's where agent.json does not know it yet.
func (h History) MemberID() record.MemberID {
	if h.Agent.MemberID != 0 {
		return h.Agent.MemberID
	}
	return h.Directory.MemberID
}
