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
		text := e.Text()
		if len(e.Waits) > 0 { // they may have begun before what a person asks for
			text += ". " + e.waited()
		}
		out = append(out, Line{Event: Event{At: e.At(), Kind: Gone, Text: text}, By: about})
	}
	sortLines(out)
	return out
}

// Brief are the lines that a person needs who looks at a story for the first time: what is Important, without the waits
// for processes that a boot has just started, and without what was over in a moment: a silence, and the end of a wait
// that comes back.
func Brief(lines []Line) (out []Line) {
	silences := blips(lines, Silent, Heard, aMoment)
	b := briefing{pauses: blips(lines, Resumed, Waiting, aPause), boots: map[replica.Place]bool{},
		told: map[wait]bool{}, early: map[wait]bool{}, comesBack: map[wait]bool{}}
	for n, l := range lines {
		goesOn := b.skips(n, l, lines[n+1:])
		if l.Important() && !silences[n] && !goesOn {
			out = append(out, l)
		}
	}
	return out
}

// briefing is what Brief knows of the lines before.
type briefing struct {
	pauses map[int]bool
	// boots are the replicas whose boot is not done.
	boots map[replica.Place]bool
	// told are the waits that a line has, and that have not ended since; early those of a boot that none has, and
	// comesBack those whose end was left out.
	told, early, comesBack map[wait]bool
}

// skips reports whether a line is of a wait that says nothing by itself.
func (b *briefing) skips(n int, l Line, rest []Line) bool {
	w := wait{l.By, l.Subject}
	switch {
	case l.Kind == Began && l.Subject == "":
		b.boots[l.By] = true
	case l.Kind == Ready, l.Kind == Stopping, l.Kind == Restarting:
		b.boots[l.By] = false
	case l.Kind == Waiting && b.comesBack[w]:
		b.comesBack[w] = false
		return true
	case l.Kind == Waiting && l.Subject == notUpYet && b.boots[l.By] && passes(rest, w):
		b.early[w] = true
		return true
	case l.Kind == Resumed && b.early[w]:
		b.early[w] = false
		return true
	case l.Kind == Resumed && b.told[w] && b.pauses[n]:
		b.comesBack[w] = true
		return true
	case l.Kind == Waiting, l.Kind == Resumed:
		b.told[w] = l.Kind == Waiting
	}
	return false
}

// wait is one of a replica.
type wait struct {
	by   replica.Place
	name string
}

// passes reports whether a wait ends, or its replica becomes ready.
func passes(rest []Line, w wait) bool {
	return slices.ContainsFunc(rest, func(l Line) bool {
		return l.By == w.by && (l.Kind == Ready || l.Kind == Resumed && l.Subject == w.name)
	})
}

// notUpYet is the wait of a boot for the processes that it has just started.
const notUpYet = "component-not-ready"

// aMoment is how long a member may be not heard of that is only slow.
const aMoment = 3 * time.Second

// aPause is how soon a wait comes back that has not ended: on a full disk etcd starts again and again, and each time it
// seems to run.
const aPause = 30 * time.Second

// blips finds the lines of what was over in a moment: a kind, and soon another about the same, by the same replica.
// Both lines of each are found.
func blips(lines []Line, kind, over Kind, within time.Duration) map[int]bool {
	out := map[int]bool{}
	for n, l := range lines {
		if l.Kind != kind {
			continue
		}
		for m, next := range lines[n+1:] {
			if next.At.Sub(l.At) > within {
				break
			}
			if next.Kind == over && next.By == l.By && next.Subject == l.Subject {
				out[n], out[n+1+m] = true, true
				break
			}
		}
	}
	return out
}
