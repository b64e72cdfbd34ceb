package snapshot

import (
	"slices"
	"testing"
	"time"

	"github.com/quorate/quorate/etcdmember/table"
	"github.com/quorate/quorate/internal/record"
)

// due is a cluster of three, formed three hours before t0, whose newest snapshot is some time ago; a leads.
func due(ago time.Duration) Facts {
	v := seeded()
	v.Epochs[0].Outcome.Time = t0.Add(-3 * time.Hour)
	if ago > 0 {
		v.Taken = []record.Taken{{Name: "1/5-x", Epoch: 1, Revision: 5, Time: t0.Add(-ago)}}
	}
	return Facts{Now: t0, Interval: time.Hour, Record: v, Me: 0xb1, Leader: 0xa1,
		Members: []table.Member{entry(pa, "101", 0xa1), entry(pc, "103", 0xc3), entry(pb, "102", 0xb1)}}
}

func order(o record.Order, number uint64, ago time.Duration) record.Order {
	o.Number, o.Time = number, t0.Add(-ago)
	return o
}

func TestDecideSnapshot(t *testing.T) {
	const m = time.Minute
	leave, shrink := record.Order{Kind: record.OrderLeave, Place: &pc}, record.Order{Kind: record.OrderReplicas,
		Replicas: 2}
	withdraw := func(n uint64) record.Order { return record.Order{Kind: record.OrderWithdraw, Withdraws: n} }
	orders := func(f Facts, list ...record.Order) Facts { f.Record.Orders = list; return f }
	as := func(f Facts, id record.MemberID) Facts { f.Me = id; return f }
	change := func(f Facts, c func(*Facts)) Facts { c(&f); return f }
	for name, c := range map[string]struct {
		f    Facts
		at   time.Duration // after t0
		none bool
		why  string
	}{
		"the first follower, an interval after the newest": {f: due(50 * m), at: 10 * m, why: WhySchedule},
		"the second follower, a step later":                {f: as(due(50*m), 0xc3), at: 20 * m, why: WhySchedule},
		"the leader last":                                  {f: as(due(50*m), 0xa1), at: 30 * m, why: WhySchedule},
		"overdue":                                          {f: due(2 * time.Hour), at: -60 * m, why: WhySchedule},
		"the first of an epoch, soon":                      {f: due(0), at: -170 * m, why: WhySchedule},
		"the first of an epoch, by a shorter interval": {f: change(due(0),
			func(f *Facts) { f.Interval = 5 * m }), at: -175 * m, why: WhySchedule},
		"one of an older epoch does not count": {f: change(due(10*m),
			func(f *Facts) { f.Record.Taken[0].Epoch = 9 }), at: -170 * m, why: WhySchedule},
		"one of the future does not count": {f: change(due(50*m), func(f *Facts) {
			f.Record.Taken = append(f.Record.Taken, record.Taken{Name: "1/6-x", Epoch: 1, Revision: 6,
				Time: t0.AddDate(1, 0, 0)})
		}), at: 10 * m, why: WhySchedule},
		"a learner has no turn": {f: change(due(50*m), func(f *Facts) { f.Members[2].Learner = true }),
			none: true, why: WhySchedule},
		"a pair: the voter itself": {f: change(as(due(50*m), 0xa1), func(f *Facts) {
			f.Members = f.Members[:2]
			f.Members[1].Learner = true
		}), at: 10 * m, why: WhySchedule},
		"a member that never started has no turn": {f: change(as(due(50*m), 0xc3),
			func(f *Facts) { f.Members[2].Name = "" }), at: 10 * m, why: WhySchedule},
		"no leader, no turn": {f: change(due(50*m), func(f *Facts) { f.Leader = 0 }),
			none: true, why: WhySchedule},
		"no formed epoch": {f: change(due(50*m),
			func(f *Facts) { f.Record.Epochs[0].Outcome = nil }), none: true},
		"a closed epoch": {f: change(due(50*m),
			func(f *Facts) { f.Record.Epochs[0].Closed = &record.Closed{} }), none: true},

		"a replica that was ordered to leave has left": {f: change(orders(due(20*m), order(leave, 1, m)),
			func(f *Facts) { f.Members = slices.Delete(f.Members, 1, 2) }), at: 40 * m, why: WhySchedule},
		"one that was has no name yet": {f: change(orders(due(20*m), order(leave, 1, m)),
			func(f *Facts) { f.Members[1].Name = "" }), at: -1 * m, why: "before order 1 (leave)"},
		"before a replica leaves": {f: orders(due(20*m), order(leave, 1, m)), at: -1 * m,
			why: "before order 1 (leave)"},
		"before a replica leaves, second follower": {f: as(orders(due(20*m), order(leave, 1, m)), 0xc3), at: 0,
			why: "before order 1 (leave)"},
		"before there are fewer": {f: orders(due(20*m), order(shrink, 4, m)), at: -1 * m,
			why: "before order 4 (replicas)"},
		"not where the newest is young enough": {f: orders(due(14*m), order(leave, 1, 0)), at: 46 * m,
			why: WhySchedule},
		"not where it was taken after the order": {f: orders(due(2*m), order(leave, 1, 30*m)), at: 58 * m,
			why: WhySchedule},
		"not before there are more": {f: orders(due(20*m),
			order(record.Order{Kind: record.OrderReplicas, Replicas: 5}, 1, m)), at: 40 * m, why: WhySchedule},
		"not before a pause": {f: orders(due(20*m),
			order(record.Order{Kind: record.OrderPause}, 1, m)), at: 40 * m, why: WhySchedule},
		"not before what is done": {f: orders(due(20*m),
			func() record.Order { o := order(leave, 1, m); o.Done = &record.Done{}; return o }()), at: 40 * m,
			why: WhySchedule},
		"not before what was withdrawn": {f: orders(due(20*m), order(leave, 1, m),
			order(withdraw(1), 2, 0)), at: 40 * m, why: WhySchedule},
		"before a leave whose withdrawal was withdrawn": {f: orders(due(20*m), order(leave, 1, m),
			order(withdraw(1), 2, m), order(withdraw(2), 3, 0)), at: -1 * m, why: "before order 1 (leave)"},
		"not before a number that a newer one took back": {f: orders(due(20*m), order(shrink, 1, 2*m),
			order(record.Order{Kind: record.OrderReplicas, Replicas: 3}, 2, m)), at: 40 * m, why: WhySchedule},
		"an order does not put off what is due since": {f: orders(due(90*m), order(leave, 1, m)), at: -30 * m,
			why: WhySchedule},
	} {
		t.Run(name, func(t *testing.T) {
			got := Decide(c.f)
			if c.none != got.At.IsZero() || !c.none && !got.At.Equal(t0.Add(c.at)) || got.Why != c.why {
				t.Errorf("at %s after t0, why %q: want %s, none %v, why %q", got.At.Sub(t0), got.Why, c.at, c.none,
					c.why)
			}
		})
	}
}

