package etcdmember

import (
	"os"
	"slices"
	"strings"
	"testing"
	"time"

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
		variant{decide: func(now time.Time, o Observation) Plan {
			p := Decide(now, o)
			if p.Row == 24 && p.Act == ActWait {
				return Plan{Row: 24, Act: ActClaim, Epoch: o.Names.NewestEpoch + 1,
					Source: record.Source{Kind: record.SourceEmpty}}
			}
			return p
		}, beside: DecideBesideLeader}},
	{"a rolled-back disk starts (L3)", "S2", 0, variant{decide: func(now time.Time, o Observation) Plan {
		if o.Local == L3 {
			o.Local = L1
		}
		return Decide(now, o)
	}, beside: DecideBesideLeader}},
	{"what the leader says of an older copy is not heard", "S2", 562,
		variant{decide: Decide, beside: DecideBesideLeader, facts: func(f *Facts) {
			for i := range f.Answers {
				f.Answers[i].Acknowledged = 0
			}
		}}},
	{"an entry whose directory is gone is used again", "S2", 44,
		variant{decide: func(now time.Time, o Observation) Plan {
			if o.Phase == PhaseStarted && o.Local == L0 && o.Record == Rf && o.Remote == Quorum && o.Listed &&
				o.Names.MemberID != 0 {
				return Plan{Row: 23, Act: ActStartJoined, MemberID: o.Names.MemberID}
			}
			return Decide(now, o)
		}, beside: DecideBesideLeader}},
	{"a dead learner is promoted", "S3", 0, variant{decide: Decide, beside: func(now time.Time, previous,
		ring Ring) Plan {
		for _, m := range ring.Members {
			if m.Learner && !m.StreamsActive {
				return Plan{Row: 44, Act: ActPromote, MemberID: m.ID}
			}
		}
		return DecideBesideLeader(now, previous, ring)
	}}},
	{"a voter is removed because it is unreachable (row 42)", "S3", 0,
		variant{decide: Decide, beside: func(now time.Time, previous, ring Ring) Plan {
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
	{"the second of two replicas is promoted", "S3", 0, variant{decide: Decide, beside: func(now time.Time, previous,
		ring Ring) Plan {
		p := DecideBesideLeader(now, previous, ring)
		for _, m := range ring.Members {
			if p.Act == ActKeep && m.Learner && m.StreamsActive {
				return Plan{Row: 44, Act: ActPromote, MemberID: m.ID}
			}
		}
		return p
	}}},
	{"a voter leaves by order although the rest would be no quorum", "S3", 340,
		variant{decide: Decide, beside: func(now time.Time, previous, ring Ring) Plan {
			p := DecideBesideLeader(now, previous, ring)
			v := besideViewOf(now, previous, ring)
			for _, m := range ring.Members {
				if place, ok := v.placeOf(m); ok && p.Blocked != nil && p.Blocked.Name == "leave-needs-quorum" &&
					v.h.orders.left(place) != nil {
					return Plan{Row: 45, Act: ActRemoveMember, MemberID: m.ID}
				}
			}
			return p
		}}},
	{"two voters by accident are made one without an order", "S3", 33,
		variant{decide: Decide, beside: func(now time.Time, previous, ring Ring) Plan {
			p := DecideBesideLeader(now, previous, ring)
			for _, m := range ring.Members {
				if len(ring.Members) == 2 && !m.Learner && m.ID != ring.Leader && p.Row == 49 {
					return Plan{Row: 45, Act: ActRemoveMember, MemberID: m.ID}
				}
			}
			return p
		}}},
	{"a restore reads a surviving directory up to the commit index that was saved", "S2", 4404,
		variant{decide: Decide, beside: DecideBesideLeader,
			reads: func(commit, _ int) int { return commit }}},
	{"a restore loses the end of its snapshot", "S2", 0, variant{decide: Decide, beside: DecideBesideLeader,
		reads: func(_, last int) int { return last * 9 / 10 }}},
	{"an epoch is closed while others could still serve", "S1", 41,
		variant{decide: func(now time.Time, o Observation) Plan {
			o.Unproven = nil
			return Decide(now, o)
		}, beside: DecideBesideLeader}},
	{"an id in stopped/ starts again, and so does an epoch that was closed", "S1", 4,
		variant{decide: func(now time.Time, o Observation) Plan {
			if o.Record == Rc && o.Local == L1 && o.Remote != Quorum {
				return Plan{Row: 28, Act: ActStart, Epoch: o.Names.DiskEpochNumber, MemberID: o.Names.MemberID}
			}
			return Decide(now, o)
		}, beside: DecideBesideLeader}},
	{"row 22 takes any directory for enough", "S2", 560, variant{decide: func(now time.Time, o Observation) Plan {
		if o.Survivors22 == PolicyNotEnough && !o.Running {
			return Plan{Row: 22, Act: ActOrderRestore, Order: &record.RestoreOrder{Ends: o.Names.FormedEpoch,
				Replica: placeNamed(o.Names.Place),
				From:    record.Source{Kind: record.SourceDirectory, MemberID: o.Names.MemberID}}}
		}
		return Decide(now, o)
	}, beside: DecideBesideLeader}},
	{"an archive goes by a snapshot of any age", "S4", 4703, variant{decide: Decide, beside: DecideBesideLeader,
		purge: func(f *PurgeFacts) {
			for i := range f.Snapshots {
				f.Snapshots[i].Time, f.Snapshots[i].Written = f.Now.Add(2*archiveAge), f.Now.Add(2*archiveAge)
			}
		}}},
	{"a caught-up learner is never promoted", "S5", 0, variant{decide: Decide, beside: func(now time.Time, previous,
		ring Ring) Plan {
		p := DecideBesideLeader(now, previous, ring)
		if p.Act == ActPromote {
			return Plan{Row: RowQuiet, Act: ActKeep}
		}
		return p
	}}},
	{"NOSPACE is disarmed without a look at the sizes", "S5", 0,
		besides(func(now time.Time, previous, ring Ring) (Plan, bool) {
			n := slices.IndexFunc(ring.Alarms, func(a Alarm) bool { return a.Kind == AlarmNoSpace })
			if n < 0 {
				return Plan{}, false
			}
			return Plan{Row: 48, Act: ActDisarm, Alarm: ring.Alarms[n], MemberID: ring.Alarms[n].MemberID}, true
		})},
	{"NOSPACE stays, and so nobody writes", "S5", 0, besides(func(now time.Time, previous, ring Ring) (Plan, bool) {
		p := DecideBesideLeader(now, previous, ring)
		return Plan{Row: RowQuiet, Act: ActKeep}, p.Row == 48
	})},
	{"the leader is defragmented as any other (row 48)", "S3", 17, seenBeside(func(r *Ring) {
		for i := range r.Members {
			if len(r.Members) > 1 && r.Members[i].ID != r.Leader {
				r.Members[i].DBSize = 0
				r.Leader = r.Members[i].ID
				return
			}
		}
	})},
	{"databases are defragmented while a copy of the state is on its way", "S3", 1106,
		seenBeside(func(r *Ring) { r.SnapshotInFlight = false })},
	{"CORRUPT is disarmed to get writes back", "S2", 17, besides(func(now time.Time, previous, ring Ring) (Plan, bool) {
		n := slices.IndexFunc(ring.Alarms, func(a Alarm) bool { return a.Kind == AlarmCorrupt })
		if n < 0 {
			return Plan{}, false
		}
		return Plan{Row: 46, Act: ActDisarm, Alarm: ring.Alarms[n], MemberID: ring.Alarms[n].MemberID}, true
	})},
	{"row 46 believes etcd without the others' hashes", "S3", 2663, seenBeside(func(r *Ring) {
		for i := range r.Members {
			r.Members[i].Hash, r.Members[i].HashRevision = 1, 1
			if slices.Contains(r.Alarms, Alarm{r.Members[i].ID, AlarmCorrupt}) {
				r.Members[i].Hash = 2
			}
		}
	})},
	{"row 47 does not stand still", "S2", 17, seenBeside(func(r *Ring) {
		r.Alarms = slices.DeleteFunc(slices.Clone(r.Alarms), func(a Alarm) bool { return a.Kind == AlarmCorrupt })
	})},
	{"an override of row 47 names one, and nothing is done about what etcd names", "S5", 17, seenBeside(func(r *Ring) {
		r.Record.Orders = slices.DeleteFunc(slices.Clone(r.Record.Orders),
			func(o record.Order) bool { return o.Kind == record.OrderOverride && o.Row == 47 })
	})},
	{"a restore keeps the alarms of its source", "S5", 720, variant{decide: Decide, beside: DecideBesideLeader,
		keepsAlarms: true}},
	{"a learner is removed as stuck while a copy of the state is on its way (row 43)", "S3", 0,
		seenBeside(func(r *Ring) {
			r.SnapshotInFlight = false
			for i := range r.Members {
				r.Members[i].PendingSnapshot, r.Members[i].State = 0, ProgressReplicate
			}
		})},
	{"a learner is promoted on Match alone, as etcd allows it", "S3", 171,
		besides(func(now time.Time, previous, ring Ring) (Plan, bool) {
			p := DecideBesideLeader(now, previous, ring)
			for _, m := range ring.Members {
				if len(besideViewOf(now, previous, ring).voters) > 1 && p.Act == ActWait && m.Learner &&
					m.StreamsActive &&
					m.Match*10 >= ring.LastIndex*9 {
					return Plan{Row: 44, Act: ActPromote, MemberID: m.ID}, true
				}
			}
			return p, false
		})},
	{"a directory whose making the power cut is started (row 13)", "S5", 1039,
		variant{decide: func(now time.Time, o Observation) Plan {
			if o.Local == L5 && o.Phase == PhaseSeeding {
				o.Local = L1
			}
			return Decide(now, o)
		}, beside: DecideBesideLeader}},
}

// besides is a fault beside the leader: where it has nothing to say, the real decider does.
func besides(fault func(now time.Time, previous, ring Ring) (Plan, bool)) variant {
	return variant{decide: Decide, beside: func(now time.Time, previous, ring Ring) Plan {
		if p, ok := fault(now, previous, ring); ok {
			return p
		}
		return DecideBesideLeader(now, previous, ring)
	}}
}

// seenBeside is a fault in what is seen beside the leader.
func seenBeside(wrong func(r *Ring)) variant {
	return variant{decide: Decide, beside: func(now time.Time, previous, ring Ring) Plan {
		ring.Members, previous.Members = slices.Clone(ring.Members), slices.Clone(previous.Members)
		wrong(&ring)
		return DecideBesideLeader(now, previous, ring)
	}}
}

func placeNamed(name string) replica.Place {
	i := slices.IndexFunc(places, func(p replica.Place) bool { return p.String() == name })
	return places[i]
}
