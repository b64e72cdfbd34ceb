package report

import (
	"encoding/json"
	"net/netip"
	"time"

	"github.com/quorate/quorate/internal/replica"
)

// Period is the longest time between two reports of an agent that runs: one that is much older is of an agent that does
// not, or cannot write.
const Period = 30 * time.Second

// Report is how one replica is. Its times are by the replica's clock, which may be wrong: how old a report is says
// Sighting. Its JSON keys are stable.
type Report struct {
	replica.Place
	InstanceID string       `json:"instanceID"`
	BootID     string       `json:"bootID"`
	Addresses  []netip.Addr `json:"addresses,omitempty"`
	// BootedAgain is when this boot began, where the report before was of another; zero: none was before, or it is not
	// known yet.
	BootedAgain time.Time `json:"bootedAgain,omitzero"`
	// At is when this was observed.
	At time.Time `json:"at"`
	// Phase is the step of the boot that runs, keep, or stopping; Since is when it began. Ready: the boot is done.
	Phase string    `json:"phase"`
	Since time.Time `json:"since"`
	Ready bool      `json:"ready"`
	// StartsAgain is why the agent stops, where nobody asked it to: it is started again.
	StartsAgain string `json:"startsAgain,omitempty"`

	Cluster     string `json:"cluster"`
	Epoch       uint64 `json:"epoch,omitempty"`
	ClusterID   string `json:"clusterID,omitempty"`
	Incarnation uint64 `json:"incarnation,omitempty"`
	DiskID      string `json:"diskID,omitempty"`

	// Member is this replica's own member id; empty while no member answers.
	Member string `json:"member,omitempty"`
	// Members are the members of the cluster, as this one has applied them.
	Members []Member `json:"members,omitempty"`
	// Row is the row of the membership's table that holds, LeaderRow that of the leader loop, by their names.
	Row       string `json:"row,omitempty"`
	LeaderRow string `json:"leaderRow,omitempty"`
	// RecordRead is when the record was last read; nil: not yet.
	RecordRead *time.Time `json:"recordRead,omitempty"`
	// Steps counts the acts that this agent took.
	Steps []Step `json:"steps,omitempty"`

	Components []Component `json:"components,omitempty"`
	// Elected are the leases that this replica's processes hold, as far as it can read them.
	Elected []string       `json:"elected,omitempty"`
	Waits   []replica.Wait `json:"waits,omitempty"`
	// Certificate is the one that expires first; nil: none was issued yet.
	Certificate *Certificate `json:"certificate,omitempty"`
	Snapshot    *Snapshot    `json:"snapshot,omitempty"`
	// Version is quorate's.
	Version string `json:"version,omitempty"`
	// EventsDropped counts the events that were not written, since the agent began.
	EventsDropped uint64 `json:"eventsDropped,omitempty"`
}

// Member is one member of etcd, as a replica knows it.
type Member struct {
	// Name is the place of its replica, or else etcd's name for it.
	Name    string `json:"name"`
	ID      string `json:"id"`
	Role    string `json:"role"` // voter or learner
	Leader  bool   `json:"leader,omitempty"`
	Started bool   `json:"started,omitempty"`
	// Heard says whether the leader hears of it; nil where this replica does not lead. Lag is how many entries its log
	// is known to be behind.
	Heard *bool   `json:"heard,omitempty"`
	Lag   *uint64 `json:"lag,omitempty"`
}

// Step is how often an act was taken.
type Step struct {
	Act     string `json:"act"`
	Outcome string `json:"outcome"`
	Count   uint64 `json:"count"`
	// Reason is why it was taken, the last time.
	Reason string `json:"reason,omitempty"`
}

// Component is one process that is kept running.
type Component struct {
	Name     string    `json:"name"`
	State    string    `json:"state"`
	Since    time.Time `json:"since"`
	Restarts int       `json:"restarts,omitempty"`
	Reason   string    `json:"reason,omitempty"`
}

// StateText is the component's state for a person.
func (c Component) StateText() string {
	if c.State == "backoff" {
		return "crash-looping"
	}
	return c.State
}

// Certificate is one leaf.
type Certificate struct {
	Name     string    `json:"name"`
	NotAfter time.Time `json:"notAfter"`
}

// Snapshot says how old the newest verified snapshot is, and when there will be another.
type Snapshot struct {
	// Time is when the newest was taken; nil: there is none.
	Time   *time.Time `json:"time,omitempty"`
	Due    time.Time  `json:"due"`
	Saving bool       `json:"saving,omitempty"`
}

// Sighting is a report as it was read.
type Sighting struct {
	Report
	// Age is how long ago it was written, by the store's clock alone.
	Age time.Duration `json:"age"`
	// Written is when it was written, by the same clock: the same replica's next report has a later one.
	Written time.Time `json:"-"`
}

// mostItems bounds each list of a report. A real one has fewer.
const mostItems = 40

// Cleaned is the report as it may be written: each free text is Clean, and no list is long.
func (r Report) Cleaned() Report {
	r.StartsAgain = Clean(r.StartsAgain)
	r.Members = cleaned(r.Members, func(m Member) Member { m.Name = Clean(m.Name); return m })
	r.Components = cleaned(r.Components, func(c Component) Component { c.Reason = Clean(c.Reason); return c })
	r.Waits = cleaned(r.Waits, func(w replica.Wait) replica.Wait {
		w.Reason, w.Next = Clean(w.Reason), Clean(w.Next)
		return w
	})
	r.Steps = cleaned(r.Steps, func(s Step) Step { s.Reason = Clean(s.Reason); return s })
	r.Elected = cleaned(r.Elected, Clean)
	return r
}

func cleaned[T any](list []T, clean func(T) T) []T {
	out := make([]T, 0, min(len(list), mostItems))
	for _, v := range list[:min(len(list), mostItems)] {
		out = append(out, clean(v))
	}
	return out
}

// AskedToStop: it is on its way down because somebody asked for it.
func (r Report) AskedToStop() bool { return r.Phase == "stopping" && r.StartsAgain == "" }

// Own is this replica's own member; zero: none answers.
func (r Report) Own() Member {
	for _, m := range r.Members {
		if m.ID == r.Member {
			return m
		}
	}
	return Member{}
}

// Leader is the member that leads, as this replica knows it; zero: it knows of none.
func (r Report) Leader() Member {
	for _, m := range r.Members {
		if m.Leader {
			return m
		}
	}
	return Member{}
}

// essence is what of a report is a change where it differs. Ages, lags and texts of reasons change all the time, and
// are written with the next report.
func (r Report) essence() string {
	r.At, r.RecordRead, r.EventsDropped, r.Steps = time.Time{}, nil, 0, nil
	r.Members = cleaned(r.Members, func(m Member) Member { m.Lag = nil; return m })
	r.Components = cleaned(r.Components, func(c Component) Component {
		c.Reason, c.Since = "", time.Time{}
		return c
	})
	r.Waits = cleaned(r.Waits, func(w replica.Wait) replica.Wait {
		return replica.Wait{Row: w.Row, Name: w.Name, Since: w.Since}
	})
	if r.Snapshot != nil {
		r.Snapshot = &Snapshot{Time: r.Snapshot.Time, Saving: r.Snapshot.Saving}
	}
	b, _ := json.Marshal(r) // plain data always encodes
	return string(b)
}
