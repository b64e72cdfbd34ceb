package table

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/quorate/quorate/internal/record"
	"github.com/quorate/quorate/internal/replica"
)

// The guards of what a replica says of itself: each case fails where one operand of a condition is left out.

func stoppedFor(order uint64) func(*Facts) {
	return func(f *Facts) { f.Agent.Phase, f.Agent.StoppedFor = PhaseStopped, order }
}
func emptied(f *Facts)              { f.Directory = Directory{} }
func noAgentFile(f *Facts)          { f.AgentErr = errors.New("invalid character") }
func ofPlaceB(f *Facts)             { f.Agent.Replica = pb }
func running1(f *Facts)             { f.Directory.Running = true }
func restoredByB(f *Facts)          { isClosed(f); nextFormed(f) }
func archiving(f *Facts)            { f.Agent = AgentFile{ClusterUID: "uid", Replica: pa, Phase: PhaseArchiving} }
func noneCarried(f *Facts)          { f.Agent.Incarnation = 0 }
func diskID(id string) func(*Facts) { return func(f *Facts) { f.DiskID = id } }
func carries(k uint64) func(*Facts) {
	return func(f *Facts) { f.Agent.Incarnation = k }
}

// pending2 is a second incarnation of this boot on this disk, which is not confirmed; confirmed2 one that is.
func pending2(f *Facts)   { f.incarnation(pa, 2, "101", "d1", 1, 0) }
func confirmed2(f *Facts) { f.incarnation(pa, 2, "101", "d1", 1, 0xa2) }

// saidMyLog: incarnation k has ended, with the end of the log that the disk holds.
func saidMyLog(k uint64) func(*Facts) { return func(f *Facts) { f.stopped(pa, k, 0xa1, 100) } }

func TestGuardsOfAnEnd(t *testing.T) {
	cases := []struct {
		name                   string
		f                      func() Facts
		ended, unproven, ahead bool
	}{
		{"it has not", three, false, false, false},
		{"agent.json says so, for an order that was accepted", from(three, orderB, stoppedFor(1)), true, false, false},
		{"its stopped/ object says so", from(three, saidMyLog(1)), true, false, false},
		{"the stopped/ object of another incarnation", from(three, pending2, saidMyLog(2)), false, false, false},
		{"the stopped/ object of another place's incarnation of this number",
			from(three, ofPlaceB, saidMyLog(1)), false, false, false},
		{"there is no directory", from(three, orderB, stoppedFor(1), saidMyLog(1), emptied), false, false, false},
		{"agent.json cannot be read", from(three, stoppedFor(0), noAgentFile), false, false, false},
		{"for no order that was noted, and nothing shows it", from(three, stoppedFor(0)), true, true, false},
		{"for no order that was noted, and the record shows it",
			from(three, stoppedFor(0), saidMyLog(1)), true, false, false},
		{"for an order that the record lacks", from(three, orderB, stoppedFor(2)), true, false, true},
		{"for an order that was not accepted", from(three, orderB, unaccepted, stoppedFor(1)), true, false, true},
		{"the record cannot be read", from(three, unreadable, stoppedFor(2)), true, false, false},
		{"the same for no order that was noted", from(three, unreadable, stoppedFor(0)), true, false, false},
		{"its epoch is closed", from(three, isClosed, stoppedFor(2)), true, false, false},
		{"its epoch is over", from(three, restoredByB, stoppedFor(2)), true, false, false},
		{"its epoch's claim is lost",
			from(three, stoppedFor(2), func(f *Facts) { f.Record.Epochs[0].Claim = nil }), true, false, true},
		{"it is of no epoch, and none is formed",
			from(blank, func(f *Facts) { f.disk(0, "", 0, 0xa1, PhaseStopped) }), true, false, false},
	}
	for _, c := range cases {
		if o := Classify(c.f()); o.Ended != c.ended || o.EndUnproven != c.unproven || o.Ahead != c.ahead {
			t.Errorf("%s: ended %v, unproven %v, ahead %v", c.name, o.Ended, o.EndUnproven, o.Ahead)
		}
	}
}

