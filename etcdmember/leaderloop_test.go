package etcdmember

import (
	"testing"
	"time"

	"github.com/quorate/quorate/etcdmember/etcdtest"
	"github.com/quorate/quorate/etcdmember/leader"
	"github.com/quorate/quorate/etcdmember/table"
	"github.com/quorate/quorate/internal/record"
	"github.com/quorate/quorate/internal/replica"
)

// What was seen in one leadership says nothing in the next: the member may have been in reach all the time between.
func TestALostLeadershipIsForgotten(t *testing.T) {
	ms := newMachine(t, pa, etcdtest.NewRecord(testCluster)).open()
	l := ms.newLeaderLoop()
	quiet := table.PeerProgress{Match: 7}
	first := l.member(table.Member{ID: 0xb1}, quiet, t0)
	if again := l.member(table.Member{ID: 0xb1}, quiet, t0.Add(time.Minute)); !again.UnreachableSince.Equal(t0) ||
		!again.MovedAt.Equal(first.MovedAt) {
		t.Errorf("a minute later: %+v", again)
	}
	for _, at := range []time.Time{t0, t0.Add(leaderPatience)} {
		ms.reported.leaderWaits.Only(&replica.Wait{Row: "43", Name: "learner-not-ready", Reason: "r", Next: "n"}, at)
	}
	if got := blockedName(ms); got != "learner-not-ready" {
		t.Errorf("it shows %q", got)
	}
	l.act(t.Context(), nil, t0, leader.Ring{At: t0})
	if !l.pace.observed.Equal(t0) || !l.previous.At.Equal(t0) {
		t.Errorf("observed at %s, and the observation is of %s", l.pace.observed, l.previous.At)
	}
	l.forget()
	if !l.pace.observed.Equal(l.previous.At) || !l.previous.At.IsZero() {
		t.Errorf("in the next leadership: observed at %s, and the observation is of %s", l.pace.observed, l.previous.At)
	}
	if next := l.member(table.Member{ID: 0xb1}, quiet,
		t0.Add(time.Hour)); !next.UnreachableSince.Equal(t0.Add(time.Hour)) {
		t.Errorf("in the next leadership: %+v", next)
	}
	if got := blockedName(ms); got != "" {
		t.Errorf("a wait of the former leader is shown: %s", got)
	}
}

// Since when a member can go is counted anew where it was needed for a minute, and where the leadership is new.
func TestSinceWhenAMemberCanGo(t *testing.T) {
	l := newMachine(t, pa, etcdtest.NewRecord(testCluster)).open().newLeaderLoop()
	look := func(after time.Duration, cHeard bool) time.Duration {
		r := leader.Ring{At: t0.Add(after), Leader: 1}
		for id := range record.MemberID(3) {
			heard := id < 2 || cHeard
			r.Members = append(r.Members, leader.RingMember{Member: table.Member{ID: id + 1}, RecentActive: heard,
				StreamsActive: heard})
		}
		l.noteNeeded(&r)
		return r.Members[1].FreedAt.Sub(t0)
	}
	for n, c := range []struct {
		after  time.Duration
		cHeard bool
		want   time.Duration
	}{
		{0, true, 0},
		{time.Minute, false, 0},
		{119 * time.Second, true, 0}, // it stands aside on
		{3 * time.Minute, false, 0},
		{4 * time.Minute, false, 0},
		{5 * time.Minute, true, 5 * time.Minute},
		{6 * time.Minute, true, 5 * time.Minute},
	} {
		if got := look(c.after, c.cHeard); got != c.want {
			t.Errorf("%d: it can go since %s, want %s", n, got, c.want)
		}
	}
	l.forget()
	if got := look(time.Hour, true); got != time.Hour {
		t.Errorf("in the next leadership: since %s", got)
	}
}
