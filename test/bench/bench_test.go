package main

import (
	"fmt"
	"io"
	"math"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/quorate/quorate/internal/localgce"
	"github.com/quorate/quorate/internal/replica"
	"github.com/quorate/quorate/test/bench/rivals"
)

func TestMain(m *testing.M) {
	localgce.RunInitIfAsked()
	os.Exit(m.Run())
}

const agentLog = `time=x level=INFO msg="phase done" phase=identity took=4ms
time=x level=INFO msg="certificate written" name=etcd-peer reason=missing
time=x level=INFO msg="phase done" phase=etcd took=1.5s
time=x level=INFO msg="phase done" phase="control plane" took=2.9s
time=x level=INFO msg="phase done" phase=identity took=9ms
`

func TestPhasesAreThoseOfTheFirstBoot(t *testing.T) {
	got := phasesIn(agentLog)
	want := []phase{{"identity", 0.004}, {"etcd", 1.5}, {"control plane", 2.9}}
	if !slices.Equal(got, want) {
		t.Errorf("phases: %v, want %v", got, want)
	}
}

func TestWhatThePhasesLeaveIsTheApiservers(t *testing.T) {
	got := round{Last: 4}.withRest(phasesIn(agentLog))
	last := got[len(got)-1]
	if len(got) != 3 || last.Name != "apiserver" || math.Abs(float64(last.Took)-2.496) > 1e-9 {
		t.Errorf("phases: %v, want the apiserver's 2.496 s at the end", got)
	}
}

func TestSpreads(t *testing.T) {
	for _, c := range []struct {
		values []float64
		want   spread
	}{
		{nil, spread{}},
		{[]float64{3, 1, 2}, spread{2, 1, 3}},
		{[]float64{4, 1, 2, 3}, spread{2.5, 1, 4}},
	} {
		if got := spreadOf(c.values); got != c.want {
			t.Errorf("spread of %v: %v, want %v", c.values, got, c.want)
		}
	}
}

func TestAMissedGoalIsLoud(t *testing.T) {
	slow := results{One: &comparison{Quorate: []round{{Took: 3}}, Floor: []round{{Took: 2}}}}
	var out strings.Builder
	if err := slow.print(&out, ""); err != nil {
		t.Fatal(err)
	}
	if !slow.missed() || !strings.Contains(out.String(), "MISSED") || !strings.Contains(out.String(), "1.50") {
		t.Errorf("3 s against 2 s: missed %v\n%s", slow.missed(), out.String())
	}
	quick := results{Usage: &usages{Quorate: []usage{{Name: "agent", RSS: goalMemory, CPU: goalCPU}}}}
	if quick.missed() {
		t.Error("exactly the goal is no miss")
	}
}

// One replica does the work of what is elected, and which that is differs: all three are held against all three.
func TestWhatAnAgentRunsIsHeldAgainstTheSameByHand(t *testing.T) {
	used := func(cpu ...float64) (out []usage) {
		for _, c := range cpu {
			out = append(out, usage{Name: replica.ControllerManager, RSS: 100, CPU: c})
		}
		return out
	}
	r := results{Usage: &usages{Quorate: used(1, 0.1, 0.1), Floor: used(0.1, 1, 0.1)}}
	if r.missed() {
		t.Error("the same in another order is no miss")
	}
	r.Usage.Quorate = used(1, 1, 0.4)
	var out strings.Builder
	if err := r.print(&out, ""); err != nil {
		t.Fatal(err)
	}
	if !r.missed() || !strings.Contains(out.String(), "2.00   <= 1.05           MISSED") {
		t.Errorf("twice as much: missed %v\n%s", r.missed(), out.String())
	}
}

func TestFlagsThatMakeNoSenseAreRefused(t *testing.T) {
	for args, says := range map[string]string{
		"-rounds 0":    "at least one is needed",
		"-watch 0s":    "at least 1s is needed",
		"-only two":    "one, three, memory, repair, reports, load and watch are known",
		"-o yaml":      "json is known",
		"-vms qemu":    "process and systemd are known",
		"up":           "only flags are known",
		"-only one,,x": "one, three, memory, repair, reports, load and watch are known",
	} {
		if _, err := parse(strings.Fields(args)); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%s: %v, want %q", args, err, says)
		}
	}
}

// The goals are said of medians of ten.
func TestTenRoundsAreMeasuredUnlessOtherwiseTold(t *testing.T) {
	if f, err := parse(nil); err != nil || f.rounds != 10 {
		t.Errorf("%d rounds, %v", f.rounds, err)
	}
}

func TestTheLongestGapCountsBothEnds(t *testing.T) {
	begin := time.Date(2026, 11, 21, 0, 0, 0, 0, time.UTC)
	at := func(ms ...int) (out []time.Time) {
		for _, m := range ms {
			out = append(out, begin.Add(time.Duration(m)*time.Millisecond))
		}
		return out
	}
	for _, c := range []struct {
		name string
		at   []time.Time
		want seconds
	}{
		{"nothing is acknowledged", nil, 1},
		{"the gap in the middle", at(100, 700, 900), 0.6},
		{"the gap that the fault begins", at(-10, 500, 600, 700, 990), 0.5},
		{"the gap that lasts at the end", at(100, 200, 300), 0.7},
		{"in any order, and after the end nothing counts", at(900, 300, 600, 1500), 0.3},
	} {
		if got := longestGap(c.at, begin, begin.Add(time.Second)); math.Abs(float64(got-c.want)) > 1e-9 {
			t.Errorf("%s: %v, want %v", c.name, got, c.want)
		}
	}
}

