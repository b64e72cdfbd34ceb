package agent

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/quorate/quorate/etcdmember"
)

// The metrics of a replica. docs/runbook.md lists them; names and labels are part of the interface.
var (
	metricReady = describe("quorate_ready", "1 once the boot is done.")
	metricPhase = describe("quorate_phase", "1 for the phase of the boot that runs, or keep.", "phase")
	metricRow   = describe("quorate_row", "1 for the row of the membership's table that the last look found to hold; "+
		"table is replica, or leader for the rows beside the etcd leader.", "table", "row")
	metricWait = describe("quorate_wait_seconds", "How long something has been waited for. No series: nothing is.",
		"row", "name")
	metricState = describe("quorate_member", "1 for what this replica's etcd member is: voter, learner, or none.",
		"state")
	metricLeads = describe("quorate_member_leader", "1 while this replica's etcd member leads.")
	metricEpoch = describe("quorate_epoch", "The newest epoch in the record.")
	metricTerm  = describe("quorate_incarnation", "The number of this tenure in the record; 0: none was taken yet.")
	metricAge   = describe("quorate_record_age_seconds",
		"How long ago the record was last read. No series: it was not read yet.")
	metricSaved = describe("quorate_snapshot_age_seconds", "How long ago the newest verified snapshot of this epoch "+
		"was taken. No series: there is none, or it is not known yet.")
	metricStash = describe("quorate_archive_bytes",
		"What the archived directories of former members take on the data disk. No series: it was not looked at yet.")
	metricLines = describe("quorate_log_lines_dropped_total",
		"Lines of the agent's log that were lost because its stderr did not take them.")
	metricBytes = describe("quorate_output_bytes_dropped_total",
		"Bytes of a component's output that were lost because its log did not take them.", "component")
	metricSteps = describe("quorate_steps_total", "Steps of the membership that this agent took; outcome is done or "+
		"failed.", "act", "outcome")
)

var metrics = []*prometheus.Desc{metricReady, metricPhase, metricRow, metricWait, metricState, metricLeads, metricEpoch,
	metricTerm, metricAge, metricSaved, metricStash, metricLines, metricBytes, metricSteps}

func describe(name, help string, labels ...string) *prometheus.Desc {
	return prometheus.NewDesc(name, help, labels, nil)
}

// metricsTimeout bounds the question for the member's state: it is on this machine.
const metricsTimeout = time.Second

// collector reads the agent at each scrape; it keeps nothing.
type collector struct{ *Agent }

// Describe implements prometheus.Collector.
func (c collector) Describe(ch chan<- *prometheus.Desc) {
	for _, d := range metrics {
		ch <- d
	}
}

// Collect implements prometheus.Collector.
func (c collector) Collect(ch chan<- prometheus.Metric) {
	gauge := func(d *prometheus.Desc, v float64, labels ...string) {
		ch <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, v, labels...)
	}
	c.mu.Lock()
	m, phase, ready := c.membership, c.phase, c.ready
	snapshots, archives := c.snapshots, c.archives
	c.mu.Unlock()
	now := time.Now()
	gauge(metricReady, one(ready))
	gauge(metricPhase, 1, string(phase))
	waits := map[[2]string]time.Time{} // a series that is given twice would fail the whole scrape
	for _, b := range c.waits.all() {
		waits[[2]string{b.Row, b.Name}] = b.Since
	}
	if snapshots != nil && snapshots.Time != nil {
		gauge(metricSaved, now.Sub(*snapshots.Time).Seconds())
	}
	if archives != nil {
		gauge(metricStash, float64(archives.Bytes))
	}
	c.collectLosses(ch)
	state, leads := "none", false
	if m != nil {
		for _, b := range m.Shown().Blocked {
			waits[[2]string{b.Row.String(), b.Name}] = b.Since
		}
		collectMembership(ch, gauge, m, now)
		state, leads = memberState(m)
	}
	for w, since := range waits {
		gauge(metricWait, now.Sub(since).Seconds(), w[0], w[1])
	}
	for _, s := range []string{"voter", "learner", "none"} {
		gauge(metricState, one(s == state), s)
	}
	gauge(metricLeads, one(leads))
}

// collectLosses says what of the logs was lost.
func (c collector) collectLosses(ch chan<- prometheus.Metric) {
	counter := func(d *prometheus.Desc, v float64, labels ...string) {
		ch <- prometheus.MustNewConstMetric(d, prometheus.CounterValue, v, labels...)
	}
	counter(metricLines, float64(c.logLoss().Lines))
	for _, s := range c.supervisor.Status() {
		counter(metricBytes, float64(s.OutputDropped), s.Name)
	}
}

func collectMembership(ch chan<- prometheus.Metric, gauge func(*prometheus.Desc, float64, ...string),
	m *etcdmember.Membership, now time.Time) {
	shown, figures := m.Shown(), m.Figures()
	gauge(metricEpoch, float64(shown.Epoch))
	gauge(metricTerm, float64(shown.Incarnation))
	if figures.Row != nil {
		gauge(metricRow, 1, "replica", figures.Row.String())
	}
	if figures.LeaderRow != nil {
		gauge(metricRow, 1, "leader", figures.LeaderRow.String())
	}
	if !figures.RecordRead.IsZero() {
		gauge(metricAge, now.Sub(figures.RecordRead).Seconds())
	}
	for step, n := range figures.Steps {
		outcome := "done"
		if step.Failed {
			outcome = "failed"
		}
		ch <- prometheus.MustNewConstMetric(metricSteps, prometheus.CounterValue, float64(n), string(step.Act), outcome)
	}
}

// memberState asks the member on this machine what it is.
func memberState(m *etcdmember.Membership) (state string, leads bool) {
	ctx, cancel := context.WithTimeout(context.Background(), metricsTimeout)
	defer cancel()
	s, err := m.Status(ctx)
	switch {
	case err != nil || s.MemberID == 0:
		return "none", false
	case s.Learner:
		return "learner", false
	}
	return "voter", s.Leader == s.MemberID
}

func one(yes bool) float64 {
	if yes {
		return 1
	}
	return 0
}

// metrics answers scrapes in Prometheus' text format.
func (a *Agent) metrics() http.Handler {
	r := prometheus.NewRegistry() // of its own: the default one is the process's, and holds what libraries put there
	r.MustRegister(collector{a})
	return promhttp.HandlerFor(r, promhttp.HandlerOpts{})
}

// serveMetrics answers scrapes on Config.MetricsAddress until the returned function is called. A port that is taken
// must not keep a master from booting: it is said once, and the socket answers all the same.
func (a *Agent) serveMetrics() (stop func()) {
	if a.cfg.MetricsAddress == "" {
		return func() {}
	}
	l, err := net.Listen("tcp", a.cfg.MetricsAddress)
	if err != nil {
		a.cfg.Log.Warn("no metrics on the network", "err", fmt.Errorf("listen for metrics: %w", err).Error())
		return func() {}
	}
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", a.metrics())
	server := &http.Server{Handler: mux, ReadHeaderTimeout: time.Second}
	done := make(chan struct{})
	go func() {
		defer close(done)
		if err := server.Serve(l); !errors.Is(err, http.ErrServerClosed) {
			a.cfg.Log.Warn("no metrics on the network any more", "err", err.Error())
		}
	}()
	return func() { server.Close(); <-done }
}
