package table

import (
	"errors"
	"reflect"
	"slices"
	"testing"
	"time"

	"github.com/quorate/quorate/internal/record"
	"github.com/quorate/quorate/internal/replica"
)

// The guards of what may be given up: the offers of a snapshot and of a warm copy, row 22, and the proof that a member
// is gone with its disk.

func noLists(f *Facts)        { f.Compute = Compute{} }
func hasDisk2(l *Listing)     { l.Disks = []string{"d1", "d2", "d3"} }
func survivorsOn(f *Facts)    { f.Policy.Survivors = true }
func noVoters(f *Facts)       { f.Directory.Voters, f.Directory.Learners = nil, nil }
func ofEarlierEpoch(f *Facts) { f.Record.Replicas[pb][0].Epoch = 0 }
func bSaid(index uint64) func(*Facts) {
	return func(f *Facts) { f.stopped(pb, 1, 0xb1, index) }
}

// incarnationB is b's, confirmed, where the policy of one replica has none.
func incarnationB(disk string) func(*Facts) {
	return func(f *Facts) { f.incarnation(pb, 1, "102", disk, 1, 0xb1) }
}

// newB is the incarnation of an instance that took the place of b's after it.
func newB(instance, disk string) func(*Facts) {
	return func(f *Facts) { f.incarnation(pb, 2, instance, disk, 1, 0) }
}

// changed adds changes of the configuration to my log.
func changed(changes ...record.ConfigChange) func(*Facts) {
	return func(f *Facts) { f.Directory.Changes = changes }
}

func change(index uint64, kind string, id record.MemberID) record.ConfigChange {
	return record.ConfigChange{Index: index, Type: kind, MemberID: id}
}

func TestGuardsOfAVMThatIsGone(t *testing.T) {
	mine := [2]string{"101", "boot1"}
	cases := []struct {
		name string
		f    func() Facts
		p    replica.Place
		id   string
		want bool
	}{
		{"no list has it", from(three, bGone), pb, "102", true},
		{"the older list has it",
			from(three, bGone, first(func(l *Listing) { l.Instances = instances("101", "102") })), pb, "102", false},
		{"the newer list has it",
			from(three, bGone, second(func(l *Listing) { l.Instances = instances("101", "102") })), pb, "102", false},
		{"another took its place after it", from(three, noLists, newB("202", "d9")), pb, "102", true},
		{"I am new in its place", from(three, noLists, func(f *Facts) { f.Me.InstanceID = "201" }), pa, "101", true},
		{"I came after it", from(three, noLists, incarnations([2]string{"99", "boot9"}, mine)), pa, "99", true},
		{"it may have come after me", from(three, noLists), pa, "201", false},
		{"it may have come after me, whoever came before",
			from(three, noLists, incarnations([2]string{"99", "boot9"}, mine)), pa, "201", false},
		{"I had the place, and another took it",
			from(three, noLists, incarnations(mine, [2]string{"201", "boot9"})), pa, "101", true},
		{"I have the place", from(three, noLists), pa, "101", false},
	}
	for _, c := range cases {
		if got := HistoryOf(c.f()).Gone(c.p, c.id); got != c.want {
			t.Errorf("%s: %v", c.name, got)
		}
	}
}