// What a replica has to say before a restore may take it for silent: under which incarnation, and whether with its
// log.
func TestGuardsOfTheStopReport(t *testing.T) {
	said := StopReport{}
	cases := []struct {
		name string
		f    func() Facts
		want StopReport
	}{
		{"all under the incarnation of this boot",
			three, StopReport{Owed: true, Incarnation: 1, Next: 2, MemberID: 0xa1, WithLog: true}},
		{"it has said all", from(three, stoppedFor(1), saidMyLog(1)), said},
		{"the epoch is over", from(three, restoredByB), said},
		{"another boot", from(three, reboot), StopReport{Owed: true, Next: 2, MemberID: 0xa1}},
		{"another instance", from(three, func(f *Facts) { f.recreate("d1") }),
			StopReport{Owed: true, Next: 2, MemberID: 0xa1}},
		{"another instance took a later one", from(three, func(f *Facts) { f.incarnation(pa, 2, "201", "d1", 1, 0) }),
			StopReport{Owed: true, Next: 3, MemberID: 0xa1}},
		{"it has ended without its log", from(three, stoppedFor(1), func(f *Facts) { f.stopped(pa, 1, 0xa1, 0) }),
			StopReport{Owed: true, Next: 2, MemberID: 0xa1}},
		{"it has ended with its log, and agent.json does not say so", from(three, saidMyLog(1)),
			StopReport{Owed: true, Next: 2, MemberID: 0xa1}},
		{"it has ended with another member's log",
			from(three, stoppedFor(1), func(f *Facts) { f.stopped(pa, 1, 0xa9, 100) }),
			StopReport{Owed: true, Next: 2, MemberID: 0xa1}},
		{"the log has grown since", from(three, stoppedFor(1), func(f *Facts) { f.stopped(pa, 1, 0xa1, 99) }),
			StopReport{Owed: true, Next: 2, MemberID: 0xa1}},
		{"the log is of another term",
			from(three, stoppedFor(1), saidMyLog(1), func(f *Facts) { f.last().Stopped[0].Term = 2 }),
			StopReport{Owed: true, Next: 2, MemberID: 0xa1}},
		{"its log was said under an incarnation of another epoch",
			from(three, stoppedFor(1), pending2, carries(2), saidMyLog(1), func(f *Facts) {
				f.Record.Replicas[pa][0].Epoch = 0
				f.stopped(pa, 2, 0, 0)
			}), StopReport{Owed: true, Next: 3, MemberID: 0xa1}},

		{"an incarnation was created, and agent.json does not carry it yet",
			from(three, pending2), StopReport{Owed: true, Next: 2, MemberID: 0xa1}},
		{"the same, by another boot", from(three, pending2, reboot), StopReport{Owed: true, Next: 3, MemberID: 0xa1}},
		{"an incarnation that is confirmed is not to be taken", from(three, confirmed2, emptied),
			StopReport{Owed: true, Next: 3}},
		{"nor one below what agent.json carries", from(three, pending2, emptied, carries(9)),
			StopReport{Owed: true, Next: 3}},
		{"nor one of this number that another place carries",
			from(three, pending2, emptied, carries(2), ofPlaceB), StopReport{Owed: true, Next: 3}},

		{"the directory is corrupt: its log says nothing", from(three, corrupted),
			StopReport{Owed: true, Incarnation: 1,
				Next: 2}},
		{"corrupt after a reboot: it speaks for the newest of the instance",
			from(three, corrupted, reboot), StopReport{Owed: true, Incarnation: 1, Next: 2}},
		{"an empty disk of this boot", from(three, emptied), StopReport{Owed: true, Incarnation: 1, Next: 2}},
		{"an empty disk after a reboot", from(three, emptied, reboot), StopReport{Owed: true, Next: 2}},
		{"an empty disk whose agent.json was reset", from(three, emptied, noneCarried),
			StopReport{Owed: true, Next: 2}},
		{"an empty disk that carries another place's incarnation", from(three, emptied, ofPlaceB),
			StopReport{Owed: true, Next: 2}},
		{"half archived after a reboot", from(three, archiving, reboot), StopReport{Owed: true, Next: 2}},
		{"another replica's disk, after a reboot", from(three, ofPlaceB, reboot), StopReport{Owed: true, Incarnation: 1,
			Next: 2}},
		{"agent.json cannot be read, and an incarnation was created",
			from(three, emptied, pending2, noneCarried, noAgentFile),
			StopReport{Owed: true, Incarnation: 2, Next: 3}},
		{"agent.json cannot be read while the member runs", from(three, running1, noAgentFile),
			StopReport{Owed: true, Incarnation: 1, Next: 2, MemberID: 0xa1}},
		{"agent.json cannot be read, and another instance's member runs",
			from(three, running1, noAgentFile, func(f *Facts) { f.recreate("d1") }), StopReport{}},
		{"agent.json cannot be read, after a reboot",
			from(three, emptied, noAgentFile, reboot), StopReport{Owed: true, Incarnation: 1, Next: 2}},
	}
	for _, c := range cases {
		if o := Classify(c.f()); o.StopReport != c.want {
			t.Errorf("%s: %+v, want %+v", c.name, o.StopReport, c.want)
		}
	}
}

// own is what findIncarnation finds of this place's incarnations.
type own struct {
	next, own          uint64
	pending, confirmed bool
}

func TestGuardsOfAnIncarnation(t *testing.T) {
	cases := []struct {
		name string
		f    func() Facts
		want own
	}{
		{"confirmed, in this boot on this disk", three, own{2, 1, false, true}},
		{"there was none", blank, own{next: 1}},
		{"the record cannot be read", from(three, unreadable), own{next: 1}},
		{"another boot's", from(three, reboot), own{next: 2}},
		{"another instance's that has the id of this boot",
			from(three, func(f *Facts) { f.Me.InstanceID = "201" }), own{next: 2}},
		{"another disk's", from(three, emptied, diskID("d9")), own{next: 2}},
		{"this disk's id is not known", from(three, diskID("")), own{2, 1, false, true}},
		{"its disk's id was not known",
			from(three, func(f *Facts) { f.Record.Replicas[pa][0].DiskID = "" }), own{2, 1, false, true}},
		{"it has ended", from(three, saidMyLog(1)), own{next: 2}},
		{"agent.json cannot be read", from(three, noAgentFile), own{next: 2}},
		{"agent.json is another place's", from(three, ofPlaceB), own{next: 2}},
		{"agent.json was reset", from(three, emptied, noneCarried), own{next: 2}},
		{"pending, and carried", from(three, pending2, carries(2)), own{3, 2, true, false}},
		{"pending, and not carried yet: it is taken again", from(three, pending2), own{next: 2}},
		{"the same, but confirmed", from(three, confirmed2, emptied), own{next: 3}},
		{"the same, but another boot's", from(three, pending2, reboot), own{next: 3}},
		{"pending, and agent.json carries a later one", from(three, pending2, emptied, carries(9)), own{next: 3}},
		{"pending of another epoch, while this place restores",
			from(three, orderMe, isClosed, claimRestore, pending2), own{next: 3}},
		{"of the disk's epoch, while another restores",
			from(three, isClosed, func(f *Facts) { f.claim(2, "t2", pb, "102", record.Source{}) }),
			own{2, 1, false, true}},
		{"of the disk's epoch, which is over", from(three, restoredByB), own{2, 1, false, true}},
		{"pending, beside a directory that is being put away", from(three, pending2, archiving), own{next: 2}},
		{"confirmed for another member",
			from(three, func(f *Facts) { f.Record.Replicas[pa][0].Started.MemberID = 0xa9 }), own{2, 1, false, false}},
		{"confirmed for another epoch",
			from(three, func(f *Facts) { f.Record.Replicas[pa][0].Started.Epoch = 0 }), own{2, 1, false, false}},
	}
	for _, c := range cases {
		o := Classify(c.f())
		got := own{o.Names.NextIncarnation, 0, o.Pending, o.Confirmed}
		if o.OwnIncarnation {
			got.own = o.Names.Incarnation
		}
		if got != c.want {
			t.Errorf("%s: %+v, want %+v", c.name, got, c.want)
		}
	}
}

