package telling

import (
	"time"

	"github.com/quorate/quorate/agent/status"
	"github.com/quorate/quorate/certs"
	"github.com/quorate/quorate/etcdmember"
	"github.com/quorate/quorate/etcdmember/table"
	"github.com/quorate/quorate/internal/report"
)

// reportOf is what of a status people outside are told.
func reportOf(s status.Status, version string, now time.Time) report.Report {
	r := report.Report{Place: s.Replica.Place, InstanceID: s.Replica.InstanceID, BootID: s.Replica.BootID,
		Addresses: s.Replica.Addresses, At: now.UTC(), Phase: s.Replica.Phase, Since: s.Replica.Since.UTC(),
		Ready: s.Replica.Ready, StartsAgain: s.Replica.StartsAgain, Cluster: s.Cluster.Name, Epoch: s.Cluster.Epoch,
		ClusterID: s.Cluster.ID, Incarnation: s.Replica.Incarnation, DiskID: s.Replica.DiskID, Member: s.Etcd.Member,
		RecordRead: s.Etcd.RecordRead, Waits: s.Blocked, Certificate: firstToExpire(s.Certificates), Version: version}
	if e := s.Etcd.Explanation; e != nil {
		r.Row = e.Plan.Row.Name()
		if e.Leader != nil {
			r.LeaderRow = e.Leader.Plan.Row.Name()
		}
	}
	for _, m := range s.Etcd.Members {
		r.Members = append(r.Members, report.Member{Name: placeOfMember(m), ID: m.ID, Role: m.Role, Leader: m.Leader,
			Started: m.Started, Heard: m.Heard, Lag: m.Lag})
	}
	for _, n := range s.Etcd.Steps {
		r.Steps = append(r.Steps, report.Step{Act: string(n.Act), Outcome: n.Outcome, Count: n.Count,
			Reason: n.Reason})
	}
	for _, c := range s.Components {
		r.Components = append(r.Components, report.Component{Name: c.Name, State: string(c.State), Since: c.Since.UTC(),
			Restarts: c.Restarts, Reason: c.Reason})
	}
	for _, l := range s.Leases {
		if l.Role == status.Leader {
			r.Elected = append(r.Elected, l.Name)
		}
	}
	if n := s.Snapshots; n != nil {
		r.Snapshot = &report.Snapshot{Time: n.Time, Due: n.Due, Saving: n.Saving}
	}
	return r
}

// placeOfMember is the place of a member's replica; a name that no agent gave stays as it is.
func placeOfMember(m etcdmember.MemberReport) string {
	if place, _, ok := table.ParseMemberName(m.Name); ok {
		return place.String()
	}
	return m.Name
}

func firstToExpire(list []certs.Expiry) (first *report.Certificate) {
	for _, c := range list {
		if first == nil || c.NotAfter.Before(first.NotAfter) {
			first = &report.Certificate{Name: c.Name, NotAfter: c.NotAfter}
		}
	}
	return first
}