// A member is gone with its disk by two lists of VMs and two of disks, or by a successor on another disk; an unknown
// disk may come back.
func TestGuardsOfADiskThatIsGone(t *testing.T) {
	cases := []struct {
		name           string
		f              func() Facts
		k              int // b's incarnation
		with, diskGone bool
	}{
		{"neither VM nor disk is in any list", from(three, bGone), 0, true, true},
		{"the VM is in a list",
			from(three, bGone, func(f *Facts) { f.Compute.First.Instances = instances("101", "102") }), 0, false, true},
		{"the older list has the disk", from(three, bGone, first(hasDisk2)), 0, false, false},
		{"the newer list has the disk", from(three, bGone, second(hasDisk2)), 0, false, false},
		{"the older list of disks failed", from(three, bGone, first(disksFailed)), 0, false, false},
		{"the newer list of disks failed", from(three, bGone, second(disksFailed)), 0, false, false},
		{"one list failed", from(three, bGone, first(failed)), 0, false, false},
		{"one list lacks me", from(three, bGone, second(withoutMe)), 0, false, false},
		{"its disk is not known", from(three, bGone, bDiskUnknown), 0, false, false},
		{"its disk is not known, and its successor has one",
			from(three, bGone, bDiskUnknown, newB("202", "d9")), 0, false, false},
		{"its successor is on another disk, and there are no lists", from(three, noLists, newB("202", "d9")), 0, true,
			false},
		{"its successor is on its disk", from(three, bGone, newB("202", "d2")), 0, false, true},
		{"its own later incarnation is on another disk",
			from(three, bGone, first(hasDisk2), newB("102", "d9")), 0, false, false},
		{"its predecessor was on another disk", from(three, bGone, first(hasDisk2), func(f *Facts) {
			f.Record.Replicas[pb] = nil
			f.incarnation(pb, 1, "99", "d9", 1, 0xb1)
			f.incarnation(pb, 2, "102", "d2", 1, 0xb2)
		}), 1, false, false},
	}
	for _, c := range cases {
		f := c.f()
		h, i := HistoryOf(f), f.Record.Replicas[pb][c.k]
		if with, gone := h.GoneWithDisk(i), h.diskGone(i); with != c.with || gone != c.diskGone {
			t.Errorf("%s: with its disk %v, its disk %v", c.name, with, gone)
		}
	}
}

// A snapshot is offered only where nothing can hold newer data than the snapshot.
func TestGuardsOfTheSnapshotOffer(t *testing.T) {
	base := from(three, wiped, oneWanted)
	cases := []struct {
		name string
		f    func() Facts
		want bool
	}{
		{"one is wanted, and its disk is empty", base, true},
		{"its directory is corrupt", from(three, corrupted, oneWanted), true},
		{"its directory is valid", from(three, oneWanted), false},
		{"its directory is rolled back", from(three, oneWanted, diskID("d7")), false},
		{"its directory is half archived", from(three, archiving, oneWanted), false},
		{"its directory is another replica's", from(three, ofPlaceB, oneWanted), false},
		{"three are wanted", from(base, func(f *Facts) { f.Policy.Replicas = 3 }), false},
		{"three are wanted by order",
			from(base, func(f *Facts) { f.order(record.Order{Kind: record.OrderReplicas, Replicas: 3}) }), false},
		{"there is no snapshot", from(base, func(f *Facts) { f.Policy.Snapshot = nil }), false},
		{"the snapshot is of another epoch", from(base, func(f *Facts) { f.Policy.Snapshot.Epoch = 2 }), false},
		{"a person took an order to restore back", from(base, orderMe, tookBack), true},
		{"an order to restore is in force", from(base, orderMe, unaccepted), false},
		{"one to end another epoch is", from(base, orderMe, unaccepted, ofAnotherEpoch), true},
		{"the epoch is closed", from(base, isClosed), false},

		{"the VM on this disk was another", from(base, func(f *Facts) { f.recreate("d1") }), true},
		{"its former disk exists", from(base, func(f *Facts) { f.recreate("d9") }), false},
		{"nobody knows which disk this is, and the VM is the same",
			from(base, diskID(""), func(f *Facts) { f.Record.Replicas[pa][0].DiskID = "" }), true},
		{"nobody knows which disk this is, and the VM was another", from(base, func(f *Facts) {
			f.recreate("")
			f.Record.Replicas[pa][0].DiskID = ""
			f.stopped(pa, 1, 0xa1, 0)
		}), false},

		{"another is gone with its disk", from(base, incarnationB("d2"), bGone), true},
		{"its disk is in one list", from(base, incarnationB("d2"), bGone, second(hasDisk2)), false},
		{"its disk is not known", from(base, incarnationB(""), bGone), false},
		{"its disk is gone, and its VM runs",
			from(base, incarnationB("d2"), bGone, bListed, first(withoutDisk2), second(withoutDisk2)), false},
		{"its disk is this one", from(base, incarnationB("d1"), bGone, func(f *Facts) { bSaid(0)(f) }), false},
		{"its disk exists, and it is of an earlier epoch", from(base, incarnationB("d2"), ofEarlierEpoch), true},
		{"its disk exists, and it was never confirmed", from(base, incarnationB("d2"), neverConfirmed), true},
		{"its older boot still writes marks", from(base, incarnationB("d2"), bGone, newB("102", "d2"), func(f *Facts) {
			f.stopped(pb, 2, 0xb1, 90)
			f.Record.Replicas[pb][1].BootID, f.Record.Replicas[pb][1].Written = "boot2", t0.Add(-time.Minute)
			f.Beats = map[BeatKey]Beat{}
			beat(0xb1, "boot1", time.Second, time.Second)(f)
		}), false},
	}
	for _, c := range cases {
		if o := Classify(c.f()); o.SnapshotOffered != c.want {
			t.Errorf("%s: %v, want %v", c.name, o.SnapshotOffered, c.want)
		}
	}
}

