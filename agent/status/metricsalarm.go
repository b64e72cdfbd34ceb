package status

import (
	"runtime"
	"slices"
	"time"

	"github.com/quorate/quorate/etcdmember"
	"github.com/quorate/quorate/supervisor"
)

// alarmMetrics are what docs/alerts.yaml goes by, and what is looked at after an alarm.
var alarmMetrics = []metric{
	gauge("quorate_build_info", "1; the version of this agent, and of its Go.",
		func(s Status, _ time.Time, is series) { is(1, s.Version, runtime.Version()) }, "version", "go"),
	gauge("quorate_replicas_wanted", "How many replicas are wanted: by order, else by the Cluster document. No "+
		"series: it is not known yet.",
		func(s Status, _ time.Time, is series) {
			if s.Replica.Wanted > 0 {
				is(float64(s.Replica.Wanted))
			}
		}),
	gauge("quorate_voters", "How many voters etcd has, as this replica's member knows. No series: no member answers.",
		func(s Status, _ time.Time, is series) {
			if s.Etcd.Member != "" {
				is(float64(len(slices.DeleteFunc(slices.Clone(s.Etcd.Members), notVoter))))
			}
		}),
	gauge("quorate_has_leader", "1 while this replica's member knows of a leader, 0 while it does not or none answers.",
		func(s Status, _ time.Time, is series) {
			is(truth(s.Etcd.Member != "" && slices.ContainsFunc(s.Etcd.Members,
				func(m etcdmember.MemberReport) bool { return m.Leader })))
		}),
	gauge("quorate_paused", "1 while changes of the membership are paused by order.",
		func(s Status, _ time.Time, is series) { is(truth(s.Cluster.Pause != nil)) }),
	gauge("quorate_certificate_expiry_timestamp_seconds", "When a certificate of this replica expires, in seconds "+
		"since 1970.", func(s Status, _ time.Time, is series) {
		seen := map[string]bool{}
		for _, c := range s.Certificates {
			if !seen[c.Name] {
				is(float64(c.NotAfter.Unix()), c.Name)
			}
			seen[c.Name] = true
		}
	}, "certificate"),
	gauge("quorate_component_ready", "1 while a component is ready.", func(s Status, _ time.Time, is series) {
		for _, c := range s.Components {
			is(truth(c.State == supervisor.Ready), c.Name)
		}
	}, "component"),
	counter("quorate_component_restarts_total", "How often a component was started again since the agent began.",
		func(s Status, _ time.Time, is series) {
			for _, c := range s.Components {
				is(float64(c.Restarts), c.Name)
			}
		}, "component"),
	gauge("quorate_boot_phase_seconds", "How long a phase of this start took; that of etcd is the join, where it joined.",
		func(s Status, _ time.Time, is series) {
			for _, p := range s.Boot.Phases {
				is(p.Seconds, p.Phase)
			}
		}, "phase"),
	gauge("quorate_boot_seconds", "How long this start of the agent took until it was ready. No series: it is not yet.",
		func(s Status, _ time.Time, is series) {
			if s.Boot.Ready > 0 {
				is(s.Boot.Ready)
			}
		}),
	counter("quorate_snapshot_failures_total", "Snapshots that this agent could not save.",
		func(s Status, _ time.Time, is series) {
			if s.Snapshots != nil {
				is(float64(s.Snapshots.Failures))
			}
		}),
}

func notVoter(m etcdmember.MemberReport) bool { return m.Role != "voter" }
