package status

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/quorate/quorate/agent/kubelet"
)

// metric is one name of a replica's metrics, and how it is printed from the status.
type metric struct {
	*prometheus.Desc
	kind prometheus.ValueType
	// print gives each series to is: its value, and its labels' values.
	print func(s Status, now time.Time, is series)
}

type series func(value float64, labels ...string)

// metrics are all of them, but those of the process. docs/runbook.md lists them; names and labels are part of the
// interface.
var metrics = slices.Concat(replicaMetrics, alarmMetrics)

// replicaMetrics say how the replica is.
var replicaMetrics = []metric{
	gauge("quorate_ready", "1 once the boot is done.", func(s Status, _ time.Time, is series) {
		is(truth(s.Replica.Ready))
	}),
	gauge("quorate_phase", "1 for the phase of the boot that runs, or keep.", func(s Status, _ time.Time, is series) {
		is(1, s.Replica.Phase)
	}, "phase"),
	gauge("quorate_row", "1 for the row of the membership's table that the last observation found to hold; "+
		"table is replica, or leader for the rows of the leader loop.", printRows, "table", "row"),
	gauge("quorate_wait_seconds", "How long something has been waited for. No series: nothing is.", printWaits, "row",
		"name"),
	gauge("quorate_member", "1 for what this replica's etcd member is: voter, learner, or none.", printMember,
		"state"),
	gauge("quorate_member_leader", "1 while this replica's etcd member leads.",
		func(s Status, _ time.Time, is series) { is(truth(s.Etcd.Own().Leader)) }),
	gauge("quorate_epoch", "The newest epoch in the record.", func(s Status, _ time.Time, is series) {
		if s.Cluster.Name != "" {
			is(float64(s.Cluster.Epoch))
		}
	}),
	gauge("quorate_incarnation", "This replica's incarnation in the record; 0: none was taken yet.",
		func(s Status, _ time.Time, is series) {
			if s.Cluster.Name != "" {
				is(float64(s.Replica.Incarnation))
			}
		}),
	gauge("quorate_record_age_seconds", "How long ago the record was last read. No series: it was not read yet.",
		func(s Status, now time.Time, is series) { is.age(s.Etcd.RecordRead, now) }),
	gauge("quorate_snapshot_age_seconds", "How long ago the newest verified snapshot of this epoch was taken, or this "+
		"epoch was formed where it has none. No series: it is not known yet.",
		func(s Status, now time.Time, is series) {
			if s.Snapshots != nil {
				is.age(cmp.Or(s.Snapshots.Time, s.Snapshots.NoneSince), now)
			}
		}),
	gauge("quorate_archive_bytes", "What the archived directories of former members take on the data disk. No series: "+
		"it was not listed yet.", func(s Status, _ time.Time, is series) {
		if s.Archives != nil {
			is(float64(s.Archives.Bytes))
		}
	}),
	gauge("quorate_leader", "1 while this replica leads the election of the lease, 0 while it is a standby.",
		func(s Status, _ time.Time, is series) {
			for _, l := range s.Leases {
				if l.Role != "" {
					is(truth(l.Role == Leader), l.Name)
				}
			}
		}, "lease"),
	gauge("quorate_lease_age_seconds", "For how long this replica has not seen the lease renewed.",
		func(s Status, _ time.Time, is series) {
			for _, l := range s.Leases {
				is(l.Age, l.Name)
			}
		}, "lease"),
	counter("quorate_lease_restarts_total", "How often this agent has started a leader again that hung.",
		func(s Status, _ time.Time, is series) {
			for _, l := range s.Leases {
				if l.Component != "" {
					is(float64(l.Restarts), l.Component)
				}
			}
		}, "component"),
	gauge("quorate_pending_restart_fields", "Fields of the Cluster document that count only from the agent's "+
		"next start.",
		func(s Status, _ time.Time, is series) { is(float64(len(s.PendingRestart))) }),
	counter("quorate_log_lines_dropped_total",
		"Lines of the agent's log that were lost because its stderr did not take them.",
		func(s Status, _ time.Time, is series) { is(float64(cmp.Or(s.LogLoss, &LogLoss{}).Lines)) }),
	counter("quorate_output_bytes_dropped_total",
		"Bytes of a component's output that were lost because its log did not take them.",
		func(s Status, _ time.Time, is series) {
			for _, c := range s.Components {
				is(float64(c.OutputDropped), c.Name)
			}
		}, "component"),
	gauge("quorate_watched_unit", "1 for the state in which the watch found the kubelet's and the runtime's unit. No "+
		"series: nothing is watched.", printWatched, "unit", "state"),
	counter("quorate_watched_unit_total", "What happened to a watched unit in this boot: ended by itself, or "+
		"the watch did restart, start, park.", printWatchedCounts, "unit", "what"),
	counter("quorate_steps_total", "Steps of the membership that this agent took; outcome is done or failed.",
		func(s Status, _ time.Time, is series) {
			for _, n := range s.Etcd.Steps {
				is(float64(n.Count), string(n.Act), n.Outcome)
			}
		}, "act", "outcome"),
}

