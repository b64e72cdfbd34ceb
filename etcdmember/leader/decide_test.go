package leader

import (
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/quorate/quorate/etcdmember/table"
	"github.com/quorate/quorate/internal/record"
	"github.com/quorate/quorate/internal/replica"
)

// ringOf is the cluster of three with me, a, as leader; voters first, then learners, all reachable and caught up.
func ringOf(voters, learners []RingMember) Ring {
	r := Ring{At: t0, Me: me, Cluster: testCluster, Leader: 0xa1, LastIndex: 5000, Record: ofThree(), Compute: listed(),
		Policy: table.Policy{Replicas: 3}, ClusterVersion: "3.7.0"}
	r.Members = append(append(r.Members, voters...), learners...)
	return r
}

func member(p replica.Place, instance string, id record.MemberID) RingMember {
	return RingMember{Member: entry(p, instance, id), Match: 5000, State: ProgressReplicate, RecentActive: true,
		StreamsActive: true, MovedAt: t0}
}

func learner(p replica.Place, instance string, id record.MemberID) RingMember {
	m := member(p, instance, id)
	m.Learner, m.Version = true, "3.7.3"
	return m
}

var (
	mA, mB, mC = member(pa, "101", 0xa1), member(pb, "102", 0xb1), member(pc, "103", 0xc3)
	lB, lC     = learner(pb, "102", 0xb1), learner(pc, "103", 0xc3)
)

func threeVoters() Ring { return ringOf([]RingMember{mA, mB, mC}, nil) }

// quiet makes b unreachable for so long.
func quietB(d time.Duration) func(*Ring) {
	return func(r *Ring) {
		m := &r.Members[1]
		m.RecentActive, m.StreamsActive, m.UnreachableSince = false, false, t0.Add(-d)
	}
}

func goneB(r *Ring) {
	r.Compute.First.Instances, r.Compute.Second.Instances = instances("101", "103"), instances("101", "103")
}

func diskGone(r *Ring) {
	r.Compute.First.Disks, r.Compute.Second.Disks = []string{"d1", "d3"}, []string{"d1", "d3"}
}

func ringOrder(o record.Order) func(*Ring) {
	return func(r *Ring) {
		o.Number = uint64(len(r.Record.Orders) + 1)
		r.Record.Orders = append(r.Record.Orders, o)
	}
}

func alarm(kind table.AlarmKind, id record.MemberID) func(*Ring) {
	return func(r *Ring) { r.Alarms = append(r.Alarms, table.Alarm{MemberID: id, Kind: kind}) }
}

func hashes(a, b, c uint32) func(*Ring) {
	return func(r *Ring) {
		for i, h := range []uint32{a, b, c} {
			r.Members[i].Hash, r.Members[i].HashRevision = h, 7
		}
	}
}

func hashes1(r *Ring) { r.Members[0].Hash, r.Members[0].HashRevision = 1, 7 }

func hashes2(a, b uint32) func(*Ring) {
	return func(r *Ring) {
		for i, h := range []uint32{a, b} {
			r.Members[i].Hash, r.Members[i].HashRevision = h, 7
		}
	}
}

// wrong is a person's fresh word on whose data is wrong.
func wrong(id record.MemberID) func(*Ring) {
	return ringOrder(record.Order{Kind: record.OrderOverride, Row: 47, MemberID: id, Time: t0.Add(-time.Second)})
}

func db(i int, size, used int64) func(*Ring) {
	return func(r *Ring) { r.Members[i].DBSize, r.Members[i].DBInUse, r.Members[i].Quota = size, used, 100 }
}

func defragmented(ago time.Duration) func(*Ring) {
	return func(r *Ring) {
		for i := range r.Members {
			r.Members[i].DefragmentedAt = t0.Add(-ago)
		}
	}
}

func allDB(size, used int64) func(*Ring) {
	return func(r *Ring) {
		for i := range r.Members {
			db(i, size, used)(r)
		}
	}
}

// confirmedC: the incarnation of c says that it was confirmed so long from now.
func confirmedC(d time.Duration) func(*Ring) {
	return func(r *Ring) {
		i := slices.Clone(r.Record.Replicas[pc])
		started := *i[0].Started
		started.Time = t0.Add(d)
		i[0].Started = &started
		r.Record.Replicas[pc] = i
	}
}

// versions are the cluster's and that of the third member.
func versions(cluster, third string) func(*Ring) {
	return func(r *Ring) { r.ClusterVersion, r.Members[2].Version = cluster, third }
}

func pairRing() Ring   { return ringOf([]RingMember{mA}, []RingMember{lB}) }
func threeFirst() Ring { return ringOf([]RingMember{mA}, []RingMember{lB, lC}) }
func twoAndOne() Ring  { return ringOf([]RingMember{mA, mB}, []RingMember{lC}) }
func compacted(r *Ring) {
	r.CompactedSince = true
}

