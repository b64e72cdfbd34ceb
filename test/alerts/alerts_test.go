// Package alerts tries docs/alerts.yaml with Prometheus' own parser and engine. It is a module of its own, so that
// nothing of Prometheus is in quorate's.
package alerts

import (
	"log/slog"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/rulefmt"
	"github.com/prometheus/prometheus/promql/parser"
	"github.com/prometheus/prometheus/promql/promqltest"
)

// rules are the alerts, by their names, as Prometheus reads them.
func rules(t *testing.T) map[string]rulefmt.Rule {
	t.Helper()
	b, err := os.ReadFile("../../docs/alerts.yaml")
	if err != nil {
		t.Fatal(err)
	}
	groups, faults := rulefmt.Parse(b, false, model.UTF8Validation, parser.NewParser(parser.Options{}),
		slog.New(slog.DiscardHandler))
	if len(faults) > 0 {
		t.Fatal(faults)
	}
	out := map[string]rulefmt.Rule{}
	for _, g := range groups.Groups {
		for _, r := range g.Rules {
			out[r.Alert] = r
		}
	}
	return out
}

// well are the series of three masters without a fault, over half an hour.
const well = `quorate_ready{instance="a"} 1x60
quorate_ready{instance="b"} 1x60
quorate_ready{instance="c"} 1x60
quorate_replicas_wanted{instance="a"} 3x60
quorate_voters{instance="a"} 3x60
quorate_has_leader{instance="a"} 1x60
quorate_paused{instance="a"} 0x60
quorate_component_ready{instance="a",component="etcd"} 1x60
quorate_component_restarts_total{instance="a",component="etcd"} 2x60
quorate_certificate_expiry_timestamp_seconds{instance="a",certificate="apiserver"} 5000000x60
quorate_snapshot_age_seconds{instance="a"} 60+30x60
quorate_record_age_seconds{instance="a"} 8x60
quorate_lease_age_seconds{instance="a",lease="kube-scheduler"} 2x60
quorate_lease_age_seconds{instance="b",lease="kube-scheduler"} 2x60
process_start_time_seconds{instance="a"} 100x60`

// fires has for each alert the series that are otherwise then.
var fires = map[string]string{
	"no-leader":           `quorate_has_leader{instance="a"} 0x60`,
	"replica-not-heard":   `quorate_ready{instance="c"} 1x10 stale`,
	"replicas-missing":    `quorate_voters{instance="a"} 2x60`,
	"even-voters":         `quorate_voters{instance="a"} 4x60`,
	"replica-booting":     `quorate_ready{instance="b"} 0x60`,
	"agent-crash-looping": `process_start_time_seconds{instance="a"} 100+30x60`,
	"component-down":      `quorate_component_ready{instance="a",component="etcd"} 0x60`,
	"component-not-ready": `quorate_component_restarts_total{instance="a",component="etcd"} 0+1x60`,
	"certificate-expires": `quorate_certificate_expiry_timestamp_seconds{instance="a",certificate="apiserver"} 500000x60`,
	"snapshot-overdue":    `quorate_snapshot_age_seconds{instance="a"} 20000x60`,
	"record-unreadable":   `quorate_record_age_seconds{instance="a"} 0+30x60`,
	"lease-not-renewed": `quorate_lease_age_seconds{instance="a",lease="kube-scheduler"} 0+30x60
quorate_lease_age_seconds{instance="b",lease="kube-scheduler"} 0+30x60`,
	"membership-paused":  `quorate_paused{instance="a"} 1x60`,
	"how-to-read-a-wait": `quorate_wait_seconds{instance="a",name="no-room",row="5"} 0+30x60`,
}

// with are the series of well, in which some are otherwise.
func with(changed string) string {
	out := []string{}
	for _, line := range strings.Split(well, "\n") {
		name, _, _ := strings.Cut(line, " ")
		if !strings.Contains(changed, name+" ") {
			out = append(out, line)
		}
	}
	return strings.Join(append(out, strings.Split(changed, "\n")...), "\n  ")
}

func TestEachAlertFiresForItsFaultAndForNoOther(t *testing.T) {
	all := rules(t)
	for name := range all {
		if fires[name] == "" {
			t.Errorf("alert %s is not tried", name)
		}
	}
	for fault, series := range fires {
		if _, ok := all[fault]; !ok {
			t.Errorf("there is no alert %s", fault)
		}
		for name, got := range firing(t, all, with(series)) {
			// A number of voters that is not right is even, too; a series that ends is a replica less.
			related := fault == "replicas-missing" && name == "even-voters"
			if got != (name == fault) && !related {
				t.Errorf("%s while %s: fires %t", name, fault, got)
			}
		}
	}
	for name, fires := range firing(t, all, with("")) {
		if fires {
			t.Errorf("%s fires while all is well", name)
		}
	}
	for name, r := range all {
		if r.For != 0 && time.Duration(r.For) < time.Minute {
			t.Errorf("%s waits for %s: a scrape that fails would fire it", name, r.For)
		}
	}
}

// firing evaluates each alert's expression at the end of the half hour.
func firing(t *testing.T, all map[string]rulefmt.Rule, series string) map[string]bool {
	t.Helper()
	stored := promqltest.LoadedStorage(t, "load 30s\n  "+series)
	defer stored.Close()
	engine := promqltest.NewTestEngine(t, false, 0, 10_000)
	out := map[string]bool{}
	for name, r := range all {
		query, err := engine.NewInstantQuery(t.Context(), stored, nil, r.Expr, time.Unix(0, 0).Add(30*time.Minute))
		if err != nil {
			t.Fatal(err)
		}
		vector, err := query.Exec(t.Context()).Vector()
		if err != nil {
			t.Fatalf("%s: %v", r.Expr, err)
		}
		out[name] = len(vector) > 0
		query.Close()
	}
	return out
}