func gauge(name, help string, print func(Status, time.Time, series), labels ...string) metric {
	return metric{prometheus.NewDesc(name, help, labels, nil), prometheus.GaugeValue, print}
}

func counter(name, help string, print func(Status, time.Time, series), labels ...string) metric {
	return metric{prometheus.NewDesc(name, help, labels, nil), prometheus.CounterValue, print}
}

// age is the one series of something that happened, if it has.
func (is series) age(at *time.Time, now time.Time) {
	if at != nil {
		is(now.Sub(*at).Seconds())
	}
}

func truth(yes bool) float64 {
	if yes {
		return 1
	}
	return 0
}

func printRows(s Status, _ time.Time, is series) {
	for table, row := range map[string]string{"replica": s.Etcd.Row, "leader": s.Etcd.LeaderRow} {
		if row != "" {
			is(1, table, row)
		}
	}
}

func printWaits(s Status, now time.Time, is series) {
	since := map[[2]string]time.Time{} // a series that is given twice would fail the whole scrape
	for _, w := range s.Blocked {
		since[[2]string{w.Row, w.Name}] = w.Since
	}
	for w, at := range since {
		is(now.Sub(at).Seconds(), w[0], w[1])
	}
}

func printWatched(s Status, _ time.Time, is series) {
	for _, u := range cmp.Or(s.Kubelet, &kubelet.Status{}).Units {
		is(1, u.Unit, string(u.State))
	}
}

func printWatchedCounts(s Status, _ time.Time, is series) {
	for _, u := range cmp.Or(s.Kubelet, &kubelet.Status{}).Units {
		is(float64(u.Ended), u.Unit, "ended")
		is(float64(u.Restart), u.Unit, "restart")
		is(float64(u.Start), u.Unit, "start")
		is(float64(u.Park), u.Unit, "park")
	}
}

func printMember(s Status, _ time.Time, is series) {
	role := cmp.Or(s.Etcd.Own().Role, "none")
	for _, state := range []string{"voter", "learner", "none"} {
		is(truth(state == role), state)
	}
}

// metricsTimeout bounds the question for the member's state: it is on this machine.
const metricsTimeout = time.Second

// collector gathers a Status at each scrape; it keeps nothing.
type collector func(ctx context.Context) Status

// Describe implements prometheus.Collector.
func (collector) Describe(ch chan<- *prometheus.Desc) {
	for _, m := range metrics {
		ch <- m.Desc
	}
}

// Collect implements prometheus.Collector.
func (gather collector) Collect(ch chan<- prometheus.Metric) {
	ctx, cancel := context.WithTimeout(context.Background(), metricsTimeout)
	defer cancel()
	s, now := gather(ctx), time.Now()
	for _, m := range metrics {
		m.print(s, now, func(value float64, labels ...string) {
			for n, label := range labels {
				labels[n] = strings.ReplaceAll(label, " ", "-") // such as a phase's name
			}
			ch <- prometheus.MustNewConstMetric(m.Desc, m.kind, value, labels...)
		})
	}
}

// Metrics answers scrapes in Prometheus' text format. gather is called at each of them, and may be called concurrently.
func Metrics(gather func(ctx context.Context) Status) http.Handler {
	r := prometheus.NewRegistry() // of its own: the default one is the process's, and holds what libraries put there
	r.MustRegister(collector(gather), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}),
		collectors.NewGoCollector())
	return promhttp.HandlerFor(r, promhttp.HandlerOpts{})
}

// ServeMetrics answers scrapes on an address until the returned function is called; empty: it does not. A port that is
// taken must not keep a master from booting: it is said once, and the agent's socket answers all the same.
func ServeMetrics(log *slog.Logger, address string, metrics http.Handler) (stop func()) {
	if address == "" {
		return func() {}
	}
	l, err := net.Listen("tcp", address)
	if err != nil {
		log.Warn("no metrics on the network", "err", fmt.Errorf("listen for metrics: %w", err).Error())
		return func() {}
	}
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", metrics)
	server := &http.Server{Handler: mux, ReadHeaderTimeout: time.Second}
	done := make(chan struct{})
	go func() {
		defer close(done)
		if err := server.Serve(l); !errors.Is(err, http.ErrServerClosed) {
			log.Warn("no metrics on the network any more", "err", err.Error())
		}
	}()
	return func() { server.Close(); <-done }
}
