package leader

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/quorate/quorate/etcdmember/table"
	"github.com/quorate/quorate/internal/record"
	"github.com/quorate/quorate/internal/replica"
)

// The guards of what is done on the leader: whom it counts as connected, whom it removes, promotes or hands over
// to.

var (
	pd     = replica.Place{Zone: "us-central1-b", Name: "m-d"}
	pe     = replica.Place{Zone: "us-central1-c", Name: "m-e"}
	mD, mE = member(pd, "104", 0xd1), member(pe, "105", 0xe1)
)

// awayFor puts the n-th member out of reach since so long ago; at changes it.
func awayFor(n int, d time.Duration) func(*Ring) {
	return at(n, func(m *RingMember) { m.RecentActive, m.StreamsActive, m.UnreachableSince = false, false, t0.Add(-d) })
}
func at(n int, change func(*RingMember)) func(*Ring) { return func(r *Ring) { change(&r.Members[n]) } }

// streamsDown: the leader's raft hears of the n-th member, and its streams are down since so long ago.
func streamsDown(n int, d time.Duration) func(*Ring) {
	return at(n, func(m *RingMember) { m.StreamsActive, m.UnreachableSince = false, t0.Add(-d) })
}
func match(n int, index uint64) func(*Ring) { return at(n, func(m *RingMember) { m.Match = index }) }
func nameless(n int) func(*Ring)            { return at(n, func(m *RingMember) { m.Name = "" }) }
func snapshotAgo(d time.Duration) func(*Ring) {
	return func(r *Ring) { r.SnapshotAt = t0.Add(-d) }
}

// incarnationsOf changes the record's incarnations of a place, on a copy of its own.
func incarnationsOf(p replica.Place, change func([]record.Incarnation) []record.Incarnation) func(*Ring) {
	return func(r *Ring) { r.Record.Replicas[p] = change(slices.Clone(r.Record.Replicas[p])) }
}
func epochs(change func(*record.View)) func(*Ring) {
	return func(r *Ring) {
		r.Record.Epochs = slices.Clone(r.Record.Epochs)
		change(&r.Record)
	}
}
func pendingC(i []record.Incarnation) []record.Incarnation {
	i[0].Started = nil
	return i
}

func voters(n int) func() Ring {
	return func() Ring {
		all := []RingMember{mA, mB, mC, mD, mE}
		for i := len(all); i < n; i++ {
			all = append(all, member(pe, "20"+string(rune('0'+i)), record.MemberID(0xf0+i)))
		}
		return ringOf(all[:n], nil)
	}
}

// withLearnerC is so many voters, without c, and c as a learner.
func withLearnerC(n int) func() Ring {
	return func() Ring {
		r := voters(n + 1)()
		r.Members[2], r.Members[n] = r.Members[n], lC
		return r
	}
}

