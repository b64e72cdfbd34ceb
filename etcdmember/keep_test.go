package etcdmember

import (
	"context"
	"errors"
	"net/netip"
	"slices"
	"testing"
	"time"

	"github.com/quorate/quorate/etcdmember/hosts"
	"github.com/quorate/quorate/etcdmember/table"
	"github.com/quorate/quorate/internal/record"
	"github.com/quorate/quorate/internal/replica"
)

// kept is a replica that seeded and runs, with the state of Keep.
func kept(t *testing.T) (*machine, *keeper) {
	t.Helper()
	m := newMachine(t, pa, newRecord())
	ms := m.open()
	if _, err := m.boot(ms); err != nil {
		t.Fatal(err)
	}
	ms.keeping = true
	k := &keeper{m: ms, beside: beside{m: ms}}
	k.beside.forget()
	return m, k
}

func TestKeepEndsWhenAnotherInstanceHasThePlace(t *testing.T) {
	m, k := kept(t)
	if err := k.look(t.Context(), table.MemberStatus{}); err != nil {
		t.Fatalf("nothing has changed: %v", err)
	}
	m.record.change(func(v *record.View) {
		v.Replicas[pa] = append(v.Replicas[pa], record.Incarnation{Place: pa, Number: 2, InstanceID: "201", BootID: "b",
			Epoch: 1})
	})
	if err := k.look(t.Context(), table.MemberStatus{}); !errors.Is(err, ErrDecideAgain) {
		t.Errorf("it goes on: %v", err)
	}
	if !m.child.Running() {
		t.Error("Keep stopped the member itself: the agent does, in order")
	}
}

// The first look follows the loss of the leader, the next one is due when the loss may be shown; an election or a
// lasting loss brings no more.
func TestALostQuorumIsLookedAtSoon(t *testing.T) {
	k := &keeper{m: &Membership{}}
	for n, c := range []struct {
		s    table.MemberStatus
		want bool
	}{{table.MemberStatus{}, false}, {table.MemberStatus{MemberID: 1, Leader: 2},
		false}, {table.MemberStatus{MemberID: 1}, true},
		{table.MemberStatus{MemberID: 1}, false},
		{table.MemberStatus{MemberID: 1, Leader: 1}, false}, {table.MemberStatus{MemberID: 1}, true}} {
		if got := k.lostLeader(c.s); got != c.want {
			t.Errorf("tick %d: a look is due: %t, want %t", n, got, c.want)
		}
	}
	for _, c := range []struct{ alone, want time.Duration }{{-2 * time.Second, 3 * time.Second},
		{-6 * time.Second, keepPause}, {0, table.QuorumPatience}} {
		k.m.silences.Alone = t0.Add(c.alone)
		if got := k.afterLook(t0).Sub(t0); got != c.want {
			t.Errorf("alone for %s: the next look is in %s, want %s", -c.alone, got, c.want)
		}
	}
	k.m.silences.Alone = time.Time{}
	if got := k.afterLook(t0).Sub(t0); got != keepPause {
		t.Errorf("with a quorum: the next look is in %s", got)
	}
}

func TestKeepGoesOnWhileTheRecordIsUnreadable(t *testing.T) {
	m, k := kept(t)
	m.record.fail(errors.New("503"))
	if err := k.look(t.Context(),
		table.MemberStatus{}); err != nil || blockedName(k.m) != "record-unreadable" {
		t.Errorf("%v, blocked by %q", err, blockedName(k.m))
	}
	m.record.fail(nil)
	if err := k.look(t.Context(), table.MemberStatus{}); err != nil || blockedName(k.m) != "" {
		t.Errorf("%v, blocked by %q", err, blockedName(k.m))
	}
}

// All agents of the cluster see the loss at once: none of them may end its member for it.
func TestALostOutcomeIsCreatedAgainInPlace(t *testing.T) {
	m, k := kept(t)
	formed := *m.record.formed(1)
	m.record.change(func(v *record.View) { v.Epochs[0].Outcome = nil })
	if err := k.look(t.Context(), table.MemberStatus{}); err != nil {
		t.Fatal(err)
	}
	if got := m.record.formed(1); got == nil || *got != formed {
		t.Errorf("the record says %+v, want %+v", got, formed)
	}
}