func withoutDisk2(l *Listing) { l.Disks = []string{"d1", "d3"} }

// The warm copy is that of the learner of one voter, which is lost with its disk and silent.
func TestGuardsOfTheWarmCopy(t *testing.T) {
	base := from(three, pair, bGone)
	marked := func(f *Facts) {
		f.Beats = map[BeatKey]Beat{}
		beat(0xb1, "boot1", time.Second, time.Second)(f)
	}
	cases := []struct {
		name string
		f    func() Facts
		want bool
	}{
		{"the voter is lost with its disk", base, true},
		{"a person took an order to restore back", from(base, orderMe, tookBack), true},
		{"an order to restore is in force", from(base, orderMe, unaccepted), false},
		{"its disk is not known", from(base, bDiskUnknown), false},
		{"its disk is in one list", from(base, first(hasDisk2)), false},
		{"its successor is on another disk, and its own exists", from(base, newB("202", "d9"), second(hasDisk2)),
			false},
		{"it writes marks", from(base, marked), false},
		{"its disk is gone, it has said that it has stopped, and its VM is listed",
			from(base, bListed, first(withoutDisk2), second(withoutDisk2), bSaid(0)), false},
		{"no incarnation is the voter's",
			from(base, func(f *Facts) { f.Directory.Voters = []record.MemberID{0xd1} }), false},
		{"I am no learner", from(base, func(f *Facts) { f.Directory.Learners = nil }), false},
		{"I was removed", from(base, changed(change(90, "remove", 0xa1))), false},
		{"I became a learner with the last entry that is committed",
			from(base, func(f *Facts) { f.Directory.Learners = nil },
				changed(change(100, "add-learner", 0xa1))), true},
		{"my promotion may not have been committed", from(base, changed(change(101, "add-voter", 0xa1))), true},
		{"the promotion of another may have been", from(base, changed(change(101, "add-voter", 0xc3))), false},
		{"another's change says nothing of me", from(base, changed(change(90, "remove", 0xc9))), true},
		{"I am the voter", from(base, func(f *Facts) { f.Directory.Voters = []record.MemberID{0xa1} }), false},
		{"there are two voters", from(base, func(f *Facts) { f.Directory.Voters = []record.MemberID{0xb1, 0xc3} }),
			false},
		{"no voter is known", from(base, noVoters), false},
		{"the directory is corrupt", from(base, corrupted), false},
		{"my incarnation has ended", from(base, saidMyLog(1)), false},
		{"the disk is of an older epoch",
			from(base, restoredByB, func(f *Facts) {
				f.Record.Replicas[pb][0].Epoch,
					f.Record.Replicas[pb][0].Started.Epoch = 2, 2
			}), false},
	}
	for _, c := range cases {
		if o := Classify(c.f()); o.WarmCopyOffered != c.want {
			t.Errorf("%s: %v, want %v", c.name, o.WarmCopyOffered, c.want)
		}
	}
}