func TestGuardsOnTheLeader(t *testing.T) {
	leave := func(p replica.Place, ago time.Duration) func(*Ring) {
		return ringOrder(record.Order{Kind: record.OrderLeave, Place: &p, Time: t0.Add(-ago)})
	}
	override := func(row int, id record.MemberID, ago time.Duration) func(*Ring) {
		return ringOrder(record.Order{Kind: record.OrderOverride, Row: row, MemberID: id, Time: t0.Add(-ago)})
	}
	paused := ringOrder(record.Order{Kind: record.OrderPause})
	two := ringOrder(record.Order{Kind: record.OrderReplicas, Replicas: 2})
	dead := []func(*Ring){quietB(time.Minute), goneB, diskGone}
	also := func(base []func(*Ring), more ...func(*Ring)) []func(*Ring) {
		return append(slices.Clone(base), more...)
	}
	confirmedFor := func(d time.Duration) func(*Ring) { return confirmedC(-d) }
	bothGone := func(r *Ring) {
		r.Compute.First.Instances, r.Compute.Second.Instances = instances("101"), instances("101")
	}
	still := at(2, func(m *RingMember) { m.Match, m.MovedAt = 10, t0.Add(-stallTime) })
	cases := []struct {
		name    string
		ring    func() Ring
		change  []func(*Ring)
		row     table.Row
		act     table.Act
		id      record.MemberID
		blocked string
	}{
		{"nothing is formed",
			twoAndOne, []func(*Ring){func(r *Ring) { r.Record = unformed() }}, table.RowQuiet, table.ActWait, 0,
			"epoch-closed"},
		{"the next epoch is claimed", twoAndOne, []func(*Ring){epochs(claimRestore)}, table.RowQuiet, table.ActWait, 0,
			"epoch-closed"},
		{"the epoch is closed", twoAndOne, []func(*Ring){epochs(isClosed)}, table.RowQuiet, table.ActWait, 0,
			"epoch-closed"},
		{"the next epoch was claimed and given up",
			twoAndOne, []func(*Ring){epochs(claimRestore), epochs(abandoned)}, 44, table.ActPromote,
			0xc3, ""},
		{"a record that is damaged and was rolled back: what is damaged is said",
			twoAndOne, []func(*Ring){func(r *Ring) { r.Record.Inception, r.Ahead = nil, true }}, table.RowQuiet,
			table.ActWait,
			0,
			"record-lost"},
		{"a record that was rolled back to where the epoch is closed: what was rolled back is said",
			twoAndOne, []func(*Ring){epochs(isClosed), func(r *Ring) { r.Ahead = true }}, table.RowQuiet, table.ActWait,
			0,
			"record-rolled-back"},
		{"an order to leave comes before one for two replicas: the leader hands over, and its follower stays",
			twoVotersAB, []func(*Ring){two, snapshotAgo(time.Minute), leave(pa, time.Hour)}, 45, table.ActMoveLeader,
			0xb1,
			""},
		{"who is gone with its disk goes before who may come back",
			voters(5), append(slices.Clone(dead), bothGone, awayFor(2, diskWait)), 40, table.ActRemoveMember, 0xb1, ""},
		{"a disk that may come back is waited for before a voter that nothing proves gone",
			voters(5), []func(*Ring){awayFor(2, time.Minute), awayFor(3, time.Hour), func(r *Ring) {
				r.Compute.First.Instances, r.Compute.Second.Instances = instances("101", "104"), instances("101", "104")
			}}, 41, table.ActWait, 0, "member-disk-left"},
		{"a voter out of reach is shown before a learner that a pause keeps",
			twoAndOne, []func(*Ring){quietB(time.Hour), still, paused}, 42, table.ActWait, 0, "member-unreachable"},
		{"a wait says what it waits for, also while paused",
			threeVoters, []func(*Ring){quietB(time.Hour), paused}, 42, table.ActWait, 0, "member-unreachable"},

		{"the leader is in reach, whatever its own raft says of it",
			threeVoters, also(dead, awayFor(0, time.Hour)), 40, table.ActRemoveMember, 0xb1, ""},
		{"streams that are down make a voter unreachable",
			threeVoters, []func(*Ring){streamsDown(1, time.Minute), goneB, diskGone}, 40, table.ActRemoveMember, 0xb1,
			""},
		{"and no part of a quorum",
			threeVoters, also(dead, streamsDown(2, time.Second)), 40, table.ActWait, 0, "no-quorum-without-it"},
		{"a voter that is back in reach is not dead",
			threeVoters, []func(*Ring){goneB, diskGone,
				at(1, func(m *RingMember) { m.UnreachableSince = t0.Add(-time.Hour) })},
			table.RowQuiet, table.ActKeep, 0, ""},
		{"nor one of which nobody knows since when",
			threeVoters, also(dead, at(1, func(m *RingMember) { m.UnreachableSince = time.Time{} })), table.RowQuiet,
			table.ActKeep,
			0, ""},
		{"a successor whose disk is not known does not return on the unknown disk",
			threeVoters, []func(*Ring){quietB(time.Minute),
				incarnationsOf(pb, func(i []record.Incarnation) []record.Incarnation { i[0].DiskID = ""; return i }),
				newerB("")},
			41, table.ActWait, 0, "member-disk-left"},

		{"a member is of the place of its incarnation, without an address",
			threeVoters, []func(*Ring){leave(pc, time.Hour), nameless(2),
				at(2, func(m *RingMember) { m.PeerURLs = nil })}, 45, table.ActRemoveMember, 0xc3, ""},
		{"a member is of the place of its address, without an incarnation",
			threeVoters, []func(*Ring){leave(pc, time.Hour), nameless(2),
				at(2, func(m *RingMember) { m.ID = 0xd9 })}, 45, table.ActRemoveMember, 0xd9, ""},
		{"of two that leave the one that is away goes first",
			voters(5), []func(*Ring){leave(pb, time.Hour), leave(pc, time.Hour), awayFor(2, time.Second)},
			45, table.ActRemoveMember, 0xc3, ""},
		{"one that has to wait holds no other up",
			twoAndOne, []func(*Ring){leave(pb, 0), leave(pc, 0)}, 45, table.ActRemoveMember, 0xc3, ""},
		{"what else is waited for comes before a snapshot",
			threeVoters, []func(*Ring){leave(pb, 0), awayFor(2, time.Second)}, 45, table.ActWait, 0,
			"leave-needs-quorum"},
		{"the leader that leaves hands nothing over where the rest is no quorum",
			threeVoters, []func(*Ring){leave(pa, time.Hour), awayFor(2, time.Second)}, 45, table.ActWait, 0,
			"leave-needs-quorum"},
		{"a snapshot of 15 min is young",
			threeVoters, []func(*Ring){leave(pb, 0), snapshotAgo(SnapshotYoung)}, 45, table.ActRemoveMember, 0xb1, ""},
		{"an older one is not",
			threeVoters, []func(*Ring){leave(pb, 0), snapshotAgo(SnapshotYoung + time.Second)}, 45, table.ActWait, 0,
			"snapshot-first"},
		{"a replica behind a load balancer serves nobody first",
			threeVoters, []func(*Ring){leave(pb, 0), snapshotAgo(0), balanced}, 45, table.ActWait, 0, "drains-first"},
		{"a learner too", twoAndOne, []func(*Ring){leave(pc, 0), balanced}, 45, table.ActWait, 0, "drains-first"},
		{"and then it is removed",
			threeVoters, []func(*Ring){leave(pb, 0), snapshotAgo(0), balanced, accepted}, 45, table.ActRemoveMember,
			0xb1, ""},
		{"a snapshot comes before all the same",
			threeVoters, []func(*Ring){leave(pb, 0), balanced, accepted}, 45, table.ActWait, 0, "snapshot-first"},
		{"without a word it is removed after two minutes",
			threeVoters, []func(*Ring){leave(pb, drainPatience), snapshotAgo(0), balanced}, 45, table.ActRemoveMember,
			0xb1, ""},
		{"and not before",
			threeVoters, []func(*Ring){leave(pb, drainPatience-time.Second), snapshotAgo(0), balanced}, 45,
			table.ActWait, 0, "drains-first"},
		{"it is counted from when the others are a quorum without it",
			threeVoters, []func(*Ring){leave(pb, time.Hour), snapshotAgo(0), balanced,
				freed(drainPatience - time.Second)}, 45, table.ActWait, 0, "drains-first"},
		{"and no longer",
			threeVoters, []func(*Ring){leave(pb, time.Hour), snapshotAgo(0), balanced, freed(drainPatience)}, 45,
			table.ActRemoveMember, 0xb1, ""},
		{"what it said before it began to serve again does not count",
			threeVoters, []func(*Ring){leave(pb, time.Hour), snapshotAgo(0), balanced, acceptedAgo(2 * time.Minute),
				freed(time.Minute)}, 45, table.ActWait, 0, "drains-first"},
		{"what it said a moment before this leadership does",
			threeVoters, []func(*Ring){leave(pb, time.Hour), snapshotAgo(0), balanced, acceptedAgo(time.Minute),
				freed(time.Second)}, 45, table.ActRemoveMember, 0xb1, ""},
		{"one that is away serves nobody",
			voters(5), []func(*Ring){leave(pb, 0), snapshotAgo(0), balanced, awayFor(1, time.Second)}, 45,
			table.ActRemoveMember, 0xb1, ""},
		{"leadership is handed over meanwhile",
			threeVoters, []func(*Ring){leave(pa, 0), snapshotAgo(0), balanced}, 45, table.ActMoveLeader, 0xb1, ""},
		{"a snapshot is waited for until a minute has passed",
			threeVoters, []func(*Ring){leave(pb, leavePatience)}, 45, table.ActRemoveMember, 0xb1, ""},
		{"a clock that is a minute ahead is waited for no longer",
			threeVoters, []func(*Ring){leave(pb, -leavePatience)}, 45, table.ActRemoveMember, 0xb1, ""},
		{"one that is less ahead is",
			threeVoters, []func(*Ring){leave(pb, time.Second-leavePatience)}, 45, table.ActWait, 0, "snapshot-first"},
		{"the learner of the only voter leaves", pairRing, []func(*Ring){leave(pb, 0)}, 45, table.ActRemoveMember, 0xb1,
			""},

		{"leadership goes to the voter that is furthest on",
			threeVoters, []func(*Ring){leave(pa, time.Hour), match(1, 4000)}, 45, table.ActMoveLeader, 0xc3, ""},
		{"and not to one that is out of reach",
			threeVoters, []func(*Ring){alarm(table.AlarmCorrupt, 0xa1), hashes(2, 1, 1), awayFor(1, time.Second),
				match(2, 4000)},
			46, table.ActMoveLeader, 0xc3, ""},
		{"nor to one whose streams are down",
			threeVoters, []func(*Ring){alarm(table.AlarmCorrupt, 0xa1), hashes(2, 1, 1), streamsDown(1, time.Second),
				match(2, 4000)},
			46, table.ActMoveLeader, 0xc3, ""},
		{"nor to a learner", twoAndOne, []func(*Ring){leave(pa, time.Hour), match(1, 4000)}, 45, table.ActMoveLeader,
			0xb1,
			""},
		{"and to nobody where none is in reach",
			twoVotersAB, []func(*Ring){alarm(table.AlarmCorrupt, 0), wrong(0xa1), awayFor(1, time.Second)}, 46,
			table.ActWait, 0,
			"no-successor"},

		{"three to two: not with a learner on its way",
			twoAndOne, []func(*Ring){two, snapshotAgo(time.Minute)}, 44, table.ActPromote, 0xc3, ""},
		{"three to two: not of three",
			threeVoters, []func(*Ring){two, snapshotAgo(time.Minute)}, 49, table.ActWait, 0, "replicas-above-wanted"},
		{"three to two: not of three of which one is away",
			threeVoters, []func(*Ring){two, snapshotAgo(time.Minute), awayFor(2, time.Second)}, 49, table.ActWait, 0,
			"replicas-above-wanted"},
		{"three to two: not while one is out of reach",
			twoVotersAB, []func(*Ring){two, snapshotAgo(time.Minute), awayFor(1, time.Second)}, table.RowQuiet,
			table.ActKeep, 0,
			""},
		{"three to two: nor while its streams are down",
			twoVotersAB, []func(*Ring){two, snapshotAgo(time.Minute), streamsDown(1, time.Second)}, table.RowQuiet,
			table.ActKeep,
			0, ""},
		{"three to two: not where nobody ordered it",
			twoVotersAB, []func(*Ring){snapshotAgo(time.Minute), func(r *Ring) { r.Policy.Replicas = 2 }}, 49,
			table.ActWait,
			0,
			"even-voters"},
		{"three to two: not with a snapshot that is old",
			twoVotersAB, []func(*Ring){two, snapshotAgo(time.Hour)}, 45, table.ActWait, 0, "snapshot-first"},
		{"three to two: the second serves nobody first",
			twoVotersAB, []func(*Ring){twoAgo(0), snapshotAgo(0), balanced}, 45, table.ActWait, 0, "drains-first"},
		{"three to two: and then it is removed",
			twoVotersAB, []func(*Ring){twoAgo(0), snapshotAgo(0), balanced, acceptedOf(mB.Name)}, 45,
			table.ActRemoveMember, 0xb1, ""},
		{"three to two: not because the leader served nobody once",
			twoVotersAB, []func(*Ring){twoAgo(0), snapshotAgo(0), balanced, accepted}, 45, table.ActWait, 0,
			"drains-first"},
		{"three to two: without a word after two minutes",
			twoVotersAB, []func(*Ring){twoAgo(drainPatience), snapshotAgo(0), balanced}, 45, table.ActRemoveMember,
			0xb1, ""},
		{"three to two: which begin when the third has left",
			twoVotersAB, []func(*Ring){twoAgo(time.Hour), leftAgo(pc, drainPatience-time.Second), snapshotAgo(0),
				balanced}, 45, table.ActWait, 0, "drains-first"},
		{"three to two: or when that is said",
			twoVotersAB, []func(*Ring){twoAgo(time.Hour), leave(pc, time.Hour), snapshotAgo(0), balanced}, 45,
			table.ActCompleteOrder, 0, ""},
		{"three to two: not while one of the two is to leave",
			twoVotersAB, []func(*Ring){twoAgo(0), acceptedOf(mB.Name), leave(pb, 0), snapshotAgo(0), balanced}, 45,
			table.ActWait, 0, "drains-first"},

		{"as many replicas as are ordered",
			threeVoters, []func(*Ring){ringOrder(record.Order{Kind: record.OrderReplicas, Replicas: 3})},
			table.RowQuiet,
			table.ActKeep, 0,
			""},
		{"four voters, of which one is away for a moment",
			voters(4), []func(*Ring){awayFor(1, time.Second)}, table.RowQuiet, table.ActKeep, 0, ""},
		{"seven voters", voters(7), nil, table.RowQuiet, table.ActKeep, 0, ""},
		{"nine voters", voters(9), nil, 49, table.ActWait, 0, "many-voters"},

		{"a learner that has started and is away is waited for",
			twoAndOne, []func(*Ring){awayFor(2, time.Hour), confirmedFor(time.Hour)}, 44, table.ActWait, 0,
			"learner-not-ready"},
		{"one that is heard of and has no name is judged by its log",
			twoAndOne, []func(*Ring){nameless(2), still}, 43, table.ActRemoveMember, 0xc3, ""},
		{"confirmed, and not heard of for 30 s",
			twoAndOne, []func(*Ring){nameless(2), awayFor(2, unheardTime), confirmedFor(startTime)}, 43,
			table.ActRemoveMember, 0xc3,
			""},
		{"confirmed, and not heard of for less",
			twoAndOne, []func(*Ring){nameless(2), awayFor(2, unheardTime-1), confirmedFor(startTime)}, 44,
			table.ActWait, 0,
			"learner-not-ready"},
		{"confirmed for less than two minutes",
			twoAndOne, []func(*Ring){nameless(2), awayFor(2, unheardTime), confirmedFor(startTime - 1)}, 44,
			table.ActWait, 0,
			"learner-not-ready"},
		{"never confirmed, for five minutes",
			twoAndOne, []func(*Ring){nameless(2), awayFor(2, stallTime), incarnationsOf(pc, pendingC)}, 43,
			table.ActRemoveMember,
			0xc3, ""},
		{"never confirmed, for less",
			twoAndOne, []func(*Ring){nameless(2), awayFor(2, stallTime-1), incarnationsOf(pc, pendingC)}, 44,
			table.ActWait,
			0,
			"learner-not-ready"},
		{"of no incarnation, for five minutes",
			twoAndOne, []func(*Ring){nameless(2), awayFor(2, stallTime), at(2, func(m *RingMember) { m.ID = 0xd9 })},
			43,
			table.ActRemoveMember, 0xd9, ""},
		{"behind and still, while a snapshot is pending",
			twoAndOne, []func(*Ring){still, at(2, func(m *RingMember) { m.PendingSnapshot = 9 })}, 44, table.ActWait, 0,
			"learner-not-ready"},
		{"behind and still, while the leader sends its state to somebody",
			twoAndOne, []func(*Ring){still, func(r *Ring) { r.SnapshotInFlight = true }}, 44, table.ActWait, 0,
			"learner-not-ready"},
		{"behind and still, nobody knows since when",
			twoAndOne, []func(*Ring){still, at(2, func(m *RingMember) { m.MovedAt = time.Time{} })}, 44, table.ActWait,
			0,
			"learner-not-ready"},
		{"still, and near enough to be promoted: it is not promoted",
			twoAndOne, []func(*Ring){still, match(2, 4999)}, 43, table.ActRemoveMember, 0xc3, ""},
		{"still, because there is nothing to move for",
			twoAndOne, []func(*Ring){at(2, func(m *RingMember) { m.MovedAt = t0.Add(-time.Hour) })}, 44,
			table.ActPromote,
			0xc3, ""},

		{"two are wanted, three are members, and one is not ready",
			threeFirst, []func(*Ring){two, match(2, 1)}, 44, table.ActWait, 0, "third-replica-missing"},
		{"a promotion that would need a quorum of which too few are connected",
			withLearnerC(3), []func(*Ring){streamsDown(1, time.Second), streamsDown(2, time.Second)},
			44, table.ActWait, 0, "learner-not-ready"},
		{"one of which enough are", withLearnerC(3), []func(*Ring){streamsDown(1, time.Second)}, 44, table.ActPromote,
			0xc3,
			""},
		{"a seventh voter", withLearnerC(6), nil, 44, table.ActPromote, 0xc3, ""},
		{"no eighth", withLearnerC(7), nil, 44, table.ActWait, 0, "third-replica-missing"},
		{"another's alarm holds no learner back",
			twoAndOne, []func(*Ring){alarm(table.AlarmNoSpace, 0xb1)}, 44, table.ActPromote, 0xc3, ""},
		{"a learner that is sent the state",
			twoAndOne, []func(*Ring){at(2, func(m *RingMember) { m.State = ProgressSnapshot })}, 44, table.ActWait, 0,
			"learner-not-ready"},
		{"a learner of an incarnation that is not confirmed",
			twoAndOne, []func(*Ring){incarnationsOf(pc, pendingC)}, 44, table.ActWait, 0, "learner-not-ready"},
		{"a newer incarnation that is not confirmed says nothing",
			twoAndOne, []func(*Ring){incarnationsOf(pc, func(i []record.Incarnation) []record.Incarnation {
				return append(i, record.Incarnation{Place: pc, Number: 2, InstanceID: "103", BootID: "boot2", Epoch: 1})
			})}, 44, table.ActPromote, 0xc3, ""},
		{"a learner that the list has first",
			twoAndOne, []func(*Ring){func(r *Ring) { slices.Reverse(r.Members) }}, 44, table.ActPromote, 0xc3, ""},

		{"an order to leave that names nobody is not done",
			threeVoters, []func(*Ring){ringOrder(record.Order{Kind: record.OrderLeave})}, table.RowQuiet, table.ActKeep,
			0, ""},
		{"a pause that names a place is not done",
			twoVotersAC, []func(*Ring){ringOrder(record.Order{Kind: record.OrderResume, Place: &pb})}, 49,
			table.ActWait, 0,
			"even-voters"},
		{"an order that names a member is not done for that",
			threeVoters, []func(*Ring){ringOrder(record.Order{Kind: record.OrderResume, Row: 42, MemberID: 0xb1})},
			table.RowQuiet,
			table.ActKeep, 0, ""},
		{"an order of another kind that names row 47 is not done",
			threeVoters, []func(*Ring){ringOrder(record.Order{Kind: record.OrderResume, Row: 47, MemberID: 0xb1})},
			table.RowQuiet,
			table.ActKeep, 0, ""},
		{"an override of another row is not done by what ends row 47",
			threeVoters, []func(*Ring){override(41, 0xb1, time.Hour)}, table.RowQuiet, table.ActKeep, 0, ""},
		{"an override is not done while its member is out of reach",
			threeVoters, []func(*Ring){override(42, 0xb1, time.Hour), awayFor(1, time.Second)}, table.RowQuiet,
			table.ActKeep, 0,
			""},
		{"an override of a minute ago is done where its member is in reach",
			threeVoters, []func(*Ring){override(42, 0xb1, DeadAfter)}, 45, table.ActCompleteOrder, 0, ""},
		{"an override of row 47 is not done while it is corrupt",
			threeVoters, []func(*Ring){override(47, 0xb1, time.Hour), alarm(table.AlarmCorrupt, 0xb1), hashes(1, 2, 1),
				awayFor(2,
					time.Second)},
			46, table.ActWait, 0, "corrupt-member"},
		{"an override of row 47 is done at once where its member is gone",
			twoVotersAC, []func(*Ring){override(47, 0xb1, time.Second)}, 45, table.ActCompleteOrder, 0, ""},
		{"an override of row 47 is not done at once where it is there",
			threeVoters, []func(*Ring){override(47, 0xb1, time.Second)}, table.RowQuiet, table.ActKeep, 0, ""},
		{"it is after a minute", threeVoters, []func(*Ring){override(47, 0xb1, DeadAfter)}, 45, table.ActCompleteOrder,
			0,
			""},
		{"an override is not done while an alarm names its member",
			twoVotersAC, []func(*Ring){override(42, 0xb1, 0), alarm(table.AlarmNoSpace, 0xb1), allDB(100, 99),
				compacted}, 48,
			table.ActWait, 0, "no-space"},
		{"another's alarm does not matter",
			twoVotersAC, []func(*Ring){override(42, 0xb1, 0), alarm(table.AlarmNoSpace, 0xa1), allDB(100, 99),
				compacted}, 45,
			table.ActCompleteOrder, 0, ""},
	}
	for _, c := range cases {
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
				if blocked = p.Blocked.Name; p.Blocked.Row != p.Row.String() {
					t.Errorf("blocked by row %s in row %s", p.Blocked.Row, p.Row)
				}
			}
			if p.Row != c.row || p.Act != c.act || blocked != c.blocked || c.id != 0 && p.MemberID != c.id {
				t.Errorf("row %s, %s %s, blocked %q: %s; want row %s, %s %s, %q", p.Row, p.Act, p.MemberID, blocked,
					p.Reason,
					c.row, c.act, c.id, c.blocked)
			}
		})
	}
}

