package main

import (
	"context"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/quorate/quorate/cmd/quorate/terminal"
	"github.com/quorate/quorate/internal/record"
	"github.com/quorate/quorate/internal/report"
)

// printEnds prints a paragraph for each end, and whether etcd's history went on. The events are told also where the
// record cannot be read.
func (f *eventFlags) printEnds(ctx context.Context, w io.Writer, ends []report.End, since time.Time) error {
	now := time.Now()
	ends = slices.DeleteFunc(ends, func(e report.End) bool { return f.span.IsAfter(e.At(), now) })
	v, unread := f.record(ctx)
	var lines []report.Line
	told := toldEnds{Ends: []toldEnd{}, History: historyText(v, since)}
	for _, e := range ends {
		l := report.Line{By: e.Place, Event: report.Event{At: e.At(), Kind: report.Gone,
			Text: e.Whole(diskOf(e, v.Replicas[e.Place]))}}
		lines, told.Ends = append(lines, l), append(told.Ends, toldEnd{l, e})
	}
	if unread != nil {
		told.History = fmt.Sprintf("Whether etcd's history goes on is not known: %s.", unread)
	}
	return terminal.PrintAs(w, f.output, told, func(w io.Writer) {
		f.printText(w, lines, "No master came back from an end", inLines)
		if told.History != "" && len(ends) > 0 {
			fmt.Fprintln(w)
			terminal.PrintText(w, "", told.History)
		}
	})
}

// toldEnds are the ends as JSON: in words, and what the words are made of.
type toldEnds struct {
	Ends    []toldEnd `json:"ends"`
	History string    `json:"history"`
}

type toldEnd struct {
	report.Line
	End report.End `json:"end"`
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