// earlierBoot is an incarnation of this very instance by another boot, in front of this boot's.
func incarnations(of ...[2]string) func(*Facts) {
	return func(f *Facts) {
		f.Record.Replicas[pa] = nil
		for n, i := range of {
			f.incarnation(pa, uint64(n+1), i[0], "d1", 1, 0xa1)
			f.Record.Replicas[pa][n].BootID = i[1]
		}
		f.Agent.Incarnation = uint64(len(of))
	}
}

func TestGuardsOfWhoHasThePlace(t *testing.T) {
	mine := [2]string{"101", "boot1"}
	cases := []struct {
		name                  string
		f                     func() Facts
		superseded, laterBoot bool
	}{
		{"I have it", three, false, false},
		{"an earlier observation of this boot found that I have not",
			from(three, func(f *Facts) { f.Superseded = true }), true, false},
		{"the same, and the record cannot be read now",
			from(three, unreadable, func(f *Facts) { f.Superseded = true }), true, false},
		{"another instance has, and I had it", from(three, incarnations(mine, [2]string{"201", "boot9"})), true, false},
		{"another had it before me", from(three, incarnations([2]string{"201", "boot9"}, mine)), false, false},
		{"another has, and I never had it",
			from(three, wiped, incarnations([2]string{"201", "boot9"}), noneCarried), false, false},
		{"a later boot of mine has", from(three, incarnations(mine, [2]string{"101", "boot2"})), true, true},
		{"an earlier boot of mine had it", from(three, incarnations([2]string{"101", "boot0"}, mine)), false, false},
		{"this boot has not taken one yet", from(three, incarnations([2]string{"101", "boot0"})), false, false},
		{"another instance's boot has the id of this one",
			from(three, incarnations([2]string{"99", "boot1"}, [2]string{"101", "boot0"})), false, false},
		{"a later one is another instance's, and agent.json shows that I came after it",
			from(three, incarnations(mine, [2]string{"201", "boot9"}), carries(3)), false, false},
		{"the same, but agent.json carries no later one",
			from(three, incarnations(mine, [2]string{"201", "boot9"}), carries(2)), true, false},
		{"the same, but agent.json cannot be read",
			from(three, incarnations(mine, [2]string{"201", "boot9"}), carries(3), noAgentFile), true, false},
		{"the same, but agent.json is another place's",
			from(three, incarnations(mine, [2]string{"201", "boot9"}), carries(3), ofPlaceB), true, false},
		{"the same, but agent.json is another instance's",
			from(three, incarnations(mine, [2]string{"201", "boot9"}), carries(3),
				func(f *Facts) { f.Agent.InstanceID = "99" }), true, false},
		{"only agent.json says that I had it", from(three, incarnations([2]string{"201", "boot9"}), carries(1)), true,
			false},
		{"what agent.json says is of another place",
			from(three, incarnations([2]string{"201", "boot9"}), ofPlaceB), false, false},
		{"what agent.json says is no incarnation",
			from(three, incarnations([2]string{"201", "boot9"}), noneCarried), false, false},
	}
	for _, c := range cases {
		if o := Classify(c.f()); o.Superseded != c.superseded || o.Names.LaterBoot != c.laterBoot {
			t.Errorf("%s: superseded %v, later boot %v", c.name, o.Superseded, o.Names.LaterBoot)
		}
	}
}

// The former VM of a place is silent where the lists say so; this VM does not ask about itself.
func TestGuardsOfTheFormerVM(t *testing.T) {
	noLists := func(f *Facts) { f.Compute = Compute{} }
	recreated := func(f *Facts) { f.wipe(); f.recreate("d9") }
	cases := []struct {
		name string
		f    func() Facts
		want bool
	}{
		{"it is this one", from(three, noLists), true},
		{"this one after a reboot", from(three, reboot, noLists), true},
		{"this one, and nothing is formed", from(blank, emptyClaim, seeding), true},
		{"another, which is in no list", from(three, recreated), true},
		{"another, which is listed", from(three, recreated, func(f *Facts) { f.lists("101", "201", "102", "103") }),
			false},
		{"another, and there are no lists", from(three, recreated, noLists), false},
		{"another, of an older epoch", from(three, restoredByB, recreated), false},
		{"another, and nothing is formed", from(blank, emptyClaim, seeding, recreated), false},
	}
	for _, c := range cases {
		if o := Classify(c.f()); o.FormerSilent != c.want {
			t.Errorf("%s: %v", c.name, o.FormerSilent)
		}
	}
}

