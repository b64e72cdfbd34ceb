package table

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/quorate/quorate/internal/record"
	"github.com/quorate/quorate/internal/replica"
)

func TestRecordClasses(t *testing.T) {
	cases := []struct {
		name string
		f    func() Facts
		want RecordClass
	}{
		{"unreadable", from(three, unreadable), RUnreadable},
		{"unreadable is not absent", from(blank, unreadable), RUnreadable},
		{"no inception", from(blank, func(f *Facts) { f.Record.Inception = nil }), RLost},
		{"an inception alone", blank, R0},
		{"the newest epoch is abandoned, none was formed", from(blank, theirClaim, func(f *Facts) { f.abandon() }), R0},
		{"claimed", from(blank, theirClaim), Rs},
		{"formed", three, Rf},
		{"closed", from(three, isClosed), Rc},
		{"closed, and the restore's epoch abandoned: never R0 again", from(three, isClosed, claimRestore,
			func(f *Facts) { f.abandon() }), Rc},
		{"closed, and the next claimed", from(three, isClosed, claimRestore), Rs},
		{"the next formed", from(three, isClosed, nextFormed), Rf},
	}
	for _, c := range cases {
		if o := Classify(c.f()); o.Record != c.want {
			t.Errorf("%s: %s (%s), want %s", c.name, o.Record, o.Names.Damage, c.want)
		}
	}
}

// Each proof that the specification lists makes a record damaged that would otherwise be R0, Rs or Rf.
func TestEachProofOfDamage(t *testing.T) {
	unformed := from(blank, theirClaim)
	cases := []struct {
		name string
		f    func() Facts
		says string
	}{
		{"phase started on my disk", from(unformed, func(f *Facts) { f.disk(1, "t1", 1, 0xa1, PhaseStarted) }),
			"agent.json"},
		{"a mark", from(unformed, func(f *Facts) { f.Record.Marks[0xb1] = record.Mark{Epoch: 1} }), "mark"},
		{"a snapshot", from(unformed, func(f *Facts) { f.Record.Snapshots = []uint64{1} }), "snapshot"},
		{"stopped/", from(unformed, func(f *Facts) { f.stopped(pb, 1, 0xb1, 9) }), "stopped/"},
		{"closed.json", from(unformed, isClosed), "closed"},
		{"a claim that was rebuilt",
			from(blank, func(f *Facts) { f.claim(1, "t1", pa, "unknown", record.Source{Kind: record.SourceRebuilt}) }),
			"rebuilt"},
		{"a started.json of another place than the seeder's",
			from(unformed, func(f *Facts) { f.incarnation(pc, 1, "103", "d3", 1, 0xc3) }), "started.json"},
		{"abandoned, although a mark proves that it was formed",
			from(unformed, func(f *Facts) { f.abandon(); f.Record.Marks[0xb1] = record.Mark{Epoch: 1} }), "mark"},
		{"an incarnation names an epoch that epochs/ lacks",
			from(blank, func(f *Facts) { f.incarnation(pb, 1, "102", "d2", 1, 0) }), "replicas/"},
		{"a mark names one", from(blank, func(f *Facts) { f.Record.Marks[0xb1] = record.Mark{Epoch: 1} }), "marks/"},
		{"a snapshot names one", from(blank, func(f *Facts) { f.Record.Snapshots = []uint64{1} }), "snapshots/"},
		{"an order names one", from(blank, orderMe), "orders/"},
		{"a claim is missing", from(three, func(f *Facts) { f.Record.Epochs[0].Claim = nil }), "claim.json"},
		{"an epoch is missing below the newest",
			from(blank, func(f *Facts) { f.claim(2, "t2", pb, "102", record.Source{}) }), "epochs/1"},
		{"the outcome below a newer claim is missing",
			from(unformed, func(f *Facts) { f.claim(2, "t2", pb, "102", record.Source{}) }), "outcome.json"},
	}
	for _, c := range cases {
		o := Classify(c.f())
		if o.Record != RLost || !strings.Contains(o.Names.Damage, c.says) {
			t.Errorf("%s: %s, %q, want R- for %q", c.name, o.Record, o.Names.Damage, c.says)
		}
	}
}

