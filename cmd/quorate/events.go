package main

import (
	"context"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/quorate/quorate/cmd/quorate/cluster"
	"github.com/quorate/quorate/cmd/quorate/command"
	"github.com/quorate/quorate/cmd/quorate/fault"
	"github.com/quorate/quorate/cmd/quorate/observer"
	"github.com/quorate/quorate/cmd/quorate/terminal"
	"github.com/quorate/quorate/internal/record"
	"github.com/quorate/quorate/internal/record/bucket"
	"github.com/quorate/quorate/internal/replica"
	"github.com/quorate/quorate/internal/report"
)

// eventFlags are the flags of events and why.
type eventFlags struct {
	cluster.Flags
	output string
	since  time.Duration
}

func (f *eventFlags) add(cmd *cobra.Command) {
	f.Flags.Add(cmd)
	command.AddOutput(cmd, &f.output)
	cmd.Flags().DurationVar(&f.since, "since", 24*time.Hour, "how far back, such as 8h; events are kept for 30 days")
}

func newEvents() *cobra.Command {
	var f eventFlags
	cmd := &cobra.Command{Use: "events [NAME]", Short: "List what the replicas noticed, in time", Args: atMostOneName,
		Long: `List what the replicas noticed: boots and stops, waits, acts, roles, who leads, who is not heard of,
components. With the name of a replica, what that one noticed. The agents write events to the bucket of the record,
where they are kept for 30 days, also when the VM is gone. Times are by the replica's clock, in UTC.`,
		Example: `  quorate events --config cluster.yaml --since 8h
  quorate events master-b --config cluster.yaml -o json`,
		RunE: func(cmd *cobra.Command, args []string) error {
			batches, v, err := f.read(cmd.Context(), f.since+observer.LongestBatch, len(args) == 1)
			if err != nil {
				return err
			}
			lines := report.Lines(batches, time.Now().Add(-f.since))
			if len(args) == 1 {
				about, err := findPlace(args[0], batches, v)
				if err != nil {
					return err
				}
				lines = slices.DeleteFunc(lines, func(l report.Line) bool { return l.By != about })
			}
			return f.print(cmd.OutOrStdout(), lines, nothing, inOneLine)
		}}
	f.add(cmd)
	cmd.ValidArgsFunction = command.Completing(f.ReplicaNames)
	return cmd
}

func newWhy() *cobra.Command {
	var f eventFlags
	cmd := &cobra.Command{Use: "why [NAME]", Short: "Tell what happened to a replica, or which ones ended, and why",
		Args: atMostOneName,
		Long: `Tell what happened to a replica, as a story in time: what it noticed itself, what others noticed of it,
which of its VMs ended without being asked to, and the incarnations that the record has. It is told also where the VM
is gone, and over several VMs in the same place. Without a name: which VMs of all replicas ended and were followed by
another boot. One that is still away is in "quorate health". Times are by the replicas' clocks, in UTC.`,
		Example: `  quorate why --config cluster.yaml --since 12h
  quorate why master-b --config cluster.yaml --since 8h`,
		RunE: func(cmd *cobra.Command, args []string) error {
			// The last event of a boot that ended may be much older than its end.
			batches, v, err := f.read(cmd.Context(), max(f.since, bucket.EventsKept), len(args) == 1)
			if err != nil {
				return err
			}
			since := time.Now().Add(-f.since)
			if len(args) == 0 {
				return f.print(cmd.OutOrStdout(), report.Ends(batches, since), "No master came back from an end", inLines)
			}
			about, err := findPlace(args[0], batches, v)
			if err != nil {
				return err
			}
			lines := withIncarnations(report.Story(batches, about, since), v.Replicas[about], since)
			return f.print(cmd.OutOrStdout(), lines, nothing, inLines)
		}}
	f.add(cmd)
	cmd.ValidArgsFunction = command.Completing(f.ReplicaNames)
	return cmd
}

// nothing is what is said where there is no line.
const nothing = "Nothing was noticed"