// What supersedes this VM is named, and the member of an incarnation is the one that it was confirmed for.
func TestGuardsOfNames(t *testing.T) {
	f := from(three, incarnations([2]string{"101", "boot1"}, [2]string{"201", "boot9"}))()
	if p := decided(f); p.Blocked == nil || !strings.Contains(p.Blocked.Reason, "instance 201") {
		t.Errorf("%+v", p.Blocked)
	}
	for want, i := range map[record.MemberID]record.Incarnation{
		1: {MemberID: 1},
		2: {MemberID: 1, Started: &record.Started{MemberID: 2}},
		3: {MemberID: 3, Started: &record.Started{}},
	} {
		if got := IncarnationMember(i); got != want {
			t.Errorf("member %s, want %s", got, want)
		}
	}
}

// The newest word on each subject, and what takes a word back.
func TestGuardsOfOrders(t *testing.T) {
	later := t0.Add(time.Minute)
	restore := func(ends uint64) *record.RestoreOrder { return &record.RestoreOrder{Ends: ends, Replica: pa} }
	back := record.Order{Kind: record.OrderWithdraw, Withdraws: 1}
	accepted := record.Order{Kind: record.OrderRestore, Restore: restore(1), Accepted: &record.Accepted{}}
	settled := func(v record.Verdict) record.Order {
		return record.Order{Kind: record.OrderRestore, Restore: restore(1), Verdict: &v}
	}
	ofLeave := record.Order{Kind: record.OrderLeave, Place: &pb, Restore: restore(0), Accepted: &record.Accepted{}}
	cases := []struct {
		name  string
		given []record.Order
		holds func(o Orders, given []record.Order) bool
	}{
		{"a pause that lasts",
			[]record.Order{{Kind: record.OrderPause, Until: &later}},
			func(o Orders, _ []record.Order) bool { return o.Paused }},
		{"a restore without a body",
			[]record.Order{{Kind: record.OrderRestore}},
			func(o Orders, _ []record.Order) bool { return o.Restore == nil }},
		{"a restore that is done", []record.Order{{Kind: record.OrderRestore, Restore: restore(1),
			Done: &record.Done{}}},
			func(o Orders, _ []record.Order) bool { return o.Restore == nil && len(o.All) == 1 }},
		{"an older restore, where the newest is done",
			[]record.Order{accepted, {Kind: record.OrderRestore, Restore: restore(1), Done: &record.Done{}}},
			func(o Orders, _ []record.Order) bool { return o.Restore == nil }},
		{"an accepted restore is not taken back by a withdrawal alone", []record.Order{accepted, back},
			func(o Orders, _ []record.Order) bool {
				return o.Restore != nil && o.withdrawing == 1 && o.accepted(1) == 1
			}},
		{"nor is one that is carried out", []record.Order{settled(record.Verdict{Closing: true}), back},
			func(o Orders, _ []record.Order) bool { return o.Restore != nil && o.withdrawing == 0 }},
		{"by its verdict it is",
			[]record.Order{settled(record.Verdict{Withdrawn: true})}, func(o Orders,
				_ []record.Order) bool {
				return o.Restore == nil
			}},
		{"anything else is",
			[]record.Order{ofLeave, back}, func(o Orders,
				_ []record.Order) bool {
				return o.Left(pb) == nil && o.withdrawing == 0
			}},
		{"what ends another epoch ends none",
			[]record.Order{accepted}, func(o Orders, _ []record.Order) bool { return o.accepted(2) == 0 }},
		{"what is not accepted ends none", []record.Order{{Kind: record.OrderRestore, Restore: restore(1)}},
			func(o Orders, _ []record.Order) bool { return o.accepted(1) == 0 }},
		{"an order has its number", []record.Order{accepted, ofLeave}, func(o Orders, _ []record.Order) bool {
			return o.byNumber(1) != nil && o.byNumber(1).Number == 1 && o.byNumber(2).Number == 2 &&
				o.byNumber(3) == nil
		}},
		{"an override is for its row", []record.Order{{Kind: record.OrderOverride, Row: 42, MemberID: 0xb1}},
			func(o Orders, _ []record.Order) bool { return o.Overrides(42, 0xb1) && !o.Overrides(47, 0xb1) }},
		{"an override is an order of that kind", []record.Order{{Kind: record.OrderLeave, Row: 42, MemberID: 0xb1}},
			func(o Orders, _ []record.Order) bool { return !o.Overrides(42, 0xb1) }},
		{"a withdrawn restore", []record.Order{{Kind: record.OrderRestore, Restore: restore(1)}, back},
			func(o Orders, g []record.Order) bool { return o.withdrawnRestore(g, 1) && !o.withdrawnRestore(g, 2) }},
		{"one in force is not",
			[]record.Order{accepted}, func(o Orders, g []record.Order) bool { return !o.withdrawnRestore(g, 1) }},
		{"nor is what has no body",
			[]record.Order{{Kind: record.OrderRestore}, back}, func(o Orders,
				g []record.Order) bool {
				return !o.withdrawnRestore(g, 0)
			}},
		{"nor another order that is",
			[]record.Order{ofLeave, back}, func(o Orders, g []record.Order) bool { return !o.withdrawnRestore(g, 0) }},
	}
	for _, c := range cases {
		var f Facts
		for _, o := range c.given {
			f.order(o)
		}
		if o := OrdersOf(f.Record.Orders, 1, t0); !c.holds(o, f.Record.Orders) {
			t.Errorf("%s: %+v", c.name, o)
		}
	}
	f := from(three, func(f *Facts) { f.order(record.Order{Kind: record.OrderReplicas, Replicas: 5}) })()
	if h := HistoryOf(f); h.Wanted() != 5 || HistoryOf(three()).Wanted() != 3 {
		t.Errorf("wanted %d and %d", h.Wanted(), HistoryOf(three()).Wanted())
	}
}

