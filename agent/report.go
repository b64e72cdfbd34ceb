package agent

import (
	"context"
	"path/filepath"
	"slices"
	"time"

	"github.com/quorate/quorate/certs"
	"github.com/quorate/quorate/etcdmember"
	"github.com/quorate/quorate/supervisor"
)

// SocketPath is where the agent answers `quorate status`.
func SocketPath(runDir string) string { return filepath.Join(runDir, "agent.sock") }

// alive takes each lock that the agent's work needs: one that is never given back, which is what a watchdog is for,
// keeps the answer back too.
func (a *Agent) alive() bool {
	a.mu.Lock()
	m := a.membership
	a.mu.Unlock()
	if m != nil {
		m.Shown()
	}
	a.supervisor.Status()
	return true
}

// statusTimeout bounds everything that a status asks of others: a person waits.
const statusTimeout = 3 * time.Second

// status gathers what there is to say at this moment. What cannot be asked is left out.
func (a *Agent) status(ctx context.Context) Status {
	ctx, cancel := context.WithTimeout(ctx, statusTimeout)
	defer cancel()
	a.mu.Lock()
	s := Status{
		Replica:      ReplicaStatus{Identity: a.self, Phase: string(a.phase), Since: a.since, Ready: a.ready},
		Etcd:         EtcdStatus{Members: []MemberStatus{}},
		Leases:       []LeaseStatus{},
		Certificates: append([]certs.Expiry{}, a.certificates...),
		Blocked:      append([]Blocked{}, a.waits.all()...),
	}
	s.Snapshots, s.Archives, s.Encryption = a.snapshots, a.archives, a.encryption
	s.Replica.DiskID, s.Replica.DiskIDUnknown = a.disk.id, a.disk.exists && a.disk.id == ""
	cluster, membership, leases := a.cluster, a.membership, a.leases
	a.mu.Unlock()
	s.Components = append([]supervisor.Status{}, a.supervisor.Status()...)
	if loss := a.logLoss(); loss != (LogLoss{}) {
		s.LogLoss = &loss
	}
	if cluster != nil {
		s.Cluster.Name = cluster.Name
	}
	if membership != nil {
		fillMembership(ctx, &s, membership)
	}
	roomFirst(s.Blocked)
	if leases != nil {
		if l, err := leases.list(ctx); err == nil {
			s.Leases = l
		}
	}
	return s
}

func (a *Agent) logLoss() LogLoss {
	if a.cfg.LogLoss == nil {
		return LogLoss{}
	}
	return a.cfg.LogLoss()
}

// roomFirst puts the wait for room on the data disk before all others: they may well follow from it.
func roomFirst(waits []Blocked) {
	rank := func(b Blocked) int {
		if b.Name == etcdmember.NoRoom {
			return 0
		}
		return 1
	}
	slices.SortStableFunc(waits, func(a, b Blocked) int { return rank(a) - rank(b) })
}

func fillMembership(ctx context.Context, s *Status, m *etcdmember.Membership) {
	shown := m.Shown()
	s.Cluster.Epoch, s.Replica.Incarnation = shown.Epoch, shown.Incarnation
	if shown.ClusterID != 0 {
		s.Cluster.ID = shown.ClusterID.String()
	}
	for _, b := range shown.Blocked {
		s.Blocked = append(s.Blocked, Blocked{Row: b.Row.String(), Name: b.Name, Reason: b.Reason, Since: b.Since,
			Next: b.Next})
	}
	figures := m.Figures()
	if figures.Row != nil {
		s.Etcd.Row = figures.Row.String()
	}
	if figures.LeaderRow != nil {
		s.Etcd.LeaderRow = figures.LeaderRow.String()
	}
	st, err := m.Status(ctx)
	if err != nil {
		return
	}
	s.Etcd.Member, s.Cluster.ID = st.MemberID.String(), st.ClusterID.String()
	for _, e := range st.Members {
		entry := MemberStatus{Name: e.Name, ID: e.ID.String(), Role: "voter", Leader: e.ID == st.Leader,
			Started: e.Started()}
		if e.Learner {
			entry.Role = "learner"
		}
		if p, ok := st.Progress[e.ID]; ok {
			last := st.Progress[st.Leader].Match
			entry.Lag = new(max(last, p.Match) - p.Match)
		}
		s.Etcd.Members = append(s.Etcd.Members, entry)
	}
}