// What a policy orders is what it found.
func TestGuardsOfAPolicysOrder(t *testing.T) {
	want := record.RestoreOrder{Ends: 1, Replica: pa, Term: 3, Commit: 100, Newest: true,
		From: record.Source{Kind: record.SourceDirectory, MemberID: 0xa1, DiskID: "d1"}}
	o := Classify(from(three, twoVoters, bGone, survivorsOn)()).Names.PolicyOrder
	if o == nil || !reflect.DeepEqual(*o, want) {
		t.Errorf("row 22: %+v", o)
	}
}

// Row 22: only survivors without whom no quorum ever acknowledged anything, and only where quorum is gone for good. By
// the first alone a healthy lone voter would be restored instead of started.
func TestGuardsOfTheSurvivors(t *testing.T) {
	base := from(three, twoVoters, bGone, survivorsOn)
	cases := []struct {
		name string
		f    func() Facts
		want PolicyFinding
	}{
		{"of two voters one is gone with its disk", base, PolicyActs},
		{"it is not allowed", from(base, func(f *Facts) { f.Policy.Survivors = false }), PolicyOffers},
		{"a person took an order to restore back", from(base, orderMe, tookBack), PolicyOffers},
		{"an order to restore is in force", from(base, orderMe, unaccepted), ""},
		{"the other runs", from(base, bListed), ""},
		{"its disk is not known", from(base, bDiskUnknown), PolicyWaitsForDisk},
		{"its disk is in one list", from(base, second(hasDisk2)), PolicyWaitsForDisk},
		{"its disks were listed once", from(base, first(disksFailed)), PolicyWaitsForDisk},
		{"no incarnation is the other voter's",
			from(base, func(f *Facts) { f.Directory.Voters = []record.MemberID{0xa1, 0xd1} }), ""},
		{"no voter is known", from(base, noVoters), ""},
		{"the directory is corrupt", from(base, corrupted), ""},
		{"my incarnation has ended", from(base, saidMyLog(1)), ""},
		{"two of three have ended, and left no log",
			from(three, survivorsOn, func(f *Facts) { othersStopped(f); noLogs(f) }), PolicyNotEnough},
		{"two of three have ended, one with its log",
			from(three, survivorsOn, othersStopped, func(f *Facts) { f.last().Stopped[1].LastIndex = 0 }), PolicyActs},
		{"the third may still run", from(three, survivorsOn, bGone), ""},
		{"I am new on this disk, and the third may still run", from(three, survivorsOn, bGone, func(f *Facts) {
			f.Me.InstanceID, f.Me.BootID = "201", "boot2"
			f.lists("201", "103")
			withoutDisk2(&f.Compute.First)
			withoutDisk2(&f.Compute.Second)
		}), ""},
	}
	for _, c := range cases {
		if o := Classify(c.f()); o.Survivors22 != c.want {
			t.Errorf("%s: %q, want %q", c.name, o.Survivors22, c.want)
		}
	}
}

func noLogs(f *Facts) {
	for n := range f.last().Stopped {
		f.last().Stopped[n].LastIndex = 0
	}
}