// What an order to restore says of this replica.
func TestGuardsOfAnOrderToRestore(t *testing.T) {
	byB := func(f *Facts) { f.restoreOrder(2, pb, record.Source{Kind: record.SourceSnapshot, Snapshot: "s"}) }
	byMe := func(f *Facts) { f.restoreOrder(2, pa, record.Source{Kind: record.SourceSnapshot, Snapshot: "s"}) }
	unfit := func(n uint64) func(*Facts) { return func(f *Facts) { f.Tries.Unfit.Order = n } }
	type says struct {
		ended, me, accept, unfit, closing bool
		withdrawing, order                uint64
	}
	cases := []struct {
		name string
		f    func() Facts
		want says
	}{
		{"another's", from(three, orderB), says{ended: true, order: 1}},
		{"mine", from(three, orderMe), says{ended: true, me: true, order: 1}},
		{"mine, not accepted", from(three, orderMe, unaccepted), says{me: true, accept: true}},
		{"mine, not accepted, of no disk", from(three, wiped, orderMe, unaccepted), says{me: true, accept: true}},
		{"and found unfit", from(three, orderMe, unaccepted, unfit(1)), says{me: true, accept: true, unfit: true}},
		{"another was found unfit", from(three, orderMe, unaccepted, unfit(2)), says{me: true, accept: true}},
		{"found unfit, and accepted all the same", from(three, orderMe, unfit(1)),
			says{ended: true, me: true, order: 1}},
		{"not accepted, and the epoch is closed", from(three, orderMe, unaccepted, isClosed),
			says{ended: true, me: true}},
		{"not accepted, and carried out", from(three, orderMe, unaccepted, closing), says{me: true, closing: true}},
		{"with a verdict that says nothing",
			from(three, orderB, func(f *Facts) { f.Record.Orders[0].Verdict = &record.Verdict{} }),
			says{ended: true, order: 1}},
		{"of a later epoch than the disk's", from(three, restoredByB, byB), says{order: 1}},
		{"of a later epoch than the disk's, and not accepted", from(three, restoredByB, byMe, unaccepted),
			says{me: true}},
		{"withdrawn", from(three, orderB, withdraw), says{ended: true, withdrawing: 1, order: 1}},
		{"withdrawn, and the epoch is closed", from(three, orderB, withdraw, isClosed), says{ended: true, order: 1}},
		{"to end an epoch that is over", from(three, orderMe, restoredByB), says{}},
		{"and nothing is formed", from(blank, emptyClaim, func(f *Facts) { f.restoreOrder(0, pa, record.Source{}) }),
			says{}},
	}
	for _, c := range cases {
		o := Classify(c.f())
		if got := (says{o.EndedByOrder, o.OrderNamesMe, o.ToAccept, o.Unfit, o.Closing, o.Withdrawing,
			o.Names.EndOrder}); got != c.want {
			t.Errorf("%s: %+v, want %+v", c.name, got, c.want)
		}
	}
}

// Which replica's log the next order names, where the first one leaves that open.
func TestGuardsOfTheLongestLog(t *testing.T) {
	archive := func(name string, index uint64) func(*Facts) {
		return func(f *Facts) {
			f.Directory.Archives = append(f.Directory.Archives, Archive{Name: name, MemberID: 0xa1, Term: 3,
				LastIndex: index})
		}
	}
	sourceIs := func(s record.Source) func(*Facts) { return func(f *Facts) { f.Record.Orders[0].Restore.From = s } }
	saidB := func(index uint64) func(*Facts) { return func(f *Facts) { f.stopped(pb, 1, 0xb1, index) } }
	fromC := sourceIs(record.Source{Kind: record.SourceDirectory, MemberID: 0xc3})
	cases := []struct {
		name string
		f    func() Facts
		want replica.Place // zero: the order stands
	}{
		{"b's log is longer", from(three, orderNewest, saidB(120)), pb},
		{"b's log is as long", from(three, orderNewest, saidB(100)), replica.Place{}},
		{"b's log is longer, and the order wants this one", from(three, orderMe, saidB(120)), replica.Place{}},
		{"b's log is longer, and the order wants a snapshot", from(three, orderNewest, saidMyLog(1), saidB(120),
			sourceIs(record.Source{Kind: record.SourceSnapshot, Snapshot: "s", MemberID: 0xa1})), replica.Place{}},
		{"b's log is longer, and the restore is claimed",
			from(three, orderNewest, saidB(120), isClosed, claimRestore), replica.Place{}},
		{"b's log is longer than my archive", from(three, orderNewest, wiped, archive("x", 110), saidB(120)), pb},
		{"my archive is longer", from(three, orderNewest, wiped, archive("x", 130), saidB(120)), replica.Place{}},
		{"the archive that is the source is not long enough, another of mine is not asked",
			from(three, orderNewest, wiped,
				archive("y", 130), archive("x", 110), saidB(120)), pb},
		{"my archive is too short to be the source", from(three, orderNewest, wiped, archive("", 50), saidB(120),
			func(f *Facts) { f.Record.Orders[0].Restore.Term, f.Record.Orders[0].Restore.Commit = 3, 100 }),
			replica.Place{}},
		{"b's log is longer than c's, which is named",
			from(three, orderNewest, fromC, func(f *Facts) { f.stopped(pc, 1, 0xc3, 110) }, saidB(120)), pb},
		{"c's, which is named, is longer",
			from(three, orderNewest, fromC, saidB(120), func(f *Facts) { f.stopped(pc, 1, 0xc3, 130) }),
			replica.Place{}},
		{"how far c's reaches, which is named, is not known", from(three, orderNewest, fromC, saidB(120)),
			replica.Place{}},
	}
	for _, c := range cases {
		var got replica.Place
		if o := Classify(c.f()); o.Better != nil {
			got = o.Better.Replica
		}
		if got != c.want {
			t.Errorf("%s: %v", c.name, got)
		}
	}
	// A claim says what it restores from, whatever the order in force would want.
	f := from(three, orderMe, meStopped, isClosed, claimRestore, func(f *Facts) {
		f.last().Claim.Source = record.Source{Kind: record.SourceSnapshot, Snapshot: "s", Order: 1}
	})()
	if o := Classify(f); o.SourceHere {
		t.Error("the order's source was taken for the claim's")
	}
}

