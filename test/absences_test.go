package test

import (
	"fmt"
	"strings"
	"testing"
	"time"
)

// absence is a VM that chaos took away: lost, brought back, and whole again.
type absence struct {
	vm, kind          string
	lost, back, whole time.Time
}

// repair is from the VM's return to its replica's.
func (a absence) repair() time.Duration { return a.whole.Sub(a.back) }

// absences are all of one cluster.
type absences []absence

// most is how many VMs were away at the same moment, at the worst one between two times.
func (a absences) most(from, to time.Time) int {
	most := 0
	for _, moment := range append(a.lostBetween(from, to), from) {
		n := 0
		for _, b := range a {
			if !moment.Before(b.lost) && moment.Before(b.whole) {
				n++
			}
		}
		most = max(most, n)
	}
	return most
}

func (a absences) lostBetween(from, to time.Time) (moments []time.Time) {
	for _, b := range a {
		if b.lost.After(from) && b.lost.Before(to) {
			moments = append(moments, b.lost)
		}
	}
	return moments
}

// gap is a time without a successful write.
type gap struct{ from, to time.Time }

// slowRepair is from which time on a repair is reported by itself.
const slowRepair = 5 * time.Second

// tell says how long the repairs and the writes took: those for which at no moment more VMs were away than the cluster
// bears, and the others, which had to wait for a VM's return. A VM that is frozen or cut off from one other alone
// counts as away, too.
func (a absences) tell(bears int, stalls []gap) string {
	var repairs, waits [2]spread
	var slow []string
	beyond := func(from, to time.Time) int {
		if a.most(from, to) > bears {
			return 1
		}
		return 0
	}
	for _, b := range a {
		i := beyond(b.back, b.whole)
		repairs[i] = append(repairs[i], b.repair())
		if i == 0 && b.repair() >= slowRepair {
			slow = append(slow, fmt.Sprintf("\n  %s: %s: %s", b.vm, b.kind, b.repair().Round(10*time.Millisecond)))
		}
	}
	for _, g := range stalls {
		i := beyond(g.from, g.to)
		waits[i] = append(waits[i], g.to.Sub(g.from))
	}
	return fmt.Sprintf("repairs, from the VM's return to a voter that waits for nothing, with a quorum left: %s\n"+
		"and where more than %d were away at once: %s\ntimes of %s and more without a write, with a quorum left: "+
		"%s\nand where more were away: %s%s",
		repairs[0], bears, repairs[1], stallFrom, waits[0], waits[1], strings.Join(slow, ""))
}

func TestAbsencesAreCounted(t *testing.T) {
	t0 := time.Now()
	at := func(s int) time.Time { return t0.Add(time.Duration(s) * time.Second) }
	a := absences{{"a", "x", at(0), at(4), at(6)}, {"b", "y", at(5), at(8), at(20)}, {"c", "z", at(30), at(31), at(32)}}
	for _, tc := range [][3]int{{0, 1, 1}, {0, 5, 1}, {0, 7, 2}, {5, 6, 2}, {6, 7, 1}, {7, 29, 1}, {21, 29, 0},
		{21, 40, 1}} {
		if got := a.most(at(tc[0]), at(tc[1])); got != tc[2] {
			t.Errorf("from %d to %d: %d away, want %d", tc[0], tc[1], got, tc[2])
		}
	}
	text := a.tell(1, []gap{{at(5), at(7)}, {at(30), at(33)}})
	for _, want := range []string{"with a quorum left: 2; min 1s, median 1s, p90 1s, max 12s",
		"more than 1 were away at once: 1; min 2s", "quorum left: 1; min 3s", "more were away: 1; min 2s",
		"b: y: 12s"} {
		if !strings.Contains(text, want) {
			t.Errorf("no %q in:\n%s", want, text)
		}
	}
}
