package acts

import (
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/quorate/quorate/etcdmember/leader"
	"github.com/quorate/quorate/etcdmember/table"
	"github.com/quorate/quorate/internal/record"
	"github.com/quorate/quorate/internal/replica"
)

// TestPlantedFaultsAreFound: each planted fault must break its invariant, whatever else it breaks, or the walks prove
// nothing. With -walk.seed and -walk.n it looks for a walk that finds one of them, from that seed on.
func TestPlantedFaultsAreFound(t *testing.T) {
	faults := planted
	// some take thousands of walks; TestTheHolesOpenWithoutTheirRules tells the same step by step
	if os.Getenv("QUORATE_CHAOS") != "" || *walkSeed > 1 {
		faults = slices.Concat(planted, reverted)
	}
	for _, c := range faults {
		t.Run(c.name, func(t *testing.T) {
			most := uint64(3000)
			if *walkSeed > 1 {
				c.from, most = *walkSeed-1, uint64(*walkN)
			}
			for seed := c.from + 1; seed <= c.from+most; seed++ {
				_, err := walk(seed, c.by)
				if err != nil && strings.HasPrefix(err.Error(), c.breaks+":") { // it may break another before
					t.Logf("seed %d: %v", seed, err)
					return
				}
			}
			t.Errorf("%d walks did not find it", most)
		})
	}
}

// plantedFault is one thing that is wrong with the deciders, and the invariant that it breaks.
type plantedFault struct {
	name, breaks string
	from         uint64 // a seed shortly before the first walk that finds it
	by           variant
}

