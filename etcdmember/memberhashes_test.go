package etcdmember

import (
	"testing"
	"time"

	"github.com/quorate/quorate/etcdmember/leader"
	"github.com/quorate/quorate/etcdmember/table"
	"github.com/quorate/quorate/internal/record"
)

// A member that is out of reach would keep the hashes of all from being known until the task's time is up, and a
// learner refuses the question.
func TestHashesAreAskedOfTheVotersThatAreHeardOf(t *testing.T) {
	for name, change := range map[string]func(*leader.RingMember){
		"not heard of":         func(m *leader.RingMember) { m.RecentActive = false },
		"its streams are down": func(m *leader.RingMember) { m.StreamsActive = false },
		"a learner":            func(m *leader.RingMember) { m.Learner = true },
	} {
		m := threeVoters().Members[1]
		if change(&m); asked(m) {
			t.Errorf("%s: it is asked", name)
		}
	}
	for _, m := range threeVoters().Members {
		if !asked(m) {
			t.Errorf("%s is not asked", m.ID)
		}
	}
}

// What was told counts for a minute. One that was away for a moment, or could not be compared, does not cost that
// minute.
func TestHashesAreAskedAgain(t *testing.T) {
	all := func() map[record.MemberID]dataHash {
		return map[record.MemberID]dataHash{0xa1: {7, 100, 50}, 0xb1: {8, 100, 50}, 0xc3: {7, 100, 50}}
	}
	lacksB := func(h map[record.MemberID]dataHash) { delete(h, 0xb1) }
	for _, tc := range []struct {
		name   string
		change func(map[record.MemberID]dataHash)
		member func(*leader.RingMember)
		since  time.Duration
		due    bool
		told   int
	}{
		{"all have told", nil, nil, hashCounts - time.Second, false, 3},
		{"all have told, long ago", nil, nil, hashCounts, true, 0},
		{"one has not, a moment ago", lacksB, nil, hashAgain - time.Second, false, 2},
		{"one has not", lacksB, nil, hashAgain, true, 2},
		{"one has not, and is out of reach", lacksB, func(m *leader.RingMember) { m.RecentActive = false },
			hashCounts - time.Second, false, 2},
		{"a learner has not", lacksB, func(m *leader.RingMember) { m.Learner = true }, hashCounts - time.Second, false,
			2},
		{"one had compacted less", func(h map[record.MemberID]dataHash) { h[0xb1] = dataHash{8, 100, 40} }, nil,
			hashAgain, true, 2},
		{"the leader has not", func(h map[record.MemberID]dataHash) { delete(h, 0xa1) }, nil, hashAgain, true, 0},
	} {
		hashes, r := all(), threeVoters()
		if tc.change != nil {
			tc.change(hashes)
		}
		if tc.member != nil {
			tc.member(&r.Members[1])
		}
		w := memberHashes{reported: hashes, at: t0}
		now, told := t0.Add(tc.since), 0
		w.give(now, &r)
		for _, m := range r.Members {
			if m.HashRevision != 0 {
				told++
			}
		}
		if due := w.due(now, r); due != tc.due || told != tc.told {
			t.Errorf("%s: due %t, want %t; %d hashes are known, want %d", tc.name, due, tc.due, told, tc.told)
		}
	}
}

// A second member is found corrupt within the minute for which the hashes count that showed who the first one is: they
// say nothing of the second.
func TestHashesCountForTheAlarmsThatTheyWereToldFor(t *testing.T) {
	of := func(ids ...record.MemberID) (out []table.Alarm) {
		for _, id := range ids {
			out = append(out, table.Alarm{MemberID: id, Kind: table.AlarmCorrupt})
		}
		return append(out, table.Alarm{MemberID: 0xa1, Kind: table.AlarmNoSpace})
	}
	var w memberHashes
	w.isAbout(of(0xb1))
	w.reported, w.at = map[record.MemberID]dataHash{0xa1: {7, 100, 50}}, t0
	if w.isAbout(of(0xb1)); w.reported == nil {
		t.Error("the same alarms, and the hashes are forgotten")
	}
	if w.isAbout(of(0xc1, 0xb1)); w.reported != nil || !w.due(t0, threeVoters()) {
		t.Errorf("another alarm, and the hashes count: %+v", w)
	}
}
