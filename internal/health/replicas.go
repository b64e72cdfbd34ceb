package health

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"github.com/quorate/quorate/internal/replica"
	"github.com/quorate/quorate/internal/report"
)

const (
	// SilentAfter is how old a report is of an agent that does not run, or cannot write: two periods and a write that
	// was slow.
	SilentAfter = 2*report.Period + 15*time.Second
	// justReported is how old a report is that may be newer than the Compute API's list.
	justReported = 3 * time.Second
	// forgottenAfter is how long a replica is shown that is no member and has gone silent.
	forgottenAfter = 10 * time.Minute
)

// ReplicaState is how one replica is.
type ReplicaState string

// The states of a replica.
const (
	ReplicaReady   ReplicaState = "ready"
	ReplicaUnwell  ReplicaState = "not well" // its boot is done, and something waits or does not run
	ReplicaBoots   ReplicaState = "booting"
	ReplicaStops   ReplicaState = "stopping"
	ReplicaStopped ReplicaState = "stopped" // in order
	ReplicaUnheard ReplicaState = "not heard"
	ReplicaCutOff  ReplicaState = "cut off" // it reports, and etcd's leader and it do not hear of each other
	// ReplicaUnknown: it has never reported, or not for long, and etcd's leader hears of its member.
	ReplicaUnknown ReplicaState = "no report"
)

// Replica is a line about one replica.
type Replica struct {
	replica.Place
	State ReplicaState `json:"state"`
	// Phase is of one that boots.
	Phase string `json:"phase,omitempty"`
	// Role is voter or learner; empty: it is no member. Leads: it leads etcd.
	Role  string `json:"role,omitempty"`
	Leads bool   `json:"leads,omitempty"`
	// Waits are the names of what it waits for, Down the components that do not run.
	Waits []string `json:"waits,omitempty"`
	Down  []string `json:"down,omitempty"`
	// Elected are the leases that its processes hold.
	Elected []string `json:"elected,omitempty"`
	// BootedAgain is when its boot began, where another went before it.
	BootedAgain time.Time `json:"bootedAgain,omitzero"`
	// Age is that of its report, in seconds by the store's clock; nil: it has none.
	Age *float64 `json:"reportAge,omitempty"`

	seen *report.Sighting
	// heard: etcd's leader hears of its member now. since: and said so after the replica's own report.
	heard, since bool
}

// serves reports whether its apiserver is ready as far as it says itself.
func (r Replica) serves() bool {
	return (r.State == ReplicaReady || r.State == ReplicaUnwell) && !slices.Contains(r.Down, replica.APIServer)
}

// votes reports whether its member takes part.
func (r Replica) votes() bool {
	switch r.State {
	case ReplicaBoots: // its report may be of before its member was started, promoted or, for a new start, stopped
		if r.seen.StartsAgain != "" {
			return r.Leads || r.heard
		}
		return r.seen.Member != "" && r.seen.Leader().ID != "" || r.since && len(r.Waits) == 0
	case ReplicaReady, ReplicaUnwell, ReplicaStops:
		return r.seen.Member != "" && r.seen.Leader().ID != ""
	case ReplicaUnknown:
		return r.heard
	}
	return false
}

// away reports whether it is not there for clients, also where that is on purpose or passes by itself.
func (r Replica) away() bool { return r.State != ReplicaReady && r.State != ReplicaUnwell }

// speaks reports whether what its report says is of now.
func (r Replica) speaks() bool {
	return r.seen != nil && r.State != ReplicaUnheard && r.State != ReplicaStopped && r.State != ReplicaUnknown
}

// current finds which replicas there are, whose view of the membership counts, and how each one is.
func (j *judgement) current() {
	j.authority = j.findAuthority()
	var members []report.Member
	fresh := false // who led a while ago says nothing of now
	if j.authority >= 0 {
		members = slices.DeleteFunc(slices.Clone(j.Reports[j.authority].Members), j.hasLeft) // it may not know yet
		fresh = !j.isOld(j.Reports[j.authority])
	}
	if fresh {
		j.leader = j.Reports[j.authority].Leader().Name
	}
	for n := range j.Reports {
		s := &j.Reports[n]
		m := memberAt(members, s.Place)
		if m == nil && s.Age > forgottenAfter && j.authority >= 0 {
			continue // it was here once
		}
		age := s.Age.Seconds()
		r := Replica{Place: s.Place, Phase: s.Phase, Age: &age, BootedAgain: s.BootedAgain, seen: s}
		if m != nil {
			r.Role, r.Leads = m.Role, m.Leader && fresh
			r.heard = fresh && m.Heard != nil && *m.Heard && n != j.authority // of oneself one always hears
			r.since = r.heard && j.Reports[j.authority].Age < s.Age
		}
		for _, c := range s.Components {
			if c.State != "ready" {
				r.Down = append(r.Down, c.Name)
			}
		}
		for _, w := range s.Waits {
			r.Waits = append(r.Waits, w.Name)
		}
		if r.State = j.stateOf(*s, m); r.State == ReplicaUnheard && r.heard {
			r.State = ReplicaUnknown // it runs, and cannot write to the bucket
		}
		if r.speaks() && j.isOld(*s) {
			r.State = ReplicaUnheard // its report is of before its end
		}
		if !r.speaks() && slices.Contains(j.Left, s.Place) {
			continue // its VM is gone as well, or may go
		}
		if r.State == ReplicaReady && len(r.Down)+len(r.Waits) > 0 {
			r.State = ReplicaUnwell
		}
		if !r.speaks() {
			r.Down, r.Waits = nil, nil
		} else {
			r.Elected = s.Elected
		}
		j.replicas = append(j.replicas, r)
	}
	for _, m := range members {
		place, ok := replica.ParsePlace(m.Name)
		if ok && !slices.ContainsFunc(j.replicas, func(r Replica) bool { return r.Place == place }) {
			j.replicas = append(j.replicas, Replica{Place: place, State: ReplicaUnknown, Role: m.Role,
				Leads: m.Leader && fresh, heard: fresh && m.Heard != nil && *m.Heard})
		}
	}
	slices.SortFunc(j.replicas, func(a, b Replica) int { return replica.ComparePlaces(a.Place, b.Place) })
}

