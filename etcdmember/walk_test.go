package etcdmember

import (
	"flag"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/quorate/quorate/internal/record"
	"github.com/quorate/quorate/internal/replica"
)

// go test -run RandomWalks -walk.seed S -walk.n 1 repeats the one walk that a failure names.
var (
	walkSeed = flag.Uint64("walk.seed", 1, "seed of the first random walk; each following has the next number")
	walkN    = flag.Int("walk.n", 1000, "how many random walks")
)

// walk goes through one random order of events with at most six faults, ends the faults, and waits for the world to be whole.
func walk(seed uint64, by variant) (w *world, err error) {
	w = newWorld(seed, by)
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
		if w.chance(50) {
			for _, v := range w.vms {
				w.keepCopy(v.disk)
			}
		}
		w.log("begins")
	}
	for range 100 + w.random.IntN(200) {
		w.event()
	}
	w.settle()
	w.checkEnd()
	return w, nil
}

// TestRandomWalks drives the real deciders through random orders of events and looks for a broken invariant.
func TestRandomWalks(t *testing.T) {
	rows, besideRows, injected := map[Row]int{}, map[Row]int{}, map[string]int{}
	whole, limited, forgetful := 0, 0, 0
	for n := range *walkN {
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
		add(rows, w.rows)
		add(besideRows, w.besideRows)
		add(injected, w.injected)
	}
	t.Logf("%d walks from seed %d, %d whole at the end, %d at a known limit, %d starts of an older copy that lost nothing\nrows %v\nbeside the leader %v\nfaults %v", *walkN, *walkSeed, whole, limited, forgetful, rows, besideRows, injected)
	if *walkN >= 1000 {
		walkedEnough(t, rows, besideRows, injected)
	}
}

func add[K comparable](sum, one map[K]int) {
	for k, n := range one {
		sum[k] += n
	}
}

// walkedEnough: walks that never come to a row or a fault prove nothing of it.
func walkedEnough(t *testing.T, rows, besideRows map[Row]int, injected map[string]int) {
	t.Helper()
	for _, r := range []Row{0, 1, 2, 3, 4, 7, 8, 9, 10, 11, 12, 13, 14, 16, 17, 19, 20, 22, 23, 24, 25, 26, 27, 28, 29, 30, RowStoppedID, RowLeft, RowPaused, RowRunning} {
		if rows[r] == 0 {
			t.Errorf("no walk came to row %s", r)
		}
	}
	for _, r := range []Row{40, 42, 43, 44, 45, RowQuiet} {
		if besideRows[r] == 0 {
			t.Errorf("no walk came to row %s beside the leader", r)
		}
	}
	for _, f := range faultsOfWalk {
		if injected[f.name] == 0 {
			t.Errorf("no walk had the fault %q", f.name)
		}
	}
}

// TestPlantedFaultsAreFound: each planted fault must break its invariant, or the walks prove nothing.
func TestPlantedFaultsAreFound(t *testing.T) {
	for _, c := range planted {
		t.Run(c.name, func(t *testing.T) {
			const most = 3000
			for seed := c.from + 1; seed <= c.from+most; seed++ {
				if _, err := walk(seed, c.by); err != nil {
					if !strings.HasPrefix(err.Error(), c.breaks+":") {
						t.Fatalf("seed %d found %v, want a broken %s", seed, err, c.breaks)
					}
					t.Logf("seed %d: %v", seed, err)
					return
				}
			}
			t.Errorf("%d walks did not find it", most)
		})
	}
}

