package main

import (
	"fmt"
	"io"
	"slices"
	"text/tabwriter"
)

// print shows each size's copies: the medians and extremes over its rounds.
func (c *copies) print(w io.Writer) {
	if c == nil {
		return
	}
	fmt.Fprintln(w)
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "database\tto voter\tplain copy\tratio\tleader's CPU\tleader's memory\twrites before\twrites meanwhile")
	for _, same := range c.bySize() {
		of := func(f func(stateCopy) float64) spread {
			var values []float64
			for _, x := range same {
				values = append(values, f(x))
			}
			return spreadOf(values)
		}
		voter, plain := of(func(x stateCopy) float64 { return float64(x.Voter) }), of(func(x stateCopy) float64 { return float64(x.Plain) })
		cpu, rss := of(func(x stateCopy) float64 { return x.LeaderCPU }), of(func(x stateCopy) float64 { return float64(x.LeaderRSS) })
		fmt.Fprintf(table, "%.2f GB\t%.1f (%.1f-%.1f) s\t%.1f (%.1f-%.1f) s\t%.2f\t%.0f %%\t%+.0f MiB\t%s\t%s\n", float64(same[0].Bytes)/1e9,
			voter.Median, voter.Min, voter.Max, plain.Median, plain.Min, plain.Max, voter.Median/plain.Median, cpu.Median, rss.Median, same[0].Before, same[0].During)
	}
	table.Flush()
	for _, l := range c.Log {
		fmt.Fprintf(w, "\na disk that missed %d writes serves %.2f s after its agent's start; snapshots sent for it: %d\n", l.Missed, l.Took, l.Snapshots)
	}
}

// bySize are the rounds of each size, in the order in which they were made. Sizes differ by more than a database grows.
func (c *copies) bySize() (out [][]stateCopy) {
	for _, x := range c.Copies {
		n := slices.IndexFunc(out, func(s []stateCopy) bool { return x.Bytes < 2*s[0].Bytes && s[0].Bytes < 2*x.Bytes })
		if n < 0 {
			out = append(out, nil)
			n = len(out) - 1
		}
		out[n] = append(out[n], x)
	}
	return out
}
