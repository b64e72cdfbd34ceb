package test

import (
	"cmp"
	"slices"
	"testing"
	"time"
)

// worked is when a child worked, by the clock that all VMs share.
type worked struct {
	at time.Duration
	vm string
}

// turn is a time in which a VM worked without a pause of turnPause.
type turn struct {
	vm        string
	from, end time.Duration
}

const turnPause = time.Second

// turnsOf are the turns that moments of work make, in the order of their begins.
func turnsOf(all []worked) (turns []turn) {
	slices.SortFunc(all, func(a, b worked) int { return cmp.Compare(a.at, b.at) })
	newest := map[string]int{}
	for _, m := range all {
		if i, ok := newest[m.vm]; ok && m.at-turns[i].end < turnPause {
			turns[i].end = m.at
			continue
		}
		newest[m.vm] = len(turns)
		turns = append(turns, turn{m.vm, m.at, m.at})
	}
	return turns
}

// longestOverlap is the longest time for which two VMs worked, and whose turns they were; 0: never two did.
func longestOverlap(turns []turn) (most time.Duration, a, b turn) {
	for i, one := range turns {
		for _, other := range turns[i+1:] {
			if both := min(one.end, other.end) - other.from; one.vm != other.vm && both > most {
				most, a, b = both, one, other
			}
		}
	}
	return most, a, b
}

// changes is how often another VM worked than before.
func changes(turns []turn) (n int) {
	for i := range turns {
		if i > 0 && turns[i].vm != turns[i-1].vm {
			n++
		}
	}
	return n
}

func TestTheTimeInWhichTwoWorkIsFound(t *testing.T) {
	const step = 20 * time.Millisecond
	works := func(vm string, from, end time.Duration) (all []worked) {
		for at := from; at <= end; at += step {
			all = append(all, worked{at, vm})
		}
		return all
	}
	for name, c := range map[string]struct {
		all     []worked
		overlap time.Duration
		changes int
	}{
		"one alone": {works("a", 0, 10*time.Second), 0, 0},
		"one after the other": {append(works("a", 0, time.Second), works("b", time.Second+step, 2*time.Second)...),
			0, 1},
		"it comes back soon": {append(works("a", 0, time.Second), worked{3 * time.Second, "a"}), 0, 0},
		"two for 400 ms": {append(works("a", 0, time.Second), works("b", 600*time.Millisecond, 2*time.Second)...),
			400 * time.Millisecond, 1},
		"one within another's turn": {append(works("a", 0, 5*time.Second), works("b", time.Second, 4*time.Second)...),
			3 * time.Second, 1},
	} {
		turns := turnsOf(c.all)
		if got, _, _ := longestOverlap(turns); got != c.overlap || changes(turns) != c.changes {
			t.Errorf("%s: two for %s and %d changes, want %s and %d: %v", name, got, changes(turns), c.overlap, c.changes,
				turns)
		}
	}
}