func TestRowsOnTheLeader(t *testing.T) {
	leaveB := ringOrder(record.Order{Kind: record.OrderLeave, Place: &pb})
	leaveC := ringOrder(record.Order{Kind: record.OrderLeave, Place: &pc})
	leaveA := ringOrder(record.Order{Kind: record.OrderLeave, Place: &pa})
	paused := ringOrder(record.Order{Kind: record.OrderPause})
	two := ringOrder(record.Order{Kind: record.OrderReplicas, Replicas: 2})
	pair := func(r *Ring) { r.Policy.Replicas = 2 }
	learnerC := func(change func(*RingMember)) func(*Ring) { return func(r *Ring) { change(&r.Members[2]) } }
	cases := []struct {
		name    string
		ring    func() Ring
		change  []func(*Ring)
		row     table.Row
		act     table.Act
		id      record.MemberID
		blocked string
	}{
		{"three healthy voters: nothing", threeVoters, nil, table.RowQuiet, table.ActKeep, 0, ""},
		{"the record cannot be read: nothing is done", twoAndOne,
			[]func(*Ring){func(r *Ring) { r.RecordErr = errors.New("503") }}, table.RowQuiet, table.ActWait, 0,
			"record-unreadable"},
		{"the record is damaged: nothing is done", twoAndOne, []func(*Ring){func(r *Ring) { r.Record.Inception = nil }},
			table.RowQuiet, table.ActWait, 0, "record-lost"},
		{"a restore order ends the epoch: nothing is done", twoAndOne,
			[]func(*Ring){ringOrder(record.Order{Kind: record.OrderRestore, Restore: &record.RestoreOrder{Ends: 1},
				Accepted: &record.Accepted{}})}, table.RowQuiet, table.ActWait, 0, "epoch-closed"},
		{"a restore order that nobody has accepted ends nothing", twoAndOne,
			[]func(*Ring){ringOrder(record.Order{Kind: record.OrderRestore, Restore: &record.RestoreOrder{Ends: 1}})},
			44, table.ActPromote, 0xc3, ""},

		{"40: unreachable for 60 s and gone with its disk: remove", threeVoters, []func(*Ring){quietB(time.Minute),
			goneB, diskGone}, 40, table.ActRemoveMember, 0xb1, ""},
		{"40: not before 60 s", threeVoters, []func(*Ring){quietB(59 * time.Second), goneB, diskGone}, table.RowQuiet,
			table.ActKeep, 0, ""},
		{"40: a newer incarnation on another disk proves both", threeVoters, []func(*Ring){quietB(time.Minute),
			newerB("d9")}, 40, table.ActRemoveMember, 0xb1, ""},
		{"40: a newer incarnation on its disk is its return: not removed", threeVoters, []func(*Ring){quietB(time.Hour),
			newerB("d2")}, 42, table.ActWait, 0, "member-unreachable"},
		{"40: not where the rest would be no quorum", threeVoters, []func(*Ring){quietB(time.Minute), goneB, diskGone,
			func(r *Ring) {
				r.Members[2].RecentActive = false
				r.Members[2].UnreachableSince = t0.Add(-time.Second)
			}}, 40, table.ActWait, 0, "no-quorum-without-it"},
		{"40: not while paused", threeVoters, []func(*Ring){quietB(time.Minute), goneB, diskGone, paused}, 40,
			table.ActWait,
			0, "paused"},
		{"41: gone, its disk still there: wait", threeVoters, []func(*Ring){quietB(time.Minute), goneB}, 41,
			table.ActWait, 0,
			"member-disk-left"},
		{"41: not longer than ten minutes", threeVoters, []func(*Ring){quietB(10 * time.Minute), goneB}, 41,
			table.ActRemoveMember, 0xb1, ""},
		{"41: not while an empty replacement waits", twoVotersDead, []func(*Ring){goneB}, 41, table.ActRemoveMember,
			0xb1,
			""},
		{"42: unreachable, not proven gone: never removed", threeVoters, []func(*Ring){quietB(24 * time.Hour)}, 42,
			table.ActWait, 0, "member-unreachable"},
		{"42: an API that errs proves nothing", threeVoters, []func(*Ring){quietB(24 * time.Hour), goneB, diskGone,
			func(r *Ring) { r.Compute.First.Err = errors.New("503") }}, 42, table.ActWait, 0, "member-unreachable"},
		{"42: an override is a proof", threeVoters, []func(*Ring){quietB(time.Minute),
			ringOrder(record.Order{Kind: record.OrderOverride, Row: 42, MemberID: 0xb1})}, 40, table.ActRemoveMember,
			0xb1,
			""},

		{"43: confirmed for two minutes and never heard of: remove", twoAndOne,
			[]func(*Ring){learnerC(func(m *RingMember) {
				m.Name, m.RecentActive, m.StreamsActive, m.UnreachableSince, m.Match = "", false, false,
					t0.Add(-2*time.Minute), 0
			})}, 43, table.ActRemoveMember, 0xc3, ""},
		{"43: confirmed a moment ago by a VM whose clock is an hour behind: it may start", twoAndOne,
			[]func(*Ring){confirmedC(-time.Hour), learnerC(func(m *RingMember) {
				m.Name, m.RecentActive, m.StreamsActive, m.UnreachableSince, m.Match = "", false, false,
					t0.Add(-time.Second), 0
			})}, 44, table.ActWait, 0, "learner-not-ready"},
		{"43: confirmed by a VM whose clock is an hour ahead, and never heard of: remove after five minutes", twoAndOne,
			[]func(*Ring){confirmedC(time.Hour), learnerC(func(m *RingMember) {
				m.Name, m.RecentActive, m.StreamsActive, m.UnreachableSince, m.Match = "", false, false,
					t0.Add(-5*time.Minute), 0
			})}, 43, table.ActRemoveMember, 0xc3, ""},
		{"43: heard of but nameless: it started, and is promoted", twoAndOne,
			[]func(*Ring){learnerC(func(m *RingMember) { m.Name = "" })}, 44, table.ActPromote, 0xc3, ""},
		{"43: behind and still for five minutes: remove", twoAndOne,
			[]func(*Ring){learnerC(func(m *RingMember) { m.Match, m.MovedAt = 10, t0.Add(-5*time.Minute) })}, 43,
			table.ActRemoveMember, 0xc3, ""},
		{"43: not while a snapshot is on its way", twoAndOne,
			[]func(*Ring){learnerC(func(m *RingMember) {
				m.Match, m.MovedAt, m.State = 10, t0.Add(-5*time.Minute),
					ProgressSnapshot
			})}, 44, table.ActWait, 0, "learner-not-ready"},

		{"44: caught up on two polls: promote", twoAndOne, nil, 44, table.ActPromote, 0xc3, ""},
		{"44: 1000 entries behind: promote", twoAndOne, []func(*Ring){learnerC(func(m *RingMember) { m.Match = 4000 })},
			44, table.ActPromote, 0xc3, ""},
		{"44: 1001 behind: not yet", twoAndOne, []func(*Ring){learnerC(func(m *RingMember) { m.Match = 3999 })}, 44,
			table.ActWait, 0, "learner-not-ready"},
		{"44: caught up, but dead for 8 s: etcd would promote it, we do not", twoAndOne,
			[]func(*Ring){learnerC(func(m *RingMember) { m.RecentActive = false })}, 44, table.ActWait, 0,
			"learner-not-ready"},
		{"44: streams down", twoAndOne, []func(*Ring){learnerC(func(m *RingMember) { m.StreamsActive = false })}, 44,
			table.ActWait, 0, "learner-not-ready"},
		{"44: its place's newest confirmed incarnation names another member", twoAndOne, []func(*Ring){func(r *Ring) {
			i := r.Record.Replicas[pc][0]
			i.Number, i.Started = 2, &record.Started{Epoch: 1, MemberID: 0xc9}
			r.Record.Replicas[pc] = append(r.Record.Replicas[pc], i)
		}}, 44, table.ActWait, 0, "learner-not-ready"},
		{"44: an alarm on it", twoAndOne, []func(*Ring){alarm(table.AlarmNoSpace, 0xc3), compacted}, 44, table.ActWait,
			0,
			"learner-not-ready"},
		{"44: of the cluster's minor version: promote", twoAndOne, []func(*Ring){versions("3.7.0", "3.7.9")}, 44,
			table.ActPromote, 0xc3, ""},
		{"44: of the minor version after: etcd would promote it, we do not", twoAndOne,
			[]func(*Ring){versions("3.7.0", "3.8.1")}, 44, table.ActWait, 0, "learner-other-version"},
		{"44: of the minor version before", twoAndOne, []func(*Ring){versions("3.7.0", "3.6.16")}, 44, table.ActWait, 0,
			"learner-other-version"},
		{"44: nobody knows of which version", twoAndOne, []func(*Ring){versions("3.7.0", "")}, 44, table.ActWait, 0,
			"learner-other-version"},
		{"44: nobody knows of which version anybody is", twoAndOne, []func(*Ring){versions("", "")}, 44, table.ActWait,
			0,
			"learner-other-version"},
		{"44: what it says is no version", twoAndOne, []func(*Ring){versions("3.7.0", "unknown")}, 44, table.ActWait, 0,
			"learner-other-version"},
		{"44: the cluster has none yet", twoAndOne, []func(*Ring){versions("", "3.7.3")}, 44, table.ActWait, 0,
			"learner-other-version"},
		{"44: of another version and behind: what it lacks first is said", twoAndOne,
			[]func(*Ring){versions("3.7.0", "3.8.1"), learnerC(func(m *RingMember) { m.Match = 3999 })}, 44,
			table.ActWait, 0,
			"learner-not-ready"},
		{"44: three first boots, one of another version: neither is", threeFirst,
			[]func(*Ring){versions("3.7.0", "3.8.1"), func(r *Ring) { r.Members[1].Version = "3.7.3" }}, 44,
			table.ActWait, 0,
			"learner-other-version"},
		{"44: not while paused", twoAndOne, []func(*Ring){paused}, 44, table.ActWait, 0, "paused"},

		{"two replicas: the second stays a learner", pairRing, []func(*Ring){pair}, table.RowQuiet,
			table.ActKeep, 0, ""},
		{"two of three wanted: the second waits for the third, and says so", pairRing, nil, 44, table.ActWait, 0,
			"third-replica-missing"},
		{"three first boots: the first of two ready learners is promoted", threeFirst, nil, 44, table.ActPromote, 0xb1,
			""},
		{"three first boots, one not ready: neither is", threeFirst,
			[]func(*Ring){learnerC(func(m *RingMember) { m.Match = 1 })}, 44, table.ActWait, 0,
			"third-replica-missing"},
		{"three replicas where two were wanted: both are promoted all the same", threeFirst, []func(*Ring){two}, 44,
			table.ActPromote, 0xb1, ""},
		{"the other ready learner follows in the next tick", twoAndOne, []func(*Ring){two}, 44, table.ActPromote, 0xc3,
			""},
		{"the voter of a pair leaves: its learner is promoted first", pairRing, []func(*Ring){leaveA}, 44,
			table.ActPromote,
			0xb1, ""},
		{"then it hands over", func() Ring { return ringOf([]RingMember{mA, mB}, nil) }, []func(*Ring){leaveA}, 45,
			table.ActMoveLeader, 0xb1, ""},
		{"two voters by accident stay two voters", func() Ring { return ringOf([]RingMember{mA, mB}, nil) }, nil, 49,
			table.ActWait, 0, "even-voters"},
		{"two are ordered, two voters are left: a snapshot first",
			func() Ring { return ringOf([]RingMember{mA, mB}, nil) }, []func(*Ring){two}, 45, table.ActWait, 0,
			"snapshot-first"},
		{"then the second is removed, to join again as a learner",
			func() Ring { return ringOf([]RingMember{mA, mB}, nil) },
			[]func(*Ring){two, func(r *Ring) { r.SnapshotAt = t0.Add(-time.Minute) }}, 45, table.ActRemoveMember, 0xb1,
			""},

		{"45: a follower is ordered to leave: remove", threeVoters, []func(*Ring){leaveB}, 45, table.ActRemoveMember,
			0xb1,
			""},
		{"45: a snapshot goes before, for a minute", threeVoters,
			[]func(*Ring){ringOrder(record.Order{Kind: record.OrderLeave, Place: &pb,
				Time: t0.Add(-59 * time.Second)})}, 45, table.ActWait, 0, "snapshot-first"},
		{"45: and not longer", threeVoters,
			[]func(*Ring){ringOrder(record.Order{Kind: record.OrderLeave, Place: &pb,
				Time: t0.Add(-61 * time.Second)})}, 45, table.ActRemoveMember, 0xb1, ""},
		{"45: a young snapshot is enough", threeVoters,
			[]func(*Ring){ringOrder(record.Order{Kind: record.OrderLeave, Place: &pb, Time: t0}),
				func(r *Ring) { r.SnapshotAt = t0.Add(-14 * time.Minute) }}, 45, table.ActRemoveMember, 0xb1, ""},
		{"45: a learner leaves without one", twoAndOne,
			[]func(*Ring){ringOrder(record.Order{Kind: record.OrderLeave, Place: &pc, Time: t0})}, 45,
			table.ActRemoveMember,
			0xc3, ""},
		{"45: of two that leave, the one that is away goes first: without the other first it could not", threeVoters,
			[]func(*Ring){leaveB, leaveC, func(r *Ring) {
				m := &r.Members[2]
				m.RecentActive, m.StreamsActive, m.UnreachableSince = false, false, t0.Add(-time.Hour)
			}}, 45, table.ActRemoveMember, 0xc3, ""},
		{"45: b has left: the order is done", twoVotersAC, []func(*Ring){leaveB}, 45, table.ActCompleteOrder, 0, ""},
		{"45: b has left, while paused: the order is done", twoVotersAC, []func(*Ring){leaveB, paused}, 45,
			table.ActCompleteOrder, 0, ""},
		{"45: an entry of nobody known may be b's", func() Ring {
			return ringOf([]RingMember{mA, mC, {Member: table.Member{ID: 0xd1}, RecentActive: true,
				StreamsActive: true}},
				nil)
		},
			[]func(*Ring){leaveB}, table.RowQuiet, table.ActKeep, 0, ""},
		{"45: it is done once", twoVotersAC,
			[]func(*Ring){ringOrder(record.Order{Kind: record.OrderLeave, Place: &pb, Done: &record.Done{}})}, 49,
			table.ActWait, 0, "even-voters"},
		{"45: b has left and joins again all the same: remove it", twoAndOne,
			[]func(*Ring){ringOrder(record.Order{Kind: record.OrderLeave, Place: &pc, Done: &record.Done{}})}, 45,
			table.ActRemoveMember, 0xc3, ""},
		{"45: withdrawn: b joins again", twoAndOne,
			[]func(*Ring){ringOrder(record.Order{Kind: record.OrderLeave, Place: &pc, Done: &record.Done{}}),
				ringOrder(record.Order{Kind: record.OrderWithdraw, Withdraws: 1})}, 44, table.ActPromote, 0xc3, ""},
		{"45: what was overridden is gone: the order is done", twoVotersAC,
			[]func(*Ring){ringOrder(record.Order{Kind: record.OrderOverride, Row: 42, MemberID: 0xb1})}, 45,
			table.ActCompleteOrder, 0, ""},
		{"45: what was overridden a moment ago still looks alive", threeVoters,
			[]func(*Ring){ringOrder(record.Order{Kind: record.OrderOverride, Row: 42, MemberID: 0xb1,
				Time: t0.Add(-time.Second)})}, table.RowQuiet, table.ActKeep, 0, ""},
		{"45: what was overridden is back: the word is done with", threeVoters,
			[]func(*Ring){ringOrder(record.Order{Kind: record.OrderOverride, Row: 42, MemberID: 0xb1,
				Time: t0.Add(-time.Hour)})}, 45, table.ActCompleteOrder, 0, ""},
		{"42: an override from before it came back proves nothing", threeVoters, []func(*Ring){quietB(time.Minute),
			ringOrder(record.Order{Kind: record.OrderOverride, Row: 42, MemberID: 0xb1, Done: &record.Done{}})}, 42,
			table.ActWait, 0, "member-unreachable"},
		{"45: its alarm is disarmed first", twoVotersAC, []func(*Ring){alarm(table.AlarmCorrupt, 0xb1),
			ringOrder(record.Order{Kind: record.OrderOverride, Row: 47, MemberID: 0xb1})}, 46, table.ActDisarm, 0, ""},
		{"45: two are ordered while paused: nobody is removed",
			func() Ring { return ringOf([]RingMember{mA, mB}, nil) },
			[]func(*Ring){two, paused, func(r *Ring) { r.SnapshotAt = t0.Add(-time.Minute) }}, 45, table.ActWait, 0,
			"paused"},
		{"45: a pause does not hold an order back", threeVoters, []func(*Ring){leaveB, paused}, 45,
			table.ActRemoveMember,
			0xb1, ""},
		{"45: the leader is ordered to leave: hand over", threeVoters, []func(*Ring){leaveA}, 45, table.ActMoveLeader,
			0xb1,
			""},
		{"45: not by a record that was rolled back: the order may have been withdrawn", threeVoters,
			[]func(*Ring){leaveB, func(r *Ring) { r.Ahead = true }}, table.RowQuiet, table.ActWait, 0,
			"record-rolled-back"},
		{"45: not where the rest would be no quorum", threeVoters, []func(*Ring){leaveB,
			func(r *Ring) { r.Members[2].RecentActive = false }}, 45, table.ActWait, 0, "leave-needs-quorum"},
		{"45: the last voter stays", func() Ring { return ringOf([]RingMember{mA}, nil) }, []func(*Ring){leaveA}, 45,
			table.ActWait, 0, "leave-last-voter"},
		{"45: a learner is ordered to leave", twoAndOne,
			[]func(*Ring){ringOrder(record.Order{Kind: record.OrderLeave, Place: &pc})}, 45, table.ActRemoveMember,
			0xc3, ""},

		{"46: one of three is corrupt and the others agree: remove it", threeVoters,
			[]func(*Ring){alarm(table.AlarmCorrupt, 0xb1), hashes(1, 2, 1)}, 46, table.ActRemoveMember, 0xb1, ""},
		{"46: it is the leader: hand over first", threeVoters, []func(*Ring){alarm(table.AlarmCorrupt, 0xa1),
			hashes(2, 1, 1)}, 46, table.ActMoveLeader, 0xb1, ""},
		{"46: removed: disarm that id's alarm", twoVotersAB, []func(*Ring){alarm(table.AlarmCorrupt, 0xc3)}, 46,
			table.ActDisarm,
			0xc3, ""},
		{"47: the others differ: everything stands still", threeVoters, []func(*Ring){alarm(table.AlarmCorrupt, 0xb1),
			hashes(1, 2, 3), quietB(time.Minute), goneB, diskGone}, 47, table.ActHalt, 0, "corrupt"},
		{"47: the others' hashes are not known", threeVoters, []func(*Ring){alarm(table.AlarmCorrupt, 0xb1)}, 47,
			table.ActHalt, 0,
			"corrupt"},
		{"47: the others' hashes are of no known revision", threeVoters, []func(*Ring){alarm(table.AlarmCorrupt, 0xb1),
			hashes(1, 2, 1), func(r *Ring) {
				for i := range r.Members {
					r.Members[i].HashRevision = 0
				}
			}}, 47, table.ActHalt, 0, "corrupt"},
		{"47: id 0", threeVoters, []func(*Ring){alarm(table.AlarmCorrupt, 0)}, 47, table.ActHalt, 0, "corrupt"},
		{"47: two of two", twoVotersAB, []func(*Ring){alarm(table.AlarmCorrupt, 0xb1)}, 47, table.ActHalt, 0,
			"corrupt"},
		{"47: an override names the wrong one", threeVoters, []func(*Ring){alarm(table.AlarmCorrupt, 0xb1), hashes(1, 2,
			3),
			ringOrder(record.Order{Kind: record.OrderOverride, Row: 47, MemberID: 0xb1})}, 46, table.ActRemoveMember,
			0xb1,
			""},

		{"46: an override names the leader, and the alarm is another's: hand over", twoVotersAB,
			[]func(*Ring){alarm(table.AlarmCorrupt, 0xb1), wrong(0xa1)}, 46, table.ActMoveLeader, 0xb1, ""},
		{"46: an override names one of two that etcd names", threeVoters, []func(*Ring){alarm(table.AlarmCorrupt, 0xb1),
			alarm(table.AlarmCorrupt, 0xc3), wrong(0xc3)}, 46, table.ActRemoveMember, 0xc3, ""},
		{"46: an override where etcd names nobody", threeVoters, []func(*Ring){alarm(table.AlarmCorrupt, 0),
			wrong(0xb1)}, 46,
			table.ActRemoveMember, 0xb1, ""},
		{"46: the one that an override named is gone, and the others agree", twoVotersAC,
			[]func(*Ring){alarm(table.AlarmCorrupt, 0), hashes2(1, 1), wrong(0xb1)}, 46, table.ActDisarm, 0, ""},
		{"46: the alarmed one agrees with all: what differed is gone", threeVoters,
			[]func(*Ring){alarm(table.AlarmCorrupt, 0xb1), hashes(1, 1, 1)}, 46, table.ActDisarm, 0xb1, ""},
		{"46: two that agree", twoVotersAB, []func(*Ring){alarm(table.AlarmCorrupt, 0), hashes2(1, 1)}, 46,
			table.ActDisarm,
			0, ""},
		{"46: a learner that differs is replaced", twoAndOne, []func(*Ring){alarm(table.AlarmCorrupt, 0xc3), hashes(1,
			1, 2)},
			46, table.ActRemoveMember, 0xc3, ""},
		{"46: an alarmed learner that has not told its hash is replaced", twoAndOne,
			[]func(*Ring){alarm(table.AlarmCorrupt, 0xc3), hashes2(1, 1)}, 46, table.ActRemoveMember, 0xc3, ""},
		{"46: an override without an alarm removes nobody", threeVoters, []func(*Ring){wrong(0xb1)}, table.RowQuiet,
			table.ActKeep,
			0, ""},
		{"47: the one that an override named is gone, and the others differ too", twoVotersAC,
			[]func(*Ring){alarm(table.AlarmCorrupt, 0), hashes2(1, 2), wrong(0xb1)}, 47, table.ActHalt, 0, "corrupt"},
		{"46: the one out of reach is not waited for where a quorum of all agrees", threeVoters,
			[]func(*Ring){alarm(table.AlarmCorrupt, 0xa1), hashes(1, 0, 1), quietB(time.Minute)}, 46, table.ActDisarm,
			0xa1, ""},
		{"47: but where the alarm names nobody: it may be the one that differs", threeVoters,
			[]func(*Ring){alarm(table.AlarmCorrupt, 0), hashes(1, 0, 1), quietB(time.Minute)}, 47, table.ActHalt, 0,
			"corrupt"},
		{"46: the alarmed one is out of reach and has not told its hash: it may be the one that differs", threeVoters,
			[]func(*Ring){alarm(table.AlarmCorrupt, 0xb1), hashes(1, 0, 1), quietB(time.Minute)}, 46,
			table.ActRemoveMember,
			0xb1,
			""},
		{"47: one that is reachable is waited for", threeVoters, []func(*Ring){alarm(table.AlarmCorrupt, 0xa1),
			hashes(1, 0, 1)}, 47, table.ActHalt, 0, "corrupt"},
		{"47: one out of reach, and the rest is no quorum that agrees", threeVoters,
			[]func(*Ring){alarm(table.AlarmCorrupt, 0xa1), hashes(2, 0, 1), quietB(time.Minute)}, 47, table.ActHalt, 0,
			"corrupt"},
		{"47: an override of the only voter", func() Ring { return ringOf([]RingMember{mA}, nil) },
			[]func(*Ring){alarm(table.AlarmCorrupt, 0), wrong(0xa1)}, 47, table.ActHalt, 0, "corrupt"},
		{"47: a single voter agrees only with itself", func() Ring { return ringOf([]RingMember{mA}, nil) },
			[]func(*Ring){alarm(table.AlarmCorrupt, 0), hashes1}, 47, table.ActHalt, 0, "corrupt"},
		{"45: nobody differs any more: the override of row 47 is done", threeVoters,
			[]func(*Ring){ringOrder(record.Order{Kind: record.OrderOverride, Row: 47, MemberID: 0xb1,
				Time: t0.Add(-time.Hour)})}, 45, table.ActCompleteOrder, 0, ""},

		{"48: compact first", threeVoters, []func(*Ring){alarm(table.AlarmNoSpace, 0xa1), allDB(100, 10)}, 48,
			table.ActCompact, 0,
			""},
		{"48: then the followers", threeVoters, []func(*Ring){alarm(table.AlarmNoSpace, 0xa1), allDB(100, 10),
			compacted}, 48,
			table.ActDefragment, 0xb1, ""},
		{"48: none while a snapshot is in flight", threeVoters, []func(*Ring){alarm(table.AlarmNoSpace, 0xa1),
			allDB(100, 10),
			compacted, func(r *Ring) { r.SnapshotInFlight = true }}, 48, table.ActWait, 0, "no-space"},
		{"48: the leader last, after handing over", threeVoters, []func(*Ring){alarm(table.AlarmNoSpace, 0xa1),
			allDB(20, 10),
			db(0, 100, 10), compacted}, 48, table.ActMoveLeader, 0xb1, ""},
		{"48: a lone voter defragments itself", func() Ring { return ringOf([]RingMember{mA}, nil) },
			[]func(*Ring){alarm(table.AlarmNoSpace, 0xa1), allDB(100, 10), compacted}, 48, table.ActDefragment, 0xa1,
			""},
		{"48: room again: disarm", threeVoters, []func(*Ring){alarm(table.AlarmNoSpace, 0xa1), allDB(20, 10),
			compacted}, 48,
			table.ActDisarm, 0xa1, ""},
		{"48: the only full one is out of reach: writes go on without it", threeVoters,
			[]func(*Ring){alarm(table.AlarmNoSpace, 0xb1), allDB(20, 10), db(1, 100, 99), compacted,
				quietB(time.Second)}, 48,
			table.ActDisarm, 0xb1, ""},
		{"48: defragmented a minute ago, and nothing freed since: not again", threeVoters,
			[]func(*Ring){alarm(table.AlarmNoSpace, 0xa1), allDB(95, 86), compacted, defragmented(time.Minute)}, 48,
			table.ActWait,
			0, "no-space"},
		{"48: much was freed since: again", threeVoters, []func(*Ring){alarm(table.AlarmNoSpace, 0xa1), allDB(95, 80),
			compacted, defragmented(time.Minute)}, 48, table.ActDefragment, 0xb1, ""},
		{"48: ten minutes after, also where little was freed: again", threeVoters,
			[]func(*Ring){alarm(table.AlarmNoSpace, 0xa1), allDB(95, 89), compacted, defragmented(defragAgain + 1)}, 48,
			table.ActDefragment, 0xb1, ""},
		{"48: a follower has not counted yet what was freed: the others have", threeVoters,
			[]func(*Ring){alarm(table.AlarmNoSpace, 0xa1), allDB(20, 10), db(1, 100, 93), compacted}, 48,
			table.ActDefragment, 0xb1, ""},
		{"48: the leader has not counted it yet", threeVoters, []func(*Ring){alarm(table.AlarmNoSpace, 0xa1),
			allDB(20, 10), db(0, 100, 93), compacted}, 48, table.ActMoveLeader, 0xb1, ""},
		{"48: it was defragmented for that, in vain", threeVoters, []func(*Ring){alarm(table.AlarmNoSpace, 0xa1),
			allDB(20, 10), db(1, 93, 93), compacted, defragmented(time.Minute)}, 48, table.ActWait, 0, "no-space"},
		{"48: one out of reach says nothing of what the data need", threeVoters,
			[]func(*Ring){alarm(table.AlarmNoSpace, 0xa1), allDB(100, 93), db(1, 20, 10), compacted,
				quietB(time.Second)}, 48, table.ActWait, 0, "no-space"},
		{"48: live data are nine tenths: a person", threeVoters, []func(*Ring){alarm(table.AlarmNoSpace, 0xa1),
			allDB(100, 90), compacted}, 48, table.ActWait, 0, "no-space"},
		{"48: etcd defragments no learner: its agent does", pairRing, []func(*Ring){pair, alarm(table.AlarmNoSpace, 0xa1),
			allDB(20, 10), db(1, 100, 10), compacted}, 48, table.ActWait, 0, "no-space"},
		{"48: a learner whose size is not known holds nothing up", pairRing, []func(*Ring){pair,
			alarm(table.AlarmNoSpace, 0xa1), db(0, 20, 10), compacted}, 48, table.ActDisarm, 0xa1, ""},
		{"48: the voter of a pair defragments itself", pairRing, []func(*Ring){pair, alarm(table.AlarmNoSpace, 0xa1),
			allDB(100, 10), compacted}, 48, table.ActDefragment, 0xa1, ""},
		{"48: a learner that is full of live data: a person", pairRing, []func(*Ring){pair,
			alarm(table.AlarmNoSpace, 0xa1), db(0, 20, 20), db(1, 100, 99),
			func(r *Ring) { r.Members[1].Quota = 20 }, compacted}, 48, table.ActWait, 0, "no-space"},
		{"48: full of live data: a person", threeVoters, []func(*Ring){alarm(table.AlarmNoSpace, 0xa1), allDB(100, 99),
			compacted}, 48, table.ActWait, 0, "no-space"},
		{"49: fewer replicas are ordered than there are, and nobody was told to leave: it says so", threeVoters,
			[]func(*Ring){two}, 49, table.ActWait, 0, "replicas-above-wanted"},
		{"49: somebody was told to leave", threeVoters, []func(*Ring){two, leaveB}, 45, table.ActRemoveMember, 0xb1,
			""},
		{"49: four voters", func() Ring { return ringOf([]RingMember{mA, mB, mC, member(pc, "113", 0xd1)}, nil) }, nil,
			49, table.ActWait, 0, "even-voters"},
	}
	seen := map[table.Row]bool{}
	for _, c := range cases {
		seen[c.row] = true
		t.Run(c.name, func(t *testing.T) {
			r := c.ring()
			for _, change := range c.change {
				change(&r)
			}
			previous := r
			previous.At = t0.Add(-250 * time.Millisecond)
			p := Decide(t0, previous, r)
			blocked := ""
			if p.Blocked != nil {
				blocked = p.Blocked.Name
			}
			if p.Row != c.row || p.Act != c.act || blocked != c.blocked || c.id != 0 && p.MemberID != c.id {
				t.Errorf("row %s, %s %s, blocked %q: %s; want row %s, %s %s, %q", p.Row, p.Act, p.MemberID, blocked,
					p.Reason, c.row, c.act, c.id, c.blocked)
			}
		})
	}
	for _, r := range rows {
		if !seen[r.number] {
			t.Errorf("row %s has no case", r.number)
		}
	}
}