// Who counts as a survivor, and which voters have to be accounted for.
func TestGuardsOfWhoSurvives(t *testing.T) {
	ids := func(s []survivor) (out []record.MemberID) {
		for _, x := range s {
			out = append(out, x.id)
		}
		return out
	}
	cases := []struct {
		name string
		f    func() Facts
		want []record.MemberID
	}{
		{"whoever said where its log ends", from(three, bSaid(90)), []record.MemberID{0xb1}},
		{"it said nothing of a log", from(three, bSaid(0)), nil},
		{"it has gone with its disk since", from(three, bSaid(90), bGone), nil},
		{"it said nothing of a member", from(three, newB("102", "d2"), func(f *Facts) { f.stopped(pb, 2, 0, 90) }),
			nil},
		{"no incarnation is the member's", from(three, func(f *Facts) { f.stopped(pb, 1, 0xd1, 90) }), nil},
		{"it is another place's member", from(three, func(f *Facts) { f.stopped(pb, 1, 0xc3, 90) }), nil},
		{"that one has spoken for itself",
			from(three, func(f *Facts) { f.stopped(pb, 1, 0xc3, 90); f.stopped(pc, 1, 0xc3, 80) }),
			[]record.MemberID{0xc3}},
		{"and its newer one has ended too", from(three, bSaid(90), func(f *Facts) {
			f.incarnation(pb, 2, "102", "d2", 1, 0xb1)
			f.stopped(pb, 2, 0xb1, 80)
		}), []record.MemberID{0xb1}},
		{"the member has a newer incarnation",
			from(three, bSaid(90), func(f *Facts) { f.incarnation(pb, 2, "102", "d2", 1, 0xb1) }), nil},
		{"a newer one of another epoch does not count",
			from(three, bSaid(90), func(f *Facts) { f.incarnation(pb, 2, "102", "d2", 0, 0xb1) }),
			[]record.MemberID{0xb1}},
		{"another instance said it", from(three, bSaid(90), func(f *Facts) { f.last().Stopped[0].InstanceID = "202" }),
			nil},
	}
	for _, c := range cases {
		if got := ids(HistoryOf(c.f()).stoppedSurvivors()); !slices.Equal(got, c.want) {
			t.Errorf("%s: %v", c.name, got)
		}
	}
	h := HistoryOf(from(three, saidMyLog(1), bSaid(90))())
	if got := ids(h.survivors()); !slices.Equal(got, []record.MemberID{0xa1, 0xb1}) {
		t.Errorf("I am a survivor once: %v", got)
	}
	if !h.memberEnded(0xb1) || h.memberEnded(0xc3) || h.memberEnded(0xd1) {
		t.Error("who has ended")
	}
	for name, c := range map[string]struct {
		f      func() Facts
		enough bool
	}{
		"the third may come back":     {from(three, bSaid(90)), false},
		"the third has ended":         {from(three, bSaid(90), func(f *Facts) { f.stopped(pc, 1, 0xc3, 0) }), true},
		"the third is gone with disk": {from(three, bSaid(90), cGone), true},
		"the third and its disk may b": {from(three, bSaid(90), cGone,
			func(f *Facts) { f.Record.Replicas[pc][0].DiskID = "" }), false},
	} {
		f := c.f()
		if h := HistoryOf(f); (h.notEnough(h.survivors()) == "") != c.enough {
			t.Errorf("%s: %q", name, h.notEnough(h.survivors()))
		}
	}
	s := survivor{voters: []record.MemberID{1, 2}, commit: 7, changes: []record.ConfigChange{change(7, "remove", 2),
		change(8, "add-voter", 3)}}
	if got := s.certain(); !slices.Equal(got, []record.MemberID{1}) {
		t.Errorf("a change is committed at the commit index: %v", got)
	}
}

// cGone: c's VM is in no list, and neither is its disk.
func cGone(f *Facts) {
	f.lists("101", "102")
	for _, l := range []*Listing{&f.Compute.First, &f.Compute.Second} {
		l.Disks = []string{"d1", "d2"}
	}
}

