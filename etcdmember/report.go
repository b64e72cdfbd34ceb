package etcdmember

import (
	"context"
	"slices"
	"time"

	"github.com/quorate/quorate/etcdmember/explain"
	"github.com/quorate/quorate/etcdmember/member"
	"github.com/quorate/quorate/etcdmember/table"
	"github.com/quorate/quorate/internal/record"
)

// Report is what a replica tells of its membership at one moment. The agent's status has it, and status, explanation
// and metrics are printed from that document. It is plain data; its JSON keys are stable.
type Report struct {
	Cluster ClusterReport `json:"cluster"`
	Etcd    EtcdReport    `json:"etcd"`
}

// ClusterReport names the cluster as the record and etcd know it.
type ClusterReport struct {
	Name string `json:"name"`
	// Epoch is the newest one, also where it is only claimed so far.
	Epoch uint64 `json:"epoch"`
	// ID is etcd's cluster id in hexadecimal: the own member's, or else that of the newest epoch that is formed; empty
	// before the first is.
	ID string `json:"id"`
	// OrderedReplicas is how many replicas are wanted by the newest such order in the record as it was last read; 0: by
	// none.
	OrderedReplicas int `json:"orderedReplicas,omitempty"`
	// Pause is the pause that is in force by the record as it was last read; nil: there is none.
	Pause *PauseReport `json:"pause,omitempty"`
}

// PauseReport is an order that holds back all changes of the membership.
type PauseReport struct {
	Order  uint64    `json:"order"`
	By     string    `json:"by"`
	Reason string    `json:"reason,omitempty"`
	Since  time.Time `json:"since"`
	// Until is when it ends by itself; nil: with "quorate resume".
	Until *time.Time `json:"until,omitempty"`
}

// EtcdReport is the membership as this replica's member and agent see it.
type EtcdReport struct {
	// Member is this replica's own member id; empty while no member answers.
	Member string `json:"member,omitempty"`
	// Row is the row of the membership's table that the last observation found to hold, LeaderRow the one of the leader
	// loop; empty where there was no such observation.
	Row       string         `json:"row,omitempty"`
	LeaderRow string         `json:"leaderRow,omitempty"`
	Members   []MemberReport `json:"members"`
	// Database is this replica's own member's; nil while it does not answer.
	Database *table.Database `json:"database,omitempty"`
	// RecordRead is when the record was last read; nil: not yet.
	RecordRead *time.Time `json:"recordRead,omitempty"`
	// Steps counts the acts that this agent took.
	Steps []StepCount `json:"steps"`
	// Explanation is of the last observation; nil: there was none yet.
	Explanation *explain.Explanation `json:"explanation,omitempty"`
}

// MemberReport is one member of the cluster.
type MemberReport struct {
	Name    string `json:"name"`
	ID      string `json:"id"`
	Role    string `json:"role"` // voter or learner
	Leader  bool   `json:"leader"`
	Started bool   `json:"started"`
	// Lag is how many entries the member's log is known to be behind the leader's, Heard whether the leader has heard
	// of the member within the last election time-out; nil where this replica does not lead.
	Lag   *uint64 `json:"lag,omitempty"`
	Heard *bool   `json:"heard,omitempty"`
}

// orderedReplicas is the number that was ordered; 0: none was.
func orderedReplicas(v *record.View, now time.Time) int {
	if v == nil {
		return 0
	}
	return table.OrdersOf(v.Orders, record.NumberOf(v.NewestFormed()), now).Replicas
}

// pauseOf is the pause that is in force.
func pauseOf(v *record.View, now time.Time) *PauseReport {
	if v == nil {
		return nil
	}
	o, ok := table.PauseInForce(v.Orders, table.OrderStates(v.Orders, now))
	if !ok {
		return nil
	}
	return &PauseReport{Order: o.Number, By: o.By, Reason: o.Reason, Since: o.Time, Until: o.Until}
}

// Own is this replica's own entry; zero: no member answers, or it has not applied its entry yet.
func (r EtcdReport) Own() MemberReport {
	for _, m := range r.Members {
		if m.ID == r.Member {
			return m
		}
	}
	return MemberReport{}
}

// StepCount is how often this agent took an act. Outcome is done, or failed: that ended with an error, and a time-out
// may have taken effect all the same.
type StepCount struct {
	Act     table.Act `json:"act"`
	Outcome string    `json:"outcome"`
	Count   uint64    `json:"count"`
	// Reason is why it was taken, the last time.
	Reason string `json:"reason,omitempty"`
}

// ClusterUID is the inception's; empty: the record was not read yet, or has none. It may be called at any time.
func (m *Membership) ClusterUID() string {
	m.reported.mu.Lock()
	defer m.reported.mu.Unlock()
	return m.reported.cluster.uid
}

// Incarnation is this replica's incarnation in the record; 0: none was taken yet. It may be called at any time.
func (m *Membership) Incarnation() uint64 {
	m.reported.mu.Lock()
	defer m.reported.mu.Unlock()
	return m.reported.incarnation
}

// MayStartAnyway says why a person's start-anyway would change nothing by the last observation; nil: the member would
// start.
func (m *Membership) MayStartAnyway() error {
	return m.reported.explained().MayStartAnyway()
}

// Report asks the member on this machine, and nobody else; what it says may be a second old. It may be called at any
// time.
func (m *Membership) Report(ctx context.Context) Report {
	s, err := m.own.lately(ctx)
	r := m.reported.report(m.cfg.Cluster.Name)
	if err == nil && s.MemberID != 0 {
		r.Cluster.ID, r.Etcd.Member, r.Etcd.Members = s.ClusterID.String(), s.MemberID.String(), memberReports(s)
		r.Etcd.Database = &s.Database
	}
	return r
}

// memberReports lists the members; none while this one has applied nothing, and knows its own configuration alone.
func memberReports(s table.MemberStatus) []MemberReport {
	out := []MemberReport{}
	if slices.ContainsFunc(s.Members, func(e table.Member) bool { return member.IsConfigured(e.Name, e.ID) }) {
		return out
	}
	for _, e := range s.Members {
		r := MemberReport{Name: e.Name, ID: e.ID.String(), Role: "voter", Leader: e.ID == s.Leader,
			Started: e.Started()}
		if e.Learner {
			r.Role = "learner"
		}
		if p, ok := s.Progress[e.ID]; ok {
			last := s.Progress[s.Leader].Match
			r.Lag, r.Heard = new(max(last, p.Match)-p.Match), new(p.RecentActive || e.ID == s.Leader)
		}
		out = append(out, r)
	}
	return out
}
