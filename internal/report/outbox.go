package report

import (
	"encoding/json"
	"fmt"
	"slices"
	"time"
)

// The bounds of what one agent writes.
const (
	// changePause is the least time between two reports: Cloud Storage takes one write a second of an object.
	changePause = time.Second
	// batchPause is the least time between two batches of events.
	batchPause = 5 * time.Second
	// mostInBatch is how many events a batch has at most, mostQueued how many wait for a store that takes none.
	mostInBatch = 100
	mostQueued  = 1000
	// lastRetry is the longest time after a write that failed; it doubles from changePause.
	lastRetry = Period
)

// The budgets. Each has a burst, and is refilled over a day. A replica that is well changes some ten times a day.
var (
	// changesADay bounds the reports that are written because of a change.
	changesADay = allowance{burst: 120, day: 5000}
	eventsADay  = allowance{burst: 1000, day: 5000}
	bytesADay   = allowance{burst: 256 << 10, day: 2 << 20}
)

// Outbox decides what an agent writes next. It takes the time from its caller, and does no I/O. The zero value is
// ready.
type Outbox struct {
	last    Report   // as it was observed
	unheard []string // the members that the last observation has as not heard of
	written string   // the essence of what was written
	sentAt  time.Time
	failed  int
	retryAt time.Time

	queue   []Event
	batch   *Batch // what is being written, until it is
	batchAt time.Time
	number  uint64
	// dropped counts since the agent began, and said what of it an event has said.
	dropped, said uint64

	changes, events, bytes budget
}

// Write is what is to be written; both nil: nothing.
type Write struct {
	Report *Report
	Batch  *Batch
}

// Observe takes in how the replica is now, and notes what happened since the last time, which it returns.
func (o *Outbox) Observe(r Report) []Event {
	r = r.Cleaned()
	o.unheard = forgiveOnce(r, o.unheard)
	happened := Changes(o.last, r)
	for _, e := range happened {
		o.add(e)
	}
	r.EventsDropped = o.dropped
	o.last = r
	return happened
}

// forgiveOnce takes a member for heard of until two observations in a row say the opposite: raft forgets whom it has
// heard of once in each election time-out. It returns those that the observation itself has as not heard of.
func forgiveOnce(r Report, before []string) (unheard []string) {
	for n, m := range r.Members {
		if m.Heard == nil || *m.Heard {
			continue
		}
		unheard = append(unheard, m.ID)
		if !slices.Contains(before, m.ID) {
			r.Members[n].Heard = new(true)
		}
	}
	return unheard
}

// Note adds an event that no two reports show.
func (o *Outbox) Note(e Event) { o.add(e) }

func (o *Outbox) add(e Event) {
	size, _ := json.Marshal(e) // plain data always encodes
	if len(o.queue) >= mostQueued || !o.events.take(eventsADay, e.At, 1) ||
		!o.bytes.take(bytesADay, e.At, float64(len(size))) {
		o.dropped++
		return
	}
	o.queue = append(o.queue, e)
}

// Next is what is to be written now. The caller writes it and calls Done.
func (o *Outbox) Next(now time.Time) Write {
	if o.last.BootID == "" || now.Before(o.retryAt) {
		return Write{}
	}
	return Write{Report: o.nextReport(now), Batch: o.nextBatch(now)}
}

// Rest is what is not written yet, whatever was written a moment ago: for the end of an agent, which calls it until
// there is nothing.
func (o *Outbox) Rest(now time.Time) (w Write) {
	if o.last.BootID == "" {
		return w
	}
	if r := o.last; r.essence() != o.written {
		w.Report = &r
	}
	o.batchAt = time.Time{}
	w.Batch = o.nextBatch(now)
	return w
}

func (o *Outbox) nextReport(now time.Time) *Report {
	since := now.Sub(o.sentAt)
	switch {
	case o.sentAt.IsZero(), since >= Period, since < 0:
	case since < changePause, o.last.essence() == o.written, !o.changes.take(changesADay, now, 1):
		return nil
	}
	r := o.last
	return &r
}

func (o *Outbox) nextBatch(now time.Time) *Batch {
	if o.batch != nil {
		return o.batch // it was tried before
	}
	since := now.Sub(o.batchAt)
	if !o.batchAt.IsZero() && since >= 0 && since < batchPause {
		return nil
	}
	// Alone it would be a batch for each pause that no budget bounds. The report counts the dropped, too.
	if lost := o.dropped - o.said; lost > 0 && len(o.queue) > 0 && len(o.queue) < mostInBatch {
		o.queue = append(o.queue, Event{At: now, Kind: Dropped,
			Text: fmt.Sprintf("%d events were not written: there were too many", lost)})
		o.said = o.dropped
	}
	n := min(len(o.queue), mostInBatch)
	if n == 0 {
		return nil
	}
	o.number++
	r := o.last
	o.batch = &Batch{Place: r.Place, InstanceID: r.InstanceID, BootID: r.BootID, Incarnation: r.Incarnation,
		Number: o.number, At: o.queue[0].At, Events: append([]Event{}, o.queue[:n]...)}
	o.queue = append([]Event{}, o.queue[n:]...)
	return o.batch
}

// Done says what was written, and what went wrong with the rest.
func (o *Outbox) Done(now time.Time, w Write, err error) {
	if w.Report != nil {
		o.sentAt, o.written = now, w.Report.essence()
	}
	if w.Batch != nil {
		o.batchAt, o.batch = now, nil
	}
	o.retryAt = now.Add(min(changePause<<min(o.failed, 10), lastRetry))
	o.failed++
	if err == nil {
		o.failed, o.retryAt = 0, time.Time{}
	}
}

// allowance is refilled evenly over a day, and holds no more than burst.
type allowance struct{ burst, day float64 }

// budget is what of an allowance is spent.
type budget struct {
	spent float64
	at    time.Time
}

// take spends n, if there is that much.
func (b *budget) take(of allowance, now time.Time, n float64) bool {
	if passed := now.Sub(b.at); !b.at.IsZero() && passed > 0 {
		b.spent = max(0, b.spent-passed.Hours()/24*of.day)
	}
	if now.After(b.at) {
		b.at = now
	}
	if b.spent+n > of.burst {
		return false
	}
	b.spent += n
	return true
}