func TestKeepEndsWithItsContext(t *testing.T) {
	_, k := kept(t)
	end := inBackground(t, k.m.Keep)
	if err := end(); err != nil {
		t.Error(err)
	}
}

// etcd applies an entry before it is on the disk: a mark is of what an earlier look saw, and only once another came
// after it.
func TestAMarkIsNeverAboveTheDisk(t *testing.T) {
	m, k := kept(t)
	look := func(applied uint64) {
		k.mark(t.Context(), table.MemberStatus{MemberID: 0xa1, Term: 2, Applied: applied})
	}
	for _, applied := range []uint64{10, 10, 10} {
		look(applied) // its disk hangs: 10 may not be on it
	}
	certain := func() []record.Mark { // each is a beat; what it says of the disk is what was known before, or more
		return slices.DeleteFunc(slices.Clone(m.record.marked), func(x record.Mark) bool { return x.Applied == 0 })
	}
	if got := certain(); len(got) != 0 || len(m.record.marked) != 3 {
		t.Errorf("marked: %+v", m.record.marked)
	}
	look(15)
	look(15)
	if got := certain(); len(got) != 2 || got[0].Applied != 10 || got[1].Applied != 10 || got[0].BootID != "boot1" ||
		!got[1].Beat.After(got[0].Beat) || !got[1].Time.Equal(got[0].Time) || got[0].MemberID != 0xa1 ||
		got[0].Epoch != 1 || got[0].Term != 2 {
		t.Errorf("marked: %+v", got)
	}
	k.mark(t.Context(), table.MemberStatus{MemberID: 0xa2, Term: 3, Applied: 20})
	if len(certain()) != 2 {
		t.Errorf("another member's beginning was marked: %+v", m.record.marked)
	}
}

// A peer that the hosts file does not know is looked for at once, but not four times a second.
func TestAnUnknownPeerIsLookedForOnce(t *testing.T) {
	m, k := kept(t)
	s := table.MemberStatus{Members: []table.Member{entry(pa, "101", 0xa1), entry(pb, "102", 0xb1)}}
	if !k.unknownPeer(s) {
		t.Fatal("b is known")
	}
	if err := k.look(t.Context(), s); err != nil || k.unknownPeer(s) {
		t.Errorf("it is looked for again at once: %v", err)
	}
	m.record.change(func(v *record.View) {
		v.Replicas[pb] = []record.Incarnation{{Place: pb, Number: 1, InstanceID: "102", BootID: "b", Epoch: 1,
			Addresses: m.me.Addresses}}
	})
	if err := k.look(t.Context(), s); err != nil || len(k.unresolved) != 0 {
		t.Errorf("%v, unresolved %v", err, k.unresolved)
	}
}

// A replica that is made anew has a name that is known, and may have another address: its new id in the list makes
// every replica look.
func TestANewMemberOfAKnownPlaceIsLookedForOnce(t *testing.T) {
	m, k := kept(t)
	at := func(k uint64, address string) record.Incarnation {
		return record.Incarnation{Place: pb, Number: k, InstanceID: "102", BootID: "b", Epoch: 1,
			Addresses: []netip.Addr{netip.MustParseAddr(address)}}
	}
	m.record.change(func(v *record.View) { v.Replicas[pb] = []record.Incarnation{at(1, "127.0.0.21")} })
	s := table.MemberStatus{Members: []table.Member{entry(pa, "101", 0xa1), entry(pb, "102", 0xb1)}}
	if err := k.look(t.Context(), s); err != nil || k.newMember(s) || k.unknownPeer(s) {
		t.Fatalf("nothing is new: %v", err)
	}
	m.record.change(func(v *record.View) { v.Replicas[pb] = append(v.Replicas[pb], at(2, "127.0.0.22")) })
	s.Members[1] = table.Member{ID: 0xb2, PeerURLs: s.Members[1].PeerURLs, Learner: true}
	if k.unknownPeer(s) || !k.newMember(s) {
		t.Fatal("its name is unknown, or its id is not new")
	}
	if err := k.look(t.Context(), s); err != nil || k.newMember(s) {
		t.Errorf("it is looked for again at once: %v", err)
	}
	if got, _ := hosts.Lookup(k.m.cfg.HostsFile, pb.DNSName(testCluster)); got.String() != "127.0.0.22" {
		t.Errorf("the hosts file has %s", got)
	}
}