// atMostOneName is for a command that can be about one replica.
func atMostOneName(cmd *cobra.Command, args []string) error {
	if len(args) <= 1 {
		return nil
	}
	return fault.Usage("%s takes one replica's name at most, and got %s (usage: %s)", cmd.CommandPath(),
		command.Counted(len(args)), cmd.UseLine())
}

// read reads the batches that began at most that long ago, and the record if it is wanted.
func (f *eventFlags) read(ctx context.Context, ago time.Duration, withRecord bool) (batches []report.Batch,
	v record.View, err error) {
	if f.since <= 0 {
		return nil, v, fault.Usage("--since %s: want how far back, such as 8h", f.since)
	}
	c, err := f.Load()
	if err != nil {
		return nil, v, err
	}
	reports, err := cluster.OpenReports(c)
	if err != nil {
		return nil, v, err
	}
	batches, err = reports.Events(ctx, time.Now().Add(-ago))
	if err != nil || !withRecord {
		return batches, v, err
	}
	store, err := cluster.OpenRecord(c)
	if err == nil {
		v, err = store.View(ctx)
	}
	return batches, v, err
}

// inLines is an entry of a story, which is read.
func inLines(w io.Writer, entry string) { terminal.PrintText(w, "", entry) }

// inOneLine is an entry of a list, which is searched, too.
func inOneLine(w io.Writer, entry string) { fmt.Fprintln(w, terminal.Visible(entry)) }

// print prints entries, or in the text for people what there is in place of none.
func (f *eventFlags) print(w io.Writer, lines []report.Line, none string, entry func(io.Writer, string)) error {
	if lines == nil {
		lines = []report.Line{}
	}
	return terminal.PrintAs(w, f.output, lines, func(w io.Writer) {
		if len(lines) == 0 {
			fmt.Fprintf(w, "%s in the last %s.\n", none, f.since)
			return
		}
		for _, l := range lines {
			entry(w, fmt.Sprintf("%s %s %s", terminal.When(l.At), l.By.Name, l.Text))
		}
	})
}

// named reports whether a person calls a place so: by its name, or with its zone.
func named(p replica.Place, name string) bool { return p.Name == name || p.String() == name }

// findPlace finds the one place of a name.
func findPlace(name string, batches []report.Batch, v record.View) (found replica.Place, err error) {
	known := v.Places()
	for _, b := range batches {
		known = append(known, b.Place)
	}
	slices.SortFunc(known, replica.ComparePlaces)
	known = slices.Compact(known)
	var fits []replica.Place
	for _, p := range known {
		if named(p, name) {
			fits = append(fits, p)
		}
	}
	switch len(fits) {
	case 1:
		return fits[0], nil
	case 0:
		return found, fault.Usage("replica %q: neither the record nor an event has it; known are %v", name,
			replica.PlaceNames(known))
	}
	return found, fault.Usage("replica %q: several are called that: name one of %v", name,
		replica.PlaceNames(fits))
}

// withIncarnations adds what the record has of the replica's incarnations, in place of what its events say of them.
func withIncarnations(lines []report.Line, list []record.Incarnation, since time.Time) []report.Line {
	if len(list) > 0 {
		lines = slices.DeleteFunc(lines, func(l report.Line) bool { return l.Kind == report.Place })
	}
	for n, i := range list {
		if i.Time.Before(since) {
			continue
		}
		lines = append(lines, report.Line{By: i.Place, Event: report.Event{At: i.Time, Kind: report.Place,
			Text: fmt.Sprintf("took incarnation %d: instance %s, %s", i.Number, i.InstanceID, onDisk(list[:n], i))}})
	}
	slices.SortStableFunc(lines, func(a, b report.Line) int { return a.At.Compare(b.At) })
	return lines
}

// onDisk says what the disk of an incarnation held, and what became of the logs of those before.
func onDisk(before []record.Incarnation, i record.Incarnation) string {
	switch {
	case !i.EmptyDisk:
		return "on the disk that it had"
	case len(before) > 0 && (i.Disk() == "" || i.Disk() != before[len(before)-1].Disk()):
		return "with an empty disk. Its disk is new: the logs of before went with the former one"
	}
	return "with an empty disk"
}
