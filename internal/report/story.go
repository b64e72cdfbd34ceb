package report

import (
	"cmp"
	"fmt"
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

// Story is what happened to one replica: what it noticed itself, what others noticed of it, and which of its VMs ended
// without being asked to. For the last, batches from before since are needed, too: a replica that is well says nothing.
func Story(batches []Batch, about replica.Place, since time.Time) []Line {
	var out []Line
	for _, l := range Lines(batches, since) {
		if l.By == about || l.Subject == about.String() {
			out = append(out, l)
		}
	}
	// The row changes each time that something else is observed; waits and acts say the same better.
	out = slices.DeleteFunc(out, func(l Line) bool { return l.Kind == Row })
	out = append(out, ends(batches, about, since)...)
	sortLines(out)
	return out
}

// Ends are the ends of all replicas' VMs from a time on, as Story has them.
func Ends(batches []Batch, since time.Time) (out []Line) {
	var places []replica.Place
	for _, b := range batches {
		if !slices.Contains(places, b.Place) {
			places = append(places, b.Place)
			out = append(out, ends(batches, b.Place, since)...)
		}
	}
	sortLines(out)
	return out
}

// ends finds the boots of a replica that were followed by another. One ended at the first silence that another noticed,
// else at its last event, or at since where that is later.
func ends(batches []Batch, about replica.Place, since time.Time) (out []Line) {
	own := slices.DeleteFunc(slices.Clone(batches), func(b Batch) bool {
		return b.Place != about ||
			len(b.Events) == 0
	})
	slices.SortStableFunc(own, func(a, b Batch) int { return a.At.Compare(b.At) })
	for n := 1; n < len(own); n++ {
		before, after := own[n-1], own[n]
		if before.BootID == after.BootID {
			continue
		}
		last := before.Events[len(before.Events)-1].At
		stopped := slices.ContainsFunc(own, func(b Batch) bool {
			return b.BootID == before.BootID &&
				slices.ContainsFunc(b.Events, func(e Event) bool { return e.Kind == Stopping })
		})
		text := fmt.Sprintf("ended without being asked to: power lost, killed or crashed. Its next boot began at %s",
			clock(after.At))
		if at := firstSilence(batches, about, last, after.At); !at.IsZero() {
			last = at
		}
		if stopped {
			text = "had stopped in order; its next boot began at " + clock(after.At)
		}
		if after.InstanceID != before.InstanceID {
			text += fmt.Sprintf(", as another VM: instance %s in place of %s", after.InstanceID, before.InstanceID)
		}
		if last.Before(since) {
			last = since
		}
		if !after.At.Before(since) {
			out = append(out, Line{Event: Event{At: last, Kind: Gone, Text: text}, By: about})
		}
	}
	return out
}

// firstSilence is when another replica first did not hear of it between two times; zero: none noticed.
func firstSilence(batches []Batch, about replica.Place, from, to time.Time) time.Time {
	for _, l := range Lines(batches, from) {
		if l.Kind == Silent && l.Subject == about.String() && l.At.Before(to) {
			return l.At
		}
	}
	return time.Time{}
}

func clock(t time.Time) string { return t.UTC().Format(time.TimeOnly + " UTC") }