// A promotion needs two looks that are a moment apart, and is refused by what the second one shows.
func TestGuardsOfTheTwoLooks(t *testing.T) {
	for gap, want := range map[time.Duration]table.Act{
		PollGap: table.ActPromote, PollGap - 1: table.ActWait, pollStale: table.ActPromote, pollStale +
			1: table.ActWait,
	} {
		r, previous := twoAndOne(), twoAndOne()
		previous.At = t0.Add(-gap)
		if p := Decide(t0, previous, r); p.Act != want {
			t.Errorf("%s apart: %s", gap, p.Act)
		}
	}
	r, previous := twoAndOne(), twoAndOne()
	previous.At = t0.Add(-250 * time.Millisecond)
	match(2, 1)(&r)
	if p := Decide(t0, previous, r); p.Act != table.ActWait {
		t.Errorf("it is behind by now: %s", p.Act)
	}
}

// Of several that wait to leave the first is shown, with its order.
func TestGuardsOfSeveralThatLeave(t *testing.T) {
	r := threeVoters()
	ringOrder(record.Order{Kind: record.OrderLeave, Place: &pb, Time: t0})(&r)
	ringOrder(record.Order{Kind: record.OrderLeave, Place: &pc, Time: t0})(&r)
	if p := Decide(t0, r, r); p.Act != table.ActWait || p.OrderNumber != 1 || !strings.Contains(p.Reason,
		pb.String()) {
		t.Errorf("%+v", p)
	}
}

