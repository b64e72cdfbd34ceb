package agent

import (
	"cmp"
	"context"
	"path/filepath"
	"slices"

	"github.com/quorate/quorate/agent/election"
	"github.com/quorate/quorate/agent/status"
	"github.com/quorate/quorate/certs"
	"github.com/quorate/quorate/etcdmember"
	"github.com/quorate/quorate/etcdmember/table"
	"github.com/quorate/quorate/internal/replica"
	"github.com/quorate/quorate/supervisor"
)

// SocketPath is where the agent answers `quorate status`.
func SocketPath(runDir string) string { return filepath.Join(runDir, "agent.sock") }

// alive takes each lock of what the status and a stop ask for, and the election's: one that is never given back, which
// is what a watchdog is for, keeps the answer back too. It does not check that each loop makes progress.
func (a *Agent) alive() bool {
	if m := a.opened(); m != nil {
		m.Incarnation()
	}
	a.progress.now()
	a.host.isSpot()
	a.document.changes()
	a.certificates.Expiries()
	a.encryption.decided()
	a.snapshots.status()
	a.archives.status()
	a.addons.told()
	a.tracker.All()
	a.supervisor.Status()
	a.leaders.Alive()
	a.kubelet.Status()
	a.candidate.Held()
	a.disk.ID()
	return true
}

// status is the report, in the time that a person waits.
func (a *Agent) status(ctx context.Context) status.Status {
	ctx, cancel := context.WithTimeout(ctx, statusTimeout)
	defer cancel()
	return a.report(ctx)
}

// report gathers what there is to say at this moment. Of others it asks the member on this machine alone.
func (a *Agent) report(ctx context.Context) status.Status {
	a.mu.Lock()
	self, cluster, membership := a.self, a.cluster, a.membership
	a.mu.Unlock()
	s := status.Status{
		Replica: status.Replica{Identity: self, DiskID: a.disk.ID(), DiskIDUnknown: a.disk.IDUnknown()},
		Report: etcdmember.Report{Etcd: etcdmember.EtcdReport{Members: []etcdmember.MemberReport{},
			Steps: []etcdmember.StepCount{}}},
		Version:        a.cfg.Version,
		Certificates:   append([]certs.Expiry{}, a.certificates.Expiries()...),
		Encryption:     a.encryption.decided(),
		Snapshots:      a.snapshots.status(),
		Archives:       a.archives.status(),
		DataDisk:       a.disk.Size(),
		Addons:         a.addons.told(),
		PendingRestart: a.document.changes(),
		Leases:         a.leaders.Status(election.SinceBoot()),
		Kubelet:        a.kubelet.Status(),
		Components:     append([]supervisor.Status{}, a.supervisor.Status()...),
		Blocked:        a.tracker.All(),
	}
	a.progress.show(&s)
	if cluster != nil {
		s.Cluster.Name, s.Replica.Wanted = cluster.Name, cluster.Replicas
	}
	if a.cfg.LogLoss != nil {
		if loss := a.cfg.LogLoss(); loss != (status.LogLoss{}) {
			s.LogLoss = &loss
		}
	}
	if membership != nil {
		s.Report, s.Replica.Incarnation = membership.Report(ctx), membership.Incarnation()
		s.Replica.Wanted = cmp.Or(s.Report.Cluster.OrderedReplicas, s.Replica.Wanted)
	}
	roomFirst(s.Blocked)
	return s
}

// roomFirst puts the wait for room on the data disk before all others: they may well follow from it.
func roomFirst(waits []replica.Wait) {
	rank := func(b replica.Wait) int {
		if b.Name == table.WaitNoRoom {
			return 0
		}
		return 1
	}
	slices.SortStableFunc(waits, func(a, b replica.Wait) int { return rank(a) - rank(b) })
}
