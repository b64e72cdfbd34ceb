package report

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/quorate/quorate/internal/replica"
)

// End is the end of a boot of a replica's VM that another boot followed. Its times are by the replicas' clocks.
type End struct {
	replica.Place
	// Asked is when it was asked to stop, Stopped when it said that it had. Zero: never.
	Asked   time.Time `json:"asked,omitzero"`
	Stopped time.Time `json:"stopped,omitzero"`
	// Unstopped is what it said of something that it could not stop.
	Unstopped string `json:"unstopped,omitempty"`
	// Last is the last sign of it, and Noticed when another first did not hear of its etcd any more, as far as that was
	// its end; zero: nobody noticed.
	Last    time.Time `json:"last,omitzero"`
	Noticed time.Time `json:"noticed,omitzero"`
	// Next is when the next boot began, InstanceID the instance that ended, and NextInstance that of the next boot.
	Next         time.Time `json:"next,omitzero"`
	InstanceID   string    `json:"instanceID"`
	NextInstance string    `json:"nextInstance"`
	// Waits are what it waited for at its end, as its events have it.
	Waits []EndWait `json:"waits,omitempty"`
	// Did is what the boot that followed took away or put in its place, and why, until it was ready. Voter and Ready
	// are when the replica was that again; zero: it was not, or it was not noticed.
	Did   []string  `json:"did,omitempty"`
	Voter time.Time `json:"voter,omitzero"`
	Ready time.Time `json:"ready,omitzero"`

	// etcdDown: at its last sign etcd did not run, or was being stopped. Nobody hears of such a member, long before the
	// end of its VM.
	etcdDown bool
}

// EndWait is what a replica waited for when it ended, and since when.
type EndWait struct {
	Name  string    `json:"name"`
	Since time.Time `json:"since"`
	// Text is what its event says.
	Text string `json:"text"`
}

// Ends are the ends of all replicas' VMs that were followed by a boot which began at or after since, in time.
func Ends(batches []Batch, since time.Time) (out []End) {
	var places []replica.Place
	for _, b := range batches {
		if !slices.Contains(places, b.Place) {
			places = append(places, b.Place)
			out = append(out, endsOf(batches, b.Place, since)...)
		}
	}
	slices.SortStableFunc(out, func(a, b End) int { return a.At().Compare(b.At()) })
	return out
}

// endsOf finds the boots of a replica that were followed by another.
func endsOf(batches []Batch, about replica.Place, since time.Time) (out []End) {
	own := slices.DeleteFunc(slices.Clone(batches),
		func(b Batch) bool { return b.Place != about || len(b.Events) == 0 })
	slices.SortStableFunc(own, func(a, b Batch) int { return a.At.Compare(b.At) })
	for n := 1; n < len(own); n++ {
		before, after := own[n-1], own[n]
		began := func(b Batch) bool { return b.BootID == after.BootID }
		if slices.ContainsFunc(own[:n], began) {
			continue // it goes on, or is a former boot that runs beside the one that counts
		}
		e := End{Place: about, Next: after.At, InstanceID: before.InstanceID, NextInstance: after.InstanceID}
		for _, b := range own[:n] {
			if b.BootID == before.BootID {
				e.ended(b.Events)
			}
		}
		for _, b := range own[n:] {
			if b.BootID == after.BootID {
				e.followed(b.Events)
			}
		}
		if !e.etcdDown {
			e.Noticed = firstSilence(batches, about, e.Last, e.Next)
		}
		if !after.At.Before(since) {
			out = append(out, e)
		}
	}
	return out
}

// ended takes in some events of the boot that ended.
func (e *End) ended(events []Event) {
	for _, happened := range events {
		if happened.At.After(e.Next) {
			continue // of a former boot that runs on
		}
		e.Last = later(e.Last, happened.At)
		switch {
		case happened.Kind == Began && happened.Subject == "": // the agent alone was started again
			e.Asked, e.Stopped, e.Unstopped, e.Waits, e.etcdDown = time.Time{}, time.Time{}, "", nil, true
		case happened.Kind == Stopping:
			e.Asked, e.etcdDown = happened.At, true
		case happened.Kind == Restarting:
			e.etcdDown = true
		case happened.Kind == Stopped:
			e.Stopped = happened.At
		case happened.Kind == Unstopped:
			e.Unstopped = happened.Text
		case happened.State != "" && happened.Subject == "etcd":
			e.etcdDown = happened.State != "ready" && happened.State != "degraded"
		case happened.Kind == Waiting:
			e.waits(happened)
		case happened.Kind == Resumed:
			e.resumes(happened.Subject)
		}
	}
}

// waits notes a wait.
func (e *End) waits(happened Event) {
	since := happened.Since
	if since.IsZero() {
		since = happened.At
	}
	e.resumes(happened.Subject)
	e.Waits = append(e.Waits, EndWait{happened.Subject, since,
		strings.TrimPrefix(happened.Text, "waits, "+happened.Subject+": ")})
}

// resumes notes the end of a wait.
func (e *End) resumes(name string) {
	e.Waits = slices.DeleteFunc(e.Waits, func(w EndWait) bool { return w.Name == name })
}

// followed takes in some events of the boot that followed.
func (e *End) followed(events []Event) {
	for _, happened := range events {
		switch {
		case happened.Kind == Began && happened.Before.Before(e.Next): // a later one is of a start of the agent alone
			e.Last = later(e.Last, happened.Before)
		case happened.Kind == Did && slices.Contains(explained, happened.Subject) && e.Ready.IsZero():
			e.did(happened.Text)
		case happened.Kind == Joined && strings.HasSuffix(happened.Text, "voter") && e.Voter.IsZero():
			e.Voter = happened.At
		case happened.Kind == Ready && e.Ready.IsZero():
			e.Ready = happened.At
		}
	}
}

