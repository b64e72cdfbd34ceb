package acts

import (
	"hash/fnv"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/quorate/quorate/etcdmember/leader"
	"github.com/quorate/quorate/etcdmember/table"
)

// skewOf is how far a VM's clock is from the true time: an hour behind, right, or an hour ahead.
func skewOf(instanceID string) time.Duration {
	h := fnv.New32a()
	h.Write([]byte(instanceID)) // never fails
	return time.Duration(int(h.Sum32()%3)-1) * time.Hour
}

// skewed is the agents as they are, each reading its own clock; what the record holds is of the true time.
func skewed() variant {
	return variant{
		facts: func(f *table.Facts) {
			clock := skewOf(f.Me.InstanceID)
			f.Now = f.Now.Add(clock)
			f.Compute = skewedCompute(f.Compute, clock)
			f.Tries.Starts.Last = shifted(f.Tries.Starts.Last, clock)
			f.Tries.Unfit.Until = shifted(f.Tries.Unfit.Until, clock)
			for key, b := range f.Beats { // a copy: when the store wrote it is the store's word
				f.Beats[key] = table.Beat{Written: b.Written, Seen: shifted(b.Seen, clock)}
			}
		},
		decide: table.Decide,
		beside: func(now time.Time, previous, ring leader.Ring) table.Plan {
			d := skewOf(ring.Me.InstanceID)
			return leader.Decide(now.Add(d), skewedRing(previous, d), skewedRing(ring, d))
		},
	}
}

func skewedCompute(c table.Compute, d time.Duration) table.Compute {
	c.First.Time, c.Second.Time = shifted(c.First.Time, d), shifted(c.Second.Time, d)
	c.Runs = maps.Clone(c.Runs)
	for id, r := range c.Runs {
		c.Runs[id] = table.Run{Kind: r.Kind, Since: shifted(r.Since, d)}
	}
	return c
}

// skewedRing is what the same replica's clock says of what it saw itself. When a snapshot was taken is the record's
// word.
func skewedRing(r leader.Ring, d time.Duration) leader.Ring {
	r.At, r.Compute, r.Members = shifted(r.At, d), skewedCompute(r.Compute, d), slices.Clone(r.Members)
	for i := range r.Members {
		m := &r.Members[i]
		m.UnreachableSince, m.MovedAt, m.DefragmentedAt = shifted(m.UnreachableSince, d), shifted(m.MovedAt, d),
			shifted(m.DefragmentedAt, d)
	}
	return r
}

func shifted(t time.Time, d time.Duration) time.Time {
	if t.IsZero() {
		return t
	}
	return t.Add(d)
}

// Case 16: with clocks an hour apart no invariant is broken, and the world still becomes whole, or says why not.
func TestRandomWalksWithClocksAnHourApart(t *testing.T) {
	whole := 0
	most := max(1, walks()/4)
	for n := range most {
		seed := *walkSeed + uint64(n)
		w, err := walk(seed, skewed())
		if err != nil {
			t.Fatalf("seed %d, %d places: %v\n%s%s", seed, w.places, err, strings.Join(w.history, "\n"), w)
		}
		if w.whole() {
			whole++
		}
	}
	t.Logf("%d walks, %d whole at the end", most, whole)
	if whole == 0 {
		t.Error("no walk ended whole")
	}
}