// Of several learners that are not ready the first is shown. One of a pair is not promised to be promoted.
func TestGuardsOfWhatALearnerWaitsFor(t *testing.T) {
	r := threeFirst()
	match(1, 1)(&r)
	match(2, 1)(&r)
	if p := Decide(t0, r, r); p.Blocked == nil || !strings.Contains(p.Blocked.Reason, pb.String()) ||
		!strings.Contains(p.Blocked.Next, "promoted as soon as") {
		t.Errorf("%+v", p.Blocked)
	}
	r = pairRing()
	r.Policy.Replicas = 2
	match(1, 1)(&r)
	if p := Decide(t0, r, r); p.Blocked == nil || strings.Contains(p.Blocked.Next, "promoted") {
		t.Errorf("%+v", p.Blocked)
	}
}

// twoAgo is an order for two replicas.
func twoAgo(age time.Duration) func(*Ring) {
	return ringOrder(record.Order{Kind: record.OrderReplicas, Replicas: 2, Time: t0.Add(-age)})
}

// leftAgo is an order to leave that was done then, and given an hour ago.
func leftAgo(p replica.Place, age time.Duration) func(*Ring) {
	return ringOrder(record.Order{Kind: record.OrderLeave, Place: &p, Time: t0.Add(-time.Hour),
		Done: &record.Done{Time: t0.Add(-age)}})
}

// acceptedOf: the orders given so far were accepted by a member.
func acceptedOf(name string) func(*Ring) {
	return func(r *Ring) {
		for n := range r.Record.Orders {
			r.Record.Orders[n].Accepted = &record.Accepted{By: name}
		}
	}
}

// balanced has replicas behind a load balancer.
func balanced(r *Ring) { r.Balanced = true }

// freed: the others have been a quorum without b for so long.
func freed(d time.Duration) func(*Ring) {
	return func(r *Ring) { r.Members[1].FreedAt = t0.Add(-d) }
}

// acceptedAgo: the only order was accepted so long ago.
func acceptedAgo(d time.Duration) func(*Ring) {
	return func(r *Ring) { r.Record.Orders[0].Accepted = &record.Accepted{Time: t0.Add(-d)} }
}

// accepted: the replicas that are ordered to leave have said that they serve nobody any more.
func accepted(r *Ring) { acceptedOf("x")(r) }
