package main

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"runtime"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/quorate/quorate/test/bench/rivals"
)

// seconds and mebibytes are the units of the results.
type (
	seconds   float64
	mebibytes float64
)

// results are everything that one run has measured.
type results struct {
	Started time.Time   `json:"started"`
	Ended   time.Time   `json:"ended"`
	Machine string      `json:"machine"`
	Load    string      `json:"load"`
	One     *comparison `json:"one,omitempty"`
	Three   *comparison `json:"three,omitempty"`
	Usage   *usages     `json:"usage,omitempty"`
	Repair  *repairs    `json:"repair,omitempty"`
	Reports *reportCost `json:"reports,omitempty"`
	Loads   []crowded   `json:"loads,omitempty"`
	// Watch is the watch of the kubelet next to what else watches one.
	Watch *rivals.Result `json:"watch,omitempty"`
	// Rows are the summary.
	Rows []row `json:"rows,omitempty"`
}

// row is one promise: what was measured, against what, and whether it holds.
type row struct {
	What    string  `json:"what"`
	Unit    string  `json:"unit"`
	Quorate spread  `json:"quorate"`
	Floor   *spread `json:"floor,omitempty"`
	// Value is what the goal bounds: the ratio where there is a floor, else the worst of the replicas. Where Absolute,
	// it is the median, and the floor stands there to compare with.
	Value    float64 `json:"value"`
	Goal     float64 `json:"goal,omitempty"`
	Absolute bool    `json:"absolute,omitempty"`
	// None: there may be none of it.
	None bool `json:"none,omitempty"`
	OK   bool `json:"ok"`
}

func (r *results) rows() (out []row) {
	for _, c := range []struct {
		what string
		goal float64
		*comparison
	}{
		{"one replica to /readyz", goalOne, r.One},
		{"three replicas to three voters, three /readyz", goalThree, r.Three},
	} {
		if c.comparison == nil {
			continue
		}
		quorate, floor := took(c.Quorate), took(c.Floor)
		ratio := quorate.Median / floor.Median
		out = append(out, row{What: c.what, Unit: "s", Quorate: quorate, Floor: &floor, Value: ratio, Goal: c.goal,
			OK: ratio <= c.goal})
	}
	out = append(out, r.Repair.rows()...)
	out = append(out, r.Reports.rows()...)
	out = append(out, loadRows(r.Loads)...)
	out = append(out, watchRows(r.Watch)...)
	return append(out, r.Usage.rows()...)
}

func (r *results) missed() bool {
	for _, row := range r.rows() {
		if !row.OK {
			return true
		}
	}
	return false
}

func (r *results) print(w io.Writer, format string) error {
	r.Rows = r.rows()
	if format == "json" {
		encoder := json.NewEncoder(w)
		encoder.SetIndent("", "  ")
		return encoder.Encode(r)
	}
	fmt.Fprintf(w, "\n%s; %s to %s UTC; load at the end %s\n", r.Machine, r.Started.Format(time.DateTime),
		r.Ended.Format(time.TimeOnly), r.Load)
	if err := printRows(w, r.Rows); err != nil {
		return err
	}
	one, ones := r.One.disturbed()
	three, threes := r.Three.disturbed()
	repaired, all := r.Repair.disturbed()
	if n := one + three + repaired; n > 0 {
		fmt.Fprintf(w, "\nothers used more than %.0f %% of the machine when %d of %d rounds began: see the "+
			"extremes\n", 100*quietEnough, n, ones+threes+all)
	}
	printPhases(w, "one replica", r.One)
	printPhases(w, "the last of three replicas", r.Three)
	if err := printLoad(w, r.Loads); err != nil {
		return err
	}
	return printWatch(w, r.Watch)
}

// printRows prints the summary; none where nothing that ran has rows.
func printRows(w io.Writer, rows []row) error {
	if len(rows) == 0 {
		return nil
	}
	fmt.Fprintln(w)
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "what\tquorate median (min-max)\tfloor median (min-max)\tratio\tgoal\t")
	for _, row := range rows {
		fmt.Fprintln(table, row.cells())
	}
	return table.Flush()
}

// ratio is what the goal bounds where it bounds one, else that of the medians.
func (r row) ratio() float64 {
	if r.Goal > 0 && !r.Absolute {
		return r.Value
	}
	return r.Quorate.Median / r.Floor.Median
}

func (r row) cells() string {
	show := func(s spread) string {
		return fmt.Sprintf("%.2f (%.2f-%.2f) %s", s.Median, s.Min, s.Max, r.Unit)
	}
	floor, ratio, goal, verdict := "", "", "", ""
	if r.Floor != nil {
		floor, ratio = show(*r.Floor), fmt.Sprintf("%.2f", r.ratio())
	}
	switch {
	case r.None:
		goal = "none"
	case r.Goal == 0: // it is measured, and nothing is promised
	case r.Absolute:
		goal = fmt.Sprintf("<= %.2f %s", r.Goal, r.Unit)
	case r.Floor != nil:
		goal = fmt.Sprintf("<= %.2f", r.Goal)
	default:
		goal = fmt.Sprintf("<= %.0f %s", r.Goal, r.Unit)
	}
	if r.Goal > 0 || r.None {
		verdict = map[bool]string{true: "ok", false: "MISSED"}[r.OK]
	}
	return strings.Join([]string{r.What, show(r.Quorate), floor, ratio, goal, verdict}, "\t")
}

// printPhases says where the time went.
func printPhases(w io.Writer, what string, c *comparison) {
	if c == nil {
		return
	}
	for _, side := range []struct {
		name   string
		rounds []round
	}{{"quorate", c.Quorate}, {"floor", c.Floor}} {
		var parts []string
		for _, p := range medianPhases(side.rounds) {
			parts = append(parts, fmt.Sprintf("%s %.2f", p.Name, p.Took))
		}
		fmt.Fprintf(w, "\nwhere the time of %s goes, %s (medians, s): %s", what, side.name, strings.Join(parts, " · "))
	}
	fmt.Fprintln(w)
}

// machine says what the numbers were measured on.
func machine() string {
	model := "unknown processor"
	text, err := os.ReadFile("/proc/cpuinfo")
	if err == nil {
		for line := range strings.Lines(string(text)) {
			if key, value, ok := strings.Cut(line, ":"); ok && strings.TrimSpace(key) == "model name" {
				model = strings.TrimSpace(value)
				break
			}
		}
	}
	return fmt.Sprintf("%d cores, %s", runtime.NumCPU(), model)
}

// load is the kernel's load average.
func load() string {
	text, err := os.ReadFile("/proc/loadavg")
	if err != nil {
		return "unknown"
	}
	return strings.Join(strings.Fields(string(text))[:3], " ")
}
