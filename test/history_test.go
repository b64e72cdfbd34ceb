package test

import (
	"cmp"
	"fmt"
	"slices"
	"sync"
	"time"
)

// operation is one request of a client to one key, as the client saw it.
type operation struct {
	client int
	kind   opKind
	key    string
	// old is what a compare-and-swap wants to find, "" for no such key. value is what a put or a swap writes, unique in
	// the history.
	old, value string
	// found is what a read returned, and what a refused swap found instead.
	found string
	// outcome says what the client knows of it.
	outcome outcome
	// call and end are since the history's begin; end has no meaning where the outcome is unknown: the operation may
	// take effect at any time from its call on.
	call, end time.Duration
}

// opKind is what a client asks for.
type opKind string

const (
	opPut  opKind = "put"
	opSwap opKind = "compare-and-swap"
	opRead opKind = "read"
)

// outcome is what a client knows of an operation.
type outcome string

const (
	done    outcome = "done"    // acknowledged
	refused outcome = "refused" // a swap that found another value
	unknown outcome = "unknown" // no answer: it happened, happens later, or never does
)

// String is how a history is shown.
func (o operation) String() string {
	end := o.end.String()
	if o.outcome == unknown {
		end = "…"
	}
	switch o.kind {
	case opRead:
		return fmt.Sprintf("%s-%s client %d reads %s: %q", o.call, end, o.client, o.key, o.found)
	case opSwap:
		return fmt.Sprintf("%s-%s client %d swaps %s from %q to %q: %s, found %q", o.call, end, o.client, o.key, o.old,
			o.value, o.outcome, o.found)
	}
	return fmt.Sprintf("%s-%s client %d puts %s to %q: %s", o.call, end, o.client, o.key, o.value, o.outcome)
}

// history collects the operations of all clients. It is safe for concurrent use.
type history struct {
	begin time.Time

	mu         sync.Mutex
	operations []operation
}

func newHistory() *history { return &history{begin: time.Now()} }

// now is the time since the history's begin, from the monotonic clock.
func (h *history) now() time.Duration { return time.Since(h.begin) }

func (h *history) add(o operation) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.operations = append(h.operations, o)
}

// whole is a copy of what was collected.
func (h *history) whole() []operation {
	h.mu.Lock()
	defer h.mu.Unlock()
	return slices.Clone(h.operations)
}

// acknowledged are the values whose writing was acknowledged.
func (h *history) acknowledged() (values []string) {
	for _, o := range h.whole() {
		if o.kind != opRead && o.outcome == done {
			values = append(values, o.value)
		}
	}
	return values
}

// resolve leaves out what cannot matter, so that a history with many time-outs can be checked: reads without an answer,
// and writes without one whose value nobody ever found. The latter changes nothing about the verdict: every read and
// every swap shows the value that it found, so where such a write is put into an order, only writes that do not look at
// the value can stand between it and the next write; it can as well be left out, which an order may always do with a
// write that may never happen.
func resolve(history []operation) []operation {
	found := map[string]bool{}
	for grown := true; grown; { // the value that a swap wanted counts as found once the swap is known to have happened
		before := len(found)
		for _, o := range history {
			if o.kind != opPut && (o.outcome != unknown || found[o.value]) {
				found[o.old] = found[o.old] || o.outcome != refused
				found[o.found] = true
			}
		}
		grown = len(found) > before
	}
	kept := slices.DeleteFunc(slices.Clone(history), func(o operation) bool {
		return o.outcome == unknown && (o.kind == opRead || !found[o.value])
	})
	slices.SortStableFunc(kept, func(a, b operation) int { return cmp.Compare(a.call, b.call) })
	return kept
}