// Without a quorum nobody saves one, and what there is is what a person asks the status for.
func TestTheNewestSnapshotIsKnownWithoutALeader(t *testing.T) {
	f := due(50 * time.Minute)
	f.Leader = 0
	if got := Decide(f); got.Newest != Decide(due(50*time.Minute)).Newest || got.Newest.Name == "" ||
		!got.At.IsZero() || !got.Due.IsZero() {
		t.Errorf("got %+v", got)
	}
}

// TestOneReplicaSavesAtATime lets each of three replicas look all the time: the first whose turn comes saves, and
// nobody else's comes.
func TestOneReplicaSavesAtATime(t *testing.T) {
	f := due(59 * time.Minute)
	savers := map[record.MemberID]int{}
	for f.Now = t0; f.Now.Before(t0.Add(10 * time.Hour)); f.Now = f.Now.Add(10 * time.Second) {
		for _, f.Me = range []record.MemberID{0xa1, 0xb1, 0xc3} {
			if turn := Decide(f); !turn.At.IsZero() && !f.Now.Before(turn.At) {
				savers[f.Me]++
				f.Record.Taken = append(f.Record.Taken, record.Taken{Name: "x", Epoch: 1, Time: f.Now})
			}
		}
	}
	if savers[0xb1] != 10 || len(savers) != 1 {
		t.Errorf("savings by each: %v: want 10 by the first follower", savers)
	}
}

func TestTheRowsGetTheNewestSnapshot(t *testing.T) {
	v := seeded()
	if got := NewestOfFormed(v, t0); got != nil {
		t.Errorf("without any: %+v", got)
	}
	v.Taken = []record.Taken{{Name: "1/9-a", Epoch: 1, Revision: 9, Time: t0.Add(-time.Hour)},
		{Name: "1/8-b", Epoch: 1, Revision: 8, Time: t0.Add(-2 * time.Hour)}}
	want := table.SnapshotRef{Name: "1/9-a", Epoch: 1, Revision: 9, Time: t0.Add(-time.Hour)}
	if got := NewestOfFormed(v, t0); got == nil || *got != want {
		t.Errorf("got %+v, want %+v", got, want)
	}
	v.Epochs = append(v.Epochs, record.Epoch{Number: 2, Claim: &record.Claim{Token: "t2", MaxLearners: 4,
		Seeder: record.Seeder{Place: pa, InstanceID: "101"},
		Source: record.Source{Kind: record.SourceSnapshot, Order: 1}}})
	if got := NewestOfFormed(v, t0); got == nil || *got != want {
		t.Errorf("with a claim: got %+v, want %+v", got, want)
	}
	v.Epochs[1].Outcome = &record.Outcome{Formed: &record.Formed{ClusterID: 0xc2, MemberID: 0xa2}}
	if got := NewestOfFormed(v, t0); got != nil {
		t.Errorf("of a new epoch: %+v, want none", got)
	}
}

// A snapshot goes before a change that a person ordered whose clock is ahead, and it is due now.
func TestASnapshotBeforeAnOrderOfTheFutureIsDueNow(t *testing.T) {
	f := due(20 * time.Minute)
	f.Record.Orders = []record.Order{{Number: 1, Kind: record.OrderLeave, Place: &pc, Time: t0.Add(time.Hour)}}
	if got := Decide(f); got.At.After(t0) || got.Why == WhySchedule {
		t.Errorf("%+v", got)
	}
}
