package health

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

// State is how a cluster is as a whole.
type State string

// The states.
const (
	// Well: it serves, and survives as many failures as it is made for.
	Well State = "well"
	// Degraded: it serves, and something is to be done.
	Degraded State = "degraded"
	// NotServing: nobody is served.
	NotServing State = "not serving"
	// Unknown: the endpoint was not asked, and there are no reports to go by.
	Unknown State = "unknown"
)

// Verdict is what is to be said of a cluster. Its JSON keys are stable.
type Verdict struct {
	Cluster string `json:"cluster"`
	State   State  `json:"state"`
	Voters  Voters `json:"voters"`
	// Leader is the place of the replica whose member leads etcd; empty: none is known.
	Leader   string    `json:"leader,omitempty"`
	Endpoint *Endpoint `json:"endpoint,omitempty"`
	Replicas []Replica `json:"replicas"`
	// Findings are causes, the worst first; what follows from each is below it.
	Findings []Finding `json:"findings"`
	Orders   []Order   `json:"orders"`
	// Snapshot is when the newest verified snapshot was taken; nil: it is not known, or there is none.
	Snapshot *time.Time `json:"snapshot,omitempty"`
}

// Finding is one thing that is not as it should be.
type Finding struct {
	// Name is its entry in the runbook, too.
	Name  string `json:"name"`
	Level Level  `json:"level"`
	// Replicas are the places that it is about; none: the cluster.
	Replicas []string `json:"replicas"`
	// What was found, and Next, what ends it. Full sentences.
	What string `json:"what"`
	Next string `json:"next,omitempty"`
	// Remedy are commands to paste.
	Remedy       []string  `json:"remedy"`
	Runbook      string    `json:"runbook"`
	Consequences []Finding `json:"consequences"`
}

// Judge says how a cluster is.
func Judge(f Facts, c Commands) Verdict {
	j := judgement{Facts: f, commands: c}
	j.current()
	j.voters = j.countVoters()
	v := Verdict{Cluster: f.Cluster, Voters: j.voters, Leader: j.leader, Endpoint: f.Endpoint,
		Replicas: append([]Replica{}, j.replicas...), Orders: append([]Order{}, f.Orders...), Snapshot: j.snapshot()}
	v.Findings = j.fold(j.find())
	v.State = j.state(v.Findings)
	return v
}

// judgement is a verdict in the making.
type judgement struct {
	Facts
	commands Commands
	replicas []Replica
	leader   string
	// authority is the replica whose view of the membership counts; -1: none has one.
	authority int
	voters    Voters
}

func (j *judgement) state(findings []Finding) State {
	switch {
	case j.Endpoint == nil && len(j.Reports) == 0:
		return Unknown
	case !j.serves():
		return NotServing
	case slices.ContainsFunc(findings, Finding.degrades), j.voters.Known && j.voters.Survives < tolerated(j.Wanted),
		slices.ContainsFunc(j.replicas, Replica.away):
		return Degraded
	}
	return Well
}

// serves goes by the endpoint, where it was asked. Else it goes by what the replicas say.
func (j *judgement) serves() bool {
	if j.Endpoint != nil {
		return j.Endpoint.Serves()
	}
	return j.voters.Known && j.voters.Survives >= 0 && slices.ContainsFunc(j.replicas, Replica.serves)
}

// tolerated is how many failures a cluster of so many replicas is made to survive.
func tolerated(replicas int) int { return max(0, (replicas-1)/2) }

// degrades reports whether the finding, or one below it, asks for somebody to do something.
func (f Finding) degrades() bool {
	return f.Level != Note || slices.ContainsFunc(f.Consequences, Finding.degrades)
}

// Headline is the verdict in a sentence or two.
func (v Verdict) Headline() string {
	text := fmt.Sprintf("Cluster %s serves and is well", v.Cluster)
	switch v.State {
	case Degraded:
		text = fmt.Sprintf("Cluster %s serves, and is degraded", v.Cluster)
	case NotServing:
		text = fmt.Sprintf("Cluster %s does not serve", v.Cluster)
	case Unknown:
		text = fmt.Sprintf("Whether cluster %s serves is not known", v.Cluster)
	}
	if !v.Voters.Known {
		return text + "."
	}
	if v.State == NotServing && v.Voters.Survives >= 0 {
		text += ", although etcd has its quorum" // what is missing is an apiserver, or the way to one
	}
	return text + ": " + v.Voters.text() + "."
}

func (j *judgement) snapshot() (newest *time.Time) {
	for _, s := range j.Reports {
		if s.Snapshot != nil && s.Snapshot.Time != nil && (newest == nil || s.Snapshot.Time.After(*newest)) {
			newest = s.Snapshot.Time
		}
	}
	return newest
}

// listed spells names for a sentence.
func listed(names []string) string {
	if n := len(names) - 1; n > 0 {
		return strings.Join(names[:n], ", ") + " and " + names[n]
	}
	return strings.Join(names, "")
}
