package etcdmember

import (
	"bytes"
	"context"
	"errors"
	"net/netip"
	"net/url"
	"os"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/quorate/quorate/etcdmember/etcdtest"
	"github.com/quorate/quorate/etcdmember/hosts"
	"github.com/quorate/quorate/etcdmember/member"
	"github.com/quorate/quorate/etcdmember/table"
	"github.com/quorate/quorate/internal/record"
	"github.com/quorate/quorate/internal/replica"
)

// kept is a replica that seeded and runs, with the state of Keep.
func kept(t *testing.T) (*machine, *Membership, *keeper) {
	t.Helper()
	m := newMachine(t, pa, etcdtest.NewRecord(testCluster))
	ms := m.open()
	if _, err := m.boot(ms); err != nil {
		t.Fatal(err)
	}
	ms.observer.keeping = true
	return m, ms, ms.newKeeper()
}

func TestKeepEndsWhenAnotherInstanceHasThePlace(t *testing.T) {
	m, _, k := kept(t)
	if err := k.reconcile(t.Context(), table.MemberStatus{}); err != nil {
		t.Fatalf("nothing has changed: %v", err)
	}
	m.record.Change(func(v *record.View) {
		v.Replicas[pa] = append(v.Replicas[pa], record.Incarnation{Place: pa, Number: 2, InstanceID: "201", BootID: "b",
			Epoch: 1})
	})
	if err := k.reconcile(t.Context(), table.MemberStatus{}); !errors.Is(err, ErrDecideAgain) {
		t.Errorf("it goes on: %v", err)
	}
	if !m.child.Running() {
		t.Error("Keep stopped the member itself: the agent does, in order")
	}
}