var planted = []plantedFault{
	{"an empty disk without a quorum seeds instead of waiting (row 24)", "S1", 0,
		variant{decide: func(now time.Time, o table.Observation) table.Plan {
			p := table.Decide(now, o)
			if p.Row == 24 && p.Act == table.ActWait {
				return table.Plan{Row: 24, Act: table.ActClaim, Epoch: o.Names.NewestEpoch + 1,
					Source: record.Source{Kind: record.SourceEmpty}}
			}
			return p
		}, beside: leader.Decide}},
	{"a rolled-back disk starts (L3)", "S2", 0, variant{decide: func(now time.Time, o table.Observation) table.Plan {
		if o.Local == table.L3 {
			o.Local = table.L1
		}
		return table.Decide(now, o)
	}, beside: leader.Decide}},
	{"what the leader says of an older copy is not heard", "S2", 1015,
		variant{decide: table.Decide, beside: leader.Decide, facts: func(f *table.Facts) {
			for i := range f.Answers {
				f.Answers[i].Acknowledged = 0
			}
		}}},
	{"an entry whose directory is gone is used again", "S2", 79,
		variant{decide: func(now time.Time, o table.Observation) table.Plan {
			if o.Phase == table.PhaseStarted && o.Local == table.L0 && o.Record == table.Rf &&
				o.Remote == table.Quorum && o.Listed &&
				o.Names.MemberID != 0 {
				return table.Plan{Row: 23, Act: table.ActStartJoined, MemberID: o.Names.MemberID}
			}
			return table.Decide(now, o)
		}, beside: leader.Decide}},
	{"a dead learner is promoted", "S3", 0, variant{decide: table.Decide, beside: func(now time.Time, previous,
		ring leader.Ring) table.Plan {
		for _, m := range ring.Members {
			if m.Learner && !m.StreamsActive {
				return table.Plan{Row: 44, Act: table.ActPromote, MemberID: m.ID}
			}
		}
		return leader.Decide(now, previous, ring)
	}}},
	{"a voter is removed because it is unreachable (row 42)", "S3", 0,
		variant{decide: table.Decide, beside: func(now time.Time, previous, ring leader.Ring) table.Plan {
			p := leader.Decide(now, previous, ring)
			for _, m := range ring.Members {
				if p.Act == table.ActKeep && !m.Learner && m.ID != ring.Leader && !m.RecentActive {
					return table.Plan{Row: 42, Act: table.ActRemoveMember, MemberID: m.ID}
				}
			}
			return p
		}}},
	{"a join stands still without a word", "S5", 0, variant{decide: func(now time.Time,
		o table.Observation) table.Plan {
		p := table.Decide(now, o)
		if p.Act == table.ActAddLearner {
			return table.Plan{Row: 23, Act: table.ActWait}
		}
		return p
	}, beside: leader.Decide}},
	{"the second of two replicas is promoted", "S3", 0, variant{decide: table.Decide,
		beside: func(now time.Time, previous,
			ring leader.Ring) table.Plan {
			p := leader.Decide(now, previous, ring)
			for _, m := range ring.Members {
				if p.Act == table.ActKeep && m.Learner && m.StreamsActive {
					return table.Plan{Row: 44, Act: table.ActPromote, MemberID: m.ID}
				}
			}
			return p
		}}},
	{"a voter leaves by order although the rest would be no quorum", "S3", 343,
		variant{decide: table.Decide, beside: func(now time.Time, previous, ring leader.Ring) table.Plan {
			p := leader.Decide(now, previous, ring)
			orders := table.OrdersOf(ring.Record.Orders, record.NumberOf(ring.Record.NewestFormed()), now)
			for _, m := range ring.Members {
				place, _, ok := table.ParseMemberName(m.Name)
				if ok && p.Blocked != nil && p.Blocked.Name == "leave-needs-quorum" && orders.Left(place) != nil {
					return table.Plan{Row: 45, Act: table.ActRemoveMember, MemberID: m.ID}
				}
			}
			return p
		}}},
	{"two voters by accident are made one without an order", "S3", 34,
		variant{decide: table.Decide, beside: func(now time.Time, previous, ring leader.Ring) table.Plan {
			p := leader.Decide(now, previous, ring)
			for _, m := range ring.Members {
				if len(ring.Members) == 2 && !m.Learner && m.ID != ring.Leader && p.Row == 49 {
					return table.Plan{Row: 45, Act: table.ActRemoveMember, MemberID: m.ID}
				}
			}
			return p
		}}},
	{"a restore loses the end of its snapshot", "S2", 0, variant{decide: table.Decide, beside: leader.Decide,
		reads: func(_, last int) int { return last * 9 / 10 }}},
	{"an epoch is closed while others could still serve", "S1", 68,
		variant{decide: func(now time.Time, o table.Observation) table.Plan {
			o.Unproven = nil
			return table.Decide(now, o)
		}, beside: leader.Decide}},
	{"an id in stopped/ starts again, and so does an epoch that was closed", "S1", 12,
		variant{decide: func(now time.Time, o table.Observation) table.Plan {
			if o.Record == table.Rc && o.Local == table.L1 && o.Remote != table.Quorum {
				return table.Plan{Row: 28, Act: table.ActStart, Epoch: o.Names.DiskEpochNumber,
					MemberID: o.Names.MemberID}
			}
			return table.Decide(now, o)
		}, beside: leader.Decide}},
	{"row 22 takes any directory for enough", "S2", 915, variant{decide: func(now time.Time,
		o table.Observation) table.Plan {
		if o.Survivors22 == table.PolicyNotEnough && !o.Running {
			return table.Plan{Row: 22, Act: table.ActOrderRestore,
				Order: &record.RestoreOrder{Ends: o.Names.FormedEpoch,
					Replica: placeNamed(o.Names.Place),
					From:    record.Source{Kind: record.SourceDirectory, MemberID: o.Names.MemberID}}}
		}
		return table.Decide(now, o)
	}, beside: leader.Decide}},
	{"an archive goes by a snapshot of any age", "S4", 4703, variant{decide: table.Decide,
		beside: leader.Decide,
		purge: func(f *table.PurgeFacts) {
			for i := range f.Snapshots {
				late := f.Now.Add(2 * table.ArchiveAge)
				f.Snapshots[i].Time, f.Snapshots[i].Written = late, late
			}
		}}},
	{"a caught-up learner is never promoted", "S5", 0, variant{decide: table.Decide,
		beside: func(now time.Time, previous,
			ring leader.Ring) table.Plan {
			p := leader.Decide(now, previous, ring)
			if p.Act == table.ActPromote {
				return table.Plan{Row: table.RowQuiet, Act: table.ActKeep}
			}
			return p
		}}},
	{"NOSPACE is disarmed without a look at the sizes", "S5", 0,
		besides(func(now time.Time, previous, ring leader.Ring) (table.Plan, bool) {
			n := slices.IndexFunc(ring.Alarms, func(a table.Alarm) bool { return a.Kind == table.AlarmNoSpace })
			if n < 0 {
				return table.Plan{}, false
			}
			return table.Plan{Row: 48, Act: table.ActDisarm, Alarm: ring.Alarms[n],
				MemberID: ring.Alarms[n].MemberID}, true
		})},
	{"NOSPACE stays, and so nobody writes", "S5", 0, besides(func(now time.Time, previous, ring leader.Ring) (table.Plan,
		bool) {
		p := leader.Decide(now, previous, ring)
		return table.Plan{Row: table.RowQuiet, Act: table.ActKeep}, p.Row == 48
	})},
	{"a learner does not defragment itself (row 48)", "S5", 0, variant{decide: table.Decide, beside: leader.Decide,
		staysFull: true}},
	{"the leader is defragmented as any other (row 48)", "S3", 17, seenOnLeader(func(r *leader.Ring) {
		for i := range r.Members {
			if len(r.Members) > 1 && r.Members[i].ID != r.Leader {
				r.Members[i].DBSize = 0
				r.Leader = r.Members[i].ID
				return
			}
		}
	})},
	{"databases are defragmented while a copy of the state is on its way", "S3", 1129,
		seenOnLeader(func(r *leader.Ring) { r.SnapshotInFlight = false })},
	{"CORRUPT is disarmed to get writes back", "S2", 17, besides(func(now time.Time, previous,
		ring leader.Ring) (table.Plan, bool) {
		n := slices.IndexFunc(ring.Alarms, func(a table.Alarm) bool { return a.Kind == table.AlarmCorrupt })
		if n < 0 {
			return table.Plan{}, false
		}
		return table.Plan{Row: 46, Act: table.ActDisarm, Alarm: ring.Alarms[n], MemberID: ring.Alarms[n].MemberID}, true
	})},
	{"row 46 believes etcd without the others' hashes", "S3", 3410, seenOnLeader(func(r *leader.Ring) {
		for i := range r.Members {
			r.Members[i].Hash, r.Members[i].HashRevision = 1, 1
			if slices.Contains(r.Alarms, table.Alarm{MemberID: r.Members[i].ID, Kind: table.AlarmCorrupt}) {
				r.Members[i].Hash = 2
			}
		}
	})},
	{"row 47 does not stand still", "S2", 17, seenOnLeader(func(r *leader.Ring) {
		r.Alarms = slices.DeleteFunc(slices.Clone(r.Alarms),
			func(a table.Alarm) bool { return a.Kind == table.AlarmCorrupt })
	})},
	{"an override of row 47 names one, and nothing is done about what etcd names", "S5", 17,
		seenOnLeader(func(r *leader.Ring) {
			r.Record.Orders = slices.DeleteFunc(slices.Clone(r.Record.Orders),
				func(o record.Order) bool { return o.Kind == record.OrderOverride && o.Row == 47 })
		})},
	{"a restore keeps the alarms of its source", "S5", 1287, variant{decide: table.Decide,
		beside:      leader.Decide,
		keepsAlarms: true}},
	{"a learner is removed as stuck while a copy of the state is on its way (row 43)", "S3", 0,
		seenOnLeader(func(r *leader.Ring) {
			r.SnapshotInFlight = false
			for i := range r.Members {
				r.Members[i].PendingSnapshot, r.Members[i].State = 0, leader.ProgressReplicate
			}
		})},
	{"a learner is promoted on Match alone, as etcd allows it", "S3", 587,
		besides(func(now time.Time, previous, ring leader.Ring) (table.Plan, bool) {
			p := leader.Decide(now, previous, ring)
			for _, m := range ring.Members {
				voters := slices.DeleteFunc(slices.Clone(ring.Members),
					func(m leader.RingMember) bool { return m.Learner })
				if len(voters) > 1 && p.Act == table.ActWait && m.Learner && m.StreamsActive &&
					m.Match*10 >= ring.LastIndex*9 {
					return table.Plan{Row: 44, Act: table.ActPromote, MemberID: m.ID}, true
				}
			}
			return p, false
		})},
	{"a directory whose making the power cut is started (row 13)", "S5", 1059,
		variant{decide: func(now time.Time, o table.Observation) table.Plan {
			if o.Local == table.L5 && o.Phase == table.PhaseSeeding {
				o.Local = table.L1
			}
			return table.Decide(now, o)
		}, beside: leader.Decide}},
}

// besides is a fault on the leader: where it has nothing to say, the real decider does.
func besides(fault func(now time.Time, previous, ring leader.Ring) (table.Plan, bool)) variant {
	return variant{decide: table.Decide, beside: func(now time.Time, previous, ring leader.Ring) table.Plan {
		if p, ok := fault(now, previous, ring); ok {
			return p
		}
		return leader.Decide(now, previous, ring)
	}}
}

// seenOnLeader is a fault in what is seen on the leader.
func seenOnLeader(wrong func(r *leader.Ring)) variant {
	return variant{decide: table.Decide, beside: func(now time.Time, previous, ring leader.Ring) table.Plan {
		ring.Members, previous.Members = slices.Clone(ring.Members), slices.Clone(previous.Members)
		wrong(&ring)
		return leader.Decide(now, previous, ring)
	}}
}

func placeNamed(name string) replica.Place {
	i := slices.IndexFunc(places, func(p replica.Place) bool { return p.String() == name })
	return places[i]
}
