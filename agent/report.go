package agent

import (
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

// alive takes each lock of what the status shows, and the election's: one that is never given back, which is what a
// watchdog is for, keeps the answer back too. It does not check that each loop makes progress.
func (a *Agent) alive() bool {
	a.mu.Lock()
	m := a.membership
	a.mu.Unlock()
	if m != nil {
		m.Incarnation()
	}
	a.tracker.All()
	a.supervisor.Status()
	a.leaders.watch(leaseName)
	a.kubeletStatus()
	a.elected.Held()
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
	s := status.Status{
		Replica: status.Replica{Identity: a.self, Phase: string(a.phase), Since: a.since, Ready: a.ready,
			DiskID: a.disk.ID(), DiskIDUnknown: a.disk.IDUnknown()},
		Report: etcdmember.Report{Etcd: etcdmember.EtcdReport{Members: []etcdmember.MemberReport{},
			Steps: []etcdmember.StepCount{}}},
		Certificates: append([]certs.Expiry{}, a.certificates...),
		Encryption:   a.encryption, Snapshots: a.snapshots, Archives: a.archives, DataDisk: a.disk.Size(),
		Addons: a.addons, PendingRestart: a.pending,
		Version: a.cfg.Version,
		Boot:    status.Boot{Phases: append([]status.PhaseTook{}, a.boot.Phases...), Ready: a.boot.Ready},
		Blocked: a.tracker.All(),
	}
	if a.cluster != nil {
		s.Cluster.Name, s.Replica.Wanted = a.cluster.Name, a.cluster.Replicas
	}
	membership := a.membership
	a.mu.Unlock()
	s.Leases = a.leaseStatus(election.SinceBoot())
	s.Kubelet = a.kubeletStatus()
	s.Components = append([]supervisor.Status{}, a.supervisor.Status()...)
	if loss := a.logLoss(); loss != (status.LogLoss{}) {
		s.LogLoss = &loss
	}
	if membership != nil {
		s.Report, s.Replica.Incarnation = membership.Report(ctx), membership.Incarnation()
	}
	roomFirst(s.Blocked)
	return s
}

func (a *Agent) logLoss() status.LogLoss {
	if a.cfg.LogLoss == nil {
		return status.LogLoss{}
	}
	return a.cfg.LogLoss()
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
