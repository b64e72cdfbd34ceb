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
	"github.com/quorate/quorate/internal/report"
)

// eventFlags are the flags of events and why.
type eventFlags struct {
	cluster.Flags
	output string
	span   command.Span
	all    bool
	// more is said where a text without a line is not all that there is.
	more string
}

func (f *eventFlags) add(cmd *cobra.Command) {
	f.Flags.Add(cmd)
	command.AddOutput(cmd, &f.output)
	cmd.Flags().BoolVar(&f.all, "all", false, "also what repeats while all is well, and each step on the way; JSON has it "+
		"always")
	f.span.Add(cmd, "24h")
}

func newEvents() *cobra.Command {
	var f eventFlags
	cmd := &cobra.Command{Use: "events [NAME]", Short: "List what the replicas noticed, in time", Args: atMostOneName,
		Long: `List what the replicas noticed: boots and stops, waits, acts, roles, who leads, who is not heard of,
components. With the name of a replica, what that one noticed. The agents write events to the bucket of the record,
where they are kept for 30 days, also when the VM is gone. Times are by the replica's clock, in UTC.`,
		Example: `  quorate events --config cluster.yaml --since 8h
  quorate events master-b --config cluster.yaml -o json
  quorate events --config cluster.yaml --since "2026-11-27 20:30" --until "2026-11-27 21:00"`,
		RunE: func(cmd *cobra.Command, args []string) error {
			since := f.span.Since.At(time.Now())
			batches, v, err := f.read(cmd.Context(), since.Add(-observer.LongestBatch), len(args) == 1)
			if err != nil {
				return err
			}
			lines := report.Lines(batches, since)
			if len(args) == 1 {
				about, err := findPlace(args[0], batches, v)
				if err != nil {
					return err
				}
				lines = slices.DeleteFunc(lines, func(l report.Line) bool { return l.By != about })
			}
			return f.print(cmd.OutOrStdout(), f.brief(lines), nothing, inOneLine)
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
another boot, whether they were asked to, what was wrong before, what was done, and when they were whole again. One that
is still away is in "quorate health". Times are by the replicas' clocks, in UTC.`,
		Example: `  quorate why --config cluster.yaml --since 12h
  quorate why master-b --config cluster.yaml --since 8h`,
		RunE: func(cmd *cobra.Command, args []string) error {
			since, from := f.span.Since.At(time.Now()), time.Now().Add(-bucket.EventsKept)
			if since.Before(from) {
				from = since
			}
			// The last event of a boot that ended may be much older than its end.
			batches, v, err := f.read(cmd.Context(), from, len(args) == 1)
			if err != nil {
				return err
			}
			if len(args) == 0 {
				return f.printEnds(cmd.Context(), cmd.OutOrStdout(), report.Ends(batches, since), since)
			}
			about, err := findPlace(args[0], batches, v)
			if err != nil {
				return err
			}
			lines := withIncarnations(f.brief(report.Story(batches, about, since)), v.Replicas[about], since)
			return f.print(cmd.OutOrStdout(), lines, nothing, inLines)
		}}
	f.add(cmd)
	cmd.ValidArgsFunction = command.Completing(f.ReplicaNames)
	return cmd
}

// brief leaves out of a text what only --all shows. JSON has all lines: who reads it chooses.
func (f *eventFlags) brief(lines []report.Line) []report.Line {
	if f.all || f.output != "" {
		return lines
	}
	lines = f.within(lines)
	brief := report.Brief(lines)
	if len(brief) < len(lines) {
		f.more = " --all shows what goes without saying."
	}
	return brief
}

// within leaves out what is later than the span.
func (f *eventFlags) within(lines []report.Line) []report.Line {
	now := time.Now()
	return slices.DeleteFunc(lines, func(l report.Line) bool { return f.span.IsAfter(l.At, now) })
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

// read reads the batches that began from a time on, and the record if it is wanted.
func (f *eventFlags) read(ctx context.Context, from time.Time, withRecord bool) (batches []report.Batch,
	v record.View, err error) {
	if err := f.span.Check(time.Now()); err != nil {
		return nil, v, err
	}
	c, err := f.Load()
	if err != nil {
		return nil, v, err
	}
	reports, err := cluster.OpenReports(c)
	if err != nil {
		return nil, v, err
	}
	batches, err = reports.Events(ctx, from)
	if err == nil && withRecord {
		v, err = f.record(ctx)
	}
	return batches, v, err
}

func (f *eventFlags) record(ctx context.Context) (v record.View, err error) {
	c, err := f.Load()
	if err != nil {
		return v, err
	}
	store, err := cluster.OpenRecord(c)
	if err != nil {
		return v, err
	}
	return store.View(ctx)
}

// inLines is an entry of a story, which is read.
func inLines(w io.Writer, entry string) { terminal.PrintText(w, "", entry) }

// inOneLine is an entry of a list, which is searched, too.
func inOneLine(w io.Writer, entry string) { fmt.Fprintln(w, terminal.Visible(entry)) }

// print prints entries, or in the text for people what there is in place of none.
func (f *eventFlags) print(w io.Writer, lines []report.Line, none string, entry func(io.Writer, string)) error {
	lines = f.within(lines)
	if lines == nil {
		lines = []report.Line{}
	}
	return terminal.PrintAs(w, f.output, lines, func(w io.Writer) { f.printText(w, lines, none, entry) })
}

func (f *eventFlags) printText(w io.Writer, lines []report.Line, none string, entry func(io.Writer, string)) {
	if len(lines) == 0 {
		fmt.Fprintf(w, "%s %s.%s\n", none, &f.span, f.more)
	}
	for _, l := range lines {
		entry(w, fmt.Sprintf("%s %s %s", terminal.When(l.At), l.By.Name, l.Text))
	}
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