func TestTheLeadersTickFollowsItsLearners(t *testing.T) {
	b := &beside{m: newMachine(t, pa, newRecord()).open()}
	b.forget()
	b.again = false // it has looked at once, when the leadership was new
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
		{"in every tick, also if the last found nothing", time.Second + besidePeriod, pair, true, true},
		{"it takes long: the last look was now", 20 * time.Second, pair, false, true},
		{"it takes long: not in every tick", 20*time.Second + besidePeriod, pair, false, false},
		{"it takes long: but within what a promotion allows", 22 * time.Second, pair, false, true},
		{"a pair that is to stay one", 30 * time.Second, pair, true, false},
		{"another learner", 31 * time.Second,
			table.MemberStatus{Members: []table.Member{voter, learner, {ID: 0xc1, Learner: true}}}, true, true},
	} {
		b.quiet = step.quiet
		due := b.due(t0.Add(step.at), step.s)
		if due != step.due {
			t.Errorf("%s: due %t", step.name, due)
		}
		if due {
			b.previous.At = t0.Add(step.at)
		}
	}
}

// A learner is waited for by asking the member on this machine alone. The look at everything comes when it has caught
// up, and the second one that a promotion needs not before that means anything.
func TestTheLeaderLooksWhenALearnerHasCaughtUp(t *testing.T) {
	b := &beside{m: newMachine(t, pa, newRecord()).open()}
	b.forget()
	b.again = false
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
		{"no learner", 0, status(0, 0), false, besidePeriod},
		{"a new one", time.Second, status(1, 0), true, learnerPeriod},
		{"it is behind", 1050 * time.Millisecond, status(1, 0), false, learnerPeriod},
		{"it has caught up", 1100 * time.Millisecond, status(4000, 0), true, learnerPeriod},
		{"too soon for the second look", 1150 * time.Millisecond, status(4000, 0), false, learnerPeriod},
		{"the second look", 1300 * time.Millisecond, status(4000, 0), true, learnerPeriod},
		{"another is added", 1350 * time.Millisecond, status(5000, 1), false, learnerPeriod},
		{"and caught up, while the first is looked at", 1400 * time.Millisecond, status(5000, 5000), false,
			learnerPeriod},
		{"both are looked at", 1500 * time.Millisecond, status(5000, 5000), true, learnerPeriod},
		{"they are voters", 2 * time.Second, status(0, 0), false, besidePeriod},
		{"one is given a large database", time.Minute, status(0, 1), true, learnerPeriod},
		{"that takes long", 80 * time.Second, status(0, 1), true, besidePeriod},
		{"and is not looked at in every tick", 80*time.Second + besidePeriod, status(0, 1), false, besidePeriod},
		{"until it is there", 80*time.Second + 2*besidePeriod, status(0, 5000), true, learnerPeriod},
		{"and has its second look", 80*time.Second + 2*besidePeriod + table.PollGap, status(0, 5000), true,
			learnerPeriod},
	} {
		due := b.due(t0.Add(step.at), step.s)
		if due != step.due {
			t.Errorf("%s: due %t", step.name, due)
		}
		if due {
			b.previous.At = t0.Add(step.at)
		}
		if got := b.period(t0.Add(step.at)); got != step.period {
			t.Errorf("%s: the next tick is in %s", step.name, got)
		}
	}
}

// A pair whose learner is to stay one costs what a cluster without learners does.
func TestALearnerThatStaysOneIsNotWaitedFor(t *testing.T) {
	b := &beside{m: newMachine(t, pa, newRecord()).open()}
	b.forget()
	b.due(t0, table.MemberStatus{Members: []table.Member{{ID: 0xa1}, {ID: 0xb1, Learner: true}}})
	b.quiet = true
	if b.awaits() || b.period(t0) != besidePeriod {
		t.Errorf("awaited %t, the next tick is in %s", b.awaits(), b.period(t0))
	}
}