// hasLeft reports whether a member is of a place that was ordered to leave, and left.
func (j *judgement) hasLeft(m report.Member) bool {
	place, ok := replica.ParsePlace(m.Name)
	return ok && slices.Contains(j.Left, place)
}

// findAuthority is the newest report of a replica whose member leads; else, of one that has members; -1: there is none.
func (j *judgement) findAuthority() int {
	best := -1
	rank := func(s report.Sighting) int {
		switch {
		case j.isOld(s):
			return 0
		case s.Own().Leader:
			return 3
		case s.Leader().ID != "":
			return 2
		}
		return 1
	}
	for n, s := range j.Reports {
		if len(s.Members) == 0 {
			continue
		}
		if best < 0 || cmp.Or(cmp.Compare(rank(s), rank(j.Reports[best])),
			cmp.Compare(j.Reports[best].Age, s.Age)) > 0 {
			best = n
		}
	}
	return best
}

// IsOff reports whether a VM of this status, which is GCE's word, does not run.
func IsOff(status string) bool {
	return slices.Contains([]string{"TERMINATED", "STOPPED", "SUSPENDED"}, status)
}

// isOld reports whether a report says nothing of now: nothing newer has come for long, or its VM is off since.
func (j *judgement) isOld(s report.Sighting) bool {
	off := slices.ContainsFunc(j.VMs, func(v replica.VM) bool {
		return v.Place == s.Place && IsOff(v.Status)
	})
	return s.Age > SilentAfter || off && s.Age > justReported
}

func memberAt(members []report.Member, p replica.Place) *report.Member {
	// The one that has started comes first: the former member of a place may still be listed.
	for _, started := range []bool{true, false} {
		for n, m := range members {
			if m.Name == p.String() && m.Started == started {
				return &members[n]
			}
		}
	}
	return nil
}

// stateOf judges one report; m is the replica's member as the authority has it, nil: it has none.
func (j *judgement) stateOf(s report.Sighting, m *report.Member) ReplicaState {
	said := m != nil && m.Heard != nil && !*m.Heard && j.Reports[j.authority].Place != s.Place
	unheard := said && j.Reports[j.authority].Age <= s.Age
	// A VM that was shot has not noticed that nobody hears of it. One that is cut off has, and says so at once.
	dead := unheard && s.Leader().ID != ""
	switch {
	case s.StartsAgain != "" && s.Age <= SilentAfter:
		return ReplicaBoots // also where nobody hears of it: its member does not run
	case s.AskedToStop() && (s.Age > SilentAfter || unheard || s.Member == ""):
		return ReplicaStopped
	case s.Age > SilentAfter, dead:
		return ReplicaUnheard
	case s.AskedToStop():
		return ReplicaStops
	case !s.Ready:
		return ReplicaBoots
	case etcdEnded(s.Report): // nothing of it can be heard, whatever the network does
		return ReplicaReady
	case unheard, said && s.Leader().ID == "": // its own report agrees, also where that is the newer one
		return ReplicaCutOff
	}
	return ReplicaReady
}

// etcdEnded: the replica's etcd does not run. One that is cut off is "starting" for as long as it knows of no leader.
func etcdEnded(r report.Report) bool {
	return slices.ContainsFunc(r.Components, func(c report.Component) bool {
		return c.Name == "etcd" && slices.Contains([]string{"stopped", "waiting", "backoff", "parked"}, c.State)
	})
}

// Text is the state with what there is to explain, for a line.
func (r Replica) Text() string {
	switch {
	case r.State == ReplicaBoots && r.seen != nil && r.seen.StartsAgain != "":
		return "starting again"
	case r.State == ReplicaBoots:
		return "booting, phase " + r.Phase
	case len(r.Down) > 0:
		return string(r.State) + ": " + strings.Join(r.Down, ", ")
	}
	return string(r.State)
}
