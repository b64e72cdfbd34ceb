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

// printEnds prints a paragraph for each end, and whether etcd's history went on. The events are told also where the
// record cannot be read.
func (f *eventFlags) printEnds(ctx context.Context, w io.Writer, ends []report.End, since time.Time) error {
	now := time.Now()
	ends = slices.DeleteFunc(ends, func(e report.End) bool { return f.span.IsAfter(e.At(), now) })
	v, unread := f.record(ctx)
	var lines []report.Line
	for _, e := range ends {
		lines = append(lines, report.Line{By: e.Place, Event: report.Event{At: e.At(), Kind: report.Gone,
			Text: e.Whole(diskOf(e, v.Replicas[e.Place]))}})
	}
	if err := f.print(w, lines, "No master came back from an end", inLines); err != nil || f.output != "" {
		return err
	}
	text := historyText(v, since)
	if unread != nil {
		text = fmt.Sprintf("Whether etcd's history goes on is not known: %s.", unread)
	}
	if text != "" && len(ends) > 0 {
		fmt.Fprintln(w)
		terminal.PrintText(w, "", text)
	}
	return nil
}

// diskOf says which disk the boot after an end had; empty: it took no incarnation, because it went on with its own.
func diskOf(e report.End, list []record.Incarnation) string {
	for n, i := range list {
		if i.InstanceID == e.NextInstance && !i.Time.Before(e.Next.Add(-clocksDiffer)) &&
			(e.Ready.IsZero() || i.Time.Before(e.Ready)) {
			return onDisk(list[:n], i)
		}
	}
	return ""
}

// clocksDiffer is by how much the times of one boot may differ: an incarnation's is taken a moment before an event's.
const clocksDiffer = 5 * time.Second

// historyText says whether etcd has the history that it had. A new one begins with a restore alone, which is an epoch.
func historyText(v record.View, since time.Time) string {
	var formed record.Epoch
	for _, e := range v.Epochs {
		if e.Outcome != nil && e.Outcome.Formed != nil {
			formed = e
		}
	}
	newest := formed
	if n := len(v.Epochs); n > 0 {
		newest = v.Epochs[n-1]
	}
	switch {
	case formed.Number == 0:
		return ""
	case formed.Closed != nil, newest.Number > formed.Number && newest.Outcome == nil:
		return "A restore is on its way (\"quorate record show\")."
	case formed.Number > 1 && !formed.Outcome.Time.Before(since):
		return fmt.Sprintf("Epoch %d was formed by a restore at %s: what was written after its source is not in it "+
			"(\"quorate record show\").", formed.Number, terminal.When(formed.Outcome.Time))
	}
	return fmt.Sprintf("Nothing was restored: epoch %d goes on, and with it each write that was acknowledged.",
		formed.Number)
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
	return terminal.PrintAs(w, f.output, lines, func(w io.Writer) {
		if len(lines) == 0 {
			fmt.Fprintf(w, "%s %s.%s\n", none, &f.span, f.more)
			return
		}
		for _, l := range lines {
			entry(w, fmt.Sprintf("%s %s %s", terminal.When(l.At), l.By.Name, l.Text))
		}
	})
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
