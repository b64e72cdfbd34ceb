package main

import (
	"fmt"
	"io"
	"strings"
	"text/tabwriter"

	"github.com/quorate/quorate/test/bench/rivals"
)

// watchGoals are what quorate has promised of its watch. A time is a median in seconds.
var watchGoals = []struct {
	fault, what string
	of          func(rivals.Outcome) float64
	goal        float64
}{
	{rivals.KubeletKilled, "seen", seenAfter, goalExitSeen},
	{rivals.RuntimeKilled, "seen", seenAfter, goalExitSeen},
	{rivals.KubeletStopped, "well", wellAfter, goalHang},
	{rivals.KubeletNoFiles, "well", wellAfter, goalHang},
	{rivals.RuntimeHangs, "well", wellAfter, goalHang},
	{rivals.StartHangs, "well", wellAfter, goalStartHang},
}

func seenAfter(o rivals.Outcome) float64 { return o.Seen }
func wellAfter(o rivals.Outcome) float64 { return o.Well }

// of are the values of a rival's rounds of a fault, and how many of these rounds had one.
func valuesOf(r *rivals.Result, rival, fault string, of func(rivals.Outcome) float64) (values []float64, rounds int) {
	for _, o := range r.Outcomes {
		if o.Rival != rival || o.Fault != fault {
			continue
		}
		rounds++
		if v := of(o); v > 0 {
			values = append(values, v)
		}
	}
	return values, rounds
}

// watchRows are the promises about the watch.
func watchRows(r *rivals.Result) (out []row) {
	if r == nil {
		return nil
	}
	for _, g := range watchGoals {
		values, rounds := valuesOf(r, rivals.Quorate, g.fault, g.of)
		s := spreadOf(values)
		out = append(out, row{What: g.fault + ", " + g.what, Unit: "s", Quorate: s, Value: s.Median, Goal: g.goal,
			OK: len(values) == rounds && rounds > 0 && s.Median <= g.goal})
	}
	wrong := 0.0
	for _, o := range r.Outcomes {
		if o.Rival == rivals.Quorate {
			wrong += float64(o.Wrong + o.Lost)
		}
	}
	broken := float64(len(r.Broken))
	return append(out, row{What: "wrong actions and lost containers", Quorate: spread{wrong, wrong, wrong},
		Value: wrong, OK: wrong == 0},
		row{What: "VMs that were not measured to the end", Quorate: spread{broken, broken, broken}, Value: broken,
			OK: broken == 0})
}

// printWatch prints a line for each fault and rival, and what each rival costs.
func printWatch(w io.Writer, r *rivals.Result) error {
	if r == nil {
		return nil
	}
	fmt.Fprintln(w, "\nseconds from the fault, median (min-max); ratios are to quorate's; wrong actions and lost "+
		"containers are of all rounds")
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "fault\twatched by\trounds\tseen\twell\tratio\twrong\tlost\tload\t")
	for _, fault := range rivals.Faults() {
		for _, rival := range rivals.Names {
			fmt.Fprintln(table, watchCells(r, rival, fault))
		}
	}
	fmt.Fprintln(table, "\nat rest\tCPU, % of a core\tof systemd and bus\tMiB\twake-ups a second\t")
	for _, c := range r.Costs {
		fmt.Fprintf(table, "%s\t%.2f\t%.2f\t%.1f\t%.1f\t\n", c.Rival, c.CPU, c.Asked, c.Memory, c.Wakeups)
	}
	for _, why := range r.Broken {
		fmt.Fprintf(table, "not measured to the end: %s\n", why)
	}
	return table.Flush()
}

// watchCells is one line of that table.
func watchCells(r *rivals.Result, rival, fault string) string {
	seen, rounds := valuesOf(r, rival, fault, seenAfter)
	well, _ := valuesOf(r, rival, fault, wellAfter)
	wrong, lost, limit, loads := 0, 0, 0.0, []string{}
	for _, o := range r.Outcomes {
		if o.Rival == rival && o.Fault == fault {
			wrong, lost, limit = wrong+o.Wrong, lost+o.Lost, o.Limit
			one, _, _ := strings.Cut(o.Load, " ")
			loads = append(loads, one)
		}
	}
	wellCell, ratio := "-", ""
	if rivals.Heals(fault) {
		wellCell = timesOf(well, rounds, limit)
		ours, _ := valuesOf(r, rivals.Quorate, fault, wellAfter)
		if len(ours) > 0 && len(well) > 0 && rival != rivals.Quorate {
			ratio = fmt.Sprintf("%.1f", spreadOf(well).Median/spreadOf(ours).Median)
		}
	}
	return fmt.Sprintf("%s\t%s\t%d\t%s\t%s\t%s\t%d\t%d\t%s\t", fault, rival, rounds, timesOf(seen, rounds, limit),
		wellCell, ratio, wrong, lost, strings.Join(loads, " "))
}

// timesOf are the times of those rounds that had one, and how many had none within the limit.
func timesOf(values []float64, rounds int, limit float64) string {
	text := ""
	if s := spreadOf(values); len(values) > 0 {
		text = fmt.Sprintf("%.1f (%.1f-%.1f)", s.Median, s.Min, s.Max)
	}
	if n := rounds - len(values); n > 0 {
		text = strings.TrimSpace(fmt.Sprintf("%s not in %.0f s: %d of %d", text, limit, n, rounds))
	}
	return text
}