var planted = []struct {
	name, breaks string
	from         uint64 // a seed shortly before the first walk that finds it
	by           variant
}{
	{"an empty disk without a quorum seeds instead of waiting (row 24)", "S1", 6, variant{decide: func(now time.Time, o Observation) Plan {
		p := Decide(now, o)
		if p.Row == 24 && p.Act == ActWait {
			return Plan{Row: 24, Act: ActClaim, Epoch: o.Names.NewestEpoch + 1, Source: record.Source{Kind: record.SourceEmpty}}
		}
		return p
	}, beside: DecideBesideLeader}},
	{"a rolled-back disk starts (L3)", "S2", 0, variant{decide: func(now time.Time, o Observation) Plan {
		if o.Local == L3 {
			o.Local = L1
		}
		return Decide(now, o)
	}, beside: DecideBesideLeader}},
	{"what the leader says of an older copy is not heard", "S2", 0, variant{decide: Decide, beside: DecideBesideLeader, facts: func(f *Facts) {
		for i := range f.Answers {
			f.Answers[i].Acknowledged = 0
		}
	}}},
	{"an entry whose directory is gone is used again", "S2", 0, variant{decide: func(now time.Time, o Observation) Plan {
		if o.Phase == PhaseStarted && o.Local == L0 && o.Record == Rf && o.Remote == Quorum && o.Listed && o.Names.MemberID != 0 {
			return Plan{Row: 23, Act: ActStartJoined, MemberID: o.Names.MemberID}
		}
		return Decide(now, o)
	}, beside: DecideBesideLeader}},
	{"a dead learner is promoted", "S3", 0, variant{decide: Decide, beside: func(now time.Time, previous, ring Ring) Plan {
		for _, m := range ring.Members {
			if m.Learner && !m.StreamsActive {
				return Plan{Row: 44, Act: ActPromote, MemberID: m.ID}
			}
		}
		return DecideBesideLeader(now, previous, ring)
	}}},
	{"a voter is removed because it is unreachable (row 42)", "S3", 0, variant{decide: Decide, beside: func(now time.Time, previous, ring Ring) Plan {
		p := DecideBesideLeader(now, previous, ring)
		for _, m := range ring.Members {
			if p.Act == ActKeep && !m.Learner && m.ID != ring.Leader && !m.RecentActive {
				return Plan{Row: 42, Act: ActRemoveMember, MemberID: m.ID}
			}
		}
		return p
	}}},
	{"a join stands still without a word", "S5", 0, variant{decide: func(now time.Time, o Observation) Plan {
		p := Decide(now, o)
		if p.Act == ActAddLearner {
			return Plan{Row: 23, Act: ActWait}
		}
		return p
	}, beside: DecideBesideLeader}},
	{"the second of two replicas is promoted", "S3", 0, variant{decide: Decide, beside: func(now time.Time, previous, ring Ring) Plan {
		p := DecideBesideLeader(now, previous, ring)
		for _, m := range ring.Members {
			if p.Act == ActKeep && m.Learner && m.StreamsActive {
				return Plan{Row: 44, Act: ActPromote, MemberID: m.ID}
			}
		}
		return p
	}}},
	{"a voter leaves by order although the rest would be no quorum", "S3", 150, variant{decide: Decide, beside: func(now time.Time, previous, ring Ring) Plan {
		p := DecideBesideLeader(now, previous, ring)
		v := besideViewOf(now, previous, ring)
		for _, m := range ring.Members {
			if place, ok := v.placeOf(m); ok && p.Blocked != nil && p.Blocked.Name == "leave-needs-quorum" && v.h.orders.left(place) != nil {
				return Plan{Row: 45, Act: ActRemoveMember, MemberID: m.ID}
			}
		}
		return p
	}}},
	{"two voters by accident are made one without an order", "S3", 0, variant{decide: Decide, beside: func(now time.Time, previous, ring Ring) Plan {
		p := DecideBesideLeader(now, previous, ring)
		for _, m := range ring.Members {
			if len(ring.Members) == 2 && !m.Learner && m.ID != ring.Leader && p.Row == 49 {
				return Plan{Row: 45, Act: ActRemoveMember, MemberID: m.ID}
			}
		}
		return p
	}}},
	{"a restore reads a surviving directory up to the commit index that was saved", "S2", 2260, variant{decide: Decide, beside: DecideBesideLeader,
		reads: func(commit, _ int) int { return commit }}},
	{"a restore loses the end of its snapshot", "S2", 0, variant{decide: Decide, beside: DecideBesideLeader,
		reads: func(_, last int) int { return last * 9 / 10 }}},
	{"an epoch is closed while others could still serve", "S1", 340, variant{decide: func(now time.Time, o Observation) Plan {
		o.Loud = nil
		return Decide(now, o)
	}, beside: DecideBesideLeader}},
	{"an id in stopped/ starts again, and so does an epoch that was closed", "S1", 0, variant{decide: func(now time.Time, o Observation) Plan {
		if o.Record == Rc && o.Local == L1 && o.Remote != Quorum {
			return Plan{Row: 28, Act: ActStart, Epoch: o.Names.DiskEpochNumber, MemberID: o.Names.MemberID}
		}
		return Decide(now, o)
	}, beside: DecideBesideLeader}},
	{"row 22 takes any directory for enough", "S2", 320, variant{decide: func(now time.Time, o Observation) Plan {
		if o.Survivors22 == PolicyNotEnough && !o.Running {
			return Plan{Row: 22, Act: ActOrderRestore, Order: &record.RestoreOrder{Ends: o.Names.FormedEpoch, Replica: placeNamed(o.Names.Place),
				From: record.Source{Kind: record.SourceDirectory, MemberID: o.Names.MemberID}}}
		}
		return Decide(now, o)
	}, beside: DecideBesideLeader}},
	{"a caught-up learner is never promoted", "S5", 0, variant{decide: Decide, beside: func(now time.Time, previous, ring Ring) Plan {
		p := DecideBesideLeader(now, previous, ring)
		if p.Act == ActPromote {
			return Plan{Row: RowQuiet, Act: ActKeep}
		}
		return p
	}}},
}

func placeNamed(name string) replica.Place {
	i := slices.IndexFunc(places, func(p replica.Place) bool { return p.String() == name })
	return places[i]
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
