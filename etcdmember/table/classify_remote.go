package table

import (
	"cmp"
	"slices"

	"github.com/quorate/quorate/internal/record"
	"github.com/quorate/quorate/internal/replica"
)

// classifyRemote finds what answers. The own member's answer counts while it runs: a lone voter is its own quorum.
func (h History) classifyRemote(o *Observation) {
	o.Remote, o.Removed = Nobody, h.removedByOwnLog()
	stranger := false
	for _, a := range h.Answers {
		own := a.InstanceID == h.Me.InstanceID
		if a.Reach == ReachNothing || own && !h.Directory.Running {
			continue
		}
		if o.Names.Answered == "" && !own {
			o.Names.Answered = a.Place.String()
		}
		stranger = stranger || !own
		if h.isQuorum(a) {
			o.Remote = Quorum
		} else if o.Remote == Nobody {
			o.Remote = Answers
		}
		o.Removed = o.Removed || a.Removed
	}
	if o.Record == R0 && o.Remote == Nobody && !h.listsMe(h.Compute.Second) {
		o.Remote, o.NoList = Answers, true
	}
	unformed := o.Record == R0 || o.Record == Rs && h.claimIsMine()
	if unformed && stranger {
		o.StrangerSince = h.StrangerSince
		if o.StrangerSince.IsZero() {
			o.StrangerSince = h.Now
		}
	}
}

// removedByOwnLog: the own log has the own removal, and that it was committed. etcd would read that and exit, again and
// again.
func (h History) removedByOwnLog() bool {
	d := h.Directory
	return slices.ContainsFunc(d.Changes, func(c record.ConfigChange) bool {
		return c.Type == "remove" && c.MemberID == d.MemberID && c.Index <= d.Commit
	})
}

// isQuorum: a member of the newest formed epoch's cluster answered a linearizable list.
func (h History) isQuorum(a Answer) bool {
	return h.Formed != nil && a.Reach == ReachLinearizable && a.ClusterID == h.Formed.Outcome.Formed.ClusterID
}

// listsMe: the listing is an answer, and it is about our own project: it contains this instance.
func (h History) listsMe(l Listing) bool {
	return l.Err == nil &&
		slices.ContainsFunc(l.Instances, func(i Instance) bool { return i.InstanceID == h.Me.InstanceID })
}

// twoLists: there are two listings, far enough apart, that both contain this instance.
func (h History) twoLists() bool {
	c := h.Compute
	return h.listsMe(c.First) && h.listsMe(c.Second) && c.Second.Time.Sub(c.First.Time) >= listingGap
}

// Gone is the proof that an instance can never run again: a newer incarnation of its place is another's, or two lists
// lack it. Terminated, suspended, unreachable, an error or an empty list prove nothing.
func (h History) Gone(p replica.Place, instanceID string) bool {
	if instanceID == "" {
		return false
	}
	if h.succeeded(p, instanceID) {
		return true
	}
	return h.Unlisted(instanceID)
}

// Unlisted: two lists that could name the instance do not.
func (h History) Unlisted(instanceID string) bool {
	return h.twoLists() && !InList(h.Compute.First, instanceID) && !InList(h.Compute.Second, instanceID)
}

// succeeded: another instance took an incarnation of the place after this one had taken its newest. An instance that
// never took one is not known to be older than those that did, unless this very VM stands in its place.
func (h History) succeeded(p replica.Place, instanceID string) bool {
	if p == h.Me.Place && instanceID != h.Me.InstanceID {
		return !h.maySucceedMe(instanceID)
	}
	had := false
	for _, i := range h.Record.Replicas[p] {
		if i.InstanceID == instanceID {
			had = true
		} else if had {
			return true
		}
	}
	return false
}

// maySucceedMe: this very VM has stood in its place, and the other instance of it is not known to have stood there
// before. A VM that is new here is the newest, because the cloud has one instance of a name; one that has been here may
// be the old one, which still runs.
func (h History) maySucceedMe(instanceID string) bool {
	first := slices.IndexFunc(h.Record.Replicas[h.Me.Place],
		func(i record.Incarnation) bool { return i.InstanceID == h.Me.InstanceID })
	return first >= 0 && !slices.ContainsFunc(h.Record.Replicas[h.Me.Place][:first],
		func(i record.Incarnation) bool { return i.InstanceID == instanceID })
}

// GoneWithDisk: and its disk is not there either, by both lists of disks, or its successor is on another.
func (h History) GoneWithDisk(i record.Incarnation) bool {
	if !h.Gone(i.Place, i.InstanceID) || i.DiskID == "" {
		return false
	}
	for _, later := range h.Record.Replicas[i.Place] {
		if later.Number > i.Number && later.InstanceID != i.InstanceID {
			return later.DiskID != "" && later.DiskID != i.DiskID
		}
	}
	return h.diskGone(i)
}

// InList reports whether the listing has the instance.
func InList(l Listing, instanceID string) bool { return StatusIn(l, instanceID) != "" }

// StatusIn is the instance's in the listing; empty: it is not in it.
func StatusIn(l Listing, instanceID string) string {
	for _, i := range l.Instances {
		if i.InstanceID == instanceID {
			return cmp.Or(i.Status, "unknown")
		}
	}
	return ""
}

// AnswersQuorum reports whether a member of the newest formed epoch answers through quorum.
func AnswersQuorum(f Facts) bool {
	_, ok := QuorumAnswer(f)
	return ok
}

// QuorumAnswer is the first answer through quorum of the newest formed epoch's cluster. A member of an older epoch that
// still runs has the same authorities and answers as well: nothing may be asked of it.
func QuorumAnswer(f Facts) (Answer, bool) {
	h := HistoryOf(f)
	for _, a := range f.Answers {
		if h.isQuorum(a) {
			return a, true
		}
	}
	return Answer{}, false
}
