package acts

import (
	"flag"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/quorate/quorate/etcdmember/table"
)

// go test -run RandomWalks -walk.seed S -walk.n 1 repeats the one walk that a failure names.
var (
	walkSeed = flag.Uint64("walk.seed", 1, "seed of the first random walk; each following has the next number")
	walkN    = flag.Int("walk.n", 1000, "how many random walks")
)

// walks is how many random walks there are: in `make test` as many as show that the deciders and the world still fit,
// in `make cases` all.
func walks() int {
	if testing.Short() {
		return min(*walkN, 200)
	}
	return *walkN
}

// walk goes through one random order of events with at most six faults, ends the faults, and waits for the world to be
// whole.
func walk(seed uint64, by variant) (w *world, err error) {
	w = newWorld(seed, by)
	defer func() {
		for _, v := range w.vms {
			v.breakOff()
		}
	}()
	defer func() {
		switch r := recover().(type) {
		case nil:
		case broken:
			err = r
		case limit:
			w.limited = true
		default:
			panic(fmt.Sprintf("walk %d: %v\n%s%s", seed, r, strings.Join(w.history, "\n"), w))
		}
	}()
	if w.chance(70) { // most begin with a cluster that is whole, the others with a first boot
		w.calm = true
		for range 40 {
			w.round(300 * time.Millisecond)
		}
		w.calm = false
		for _, v := range w.vms {
			if v.etcd != nil && w.chance(60) {
				v.etcd.snap()
			}
		}
		if w.chance(50) {
			for _, v := range w.vms {
				w.keepCopy(v.disk)
			}
		}
		w.log("begins")
	}
	events := 100 + w.random.IntN(200)
	if w.restless { // who gives orders and takes them back needs time to see what they did
		events *= 3
	}
	for range events {
		w.event()
	}
	w.settle()
	w.checkEnd()
	return w, nil
}

// TestRandomWalks drives the real deciders through random orders of events and looks for a broken invariant.
func TestRandomWalks(t *testing.T) {
	rows, leaderRows, injected := map[table.Row]int{}, map[table.Row]int{}, map[string]int{}
	whole, limited, forgetful, copied, stale, purged, passing, unfit := 0, 0, 0, 0, 0, 0, 0, 0
	for n := range walks() {
		seed := *walkSeed + uint64(n)
		w, err := walk(seed, asItIs)
		if err != nil {
			t.Fatalf("seed %d, %d places: %v\n%s%s", seed, w.places, err, strings.Join(w.history, "\n"), w)
		}
		switch {
		case w.limited:
			limited++
		case w.whole():
			whole++
		}
		forgetful += w.forgetful
		copied, stale, purged = copied+w.copied, stale+w.stale, purged+w.purged
		passing, unfit = passing+w.passing, unfit+w.unfit
		add(rows, w.rows)
		add(leaderRows, w.leaderRows)
		add(injected, w.injected)
	}
	t.Logf("%d walks from seed %d, %d whole at the end, %d at a known limit, %d starts of an older copy that lost "+
		"nothing\nrows %v\nbeside the leader %v\nfaults %v\n%d copies of the state arrived, %d of them too late for "+
		"the log\n%d archives purged, %d writes to a disk failed, %d sources of a restore were refused",
		walks(), *walkSeed, whole, limited, forgetful, rows, leaderRows, injected, copied, stale, purged, passing,
		unfit)
	if walks() >= 1000 {
		if purged == 0 {
			t.Error("no archive was purged")
		}
		if passing == 0 {
			t.Error("no write to a disk failed")
		}
		if copied == 0 {
			t.Error("no copy of the state arrived")
		}
		walkedEnough(t, rows, leaderRows, injected)
	}
}

func add[K comparable](sum, one map[K]int) {
	for k, n := range one {
		sum[k] += n
	}
}

// walkedEnough: walks that never come to a row or a fault prove nothing of it.
func walkedEnough(t *testing.T, rows, leaderRows map[table.Row]int, injected map[string]int) {
	t.Helper()
	for _, r := range []table.Row{0, 1, 2, 3, 4, 7, 8, 9, 10, 11, 12, 13, 14, 16, 17, 19, 22, 23, 24, 25, 26, 27, 28,
		29, 30,
		table.RowWithdrawing, table.RowLeft, table.RowPaused, table.RowRunning} {
		if rows[r] == 0 {
			t.Errorf("no walk came to row %s", r)
		}
	}
	for _, r := range []table.Row{40, 42, 43, 44, 45, 46, 47, 48, table.RowQuiet} {
		if leaderRows[r] == 0 {
			t.Errorf("no walk came to row %s on the leader", r)
		}
	}
	for _, f := range faultsOfWalk {
		if injected[f.name] == 0 {
			t.Errorf("no walk had the fault %q", f.name)
		}
	}
}

// TestAWalkIsRepeatable: a seed gives the same events each time.
func TestAWalkIsRepeatable(t *testing.T) {
	for seed := range uint64(20) {
		a, errA := walk(seed, asItIs)
		b, errB := walk(seed, asItIs)
		if fmt.Sprint(errA) != fmt.Sprint(errB) || !slices.Equal(a.history, b.history) || !maps.Equal(a.rows, b.rows) {
			t.Fatalf("seed %d: two walks differ", seed)
		}
	}
}