// A leader that handed over in the middle of an order has left the rest of it to the next, and one act follows the
// other.
func TestTheLeaderLooksAgainWhereThereWasSomethingToDo(t *testing.T) {
	b := &beside{m: newMachine(t, pa, newRecord()).open()}
	alone := table.MemberStatus{Members: []table.Member{{ID: 0xa1}}}
	b.forget()
	if !b.due(t0, alone) {
		t.Error("a new leader does not look")
	}
	b.again = false
	if b.due(t0.Add(time.Second), alone) {
		t.Error("it looks four times a second though there is nothing to do")
	}
	b.forget()
	if !b.due(t0.Add(time.Minute), alone) || !b.since.Equal(t0.Add(time.Minute)) {
		t.Errorf("the next leadership does not look, or is not new: %s", b.since)
	}
}

// What the member itself says makes a look due: an alarm, a voter that is not heard of. A whole cluster is left alone.
func TestTroubleIsLookedAtSoonAndThenAtThePaceOfTheRecord(t *testing.T) {
	b := &beside{m: newMachine(t, pa, newRecord()).open()}
	b.forget()
	b.again = false // it has led for long
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
		due := b.due(t0.Add(step.at), step.s)
		if due != step.due {
			t.Errorf("%s: due %t", step.name, due)
		}
		if due {
			b.previous.At = t0.Add(step.at)
		}
	}
	if since := b.unreachable[0xb1]; !since.Equal(t0.Add(2 * time.Hour)) {
		t.Errorf("out of reach since %s", since)
	}
}

// What was seen in one leadership says nothing in the next: the member may have been in reach all the time between.
func TestALostLeadershipIsForgotten(t *testing.T) {
	b := &beside{m: newMachine(t, pa, newRecord()).open()}
	b.forget()
	quiet := table.PeerProgress{Match: 7}
	first := b.member(table.Member{ID: 0xb1}, quiet, t0)
	if again := b.member(table.Member{ID: 0xb1}, quiet, t0.Add(time.Minute)); !again.UnreachableSince.Equal(t0) ||
		!again.MovedAt.Equal(first.MovedAt) {
		t.Errorf("a minute later: %+v", again)
	}
	for _, at := range []time.Time{t0, t0.Add(besidePatience)} {
		b.m.leaderWaits.Only(&replica.Wait{Row: "43", Name: "learner-not-ready", Reason: "r", Next: "n"}, at)
	}
	if got := blockedName(b.m); got != "learner-not-ready" {
		t.Errorf("it shows %q", got)
	}
	b.forget()
	if next := b.member(table.Member{ID: 0xb1}, quiet,
		t0.Add(time.Hour)); !next.UnreachableSince.Equal(t0.Add(time.Hour)) {
		t.Errorf("in the next leadership: %+v", next)
	}
	if got := blockedName(b.m); got != "" {
		t.Errorf("a wait of the former leader is shown: %s", got)
	}
}

func TestTheSuccessorIsTheBestVoterInReach(t *testing.T) {
	progress := func(match uint64, active, learner bool) table.PeerProgress {
		return table.PeerProgress{Match: match, RecentActive: active, Learner: learner}
	}
	self := progress(100, true, false)
	for name, c := range map[string]struct {
		others map[record.MemberID]table.PeerProgress
		best   record.MemberID
		alone  bool
	}{
		"alone":                 {nil, 0, true},
		"a learner is no voter": {map[record.MemberID]table.PeerProgress{2: progress(100, true, true)}, 0, true},
		"the longest log": {map[record.MemberID]table.PeerProgress{2: progress(90, true, false),
			3: progress(95, true, false)}, 3, false},
		"not one that is away": {map[record.MemberID]table.PeerProgress{2: progress(90, true, false),
			3: progress(99, false, false)}, 2, false},
		"nobody is heard of": {map[record.MemberID]table.PeerProgress{2: progress(90, false, false)}, 0, false},
		"not one without a match": {map[record.MemberID]table.PeerProgress{2: progress(0, true, false),
			3: progress(1, true, false)}, 3, false},
	} {
		s := table.MemberStatus{MemberID: 1, Progress: map[record.MemberID]table.PeerProgress{1: self}}
		for id, p := range c.others {
			s.Progress[id] = p
		}
		if best, alone := s.Successor(); best != c.best || alone != c.alone {
			t.Errorf("%s: %s, alone %t", name, best, alone)
		}
	}
}