// What is lost below the newest formed epoch decides nothing any more: an outcome of epoch 1 that is lost in the third
// year of epoch 2 must not let every reboot wait for a person.
func TestWhatIsNoDamage(t *testing.T) {
	cases := map[string]func() Facts{
		"the seeder's own started.json: it comes before the directory": from(blank, theirClaim,
			func(f *Facts) { f.incarnation(pb, 1, "102", "d2", 1, 0xb1) }),
		"a phase seeding": from(blank, emptyClaim, seeding),
		"what is lost below the newest formed": from(three, isClosed, nextFormed,
			func(f *Facts) { f.Record.Epochs = f.Record.Epochs[1:] }),
		"an old outcome lost, a newer one held": from(three, isClosed, nextFormed,
			func(f *Facts) { f.Record.Epochs[0].Outcome = nil }),
	}
	for name, f := range cases {
		if o := Classify(f()); o.Record == RLost {
			t.Errorf("%s: R-, %s", name, o.Names.Damage)
		}
	}
}

func TestLocalClasses(t *testing.T) {
	cases := []struct {
		name string
		f    func() Facts
		want LocalClass
	}{
		{"no directory", blank, L0},
		{"valid", three, L1},
		{"another replica's", from(three, foreign), LF},
		{"another replica's and corrupt", from(three, foreign, corrupted), LF},
		{"seeding without the marker", from(blank, emptyClaim, seeding, func(f *Facts) { f.Directory.Marker = false }),
			L5},
		{"seeding without the marker and corrupt", from(blank, emptyClaim, seeding, corrupted,
			func(f *Facts) { f.Directory.Marker = false }), L5},
		{"seeding with the marker", from(blank, emptyClaim, seeding), L1},
		{"seeding, the marker lost after the epoch was formed",
			from(three, func(f *Facts) { f.Agent.Phase = PhaseSeeding; f.Directory.Marker = false }), L1},
		{"a join that had not started", from(three, func(f *Facts) { f.Agent.Phase = PhaseAdded }), L5},
		{"being archived", from(three, func(f *Facts) { f.Agent.Phase = PhaseArchiving }), L5},
		{"being archived, another replica's", from(three, foreign, func(f *Facts) { f.Agent.Phase = PhaseArchiving }),
			L5},
		{"corrupt", from(three, corrupted), L2},
		{"agent.json cannot be read", from(three, func(f *Facts) { f.AgentErr = errors.New("invalid character") }), L2},
		{"being archived, and agent.json cannot be read",
			from(three, noAgentFile, func(f *Facts) { f.Agent.Phase = PhaseArchiving }), L2},
		{"no agent.json: nobody knows whose it is", from(three, func(f *Facts) { f.Agent = AgentFile{} }), L2},
		{"the log is of another member", from(three, func(f *Facts) { f.Directory.MemberID = 0xff }), L2},
		{"the log is of another cluster", from(three, func(f *Facts) { f.Directory.ClusterID = 0xff }), L2},
		{"nothing names the member", from(three, func(f *Facts) { f.Directory.MemberID, f.Agent.MemberID = 0, 0 }), L2},
		{"rolled back: a higher incarnation is confirmed",
			from(three, func(f *Facts) { f.incarnation(pa, 2, "101", "d1", 1, 0xa1) }), L3},
		{"not rolled back: a higher one is pending",
			from(three, func(f *Facts) { f.incarnation(pa, 2, "101", "d1", 1, 0) }), L1},
		{"rolled back: the disk is another than recorded", from(three, func(f *Facts) { f.DiskID = "d7" }), L3},
		{"not known: no disk id", from(three, func(f *Facts) { f.DiskID = "" }), L1},
		{"rolled back: the log ends below the mark's index",
			from(three, func(f *Facts) { f.Record.Marks[0xa1] = record.Mark{Epoch: 1, Term: 3, Applied: 101} }), L3},
		{"rolled back: the log ends below the mark's term",
			from(three, func(f *Facts) { f.Record.Marks[0xa1] = record.Mark{Epoch: 1, Term: 4, Applied: 1} }), L3},
		{"not rolled back: at the mark",
			from(three, func(f *Facts) { f.Record.Marks[0xa1] = record.Mark{Epoch: 1, Term: 3, Applied: 100} }), L1},
		{"rolled back: the leader has its word for more", from(three, withQuorum, acknowledged(101)), L3},
		{"not rolled back: the leader has its word for just that", from(three, withQuorum, acknowledged(100)), L1},
		{"not rolled back: nobody answers through a quorum", from(three, withQuorum, acknowledged(101),
			func(f *Facts) { f.Answers[0].Reach = ReachAnswers }), L1},
		{"rolled back: the leader has its word, and another answered through the quorum",
			from(three, withQuorum, acknowledged(101), func(f *Facts) {
				f.Answers[0].Reach = ReachAnswers
				f.Answers = append(f.Answers, Answer{Place: pc, InstanceID: "103", Reach: ReachLinearizable,
					ClusterID: 0xc1})
			}), L3},
		{"not rolled back: whoever says so is of another cluster", from(three, withQuorum, acknowledged(101),
			func(f *Facts) { f.Answers[0].ClusterID = 0xc9 }), L1},
		{"corrupt comes before rolled back", from(three, corrupted, func(f *Facts) { f.DiskID = "d7" }), L2},
	}
	for _, c := range cases {
		if o := Classify(c.f()); o.Local != c.want {
			t.Errorf("%s: %s, want %s", c.name, o.Local, c.want)
		}
	}
}

