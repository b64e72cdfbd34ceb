package etcdmember

import (
	"sync"
	"time"

	"github.com/quorate/quorate/etcdmember/explain"
	"github.com/quorate/quorate/etcdmember/leader"
	"github.com/quorate/quorate/etcdmember/table"
	"github.com/quorate/quorate/internal/record"
	"github.com/quorate/quorate/internal/replica"
	"github.com/quorate/quorate/internal/waits"
)

// lastReported is what people are told: the record as it was last read, the last observation and what was decided on
// it, the waits, and the steps that were taken. The loops write it. Everybody may read it at any time.
type lastReported struct {
	// waits are this replica's own, leaderWaits those of the leader loop, while the leader is here.
	waits, leaderWaits *waits.Source

	mu sync.Mutex
	// view is the record as it was last read, at readAt; nil: not yet.
	view   *record.View
	readAt time.Time
	// cluster is what is known of the cluster, also by agent.json alone.
	cluster     clusterKnown
	incarnation uint64
	last        explain.Last
	steps       []StepCount
}

// clusterKnown names the cluster and its newest epoch; clusterID is of the newest that was formed.
type clusterKnown struct {
	uid       string
	epoch     uint64
	clusterID record.MemberID
}

// noteRecord notes the record as it was just read. It is also how a preflight learns whose cluster this is.
func (l *lastReported) noteRecord(v record.View, at time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.view, l.readAt = &v, at
	if v.Inception == nil {
		return
	}
	l.cluster.uid, l.cluster.epoch = v.Inception.UID, record.NumberOf(v.Newest())
	if f := v.NewestFormed().Formed(); f != nil {
		l.cluster.clusterID = f.ClusterID
	}
}

// record is the record as it was last read; nil: not yet.
func (l *lastReported) record() *record.View {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.view
}

// noteAgentFile notes what agent.json says of this replica.
func (l *lastReported) noteAgentFile(a table.AgentFile) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.cluster.uid, l.incarnation = a.ClusterUID, a.Incarnation
}

// noteDecision keeps an observation and what was decided on it, to be explained.
func (l *lastReported) noteDecision(f table.Facts, o table.Observation, plan table.Plan) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.last.At, l.last.Observation, l.last.Plan = f.Now, o, plan
}

// noteLeader keeps an observation of the leader loop; a zero time: this member does not lead.
func (l *lastReported) noteLeader(at time.Time, previous, ring leader.Ring, plan table.Plan) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.last.LeaderAt, l.last.Previous, l.last.Ring, l.last.LeaderPlan = at, previous, ring, plan
}

// noteStep counts an act that was taken.
func (l *lastReported) noteStep(p table.Plan, err error) {
	s := StepCount{Act: p.Act, Outcome: "done", Count: 1, Reason: p.Reason}
	if err != nil {
		s.Outcome = "failed"
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	for i, known := range l.steps {
		if known.Act == s.Act && known.Outcome == s.Outcome {
			s.Count += known.Count
			l.steps[i] = s
			return
		}
	}
	l.steps = append(l.steps, s)
}

// noteWait says what this replica waits for; nil: nothing. incarnation is its own, as agent.json has it by now.
func (l *lastReported) noteWait(now time.Time, wait *replica.Wait, incarnation uint64) {
	l.mu.Lock()
	l.incarnation = incarnation
	l.mu.Unlock()
	l.waits.Only(wait, now)
}

// explained is the last observation and what was decided on it.
func (l *lastReported) explained() explain.Last {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.last
}

// report is what the report of a cluster with this name says before its member is asked.
func (l *lastReported) report(name string) Report {
	l.mu.Lock()
	defer l.mu.Unlock()
	now := time.Now()
	r := Report{
		Cluster: ClusterReport{Name: name, Epoch: l.cluster.epoch, OrderedReplicas: orderedReplicas(l.view, now),
			Pause: pauseOf(l.view, now)},
		Etcd: EtcdReport{Members: []MemberReport{}, Steps: append([]StepCount{}, l.steps...),
			Explanation: l.last.Explain()},
	}
	if id := l.cluster.clusterID; id != 0 {
		r.Cluster.ID = id.String()
	}
	if e := r.Etcd.Explanation; e != nil {
		r.Etcd.Row = e.Plan.Row.String()
		if e.Leader != nil {
			r.Etcd.LeaderRow = e.Leader.Plan.Row.String()
		}
	}
	if !l.readAt.IsZero() {
		r.Etcd.RecordRead = new(l.readAt)
	}
	return r
}