func TestTheNewestIncarnationHasTheAddress(t *testing.T) {
	m := newMachine(t, pa, newRecord())
	ms := m.open()
	begin := time.Now()
	incarnation := func(p replica.Place, age time.Duration) record.Incarnation {
		return record.Incarnation{Place: p, Number: 1, Addresses: addresses("10.0.0.9"), Time: begin.Add(-age)}
	}
	for _, ages := range [][2]time.Duration{{time.Hour, time.Minute}, {time.Minute, time.Hour}} {
		ms.keepHosts(record.View{Replicas: map[replica.Place][]record.Incarnation{pb: {incarnation(pb, ages[0])},
			pc: {incarnation(pc, ages[1])}}})
		younger := pb
		if ages[1] < ages[0] {
			younger = pc
		}
		for _, p := range []replica.Place{pb, pc} {
			address, _ := hosts.Lookup(ms.cfg.HostsFile, p.DNSName(ms.cfg.Cluster.Name))
			if (address.String() == "10.0.0.9") != (p == younger) {
				t.Errorf("%s is at %s; the younger is %s", p, address, younger)
			}
		}
	}
}

// ask gives up on the others soon after one has answered through quorum, and on all at the latest after askTimeout.
func TestASilentAddressCostsLittle(t *testing.T) {
	m := newMachine(t, pa, newRecord())
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	begin := time.Now()
	answers := m.open().asks.ask(ctx, []target{{Place: pb, instanceID: "102", address: addresses("192.0.2.1")[0]}})
	if took := time.Since(begin); took > time.Second || answers[0].Reach != table.ReachNothing {
		t.Errorf("%+v after %s", answers, took)
	}
}

// waitsFor is the name of what a member that runs waits for; empty: nothing.
func waitsFor(t *testing.T, s *table.Silences, f table.Facts) string {
	t.Helper()
	s.Note(&f)
	p := table.Decide(f.Now, table.Classify(f))
	if p.Row != table.RowRunning || p.Act != table.ActKeep {
		t.Errorf("row %s wants to %s", p.Row, p.Act)
	}
	if p.Blocked == nil {
		return ""
	}
	return p.Blocked.Name
}

func TestARunningMemberWithoutQuorumSaysSoOnceThatHasLasted(t *testing.T) {
	var s table.Silences
	begin := time.Now()
	look := func(after time.Duration, reach table.Reach) string {
		f := three()
		running(&f)
		f.Now = begin.Add(after)
		for i := range f.Answers {
			f.Answers[i].Reach = reach
		}
		return waitsFor(t, &s, f)
	}
	for _, step := range []struct {
		after time.Duration
		reach table.Reach
		want  string
	}{
		{0, table.ReachLinearizable, ""},
		{10 * time.Second, table.ReachAnswers, ""}, // it may be an election
		{14 * time.Second, table.ReachTCP, ""},
		{15 * time.Second, table.ReachNothing, "no-quorum"},
		{25 * time.Second, table.ReachLinearizable, ""},
		{26 * time.Second, table.ReachNothing, ""}, // a new one begins anew
	} {
		if got := look(step.after, step.reach); got != step.want {
			t.Errorf("after %s with reach %d: %q, want %q", step.after, step.reach, got, step.want)
		}
	}
}

func TestAMemberThatItsPeersDoNotConnectWithSaysSo(t *testing.T) {
	var s table.Silences
	begin := time.Now()
	for _, step := range []struct {
		after      time.Duration
		leaderless bool
		reach      table.Reach
		want       string
	}{
		{0, true, table.ReachLinearizable, ""}, // it may have been started just now
		{4 * time.Second, true, table.ReachLinearizable, ""},
		{5 * time.Second, true, table.ReachLinearizable, "peers-do-not-connect"},
		{6 * time.Second, false, table.ReachLinearizable, ""},
		{7 * time.Second, true, table.ReachLinearizable, ""}, // another one
		{8 * time.Second, true, table.ReachNothing, ""},      // nobody has a leader: that is another wait
		{13 * time.Second, true, table.ReachNothing, "no-quorum"},
	} {
		f := three()
		running(&f)
		f.Now, f.Directory.Leaderless = begin.Add(step.after), step.leaderless
		for i := range f.Answers {
			f.Answers[i].Reach = step.reach
		}
		if got := waitsFor(t, &s, f); got != step.want {
			t.Errorf("after %s: %q, want %q", step.after, got, step.want)
		}
	}
}