func TestARepairIsBoundedInSecondsAndShownBesideTheFloor(t *testing.T) {
	r := results{Repair: &repairs{Quorate: []repair{{EmptyVoter: 1.2, LeaderLost: 1.9}},
		LikeGoogle: []repair{{EmptyVoter: 3.1}}, Floor: []repair{{EmptyVoter: 2.4, LeaderLost: 1}}}}
	var out strings.Builder
	if err := r.print(&out, ""); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"1.20 (1.20-1.20) s", "0.50", "<= 1.00 s", "MISSED", "<= 2.00 s  ok",
		"recreated with an empty disk, to voter, with Google's times", "3.10 (3.10-3.10) s"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("no %q in\n%s", want, out.String())
		}
	}
}

func TestWhatReportsCostIsShownNextToAgentsWithoutThem(t *testing.T) {
	r := results{Reports: &reportCost{With: cost{CPU: []float64{0.5, 0.6, 0.7}, Requests: 15000, Megabytes: 30},
		Without: cost{CPU: []float64{0.4, 0.4, 0.4}, Requests: 10000, Megabytes: 20}}}
	var out strings.Builder
	if err := r.print(&out, ""); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"0.60 (0.50-0.70) % of a core", "15000.00", "30.00 (30.00-30.00) MB a day", "1.50"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("no %q in\n%s", want, out.String())
		}
	}
	if r.missed() || strings.Contains(out.String(), "<=") {
		t.Errorf("nothing is promised of it:\n%s", out.String())
	}
}

func TestWhatIsAskedOfABucketIsCounted(t *testing.T) {
	var seen traffic
	bucket := httptest.NewServer(seen.count(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		fmt.Fprint(w, "four")
	})))
	defer bucket.Close()
	for _, body := range []string{"", "seven77"} { // without a length, as an upload is
		answer, err := http.Post(bucket.URL, "text/plain", io.MultiReader(strings.NewReader(body)))
		if err != nil {
			t.Fatal(err)
		}
		answer.Body.Close()
	}
	if requests, bytes := seen.requests.Load(), seen.bytes.Load(); requests != 2 || bytes != 15 {
		t.Errorf("%d requests of %d bytes, want 2 of 15", requests, bytes)
	}
}

func TestTheAgentWithoutReportsIsStillTheAgentButOneLine(t *testing.T) {
	text, err := os.ReadFile(filepath.Join("..", "..", opensReports))
	if err != nil {
		t.Fatal(err)
	}
	silent, err := withoutReports(string(text))
	if err != nil || len(silent) != len(text)-len(openLine) {
		t.Errorf("%v: %d bytes of %d", err, len(silent), len(text))
	}
	if _, err := withoutReports(silent); err == nil {
		t.Error("an agent that opens its reports in another way is compared with itself")
	}
}

// The table of the watch has a line for each fault and rival, with what was not healed in time, and a promise that was
// not kept is a missed goal.
func TestTheWatchIsShownNextToItsRivals(t *testing.T) {
	r := results{Watch: &rivals.Result{Costs: []rivals.Cost{{Rival: rivals.MonitSlow, CPU: 0.25}}}}
	for _, f := range rivals.Faults() {
		for i, name := range rivals.Names {
			o := rivals.Outcome{Rival: name, Fault: f, Seen: 0.5, Well: float64(i + 1), Limit: 150, Load: "2.00 1 1"}
			if name == rivals.Systemd && f == rivals.RuntimeHangs {
				o.Well = 0
			}
			r.Watch.Outcomes = append(r.Watch.Outcomes, o)
		}
	}
	var out strings.Builder
	if err := r.print(&out, ""); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"not in 150 s: 1 of 1", "0.5 (0.5-0.5)", "4.0 (4.0-4.0)         4.0", "0.25", "2.00"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("no %q in\n%s", want, out.String())
		}
	}
	if r.missed() {
		t.Errorf("all goals are kept\n%s", out.String())
	}
	for what, spoil := range map[string]func(*rivals.Outcome){
		"late":  func(o *rivals.Outcome) { o.Well, o.Seen = 400, 400 },
		"never": func(o *rivals.Outcome) { o.Well, o.Seen = 0, 0 },
		"wrong": func(o *rivals.Outcome) { o.Wrong = 1 },
		"lost":  func(o *rivals.Outcome) { o.Lost = 1 },
	} {
		spoiled := results{Watch: &rivals.Result{Outcomes: slices.Clone(r.Watch.Outcomes)}}
		spoil(&spoiled.Watch.Outcomes[0])
		if !spoiled.missed() {
			t.Errorf("%s is no miss", what)
		}
	}
}

// titles are of what each part prints.
var titles = map[string]string{"summary": "floor median", "phases": "where the time of", "watch": "watched by"}

func TestOnlyWhatRanIsPrinted(t *testing.T) {
	both := comparison{Quorate: []round{{Took: 1}}, Floor: []round{{Took: 1}}}
	for name, c := range map[string]struct {
		results
		want string
	}{
		"one":     {results{One: &both}, "phases summary"},
		"three":   {results{Three: &both}, "phases summary"},
		"memory":  {results{Usage: &usages{Quorate: []usage{{Name: "agent"}}}}, "summary"},
		"repair":  {results{Repair: &repairs{Quorate: []repair{{}}, Floor: []repair{{}}}}, "summary"},
		"reports": {results{Reports: &reportCost{}}, "summary"},
		"watch":   {results{Watch: &rivals.Result{}}, "summary watch"},
	} {
		var out strings.Builder
		if err := c.print(&out, ""); err != nil {
			t.Fatal(err)
		}
		var got []string
		for what, title := range titles {
			if strings.Contains(out.String(), title) {
				got = append(got, what)
			}
		}
		slices.Sort(got)
		if strings.Join(got, " ") != c.want || strings.Contains(out.String(), "\n\n\n") {
			t.Errorf("%s prints %v, want %s\n%s", name, got, c.want, out.String())
		}
	}
}
