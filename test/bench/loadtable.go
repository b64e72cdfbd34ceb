package main

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"text/tabwriter"
)

// loadRows are what is promised to a crowd of nodes: that a burst is taken in, that a planned stop costs nobody
// anything, and that a lost master costs only those that were connected to it.
func loadRows(all []crowded) (out []row) {
	promise := func(what, unit string, value, goal float64) {
		out = append(out, row{What: what, Unit: unit, Quorate: spreadOf([]float64{value}), Value: value, Goal: goal,
			Absolute: goal > 0, None: goal == 0, OK: value <= goal})
	}
	for _, c := range all {
		who := c.String()
		promise(who+", to the last watch", "s", float64(c.Watching), float64(c.Within)+goalWatching)
		for i, s := range c.Spans {
			switch {
			case i == 0:
				promise(who+", watches that break", "", float64(s.Broken), 0)
			case i == 1:
			case i == 2:
				promise(who+", "+s.What+", failed requests", "", float64(s.failures()), 0)
			default:
				promise(who+", "+s.What+", broken watches elsewhere", "", float64(s.BrokenElsewhere), 0)
				promise(who+", "+s.What+", longest renewal", "s", float64(s.Renewal), goalRenewal)
			}
			promise(who+", "+s.What+", nodes not Ready", "", float64(len(s.NotReady)), 0)
		}
	}
	return out
}

// printLoad shows each span of each crowd.
func printLoad(w io.Writer, all []crowded) error {
	for _, c := range all {
		fmt.Fprintf(w, "\n%s, %d pods: every watch after %.1f s, every node Ready after %.1f s, every pod running "+
			"after %.1f s\n\n", c.crowd, c.Pods, c.Watching, c.Ready, c.Running)
		table := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
		fmt.Fprintln(table, "while\ttook s\trequests\tfailed (elsewhere)\tdeferred\tbroken watches (elsewhere)\t"+
			"longest renewal s (elsewhere)\tnot Ready\tleases p50/p99 ms\treads\twrites\tlists\t"+
			"agent MiB, % of a core\t")
		for _, s := range c.Spans {
			memory, cpu := 0.0, 0.0
			for _, a := range s.Agents {
				memory, cpu = max(memory, float64(a.RSS)), max(cpu, a.CPU)
			}
			fmt.Fprintf(table, "%s\t%.0f\t%d\t%d (%d)\t%d\t%d (%d)\t%.1f (%.1f)\t%d\t%s\t%s\t%s\t%s\t%.0f, "+
				"%.1f\t\n", s.What, s.Took, s.Requests, s.failures(), s.FailedElsewhere, s.Deferred, s.Broken,
				s.BrokenElsewhere, s.Renewal, s.RenewalElsewhere, len(s.NotReady), s.Leases, s.Reads, s.Writes, s.Lists,
				memory, cpu)
		}
		if err := table.Flush(); err != nil {
			return err
		}
		for _, s := range c.Spans {
			for _, cause := range slices.Sorted(maps.Keys(s.Failed)) {
				fmt.Fprintf(w, "%s: %d times %s\n", s.What, s.Failed[cause], cause)
			}
			if len(s.Restarts) > 0 {
				fmt.Fprintf(w, "%s: started anew: %s\n", s.What, strings.Join(s.Restarts, ", "))
			}
		}
	}
	return nil
}

func (l latency) String() string { return fmt.Sprintf("%.0f/%.0f", l.P50, l.P99) }
