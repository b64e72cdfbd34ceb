package leader

import (
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/quorate/quorate/etcdmember/table"
	"github.com/quorate/quorate/internal/record"
)

var clocks = map[string]time.Duration{"an hour behind": -time.Hour, "right": 0, "an hour ahead": time.Hour}

// The instance that a proof is about is judged by this VM's own clock alone: two lists are ten seconds apart or they
// prove nothing.
func TestTwoListsAreTwoListsWhateverTheClocksSay(t *testing.T) {
	for name, d := range clocks {
		t.Run(name, func(t *testing.T) {
			for gap, want := range map[time.Duration]bool{10 * time.Second: true, 9 * time.Second: false} {
				r := threeVoters()
				quietB(time.Minute)(&r)
				goneB(&r)
				diskGone(&r)
				r.Compute.First.Time = r.Compute.Second.Time.Add(-gap)
				p := Decide(t0.Add(d), ringOfClock(r, d), ringOfClock(r, d))
				if (p.Act == table.ActRemoveMember) != want {
					t.Errorf("lists %s apart: %s, want a removal: %t", gap, p.Act, want)
				}
			}
		})
	}
}

// Nothing that an order says of a time does harm: a pause holds back or does not, and an order to leave waits a minute
// or goes at once; three to two always waits for a snapshot that is young by the leader's own clock.
func TestOrdersOfAnotherClock(t *testing.T) {
	until := t0.Add(10 * time.Minute)
	for name, d := range clocks {
		t.Run(name, func(t *testing.T) {
			paused := table.OrdersOf([]record.Order{{Number: 1, Kind: record.OrderPause, Until: &until}}, 1,
				t0.Add(d)).Paused
			if paused != (d <= 0) {
				t.Errorf("paused: %t", paused)
			}
			r := ringOf([]RingMember{mA, mB}, nil)
			ringOrder(record.Order{Kind: record.OrderReplicas, Replicas: 2, Time: t0.Add(d)})(&r)
			if p := Decide(t0, r, r); p.Act != table.ActWait || p.Blocked.Name != "snapshot-first" {
				t.Errorf("three to two without a snapshot: %+v", p)
			}
			r = threeVoters()
			ringOrder(record.Order{Kind: record.OrderLeave, Place: &pb, Time: t0.Add(d)})(&r)
			later := r
			later.At = t0.Add(leavePatience)
			if p := Decide(later.At, later, later); p.Act != table.ActRemoveMember {
				t.Errorf("a minute after an order to leave: %+v", p)
			}
		})
	}
}

// ringOfClock is the ring as an agent reads it whose clock is wrong by d.
func ringOfClock(r Ring, d time.Duration) Ring {
	shift := func(t *time.Time) {
		if !t.IsZero() {
			*t = t.Add(d)
		}
	}
	r.Compute.Runs, r.Members = maps.Clone(r.Compute.Runs), slices.Clone(r.Members)
	shift(&r.At)
	shift(&r.Compute.First.Time)
	shift(&r.Compute.Second.Time)
	for id, run := range r.Compute.Runs {
		shift(&run.Since)
		r.Compute.Runs[id] = run
	}
	for i := range r.Members {
		m := &r.Members[i]
		shift(&m.UnreachableSince)
		shift(&m.MovedAt)
		shift(&m.DefragmentedAt)
	}
	return r
}
