package etcdmember

import (
	"testing"
	"time"

	"github.com/quorate/quorate/etcdmember/etcdtest"
	"github.com/quorate/quorate/etcdmember/leader"
	"github.com/quorate/quorate/etcdmember/table"
	"github.com/quorate/quorate/internal/record"
)

func TestTheLeadersTickFollowsItsLearners(t *testing.T) {
	p := newLeaderPace()
	p.again = false // it has observed at once, when the leadership was new
	voter, learner := table.Member{ID: 0xa1}, table.Member{ID: 0xb1, Learner: true}
	pair, alone := table.MemberStatus{Members: []table.Member{voter,
		learner}}, table.MemberStatus{Members: []table.Member{voter}}
	for _, step := range []struct {
		name  string
		at    time.Duration
		s     table.MemberStatus
		quiet bool
		due   bool
	}{
		{"no learner", 0, alone, false, false},
		{"a new learner", time.Second, pair, false, true},
		{"in every tick, also if the last found nothing", time.Second + tickPeriod, pair, true, true},
		{"it takes long: the last observation was now", 20 * time.Second, pair, false, true},
		{"it takes long: not in every tick", 20*time.Second + tickPeriod, pair, false, false},
		{"it takes long: but within what a promotion allows", 22 * time.Second, pair, false, true},
		{"a pair that is to stay one", 30 * time.Second, pair, true, false},
		{"another learner", 31 * time.Second,
			table.MemberStatus{Members: []table.Member{voter, learner, {ID: 0xc1, Learner: true}}}, true, true},
	} {
		p.quiet = step.quiet
		due := p.due(t0.Add(step.at), step.s, false)
		if due != step.due {
			t.Errorf("%s: due %t", step.name, due)
		}
		if due {
			p.observed = t0.Add(step.at)
		}
	}
}

// The snapshot before an order's step is there within a second, and nobody tells the leader.
func TestTheLeaderLooksForTheSnapshotThatAStepWaitsFor(t *testing.T) {
	p := newLeaderPace()
	p.again = false
	alone := table.MemberStatus{Members: []table.Member{{ID: 0xa1}}}
	for _, step := range []struct {
		name  string
		at    time.Duration // of an observation
		waits bool
		age   time.Duration // of that observation, at the tick
		due   bool
	}{
		{"nothing is waited for", time.Minute, false, time.Minute, false},
		{"not in every tick", 2 * time.Minute, true, tickPeriod, false},
		{"but soon", 2 * time.Minute, true, slowPeriod, true},
		{"and again", 2*time.Minute + slowPeriod, true, slowPeriod, true},
		{"it cannot be saved: at the pace of the record", 2*time.Minute + troubleWindow, true, slowPeriod, false},
		{"it is there", 10 * time.Minute, false, slowPeriod, false},
		{"another, later", 20 * time.Minute, true, slowPeriod, true},
	} {
		p.observed = t0.Add(step.at)
		p.awaitsSnapshot(p.observed, step.waits)
		if due := p.due(p.observed.Add(step.age), alone, false); due != step.due {
			t.Errorf("%s: due %t", step.name, due)
		}
	}
}

// A learner is waited for by asking the member on this machine alone. The observation of everything comes when it has
// caught up, and the second one that a promotion needs not before that means anything.
func TestTheLeaderObservesWhenALearnerHasCaughtUp(t *testing.T) {
	p := newLeaderPace()
	p.again = false
	status := func(b, c uint64) table.MemberStatus {
		s := table.MemberStatus{MemberID: 0xa1, Leader: 0xa1, Members: []table.Member{{ID: 0xa1}},
			Progress: map[record.MemberID]table.PeerProgress{0xa1: {Match: 5000, RecentActive: true}}}
		for id, match := range map[record.MemberID]uint64{0xb1: b, 0xc1: c} {
			if match != 0 {
				s.Members = append(s.Members, table.Member{ID: id, Learner: true})
				s.Progress[id] = table.PeerProgress{Match: match, RecentActive: true, StreamsActive: true,
					Learner: true}
			}
		}
		return s
	}
	for _, step := range []struct {
		name   string
		at     time.Duration
		s      table.MemberStatus
		due    bool
		period time.Duration
	}{
		{"no learner", 0, status(0, 0), false, tickPeriod},
		{"a new one", time.Second, status(1, 0), true, learnerPeriod},
		{"it is behind", 1050 * time.Millisecond, status(1, 0), false, learnerPeriod},
		{"it has caught up", 1100 * time.Millisecond, status(4000, 0), true, learnerPeriod},
		{"too soon for the second observation", 1150 * time.Millisecond, status(4000, 0), false, learnerPeriod},
		{"the second observation", 1300 * time.Millisecond, status(4000, 0), true, learnerPeriod},
		{"another is added", 1350 * time.Millisecond, status(5000, 1), false, learnerPeriod},
		{"and caught up, while the first is observed", 1400 * time.Millisecond, status(5000, 5000), false,
			learnerPeriod},
		{"both are observed", 1500 * time.Millisecond, status(5000, 5000), true, learnerPeriod},
		{"they are voters", 2 * time.Second, status(0, 0), false, tickPeriod},
		{"one is given a large database", time.Minute, status(0, 1), true, learnerPeriod},
		{"that takes long", 80 * time.Second, status(0, 1), true, tickPeriod},
		{"and is not observed in every tick", 80*time.Second + tickPeriod, status(0, 1), false, tickPeriod},
		{"until it is there", 80*time.Second + 2*tickPeriod, status(0, 5000), true, learnerPeriod},
		{"and has its second observation", 80*time.Second + 2*tickPeriod + leader.PollGap, status(0, 5000), true,
			learnerPeriod},
	} {
		due := p.due(t0.Add(step.at), step.s, false)
		if due != step.due {
			t.Errorf("%s: due %t", step.name, due)
		}
		if due {
			p.observed = t0.Add(step.at)
		}
		if got := p.period(t0.Add(step.at)); got != step.period {
			t.Errorf("%s: the next tick is in %s", step.name, got)
		}
	}
}