// What the linearizable list says of this place: whose entries they are, and which of them a join may use.
func TestGuardsOfTheListsEntries(t *testing.T) {
	const waits = 0xa2
	join := joining(PhaseAdded, waits, false)
	listed := func(m Member) func(*Facts) { return alsoListed(m) }
	nameless := func(change func(*Member)) func(*Facts) {
		m := added(waits)
		change(&m)
		return alsoListed(m)
	}
	named := func(instance string) Member { return entry(pa, instance, waits) }
	before := func(id record.MemberID, name string) func(*Facts) {
		return func(f *Facts) { f.ListedBefore = map[record.MemberID]string{id: name} }
	}
	voter := func(m *Member) { m.Learner = false }
	ofB := Member{ID: waits, PeerURLs: []string{PeerURL(pb.DNSName(testCluster))}, Learner: true}
	carried := func(change func(*AgentFile)) func(*Facts) { return func(f *Facts) { change(&f.Agent) } }
	type finds struct {
		reusable  bool
		former    record.MemberID // 0: none
		successor string
	}
	cases := []struct {
		name string
		f    func() Facts
		want finds
	}{
		{"the entry that was added for this disk", from(three, join, listed(added(waits))), finds{reusable: true}},
		{"it is a voter", from(three, join, nameless(voter), before(waits, "")), finds{former: waits}},
		{"it has a name", from(three, join, listed(namedLearner())), finds{former: waits}},
		{"it has another id", from(three, join, listed(added(0xa3))), finds{former: 0xa3}},
		{"it is another place's", from(three, join, listed(ofB)), finds{}},
		{"it has a name that is none", from(three, join, nameless(func(m *Member) { m.Name = "default" })), finds{}},
		{"it has a name of another place, and this one's peer URL",
			from(three, join, nameless(func(m *Member) { m.Name = pb.String() + ".102" })), finds{}},
		{"agent.json says that it may not have been added",
			from(three, join, listed(added(waits)), carried(func(a *AgentFile) { a.Phase = PhaseAdding })),
			finds{former: waits}},
		{"agent.json says that it has started",
			from(three, join, listed(added(waits)), carried(func(a *AgentFile) { a.Phase = PhaseStarted })),
			finds{former: waits}},
		{"it was added in another epoch",
			from(three, join, listed(added(waits)), carried(func(a *AgentFile) { a.Epoch = 0 })), finds{former: waits}},
		{"it was added for another place",
			from(three, join, listed(added(waits)), carried(func(a *AgentFile) { a.Replica = pb })),
			finds{former: waits}},
		{"agent.json cannot be read", from(three, join, listed(added(waits)), noAgentFile), finds{former: waits}},
		{"there is a directory",
			from(three, join, listed(added(waits)),
				func(f *Facts) { f.Directory = Directory{Exists: true, MemberID: waits} }),
			finds{former: waits}},

		{"a former instance's", from(three, joining("", 0, false), listed(entry(pa, "101", 0xa1))),
			finds{former: 0xa1}},
		{"an instance's that the record does not know: it came after it was read",
			from(three, join, listed(named("301"))), finds{successor: "301"}},
		{"an earlier list had it already",
			from(three, join, listed(named("301")), before(waits, pa.String()+".301")), finds{former: waits}},
		{"an earlier list had another under its name",
			from(three, join, listed(named("301")), before(0xa9, pa.String()+".301")), finds{successor: "301"}},
		{"an earlier list had it without a name",
			from(three, join, listed(named("301")), before(waits, "")), finds{successor: "301"}},
		{"an instance's that only another place had", from(three, join, listed(named("102"))), finds{successor: "102"}},
		{"another place's of an unknown instance", from(three, join, listed(entry(pb, "302", waits))), finds{}},
		{"a voter without a name, of no incarnation", from(three, join, nameless(voter)), finds{successor: "unknown"}},
		{"an earlier list did not have that one",
			from(three, join, nameless(voter), before(0xa9, "")), finds{successor: "unknown"}},
		{"a voter without a name, of an incarnation",
			from(three, joining("", 0, false), nameless(func(m *Member) { m.ID, m.Learner = 0xa1, false })),
			finds{former: 0xa1}},
		{"a learner without a name, of no incarnation", from(three, join, listed(added(0xa7))), finds{former: 0xa7}},
		{"no list by a quorum",
			from(three, join, listed(added(waits)), func(f *Facts) { f.Answers[0].Reach = ReachAnswers }), finds{}},
		{"a list of another cluster",
			from(three, join, listed(added(waits)), func(f *Facts) { f.Answers[0].ClusterID = 0xc9 }), finds{}},
		{"a list of my own, while I do not run",
			from(three, join, listed(added(waits)), func(f *Facts) { f.Answers[0].InstanceID = "201" }), finds{}},
		{"a list of my own, while I run",
			from(three, listed1(entry(pa, "101", 0xa1), entry(pa, "99", 0xa0)), running1,
				before(0xa0, pa.String()+".99"),
				func(f *Facts) { f.Answers[0].InstanceID = "101" }), finds{former: 0xa1}},
	}
	for _, c := range cases {
		o := Classify(c.f())
		got := finds{reusable: o.Reusable, successor: o.Successor}
		if len(o.Former) > 0 {
			got.former = o.Former[0]
		}
		if got != c.want {
			t.Errorf("%s: %+v, want %+v", c.name, got, c.want)
		}
	}
}

