// Package explain says in words what a replica observed of its membership, which row holds, and what it would do next:
// for `quorate etcd explain`. It decides nothing. Packages table and leader do, and it is as pure as they are.
package explain

import (
	"errors"
	"fmt"
	"time"

	"github.com/quorate/quorate/etcdmember/leader"
	"github.com/quorate/quorate/etcdmember/table"
	"github.com/quorate/quorate/internal/replica"
)

// Explanation describes one observation for a person: what was observed, which row holds, and what would be done next.
// Its JSON keys are stable.
type Explanation struct {
	// At is when it was observed.
	At      time.Time `json:"at"`
	Replica string    `json:"replica"`
	Running bool      `json:"running"`
	// Disk, DiskEpoch, Record and Remote are the classes of the membership's table.
	Disk      ClassInWords `json:"disk"`
	DiskEpoch ClassInWords `json:"diskEpoch"`
	Record    ClassInWords `json:"record"`
	Remote    ClassInWords `json:"remote"`
	// Found are the predicates of the rows that hold, as sentences.
	Found []string `json:"found"`
	// Plan is what the table says, Waits what is waited for; nil: nothing.
	Plan  PlanInWords   `json:"plan"`
	Waits *replica.Wait `json:"waits"`
	// Leader is what the leader's rows say; nil where this member does not lead.
	Leader *LeaderExplanation `json:"leader"`
}

// ClassInWords is a class of the observation, and what it means.
type ClassInWords struct {
	Class string `json:"class"`
	Means string `json:"means"`
}

// PlanInWords is a row that holds, what the row is about, and its one step.
type PlanInWords struct {
	Row    table.Row     `json:"row"`
	About  string        `json:"about"`
	Act    table.Act     `json:"act"`
	Step   int           `json:"step,omitempty"`
	Member string        `json:"member,omitempty"`
	Reason string        `json:"reason"`
	Waits  *replica.Wait `json:"waits"`
}

// LeaderExplanation is what the rows of the leader loop say of its last observation: Plan is the step, Rows are all
// rows that have something to say, in the order in which they are tested.
type LeaderExplanation struct {
	At   time.Time     `json:"at"`
	Plan PlanInWords   `json:"plan"`
	Rows []PlanInWords `json:"rows"`
}

// Last is the last observation of this replica, and the last two of the leader loop.
type Last struct {
	At             time.Time
	Observation    table.Observation
	Plan           table.Plan
	LeaderAt       time.Time // zero: this member does not lead
	Previous, Ring leader.Ring
	LeaderPlan     table.Plan
}

// Explain describes the last observation, which is at most some seconds old; nil: there was none yet.
func (t Last) Explain() *Explanation {
	if t.At.IsZero() {
		return nil
	}
	o := t.Observation
	e := &Explanation{
		At: t.At, Replica: o.Names.Place, Running: o.Running,
		Disk:      ClassInWords{string(o.Local), diskInWords(o)},
		DiskEpoch: ClassInWords{string(o.DiskEpoch), diskEpochWords[o.DiskEpoch]},
		Record:    ClassInWords{string(o.Record), recordInWords(o)},
		Remote:    ClassInWords{string(o.Remote), remoteWords[o.Remote]},
		Found:     found(o), Plan: inWords(t.Plan), Waits: t.Plan.Blocked,
	}
	if !t.LeaderAt.IsZero() {
		e.Leader = t.explainOnLeader()
	}
	return e
}

// MayStartAnyway says why start-anyway would change nothing by the last observation; nil: the member would
// start.
func (t Last) MayStartAnyway() error {
	o := t.Observation
	switch {
	case t.At.IsZero():
		return errors.New("the agent has not observed anything yet; ask again in a moment")
	case t.Plan.Row != table.RowUnread:
		return fmt.Errorf("row %s holds (%s); start-anyway is for row %s, where etcd does not start because the "+
			"record cannot be read", t.Plan.Row.Name(), rowsInWords[t.Plan.Row], table.RowUnread.Name())
	case o.Running:
		return errors.New("etcd runs already")
	case o.Local != table.L1:
		return fmt.Errorf("there is nothing that could be started: %s", diskInWords(o))
	case o.Phase != table.PhaseStarted:
		return fmt.Errorf("etcd never served from this directory: agent.json says %q", o.Phase)
	case o.Ended:
		return errors.New("the member on this disk has stopped for a restore, which may rely on that")
	}
	return nil
}

func (t Last) explainOnLeader() *LeaderExplanation {
	l := &LeaderExplanation{At: t.LeaderAt, Plan: inWords(t.LeaderPlan), Rows: []PlanInWords{}}
	for _, p := range leader.Rows(t.LeaderAt, t.Previous, t.Ring) {
		l.Rows = append(l.Rows, inWords(p))
	}
	return l
}

func inWords(p table.Plan) PlanInWords {
	w := PlanInWords{Row: p.Row, About: rowsInWords[p.Row], Act: p.Wants(), Step: p.Step, Reason: p.Reason,
		Waits: p.Blocked}
	if p.MemberID != 0 {
		w.Member = p.MemberID.String()
	}
	return w
}