// Without a readable and whole record only what was started starts again, and only as it was.
func TestGuardsOfAStartWithoutARecord(t *testing.T) {
	phase := func(p Phase) func(*Facts) { return func(f *Facts) { f.Agent.Phase = p; f.Directory.Marker = true } }
	anyway := func(f *Facts) { f.StartAnyway = true }
	lost := func(f *Facts) { f.Record.Epochs[0].Claim = nil }
	noOutcome := func(f *Facts) { f.Record.Epochs[0].Outcome = nil }
	cases := []struct {
		name string
		f    func() Facts
		row  Row
		act  Act
	}{
		{"unreadable: started here", from(three, unreadable), 1, ActStart},
		{"unreadable: being seeded", from(three, unreadable, phase(PhaseSeeding)), 2, ActWait},
		{"unreadable: of no phase that is known", from(three, unreadable, phase("later")), 2, ActWait},
		{"unreadable: it has ended", from(three, unreadable, phase(PhaseStopped)), 2, ActWait},
		{"unreadable: its end was said", from(three, unreadable, saidMyLog(1)), 2, ActWait},
		{"unreadable: another boot", from(three, unreadable, reboot), 2, ActWait},
		{"unreadable: another instance",
			from(three, unreadable, func(f *Facts) { f.Agent.InstanceID = "201" }), 2, ActWait},
		{"unreadable: corrupt", from(three, unreadable, corrupted), 2, ActWait},
		{"start-anyway: another boot", from(three, unreadable, anyway, reboot), 2, ActStart},
		{"start-anyway: being seeded", from(three, unreadable, anyway, phase(PhaseSeeding)), 2, ActWait},
		{"start-anyway: being seeded, another boot",
			from(three, unreadable, anyway, reboot, phase(PhaseSeeding)), 2, ActWait},
		{"start-anyway: it has ended", from(three, unreadable, anyway, phase(PhaseStopped)), 2, ActWait},
		{"start-anyway: its end was said", from(three, unreadable, anyway, saidMyLog(1)), 2, ActWait},
		{"start-anyway: corrupt", from(three, unreadable, anyway, corrupted), 2, ActWait},
		{"start-anyway: the record is damaged", from(three, lost, anyway, reboot), 4, ActWait},
		{"damaged: started here", from(three, lost), 3, ActStart},
		{"damaged: being seeded", from(three, lost, phase(PhaseSeeding)), 4, ActWait},
		{"damaged: it has ended", from(three, lost, phase(PhaseStopped)), 4, ActWait},
		{"damaged: its end was said", from(three, lost, saidMyLog(1)), 4, ActWait},
		{"damaged: another boot", from(three, lost, reboot), 4, ActWait},
		{"damaged: corrupt", from(three, lost, corrupted), 4, ActWait},
		{"rolled back: started", from(three, rollBackRecord), 5, ActStart},
		{"rolled back: being seeded", from(three, rollBackRecord, phase(PhaseSeeding)), 6, ActHalt},
		{"rolled back: it has ended", from(three, rollBackRecord, phase(PhaseStopped)), 6, ActHalt},
		{"rolled back: its end was said", from(three, saidMyLog(1), func(f *Facts) { f.Agent.NewestEpoch = 9 }), 6,
			ActHalt},

		{"only the outcome is lost", from(three, noOutcome), 3, ActFormedAgain},
		{"and the log does not say of which cluster",
			from(three, noOutcome, func(f *Facts) { f.Directory.ClusterID = 0 }), 3, ActStart},
		{"and the disk has another token", from(three, noOutcome, func(f *Facts) { f.Agent.Token = "t9" }), 3,
			ActStart},
		{"and neither has a token",
			from(three, noOutcome, func(f *Facts) { f.Agent.Token, f.Record.Epochs[0].Claim.Token = "", "" }), 3,
			ActStart},
		{"the outcome of a newer epoch than the disk's is", from(three, isClosed, nextFormed, func(f *Facts) {
			f.last().Outcome = nil
			f.Record.Marks[0xb2] = record.Mark{Epoch: 2}
		}), 3, ActStart},
		{"the claim of a newer epoch is lost too", from(three, noOutcome, func(f *Facts) {
			f.Record.Epochs = append(f.Record.Epochs, record.Epoch{Number: 2})
		}), 3, ActStart},

		{"its epoch ends by a record that was rolled back", from(three, orderB, carries(2)), RowEndAhead, ActHalt},
		{"by being closed", from(three, isClosed, carries(2)), RowEndAhead, ActHalt},
		{"it does not end", from(three, carries(2)), 5, ActStart},
		{"it is of another history", from(three, orderB, func(f *Facts) { f.Agent.Token = "t0" }), 5, ActStart},
		{"the directory is corrupt", from(three, orderB, carries(2), corrupted), 6, ActHalt},
		{"the disk is of another epoch", from(three, isClosed, nextFormed, isClosed, carries(2)), 5, ActStart},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			if p := decided(c.f()); p.Row != c.row || p.Act != c.act {
				t.Errorf("row %s, %s; want row %s, %s: %s", p.Row, p.Act, c.row, c.act, p.Reason)
			}
		})
	}
	f := three()
	f.Directory.ReadErr = errors.New("input/output error")
	if p := decided(f); p.Act != ActHalt {
		t.Errorf("a directory that cannot be looked at: %s", p.Act)
	}
}