// listed1 lets b answer through a quorum with this list.
func listed1(list ...Member) func(*Facts) { return func(f *Facts) { f.quorum(list...) } }

func TestGuardsOfTheOwnEntry(t *testing.T) {
	also := func(a Answer) func(*Facts) { return func(f *Facts) { f.Answers = append(f.Answers, a) } }
	asked := func(f *Facts) { f.PeersAsked = true }
	withoutMe := []Member{entry(pb, "102", 0xb1)}
	type finds struct{ listed, own, byAll, silent bool }
	cases := []struct {
		name string
		f    func() Facts
		want finds
	}{
		{"listed", from(three, withQuorum), finds{listed: true, own: true, byAll: true}},
		{"for another place", from(three, listed1(entry(pb, "102", 0xa1))), finds{listed: true, byAll: true}},
		{"not listed", from(three, removedMe), finds{}},
		{"no member is known, and an entry has no id", from(three, wiped, listed1(entry(pa, "101", 0))),
			finds{byAll: true}},
		{"nobody has a list", three, finds{}},
		{"nobody has one, and peers were asked", from(three, asked), finds{}},
		{"peers were asked, and none answered", from(three, withQuorum, asked), finds{true, true, true, true}},
		{"peers were asked, and one answered",
			from(three, withQuorum, asked, func(f *Facts) { f.Answers[0].ClusterVersion = "3.7.0" }),
			finds{true, true, true,
				false}},
		{"another member does not list it",
			from(three, withQuorum, also(Answer{Reach: ReachAnswers, ClusterID: 0xc1, Members: withoutMe})),
			finds{listed: true, own: true}},
		{"another cluster's member does not",
			from(three, withQuorum, also(Answer{Reach: ReachAnswers, ClusterID: 0xc9, Members: withoutMe})),
			finds{listed: true, own: true, byAll: true}},
		{"another member gave no list",
			from(three, withQuorum, also(Answer{Reach: ReachAnswers, ClusterID: 0xc1})), finds{listed: true, own: true,
				byAll: true}},
	}
	for _, c := range cases {
		o := Classify(c.f())
		if got := (finds{o.Listed, o.OwnPlace, o.ListedByAll, o.PeersSilent}); got != c.want {
			t.Errorf("%s: %+v, want %+v", c.name, got, c.want)
		}
	}
}

// An order about another epoch was written by somebody who had read an older record: it takes the place of none, done
// or not.
func TestGuardsOfAnOrderAboutAnotherEpoch(t *testing.T) {
	for _, done := range []*record.Done{nil, {}} {
		f := three()
		f.last().Closed = &record.Closed{}
		f.claim(2, "t2", pa, "101", record.Source{})
		f.form(0xc2, 0xa2)
		f.restoreOrder(2, pb, directory())
		f.restoreOrder(1, pc, directory())
		f.Record.Orders[1].Done = done
		if r := HistoryOf(f).Orders.Restore; r == nil || r.Number != 1 {
			t.Errorf("%+v, want order 1", r)
		}
	}
}

// Until an incarnation is confirmed, the disk has to be that of the same member's newest confirmed one: a restore that
// was begun from a disk and from a copy of it makes one member twice.
func TestACopyIsNotTheMemberThatAnotherHasFormed(t *testing.T) {
	pending := func(disk string) func(*Facts) {
		return func(f *Facts) {
			f.incarnation(pa, 2, "201", disk, 1, 0)
			f.Me.InstanceID, f.DiskID, f.Agent.InstanceID, f.Agent.Incarnation = "201", disk, "201", 2
		}
	}
	confirmed := func(f *Facts) {
		f.Record.Replicas[pa][1].Started = &record.Started{MemberID: 0xa1, Epoch: 1}
	}
	unknown := func(f *Facts) {
		i := &f.Record.Replicas[pa][0]
		i.DiskID, i.Started = "", &record.Started{MemberID: 0xa1, Epoch: 1}
	}
	for name, c := range map[string]struct {
		f    func() Facts
		want LocalClass
	}{
		"the same disk":                  {from(three, pending("d1")), L1},
		"another disk":                   {from(three, pending("d10")), L3},
		"another, and it is confirmed":   {from(three, pending("d10"), confirmed), L1},
		"another, and mine is not known": {from(three, pending("d10"), diskID("")), L1},
		"another, and that of the confirmed one is not known": {from(three, pending("d10"), unknown), L1},
		"the confirmed one is of another member": {from(three, pending("d10"),
			func(f *Facts) { f.Record.Replicas[pa][0].Started.MemberID = 0xa9 }), L1},
		"the confirmed one is of another epoch": {from(three, pending("d10"),
			func(f *Facts) { f.Record.Replicas[pa][0].Epoch = 9 }), L1},
		"the own one was on another disk": {from(three, pending("d10"), diskID("d1"), unknown), L3},
	} {
		if o := Classify(c.f()); o.Local != c.want {
			t.Errorf("%s: %s, want %s (%s)", name, o.Local, c.want, o.Names.RolledBack)
		}
	}
}