// A pair whose learner is to stay one costs what a cluster without learners does.
func TestALearnerThatStaysOneIsNotWaitedFor(t *testing.T) {
	p := newLeaderPace()
	p.due(t0, table.MemberStatus{Members: []table.Member{{ID: 0xa1}, {ID: 0xb1, Learner: true}}}, false)
	p.quiet = true
	if p.awaits() || p.period(t0) != tickPeriod {
		t.Errorf("awaited %t, the next tick is in %s", p.awaits(), p.period(t0))
	}
}

// A leader that handed over in the middle of an order has left the rest of it to the next, and one act follows the
// other.
func TestTheLeaderObservesAgainWhereThereWasSomethingToDo(t *testing.T) {
	l := newMachine(t, pa, etcdtest.NewRecord(testCluster)).open().newLeaderLoop()
	alone := table.MemberStatus{Members: []table.Member{{ID: 0xa1}}}
	if !l.pace.due(t0, alone, false) {
		t.Error("a new leader does not observe")
	}
	l.pace.again = false
	if l.pace.due(t0.Add(time.Second), alone, false) {
		t.Error("it observes four times a second though there is nothing to do")
	}
	l.forget()
	if !l.pace.due(t0.Add(time.Minute), alone, false) || !l.pace.since.Equal(t0.Add(time.Minute)) {
		t.Errorf("the next leadership does not observe, or is not new: %s", l.pace.since)
	}
}

// What the member itself says makes an observation due: an alarm, a voter that is not heard of. A whole cluster is left
// alone.
func TestTroubleIsObservedSoonAndThenAtThePaceOfTheRecord(t *testing.T) {
	p := newLeaderPace()
	p.again = false // it has led for long
	list := []table.Member{{ID: 0xa1}, {ID: 0xb1}}
	status := func(active bool, alarms ...table.Alarm) table.MemberStatus {
		return table.MemberStatus{MemberID: 0xa1, Leader: 0xa1, Members: list, Alarms: alarms,
			Progress: map[record.MemberID]table.PeerProgress{0xa1: {RecentActive: true}, 0xb1: {RecentActive: active}}}
	}
	full := table.Alarm{MemberID: 0xb1, Kind: table.AlarmNoSpace}
	for _, step := range []struct {
		name string
		at   time.Duration
		s    table.MemberStatus
		due  bool
	}{
		{"all is well", 0, status(true), false},
		{"and stays so", time.Hour, status(true), false},
		{"an alarm", time.Hour + time.Second, status(true, full), true},
		{"not in every tick", time.Hour + 2*time.Second, status(true, full), false},
		{"every two seconds", time.Hour + 3*time.Second, status(true, full), true},
		{"not for ever", time.Hour + 4*time.Minute, status(true, full), false},
		{"a voter is not heard of", 2 * time.Hour, status(false, full), true},
		{"for a minute and more", 2*time.Hour + 100*time.Second, status(false, full), true},
		{"later with the record", 2*time.Hour + 3*time.Minute, status(false, full), false},
	} {
		due := p.due(t0.Add(step.at), step.s, false)
		if due != step.due {
			t.Errorf("%s: due %t", step.name, due)
		}
		if due {
			p.observed = t0.Add(step.at)
		}
	}
	if since := p.unreachable[0xb1]; !since.Equal(t0.Add(2 * time.Hour)) {
		t.Errorf("out of reach since %s", since)
	}
}