func TestRemoteClasses(t *testing.T) {
	self := func(f *Facts) {
		f.Answers = []Answer{{Place: pa, InstanceID: "101", Reach: ReachLinearizable, ClusterID: 0xc1}}
	}
	cases := []struct {
		name string
		f    func() Facts
		want RemoteClass
	}{
		{"a linearizable list of our cluster", from(three, withQuorum), Quorum},
		{"a linearizable list of another cluster",
			from(three, withQuorum, func(f *Facts) { f.Answers[0].ClusterID = 0xff }), Answers},
		{"no linearizable list", from(three, func(f *Facts) { f.answers(ReachAnswers) }), Answers},
		{"a TCP accept", from(three, func(f *Facts) { f.answers(ReachTCP) }), Answers},
		{"silence", from(three, func(f *Facts) { f.answers(ReachNothing) }), Nobody},
		{"my own answer while I do not run is not mine to count", from(three, self), Nobody},
		{"a lone voter that runs is its own quorum", from(three, self, func(f *Facts) { f.Directory.Running = true }),
			Quorum},
		{"nothing formed, silence, but no list of whom to ask",
			from(blank, func(f *Facts) { f.Compute.Second.Err = errors.New("503") }), Answers},
	}
	for _, c := range cases {
		if o := Classify(c.f()); o.Remote != c.want {
			t.Errorf("%s: %s, want %s", c.name, o.Remote, c.want)
		}
	}
}

func TestProvenGone(t *testing.T) {
	without := func(f *Facts) { f.lists("101", "103") }
	cases := []struct {
		name string
		f    func() Facts
		p    replica.Place
		id   string
		want bool
	}{
		{"two lists 10 s apart lack it and contain me", from(three, without), pb, "102", true},
		{"they contain it", three, pb, "102", false},
		{"TERMINATED is not gone", from(three, func(f *Facts) { f.Compute.First.Instances[1].Status = "TERMINATED" }),
			pb, "102", false},
		{"one list is an error", from(three, without, func(f *Facts) { f.Compute.First.Err = errors.New("503") }), pb,
			"102", false},
		{"the lists are empty", from(three, func(f *Facts) { f.lists() }), pb, "102", false},
		{"the lists lack me", from(three, func(f *Facts) { f.lists("103") }), pb, "102", false},
		{"the lists are 9 s apart", from(three, without,
			func(f *Facts) { f.Compute.First.Time = f.Compute.Second.Time.Add(-9 * time.Second) }), pb, "102", false},
		{"only one of them lacks it", from(three, without, func(f *Facts) {
			f.Compute.First.Instances = instances("101",
				"102")
		}), pb, "102", false},
		{"a newer incarnation of its place is another's",
			from(three, func(f *Facts) { f.incarnation(pb, 2, "202", "d2", 1, 0) }), pb, "102", true},
		{"a newer incarnation after a reboot is its own",
			from(three, func(f *Facts) { f.incarnation(pb, 2, "102", "d2", 1, 0) }), pb, "102", false},
		{"an instance that never had an incarnation is not older than those that did",
			from(three, func(f *Facts) { f.Compute = Compute{} }), pb, "902", false},
		{"I stand in its place", three, pa, "99", true},
		{"an unknown instance", three, pb, "", false},
	}
	for _, c := range cases {
		if got := HistoryOf(c.f()).Gone(c.p, c.id); got != c.want {
			t.Errorf("%s: %v", c.name, got)
		}
	}
}

func TestProvenGoneWithItsDisk(t *testing.T) {
	newer := func(disk string) func(*Facts) {
		return func(f *Facts) { f.incarnation(pb, 2, "202", disk, 1, 0) }
	}
	cases := []struct {
		name string
		f    func() Facts
		want bool
	}{
		{"neither VM nor disk is listed", from(three, bGone), true},
		{"the disk is listed", from(three, func(f *Facts) { f.lists("101") }), false},
		{"the disks could not be listed",
			from(three, bGone, func(f *Facts) { f.Compute.Second.DisksErr = errors.New("503") }), false},
		{"its successor is on another disk", from(three, newer("d9")), true},
		{"its successor is on the same disk", from(three, newer("d2")), false},
		{"its successor's disk is not known", from(three, newer("")), false},
	}
	for _, c := range cases {
		f := c.f()
		if got := HistoryOf(f).GoneWithDisk(f.Record.Replicas[pb][0]); got != c.want {
			t.Errorf("%s: %v", c.name, got)
		}
	}
}