// The child of a calm leader is asked for what is unlike its answer before. What a member said that has ended is told
// to nobody.
func TestACalmLeaderIsAskedForNews(t *testing.T) {
	m, ms, k := kept(t)
	k.began = time.Now().Add(-bootWindow)
	k.nextRound = k.began.Add(time.Hour)
	for tick := range 2 {
		k.leader.pace.quiet, k.leader.pace.again, k.leader.pace.observed = true, false, time.Now() // nothing is due
		if err := k.tick(t.Context()); err != nil {
			t.Fatal(err)
		}
		m.child.mu.Lock()
		asked := m.child.asked
		m.child.mu.Unlock()
		s, err := ms.Status(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		want := url.Values{}
		if tick == 1 {
			want = url.Values{"unlike": {member.News(s)}, "within": asked["within"]}
		}
		if d := cmp.Diff(want, asked); d != "" {
			t.Errorf("tick %d: -want +asked\n%s", tick, d)
		}
		if told := ms.own.told.Load(); told == nil || !told.at.After(k.began) {
			t.Errorf("tick %d: nobody is told what it was told: %+v", tick, told)
		}
	}
	m.child.Stop(t.Context())
	if err := k.tick(t.Context()); err != nil {
		t.Fatal(err)
	}
	if told := ms.own.told.Load(); told != nil {
		t.Errorf("the member has ended, and said %+v", told)
	}
}

// The first round follows the loss of the leader, the next one is due when the loss may be shown; an election or a
// lasting loss brings no more.
func TestALostQuorumIsObservedSoon(t *testing.T) {
	k := &keeper{round: &reconciler{observer: &observer{}}}
	for n, c := range []struct {
		s    table.MemberStatus
		want bool
	}{{table.MemberStatus{}, false}, {table.MemberStatus{MemberID: 1, Leader: 2},
		false}, {table.MemberStatus{MemberID: 1}, true},
		{table.MemberStatus{MemberID: 1}, false},
		{table.MemberStatus{MemberID: 1, Leader: 1}, false}, {table.MemberStatus{MemberID: 1}, true}} {
		if got := k.lostLeader(c.s); got != c.want {
			t.Errorf("tick %d: a round is due: %t, want %t", n, got, c.want)
		}
	}
	for _, c := range []struct{ alone, want time.Duration }{{-2 * time.Second, 3 * time.Second},
		{-6 * time.Second, keepPause}, {0, table.QuorumPatience}} {
		k.round.observer.memory.silences.Alone = t0.Add(c.alone)
		if got := k.afterRound(t0).Sub(t0); got != c.want {
			t.Errorf("alone for %s: the next round is in %s, want %s", -c.alone, got, c.want)
		}
	}
	k.round.observer.memory.silences.Alone = time.Time{}
	if got := k.afterRound(t0).Sub(t0); got != keepPause {
		t.Errorf("with a quorum: the next round is in %s", got)
	}
}

// Only the member of a whole cluster, which has settled and has nothing to do, is asked rarely.
func TestACalmMemberIsAskedRarely(t *testing.T) {
	voters := []table.Member{entry(pa, "101", 0xa1), entry(pb, "102", 0xb1)}
	comes := append(slices.Clone(voters), table.Member{ID: 0xc1, Learner: true})
	own := func(leader record.MemberID, list []table.Member) table.MemberStatus {
		return table.MemberStatus{MemberID: 0xa1, Leader: leader, Members: list}
	}
	lacks := own(0xa1, voters)
	lacks.Progress = map[record.MemberID]table.PeerProgress{0xa1: {RecentActive: true}, 0xb1: {}}
	for name, c := range map[string]struct {
		s     table.MemberStatus
		quiet bool // the leader loop is
		after time.Duration
		calm  bool
		want  time.Duration
	}{
		"it follows":                 {own(0xb1, voters), false, bootWindow, true, calmPeriod},
		"it has just booted":         {own(0xb1, voters), false, 0, false, tickPeriod},
		"it leads":                   {own(0xa1, voters), true, bootWindow, true, tickPeriod}, // its question waits
		"it leads, and has to act":   {own(0xa1, voters), false, bootWindow, false, tickPeriod},
		"it leads, one is silent":    {lacks, true, bootWindow, false, tickPeriod},
		"it has no leader":           {own(0, voters), true, bootWindow, false, tickPeriod},
		"its member does not answer": {table.MemberStatus{}, true, bootWindow, false, tickPeriod},
		"a member comes":             {own(0xb1, comes), true, bootWindow, false, tickPeriod},
	} {
		k := &keeper{began: t0, leader: &leaderLoop{pace: newLeaderPace()}}
		k.leader.pace.again, k.leader.pace.quiet = false, c.quiet
		k.noteCluster(c.s)
		if k.leads {
			k.leader.pace.notice(t0, c.s)
		}
		now := t0.Add(c.after)
		if calm, got := k.calm(now), k.period(now); calm != c.calm || got != c.want {
			t.Errorf("%s: calm: %t, the next tick is in %s; want %t, %s", name, calm, got, c.calm, c.want)
		}
	}
}

func TestKeepGoesOnWhileTheRecordIsUnreadable(t *testing.T) {
	m, ms, k := kept(t)
	m.record.Fail(errors.New("503"))
	if err := k.reconcile(t.Context(),
		table.MemberStatus{}); err != nil || blockedName(ms) != "record-unreadable" {
		t.Errorf("%v, blocked by %q", err, blockedName(ms))
	}
	m.record.Fail(nil)
	if err := k.reconcile(t.Context(), table.MemberStatus{}); err != nil || blockedName(ms) != "" {
		t.Errorf("%v, blocked by %q", err, blockedName(ms))
	}
}

// All agents of the cluster see the loss at once: none of them may end its member for it.
func TestALostOutcomeIsCreatedAgainInPlace(t *testing.T) {
	m, _, k := kept(t)
	formed := *m.record.Formed(1)
	m.record.Change(func(v *record.View) { v.Epochs[0].Outcome = nil })
	if err := k.reconcile(t.Context(), table.MemberStatus{}); err != nil {
		t.Fatal(err)
	}
	if got := m.record.Formed(1); got == nil || *got != formed {
		t.Errorf("the record says %+v, want %+v", got, formed)
	}
}

func TestKeepEndsWithItsContext(t *testing.T) {
	_, ms, _ := kept(t)
	end := inBackground(t, ms.Keep)
	if err := end(); err != nil {
		t.Error(err)
	}
}

// etcd applies an entry before it is on the disk: a mark is of what an earlier poll saw, and only once another came
// after it.
func TestAMarkIsNeverAboveTheDisk(t *testing.T) {
	m, _, k := kept(t)
	poll := func(applied uint64) {
		k.marks.write(t.Context(), table.MemberStatus{MemberID: 0xa1, Term: 2, Applied: applied})
	}
	for _, applied := range []uint64{10, 10, 10} {
		poll(applied) // its disk hangs: 10 may not be on it
	}
	certain := func() []record.Mark { // each is a beat; what it says of the disk is what was known before, or more
		return slices.DeleteFunc(slices.Clone(m.record.Marked), func(x record.Mark) bool { return x.Applied == 0 })
	}
	if got := certain(); len(got) != 0 || len(m.record.Marked) != 3 {
		t.Errorf("marked: %+v", m.record.Marked)
	}
	poll(15)
	poll(15)
	if got := certain(); len(got) != 2 || got[0].Applied != 10 || got[1].Applied != 10 || got[0].BootID != "boot1" ||
		!got[1].Beat.After(got[0].Beat) || !got[1].Time.Equal(got[0].Time) || got[0].MemberID != 0xa1 ||
		got[0].Epoch != 1 || got[0].Term != 2 {
		t.Errorf("marked: %+v", got)
	}
	k.marks.write(t.Context(), table.MemberStatus{MemberID: 0xa2, Term: 3, Applied: 20})
	if len(certain()) != 2 {
		t.Errorf("another member's beginning was marked: %+v", m.record.Marked)
	}
}

// unmarked is a record that takes no marks while err says why.
type unmarked struct {
	Record
	err error
}

func (u *unmarked) WriteMark(context.Context, record.Mark) error { return u.err }

// A master that may create objects and not replace them writes its first mark, and no other: nothing else shows it.
func TestMarksThatCannotBeWrittenAreAWait(t *testing.T) {
	_, ms, k := kept(t)
	there := &unmarked{Record: k.marks.record, err: errors.New("no storage.objects.delete")}
	k.marks.record = there
	for n, want := range []string{"", table.WaitMarkNotWritten, table.WaitMarkNotWritten, ""} {
		if n == 3 {
			there.err = nil
		}
		k.marks.write(t.Context(), table.MemberStatus{MemberID: 0xa1, Term: 2, Applied: uint64(n)})
		if got := blockedName(ms); got != want {
			t.Errorf("after write %d: %q, want %q", n+1, got, want)
		}
	}
}

// Google's guest agent rewrites the hosts file from what it has read, so the block may be lost at any moment.
func TestNamesThatAnotherWriterLosesComeBackAtOnce(t *testing.T) {
	m, ms, k := kept(t)
	m.record.Change(func(v *record.View) {
		v.Replicas[pb] = []record.Incarnation{{Place: pb, Number: 1, InstanceID: "102", BootID: "b", Epoch: 1,
			Addresses: m.me.Addresses}}
	})
	s := table.MemberStatus{Members: []table.Member{entry(pa, "101", 0xa1), entry(pb, "102", 0xb1)}}
	if err := k.reconcile(t.Context(), s); err != nil || k.unknownPeer(s) {
		t.Fatalf("the names are not there: %v", err)
	}
	lease := []byte("127.0.0.1 localhost\n10.240.0.2 a.c.demo.internal a # Added by Google\n")
	if err := os.WriteFile(ms.cfg.HostsFile, lease, 0o644); err != nil {
		t.Fatal(err)
	}
	if !k.unknownPeer(s) {
		t.Fatal("the next tick does not see that the names are gone")
	}
	if err := k.reconcile(t.Context(), s); err != nil || k.unknownPeer(s) {
		t.Errorf("they are not written again: %v", err)
	}
	if text, err := os.ReadFile(ms.cfg.HostsFile); err != nil || !bytes.HasPrefix(text, lease) {
		t.Errorf("what the other has written is not kept: %q, %v", text, err)
	}
}

// A peer that the hosts file does not know makes a round at once, but not four times a second.
func TestAnUnknownPeerMakesOneRound(t *testing.T) {
	m, _, k := kept(t)
	s := table.MemberStatus{Members: []table.Member{entry(pa, "101", 0xa1), entry(pb, "102", 0xb1)}}
	if !k.unknownPeer(s) {
		t.Fatal("b is known")
	}
	if err := k.reconcile(t.Context(), s); err != nil || k.unknownPeer(s) {
		t.Errorf("it makes a round again at once: %v", err)
	}
	m.record.Change(func(v *record.View) {
		v.Replicas[pb] = []record.Incarnation{{Place: pb, Number: 1, InstanceID: "102", BootID: "b", Epoch: 1,
			Addresses: m.me.Addresses}}
	})
	if err := k.reconcile(t.Context(), s); err != nil || len(k.unresolved) != 0 {
		t.Errorf("%v, unresolved %v", err, k.unresolved)
	}
}

// A replica that is made anew has a name that is known, and may have another address: its new id in the list makes
// every replica observe.
func TestANewMemberOfAKnownPlaceMakesOneRound(t *testing.T) {
	m, ms, k := kept(t)
	at := func(k uint64, address string) record.Incarnation {
		return record.Incarnation{Place: pb, Number: k, InstanceID: "102", BootID: "b", Epoch: 1,
			Addresses: []netip.Addr{netip.MustParseAddr(address)}}
	}
	m.record.Change(func(v *record.View) { v.Replicas[pb] = []record.Incarnation{at(1, "127.0.0.21")} })
	s := table.MemberStatus{Members: []table.Member{entry(pa, "101", 0xa1), entry(pb, "102", 0xb1)}}
	if err := k.reconcile(t.Context(), s); err != nil || k.newMember(s) || k.unknownPeer(s) {
		t.Fatalf("nothing is new: %v", err)
	}
	m.record.Change(func(v *record.View) { v.Replicas[pb] = append(v.Replicas[pb], at(2, "127.0.0.22")) })
	s.Members[1] = table.Member{ID: 0xb2, PeerURLs: s.Members[1].PeerURLs, Learner: true}
	if k.unknownPeer(s) || !k.newMember(s) {
		t.Fatal("its name is unknown, or its id is not new")
	}
	if err := k.reconcile(t.Context(), s); err != nil || k.newMember(s) {
		t.Errorf("it makes a round again at once: %v", err)
	}
	if got, _ := hosts.Lookup(ms.cfg.HostsFile, pb.DNSName(testCluster)); got.String() != "127.0.0.22" {
		t.Errorf("the hosts file has %s", got)
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
	m := newMachine(t, pa, etcdtest.NewRecord(testCluster))
	ms := m.open()
	begin := time.Now()
	incarnation := func(p replica.Place, age time.Duration) record.Incarnation {
		return record.Incarnation{Place: p, Number: 1, Addresses: addresses("10.0.0.9"), Time: begin.Add(-age)}
	}
	for _, ages := range [][2]time.Duration{{time.Hour, time.Minute}, {time.Minute, time.Hour}} {
		keepHosts(ms.cfg, record.View{Replicas: map[replica.Place][]record.Incarnation{pb: {incarnation(pb, ages[0])},
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
	m := newMachine(t, pa, etcdtest.NewRecord(testCluster))
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	begin := time.Now()
	answers := m.open().observer.asks.ask(ctx, []target{{Place: pb, instanceID: "102", address: addresses("192.0.2.1")[0]}})
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
	poll := func(after time.Duration, reach table.Reach) string {
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
		if got := poll(step.after, step.reach); got != step.want {
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

// answering are the answers of these places.
func answering(places ...replica.Place) (out []table.Answer) {
	for _, p := range places {
		out = append(out, table.Answer{Place: p, Reach: table.ReachAnswers})
	}
	return out
}

// The order to leave is noted while the others that vote answer; what cannot be read, or a moment without a leader,
// takes it back no more than it gives it.
func TestAnOrderToLeaveIsNoted(t *testing.T) {
	m, ms, k := kept(t)
	alone := table.MemberStatus{MemberID: 1, Leader: 1, Members: []table.Member{{ID: 1}, {ID: 2, Learner: true}}}
	two := table.MemberStatus{MemberID: 1, Leader: 2, Members: []table.Member{{ID: 1},
		{ID: 2, Name: pb.String() + ".102"}}}
	leave := record.Order{Number: 1, Kind: record.OrderLeave, Place: &pa}
	for n, c := range []struct {
		change func()
		status table.MemberStatus
		want   uint64
	}{
		{func() {}, two, 0},
		{func() { m.record.Change(func(v *record.View) { v.Orders = []record.Order{leave} }) }, alone, 0},
		{func() {}, table.MemberStatus{MemberID: 1, Members: two.Members}, 0},
		{func() {}, two, 1},
		{func() { m.record.Fail(errors.New("503")) }, two, 1},
		{func() { m.record.Fail(nil) }, table.MemberStatus{}, 1},
		{func() {
			m.record.Change(func(v *record.View) {
				v.Orders = append(v.Orders, record.Order{Number: 2, Kind: record.OrderWithdraw, Withdraws: 1})
			})
		}, two, 0},
		{func() {
			m.record.Change(func(v *record.View) {
				v.Orders = []record.Order{leave}
				v.Orders[0].Done = &record.Done{}
			})
		}, two, 0},
	} {
		c.change()
		f := k.round.observe(t.Context())
		f.Answers = answering(pb)
		k.noteLeaving(f, c.status)
		if got := ms.OrderToLeave(); got != c.want {
			t.Errorf("%d: ordered to leave by %d, want %d", n, got, c.want)
		}
	}
	if err := ms.SayDrained(t.Context(), 1); err != nil {
		t.Fatal(err)
	}
	if v, _ := m.record.Copied(); v.Orders[0].Accepted == nil || v.Orders[0].Accepted.By != m.me.MemberName() {
		t.Errorf("the order says %+v", v.Orders[0].Accepted)
	}
}

// Of three voters one is down: who is ordered to leave would be missing, so the leader does not remove it, and it goes
// on serving. Who stands aside already waits a minute for the others. A learner goes whoever answers.
func TestAnOrderThatTheLeaderCannotFollowIsNotNoted(t *testing.T) {
	_, ms, k := kept(t)
	members := []table.Member{{ID: 1}, {ID: 2, Name: pb.String() + ".102"}, {ID: 3, Name: pc.String() + ".103"}}
	learner := slices.Clone(members)
	learner[0].Learner = true
	f := k.round.observe(t.Context())
	f.Record.Orders = []record.Order{{Number: 1, Kind: record.OrderLeave, Place: &pa}}
	begin := f.Now
	tcp := table.Answer{Place: pc, Reach: table.ReachTCP}
	for n, c := range []struct {
		after   time.Duration
		members []table.Member
		answers []table.Answer
		want    uint64
	}{
		{0, members, answering(pb), 0},
		{0, members, append(answering(pb), tcp), 0},
		{0, learner, answering(pb), 1},
		{0, members[:1], nil, 0},
		{8 * time.Second, members, answering(pb, pc), 1},
		{16 * time.Second, members, answering(pb), 1},
		{67 * time.Second, members, answering(pb), 1},
		{68 * time.Second, members, answering(pb), 0},
		{76 * time.Second, members, answering(pb), 0},
		{84 * time.Second, members, answering(pb, pc), 1},
	} {
		f.Now, f.Answers = begin.Add(c.after), c.answers
		k.noteLeaving(f, table.MemberStatus{MemberID: 1, Leader: 2, Members: c.members})
		if got := ms.OrderToLeave(); got != c.want {
			t.Errorf("%d: ordered to leave by %d, want %d", n, got, c.want)
		}
	}
}

// The second of two voters notes the order for two replicas once a snapshot is there: it gives its vote up. Who stands
// aside goes on with it when the snapshot has grown old.
func TestTheSecondOfTwoNotesThatItGivesItsVoteUp(t *testing.T) {
	m, ms, k := kept(t)
	name := func(p replica.Place, id string) string { return p.String() + "." + id }
	own, other := table.Member{ID: 1, Name: name(pa, "101")}, table.Member{ID: 2, Name: name(pb, "102")}
	status := func(leader record.MemberID, members ...table.Member) table.MemberStatus {
		return table.MemberStatus{MemberID: 1, Leader: leader, Members: members}
	}
	saved := func(age time.Duration) func(*record.View) {
		return func(v *record.View) {
			v.Taken = []record.Taken{{Name: "s", Epoch: 1, Time: time.Now().Add(-age)}}
		}
	}
	ordered := func(orders ...record.Order) func(*record.View) {
		return func(v *record.View) {
			v.Orders = orders
			for n := range v.Orders {
				v.Orders[n].Number = uint64(n + 1)
			}
		}
	}
	two, pause := record.Order{Kind: record.OrderReplicas, Replicas: 2}, record.Order{Kind: record.OrderPause}
	other3 := table.Member{ID: 3, Name: name(pc, "103")}
	for n, c := range []struct {
		change func(*record.View)
		status table.MemberStatus
		want   uint64
	}{
		{ordered(two), status(2, own, other), 0}, // no snapshot
		{saved(time.Hour), status(2, own, other), 0},
		{saved(time.Minute), status(1, own, other), 0},
		{saved(time.Minute), status(2, own, other, other3), 0},
		{saved(time.Minute), status(2, own, other), 1},
		{saved(time.Hour), status(2, own, other), 1},
		{ordered(two, pause), status(2, own, other), 0},
		{ordered(two, record.Order{Kind: record.OrderLeave, Place: &pb}), status(2, own, other), 0},
		{ordered(two), status(2, own, table.Member{ID: 2, Name: other.Name, Learner: true}), 0},
		{ordered(record.Order{Kind: record.OrderReplicas, Replicas: 3}), status(2, own, other), 0},
	} {
		m.record.Change(c.change)
		if err := k.reconcile(t.Context(), c.status); err != nil {
			t.Fatal(err)
		}
		if got := ms.OrderToLeave(); got != c.want {
			t.Errorf("%d: it gives its vote up by order %d, want %d", n, got, c.want)
		}
	}
}
