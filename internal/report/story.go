package report

import (
	"cmp"
	"slices"
	"time"

	"github.com/quorate/quorate/internal/replica"
)

// Line is one event, and who noticed it.
type Line struct {
	Event
	By replica.Place `json:"by"`
}

// Gone is of a line that no replica wrote: it follows from two boots without a stop between them.
const Gone Kind = "gone"

// Lines are the events of batches from a time on, in the order of their times.
func Lines(batches []Batch, since time.Time) (out []Line) {
	for _, b := range batches {
		for _, e := range b.Events {
			if !e.At.Before(since) {
				out = append(out, Line{Event: e, By: b.Place})
			}
		}
	}
	sortLines(out)
	return out
}

func sortLines(list []Line) {
	slices.SortStableFunc(list, func(a, b Line) int {
		return cmp.Or(a.At.Compare(b.At), replica.ComparePlaces(a.By, b.By))
	})
}

// Story is what happened to one replica: what it noticed itself, what others noticed of it, and which of its VMs ended.
// For the last, batches from before since are needed, too: a replica that is well says nothing.
func Story(batches []Batch, about replica.Place, since time.Time) []Line {
	var out []Line
	for _, l := range Lines(batches, since) {
		if l.By == about || l.Subject == about.String() {
			out = append(out, l)
		}
	}
	// The row changes each time that something else is observed; waits and acts say the same better.
	out = slices.DeleteFunc(out, func(l Line) bool { return l.Kind == Row })
	for _, e := range endsOf(batches, about, since) {
		out = append(out, Line{Event: Event{At: e.At(), Kind: Gone, Text: e.Text()}, By: about})
	}
	sortLines(out)
	return out
}

// Brief are the lines that a person needs who looks at a story for the first time: what is Important, without the waits
// for processes that a boot has just started, and without a silence that was over in a moment.
func Brief(lines []Line) (out []Line) {
	boots, hidden, short := map[replica.Place]bool{}, map[replica.Place]bool{}, silences(lines)
	for n, l := range lines {
		switch {
		case l.Kind == Began:
			boots[l.By] = true
		case l.Kind == Ready, l.Kind == Stopping, l.Kind == Restarting:
			boots[l.By] = false
		case l.Kind == Waiting && l.Subject == notUpYet:
			hidden[l.By] = boots[l.By]
		}
		notYet := (l.Kind == Waiting || l.Kind == Resumed) && l.Subject == notUpYet && hidden[l.By]
		if l.Important() && !notYet && !short[n] {
			out = append(out, l)
		}
	}
	return out
}

// notUpYet is the wait of a boot for the processes that it has just started.
const notUpYet = "component-not-ready"

// aMoment is how long a member may be not heard of that is only slow.
const aMoment = 3 * time.Second

// silences finds the lines of silences that were over in a moment: both lines of each.
func silences(lines []Line) map[int]bool {
	out := map[int]bool{}
	for n, l := range lines {
		if l.Kind != Silent {
			continue
		}
		for m, over := range lines[n+1:] {
			if over.At.Sub(l.At) > aMoment {
				break
			}
			if over.Kind == Heard && over.By == l.By && over.Subject == l.Subject {
				out[n], out[n+1+m] = true, true
				break
			}
		}
	}
	return out
}