// A token on a copy of a disk is nobody's claim: the seeder writes its token, its disk is cloned before there is a
// directory, and its VM is made again on the clone while the old one still runs. Both would seed one member id. Nor is
// a claim that a successor may have made: a restorer is made again on a clone of its disk, the new VM claims without an
// incarnation yet, and the old one holds the disk that the claim names as its source.
func TestMyClaim(t *testing.T) {
	recreated := func(disk string) func(*Facts) { return func(f *Facts) { f.recreate(disk) } }
	noDirectory := func(f *Facts) { f.Directory = Directory{} }
	source := func(f *Facts) { f.last().Claim.Source = record.Source{Kind: record.SourceDirectory, DiskID: "d1"} }
	cases := []struct {
		name string
		f    func() Facts
		want bool
	}{
		{"it names my instance", from(blank, emptyClaim), true},
		{"my place, and the disk with its token", from(blank, emptyClaim, seeding, recreated("d1")), true},
		{"my place, another disk", from(blank, emptyClaim, recreated("d9")), false},
		{"my place, its token on the disk, no directory yet", from(blank, emptyClaim, seeding, recreated("d1"),
			noDirectory), true},
		{"my place, its token on a copy of the disk, no directory yet", from(blank, emptyClaim, seeding,
			recreated("d9"), noDirectory), false},
		{"my place, and the disk that it names as its source", from(three, isClosed, emptyClaim2, source,
			recreated("d1")), true},
		{"the same, but I was here before the one that claimed: it is my successor",
			from(three, isClosed, func(f *Facts) { f.claim(2, "t2", pa, "109", record.Source{}) }, source), false},
		{"my place, another disk than its source", from(three, isClosed, emptyClaim2, source, recreated("d9")), false},
		{"another place's", from(blank, theirClaim), false},
		{"another place's, and I hold a disk with its token", from(blank, theirClaim, seeding), false},
	}
	for _, c := range cases {
		if o := Classify(c.f()); o.Record != Rs || o.Mine != c.want {
			t.Errorf("%s: %s, mine %v", c.name, o.Record, o.Mine)
		}
	}
}

func emptyClaim2(f *Facts) { f.claim(2, "t2", pa, "101", record.Source{}) }

func TestOrders(t *testing.T) {
	until := t0.Add(-time.Minute)
	given := []record.Order{
		{Number: 1, Kind: record.OrderReplicas, Replicas: 5},
		{Number: 2, Kind: record.OrderReplicas, Replicas: 3},
		{Number: 3, Kind: record.OrderPause},
		{Number: 4, Kind: record.OrderLeave, Place: &pb},
		{Number: 5, Kind: record.OrderRestore, Restore: &record.RestoreOrder{Ends: 1}},
		{Number: 6, Kind: record.OrderWithdraw, Withdraws: 2},
		{Number: 7, Kind: record.OrderWithdraw, Withdraws: 6},
		{Number: 8, Kind: record.OrderWithdraw, Withdraws: 5},
		{Number: 9, Kind: record.OrderOverride, Row: 42, MemberID: 0xb1},
	}
	o := OrdersOf(given, 1, t0)
	if o.Replicas != 3 {
		t.Errorf("replicas %d: the withdrawal of order 2 was itself withdrawn", o.Replicas)
	}
	if !o.Paused || o.Left(pb) == nil || o.Left(pa) != nil || o.Restore != nil || !o.Overrides(42, 0xb1) ||
		o.Overrides(42, 0xc1) {
		t.Errorf("%+v", o)
	}
	if OrdersOf(append(given, record.Order{Number: 10, Kind: record.OrderResume}), 1, t0).Paused {
		t.Error("resume is the newest word")
	}
	if OrdersOf(append(given, record.Order{Number: 10, Kind: record.OrderPause, Until: &until}), 1, t0).Paused {
		t.Error("the newest pause has run out")
	}
}

func TestParseMemberName(t *testing.T) {
	p, id, ok := ParseMemberName(replica.Identity{Place: pa, InstanceID: "101"}.MemberName())
	if p != pa || id != "101" || !ok {
		t.Errorf("%v %q %v", p, id, ok)
	}
	for _, bad := range []string{"", "m1", "zone.m1", "zone.m1.", "a.b.c.d"} {
		if _, _, ok := ParseMemberName(bad); ok {
			t.Errorf("%q was taken for a member's name", bad)
		}
	}
}