// did notes an act. Two that are taken for one reason say it once.
func (e *End) did(text string) {
	what, why, _ := strings.Cut(text, ": ")
	for _, before := range e.Did {
		if _, known, _ := strings.Cut(before, ": "); why != "" && known == why {
			text = what
		}
	}
	e.Did = append(e.Did, text)
}

func later(a, b time.Time) time.Time {
	if b.After(a) {
		return b
	}
	return a
}

// At is when it ended, as far as that is known: when it said so, or when it was missed, or its last sign.
func (e End) At() time.Time {
	switch {
	case !e.Stopped.IsZero():
		return e.Stopped
	case !e.Noticed.IsZero():
		return e.Noticed
	}
	return e.Last
}

// Text says for a person how it ended, after the replica's name.
func (e End) Text() string {
	text := "ended " + e.when() + " without being asked to: power lost, killed or crashed."
	if e.InstanceID != e.NextInstance {
		text = "ended " + e.when() + " without being asked to: power lost, killed, crashed, or its VM was deleted."
	}
	switch {
	case !e.Stopped.IsZero() && !e.Asked.IsZero():
		text = fmt.Sprintf("stopped in order, as it was asked to at %s.", clock(e.Asked))
	case !e.Asked.IsZero() && e.Unstopped != "":
		text = fmt.Sprintf("ended %s; it was asked to stop at %s, and %s.", e.when(), clock(e.Asked),
			strings.TrimSuffix(e.Unstopped, "."))
	case !e.Asked.IsZero():
		text = fmt.Sprintf("ended %s; it was asked to stop at %s, and was not seen to finish that.", e.when(),
			clock(e.Asked))
	}
	text += " Its next boot began at " + clock(e.Next)
	if e.InstanceID != e.NextInstance {
		text += fmt.Sprintf(", as another VM: instance %s in place of %s", e.NextInstance, e.InstanceID)
	}
	return text
}

// when is the time in which it ended.
func (e End) when() string {
	until := e.Noticed
	if until.IsZero() {
		until = e.Next
	}
	return fmt.Sprintf("between %s and %s", e.Last.UTC().Format(dayIfOther(e.Last, until)), clock(until))
}

// dayIfOther is how a time is written next to another.
func dayIfOther(t, other time.Time) string {
	if t.UTC().YearDay() == other.UTC().YearDay() && t.UTC().Year() == other.UTC().Year() {
		return time.TimeOnly
	}
	return time.DateTime
}

// Whole is Text, and what was wrong before and became of the replica after. disk is what is known of the disk of the
// boot that followed; it may be empty.
func (e End) Whole(disk string) string {
	parts := []string{e.Text()}
	if disk != "" {
		parts[0] += ", " + disk
	}
	parts[0] += "."
	if len(e.Waits) > 0 {
		parts = append(parts, e.waited())
	}
	if len(e.Did) > 0 {
		parts = append(parts, "It "+sentence(strings.Join(e.Did, "; it ")))
	}
	return strings.Join(append(parts, e.again()), " ")
}

// waited says what it waited for at its end.
func (e End) waited() string {
	list := slices.SortedStableFunc(slices.Values(e.Waits), func(a, b EndWait) int { return a.Since.Compare(b.Since) })
	var texts []string
	for _, w := range list {
		texts = append(texts, fmt.Sprintf("%s since %s UTC: %s", w.Name,
			w.Since.UTC().Format(dayIfOther(w.Since, e.At())), strings.TrimSuffix(w.Text, ".")))
	}
	return "At its end it waited: " + sentence(strings.Join(texts, "; "))
}

func sentence(text string) string { return strings.TrimSuffix(text, ".") + "." }

// again says when the replica was what it had been.
func (e End) again() string {
	switch {
	case e.Ready.IsZero():
		return "It was not ready since: `quorate health` says how it is."
	case e.Voter.IsZero():
		return fmt.Sprintf("It was ready at %s, %s.", clock(e.Ready), e.after())
	}
	return fmt.Sprintf("It was a voter at %s and ready at %s, %s.", e.Voter.UTC().Format(time.TimeOnly),
		clock(e.Ready), e.after())
}

// after is how long after its end the replica was ready, at least and at most; where that is not known, after the
// begin of the next boot.
func (e End) after() string {
	since := func(t time.Time) time.Duration { return e.Ready.Sub(t).Round(time.Second) }
	switch {
	case e.Stopped.IsZero() && e.Noticed.IsZero():
		return since(e.Next).String() + " after that boot began"
	case e.Stopped.IsZero() && since(e.Last)-since(e.Noticed) > exact:
		return fmt.Sprintf("%s to %s after its end", since(e.Noticed), since(e.Last))
	}
	return since(e.At()).String() + " after its end"
}

// exact is how far apart the bounds of an end may be that is told as one time.
const exact = 2 * time.Second

// firstSilence is when another replica first did not hear of it any more between two times; zero: none noticed. A
// silence that was over before was none of an end.
func firstSilence(batches []Batch, about replica.Place, from, to time.Time) (first time.Time) {
	since := map[replica.Place]time.Time{}
	for _, l := range Lines(batches, from) {
		switch {
		case l.Subject != about.String() || !l.At.Before(to):
		case l.Kind == Silent:
			since[l.By] = l.At
		case l.Kind == Heard:
			delete(since, l.By)
		}
	}
	for _, at := range since {
		if first.IsZero() || at.Before(first) {
			first = at
		}
	}
	return first
}

func clock(t time.Time) string { return t.UTC().Format(time.TimeOnly + " UTC") }