// Two VMs of a place restore, one on a copy of the other's disk: the claim is of the one that made it.
func TestAClaimNamesTheClaimantsOwnDisk(t *testing.T) {
	ordered := []func(*Facts){orderMe, meStopped, othersStopped, isClosed}
	claim := func(f Facts) record.Claim {
		t.Helper()
		p := Decide(f.Now, Classify(f))
		if p.Act != ActClaim {
			t.Fatalf("row %s: %s", p.Row, p.Act)
		}
		return record.Claim{Token: "theirs", Source: p.Source,
			Seeder: record.Seeder{Place: f.Me.Place, InstanceID: f.Me.InstanceID}}
	}
	c := claim(from(three, append(ordered, diskID("d10"))...)())
	if c.Source.DiskID != "d10" || c.Source.Order != 1 || c.Source.Kind != record.SourceDirectory {
		t.Errorf("%+v", c.Source)
	}
	if c := claim(from(three, append(ordered, diskID(""))...)()); c.Source.DiskID != "" {
		t.Errorf("without an id: %+v", c.Source)
	}
	f := from(three, append(ordered, func(f *Facts) {
		f.Me.InstanceID = "201"
		f.Record.Epochs = append(f.Record.Epochs, record.Epoch{Number: 2, Claim: &c})
	})...)()
	if o := Classify(f); o.Record != Rs || o.Mine {
		t.Errorf("record %v, mine %t", o.Record, o.Mine)
	}
}

// The claim's token is the directory's, not that of an agent.json beside which there is none.
func TestGuardsOfTheClaimsToken(t *testing.T) {
	unmarked := func(f *Facts) { f.Directory.Marker = false }
	cases := []struct {
		name          string
		f             func() Facts
		token, marked bool
	}{
		{"the directory is made for it", from(blank, emptyClaim, seeding), true, true},
		{"it is not whole", from(blank, emptyClaim, seeding, unmarked), true, false},
		{"it is not whole, and runs", from(blank, emptyClaim, seeding, unmarked, running1), true, true},
		{"there is none yet", from(blank, emptyClaim, seeding, emptied), false, false},
		{"it is made for another claim of this epoch",
			from(blank, emptyClaim, seeding, func(f *Facts) { f.Agent.Token = "t9" }), false, false},
		{"it is another place's", from(blank, emptyClaim, seeding, ofPlaceB), false, false},
		{"agent.json cannot be read", from(blank, emptyClaim, seeding, noAgentFile), false, false},
		{"the epoch is formed, and its seeder has not noted that",
			from(three, func(f *Facts) { f.Agent.Phase = PhaseSeeding }), true, false},
		{"the epoch is formed, and that is noted", three, false, false},
		{"that epoch is over",
			from(three, restoredByB, func(f *Facts) { f.Agent.Phase = PhaseSeeding }), false, false},
	}
	for _, c := range cases {
		if o := Classify(c.f()); o.HasToken != c.token || o.Marked != c.marked {
			t.Errorf("%s: token %v, marked %v", c.name, o.HasToken, o.Marked)
		}
	}
}

// A claim that is abandoned says why: its seeder is gone, or an order that came later names this replica.
func TestWhyAClaimIsAbandoned(t *testing.T) {
	later := from(three, orderB, meStopped, othersStopped, isClosed, func(f *Facts) {
		f.claim(2, "t2", pb, "102", record.Source{Kind: record.SourceDirectory, MemberID: 0xb1, Order: 1})
		orderMe(f)
	})
	for want, f := range map[string]func() Facts{
		"its seeder " + pb.String() + " is proven gone": from(blank, theirClaim, bGone),
		"restore order 2, newer than the claim":         later,
	} {
		if p := decided(f()); p.Act != ActAbandon || !strings.Contains(p.Reason, want) {
			t.Errorf("%s: %q, want %q", p.Act, p.Reason, want)
		}
	}
}

// A source that reaches just as far as the order demands is one; an entry less, or an earlier term, is too short.
func TestHowFarASourceHasToReach(t *testing.T) {
	demands := func(term, commit uint64) func(*Facts) {
		return func(f *Facts) {
			f.Record.Orders[0].Restore.Term, f.Record.Orders[0].Restore.Commit = term, commit
		}
	}
	for _, c := range []struct {
		term, commit uint64
		want         bool
	}{{3, 100, true}, {3, 101, false}, {2, 101, true}, {4, 1, false}} {
		if o := Classify(from(three, orderMe, demands(c.term, c.commit))()); o.SourceHere != c.want {
			t.Errorf("term %d, index %d: %v", c.term, c.commit, o.SourceHere)
		}
	}
}