func newerB(disk string) func(*Ring) {
	return func(r *Ring) {
		r.Record.Replicas[pb] = append(r.Record.Replicas[pb], record.Incarnation{Place: pb, Number: 2,
			InstanceID: "202", BootID: "x", Epoch: 1, DiskID: disk})
	}
}

func twoVotersAB() Ring { return ringOf([]RingMember{mA, mB}, nil) }
func twoVotersAC() Ring { return ringOf([]RingMember{mA, mC}, nil) }

// twoVotersDead: b is dead, c is a voter, and a fourth replica waits as a learner.
func twoVotersDead() Ring {
	r := ringOf([]RingMember{mA, mB, mC}, []RingMember{learner(replica.Place{Zone: "us-central1-b", Name: "m-d"}, "104",
		0xd1)})
	quietB(time.Minute)(&r)
	return r
}

// A promotion needs two looks: the first alone, or one from long ago, is not enough, nor a second at which the learner
// was not there.
func TestPromotionNeedsTwoLooks(t *testing.T) {
	r := twoAndOne()
	for name, previous := range map[string]func() Ring{
		"no look before":       func() Ring { return Ring{} },
		"the same look":        func() Ring { return r },
		"a look from long ago": func() Ring { p := twoAndOne(); p.At = t0.Add(-time.Minute); return p },
		"it was not there":     func() Ring { p := twoVotersAB(); p.At = t0.Add(-250 * time.Millisecond); return p },
		"it was behind at the first": func() Ring {
			p := twoAndOne()
			p.At = t0.Add(-250 * time.Millisecond)
			p.Members[2].Match = 1
			return p
		},
	} {
		if p := Decide(t0, previous(), r); p.Act != table.ActWait || p.Row != 44 {
			t.Errorf("%s: row %s, %s", name, p.Row, p.Act)
		}
	}
}

// Three first boots: two promotions in consecutive ticks, with two voters only in between.
func TestThreeFirstBootsArePromotedBackToBack(t *testing.T) {
	before, first := threeFirst(), threeFirst()
	before.At = t0.Add(-250 * time.Millisecond)
	p := Decide(t0, before, first)
	if p.Act != table.ActPromote || p.MemberID != 0xb1 {
		t.Fatalf("first tick: %s %s", p.Act, p.MemberID)
	}
	second := threeFirst()
	second.At = t0.Add(250 * time.Millisecond)
	second.Members[1].Learner = false
	p = Decide(second.At, first, second)
	if p.Act != table.ActPromote || p.MemberID != 0xc3 {
		t.Fatalf("second tick: %s %s", p.Act, p.MemberID)
	}
}
