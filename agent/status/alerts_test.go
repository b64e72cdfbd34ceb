package status

import (
	"os"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"sigs.k8s.io/yaml"

	"github.com/quorate/quorate/certs"
	"github.com/quorate/quorate/etcdmember"
	"github.com/quorate/quorate/internal/replica"
	"github.com/quorate/quorate/supervisor"
)

// alertRules is docs/alerts.yaml, as far as it is checked here. test/alerts evaluates it.
type alertRules struct {
	Groups []struct {
		Rules []struct {
			Alert       string            `json:"alert"`
			Expr        string            `json:"expr"`
			Annotations map[string]string `json:"annotations"`
		} `json:"rules"`
	} `json:"groups"`
}

// headings are the entries of the runbook, as links name them.
func headings(t *testing.T) (out []string) {
	t.Helper()
	b, err := os.ReadFile("../../docs/runbook.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range regexp.MustCompile("(?m)^#+ (.+)$").FindAllStringSubmatch(string(b), -1) {
		out = append(out, strings.ReplaceAll(strings.ToLower(strings.ReplaceAll(m[1], "`", "")), " ", "-"))
	}
	return out
}

func TestAlertsAreNamedForTheirEntriesAndGoByMetricsThatThereAre(t *testing.T) {
	b, err := os.ReadFile("../../docs/alerts.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var rules alertRules
	if err := yaml.Unmarshal(b, &rules); err != nil {
		t.Fatal(err)
	}
	shown, entries := metricNames(t), headings(t)
	word := regexp.MustCompile(`\b[a-z]+(_[a-z0-9]+)+\b`)
	count := 0
	for _, g := range rules.Groups {
		for _, r := range g.Rules {
			count++
			if !slices.Contains(entries, r.Alert) {
				t.Errorf("alert %s: docs/runbook.md has no such entry", r.Alert)
			}
			link := r.Annotations["runbook"]
			if link != "docs/runbook.md#"+r.Alert && link != "docs/runbook.md#{{ $labels.name }}" {
				t.Errorf("alert %s leads to %q", r.Alert, link)
			}
			names := word.FindAllString(r.Expr, -1)
			if len(names) == 0 {
				t.Errorf("alert %s: no metric in %q", r.Alert, r.Expr)
			}
			for _, name := range names {
				if !shown[name] {
					t.Errorf("alert %s goes by %s, which the agent does not show", r.Alert, name)
				}
			}
		}
	}
	if count < 10 {
		t.Errorf("%d alerts", count)
	}
}

// metricNames are those that a scrape shows of a replica that has all there is to show.
func metricNames(t *testing.T) map[string]bool {
	t.Helper()
	out := map[string]bool{}
	for _, m := range regexp.MustCompile(`(?m)^# TYPE (\S+)`).FindAllStringSubmatch(scraped(t, Status{}), -1) {
		out[m[1]] = true
	}
	now := time.Now()
	for _, m := range metrics {
		m.print(wholeStatus(now), now, func(float64, ...string) {
			out[regexp.MustCompile(`fqName: "([^"]+)"`).FindStringSubmatch(m.String())[1]] = true
		})
	}
	return out
}

func wholeStatus(now time.Time) Status {
	return Status{
		Replica: Replica{Wanted: 3, Phase: "data disk"}, Version: "v1.2.3",
		Report: etcdmember.Report{Etcd: etcdmember.EtcdReport{Member: "a", RecordRead: &now,
			Members: []etcdmember.MemberReport{{ID: "a", Role: "voter", Leader: true}, {ID: "b", Role: "learner"}}}},
		Components:   []supervisor.Status{{Name: "kube-apiserver", State: supervisor.Ready, Restarts: 2}},
		Leases:       []Lease{{Name: "kube-scheduler"}},
		Certificates: []certs.Expiry{{Name: "apiserver", NotAfter: now}},
		Snapshots:    &Snapshots{NoneSince: &now, Failures: 1},
		Boot:         Boot{Phases: []PhaseTook{{"control plane", 2.5}}, Ready: 3},
		Blocked:      []replica.Wait{{Row: "data disk", Name: "no-room", Since: now}},
	}
}

func TestAlarmMetricsSayWhatTheStatusSays(t *testing.T) {
	now := time.Now()
	status := wholeStatus(now.Add(-time.Minute))
	got := map[string]float64{}
	for _, m := range metrics {
		name := regexp.MustCompile(`fqName: "([^"]+)"`).FindStringSubmatch(m.String())[1]
		m.print(status, now, func(v float64, labels ...string) {
			got[strings.Join(append([]string{name}, labels...), " ")] = v
		})
	}
	for series, want := range map[string]float64{
		"quorate_has_leader": 1, "quorate_voters": 1, "quorate_replicas_wanted": 3, "quorate_paused": 0,
		"quorate_snapshot_failures_total": 1, "quorate_snapshot_age_seconds": 60,
		"quorate_component_restarts_total kube-apiserver": 2, "quorate_component_ready kube-apiserver": 1,
		"quorate_boot_seconds": 3, "quorate_boot_phase_seconds control plane": 2.5,
		"quorate_certificate_expiry_timestamp_seconds apiserver": float64(now.Add(-time.Minute).Unix()),
	} {
		if v, ok := got[series]; !ok || v != want {
			t.Errorf("%s: %v, %v; want %v", series, v, ok, want)
		}
	}
	if got["quorate_build_info v1.2.3 "+runtime.Version()] != 1 {
		t.Errorf("no build info in %v", got)
	}
}

func TestNoLabelHasASpace(t *testing.T) {
	got := scraped(t, wholeStatus(time.Now()))
	for _, want := range []string{`quorate_phase{phase="data-disk"} 1`,
		`quorate_boot_phase_seconds{phase="control-plane"} 2.5`, `row="data-disk"`,
		"\nprocess_start_time_seconds ", "\ngo_goroutines "} {
		if !strings.Contains(got, want) {
			t.Errorf("no %s in\n%s", want, got)
		}
	}
	if m := regexp.MustCompile(`(?m)^quorate_\S*\{[^}]*="[^"]* [^"]*"`).FindString(got); m != "" {
		t.Errorf("a label has a space: %s", m)
	}
}
