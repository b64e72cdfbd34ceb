package table

import (
	"embed"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/quorate/quorate/internal/record"
)

var update = flag.Bool("update", false, "write testdata/rows.txt and losses.txt anew")

var (
	locals     = []LocalClass{L0, LF, L5, L2, L3, L1}
	remotes    = []RemoteClass{Quorum, Answers, Nobody}
	diskEpochs = []DiskEpoch{DiskNone, DiskCurrent, DiskBelowClaimed, DiskBelowFormed, DiskAbandoned, DiskAbove}
	records    = []Observation{
		{Record: RUnreadable}, {Record: RLost}, {Record: R0},
		{Record: Rs}, {Record: Rs, HasSource: true}, {Record: Rs, Mine: true},
		{Record: Rs, Mine: true, HasSource: true},
		{Record: Rf}, {Record: Rc},
	}
)

// predicate is one thing that the rows ask beside the classes.
type predicate struct {
	name string
	set  func(*Observation)
}

var predicates = []predicate{
	{"phase seeding", func(o *Observation) { o.Phase = PhaseSeeding }},
	{"phase adding", func(o *Observation) { o.Phase = PhaseAdding }},
	{"phase added", func(o *Observation) { o.Phase = PhaseAdded }},
	{"phase started", func(o *Observation) { o.Phase = PhaseStarted }},
	{"etcd says that it is unusable", func(o *Observation) {
		if !o.Running {
			o.Unusable = "tocommit is out of range"
		}
	}},
	{"alone for longer than an election", func(o *Observation) { o.Alone = o.Running && o.Remote != Quorum }},
	{"no leader for longer than one", func(o *Observation) { o.Unheard = o.Running && o.Remote == Quorum }},
	{"same boot", func(o *Observation) { o.SameBoot = true }},
	{"start-anyway", func(o *Observation) { o.StartAnyway = true }},
	{"superseded", func(o *Observation) { o.Superseded = o.Record != RUnreadable }},
	{"only the outcome is missing", func(o *Observation) { o.OnlyOutcomeMissing = o.Record == RLost }},
	{"ahead", func(o *Observation) { o.Ahead = o.Record != RUnreadable }},
	{"disk's epoch closed", func(o *Observation) { o.DiskClosed = o.DiskEpoch != DiskNone }},
	{"token", func(o *Observation) { o.HasToken = o.DiskEpoch == DiskCurrent }},
	{"marker", func(o *Observation) { o.Marked = o.HasToken && o.Local != L5 }},
	{"seeder gone", func(o *Observation) { o.SeederGone = o.Record == Rs }},
	{"a newer order names me", func(o *Observation) { o.NewerOrderForMe = o.Record == Rs && o.HasSource }},
	{"a stranger, just seen", func(o *Observation) { o.stranger(time.Second) }},
	{"a stranger, seen for 5 s", func(o *Observation) { o.stranger(5 * time.Second) }},
	{"no list", func(o *Observation) { o.NoList = o.Record == R0 && o.Remote == Answers }},
	{"not fit", func(o *Observation) { o.Preflight = "no room" }},
	{"ended by order", func(o *Observation) { o.endedByOrder() }},
	{"order to accept", func(o *Observation) {
		o.endedByOrder()
		o.OrderNamesMe = o.Names.Restore != nil
		o.ToAccept, o.EndedByOrder = o.EndedByOrder && o.Record == Rf, o.EndedByOrder && o.Record != Rf
	}},
	{"an order that was found unfit", func(o *Observation) { o.Unfit = o.ToAccept }},
	{"and is not tried yet", func(o *Observation) { o.Unfit, o.Tries.Unfit.Until = o.ToAccept, t0.Add(time.Second) }},
	{"etcd ended again and again", func(o *Observation) { o.Tries.Starts = Starts{Last: t0, Runs: 9} }},
	{"order names me", func(o *Observation) { o.endedByOrder(); o.OrderNamesMe = o.Names.Restore != nil }},
	{"others could still run", func(o *Observation) { o.Unproven = []UnprovenStop{{pb, "102", "it runs"}} }},
	{"the verdict is closing", func(o *Observation) { o.Closing = o.EndedByOrder || o.Record == Rc }},
	{"an order is being withdrawn", func(o *Observation) {
		if o.endedByOrder(); o.EndedByOrder && o.Record == Rf {
			o.Withdrawing = 1
		}
	}},
	{"source here", func(o *Observation) { o.SourceHere = true }},
	{"the directory is the source", func(o *Observation) { o.SourceHere, o.DirectoryIsSource = true, o.Local == L1 }},
	{"listed", func(o *Observation) { o.Listed, o.OwnPlace = o.Remote == Quorum, true }},
	{"listed for another place", func(o *Observation) { o.Listed, o.OwnPlace = o.Remote == Quorum, false }},
	{"a peer says removed", func(o *Observation) { o.Removed = o.Remote != Nobody }},
	{"owes its word, and the end of its log", func(o *Observation) {
		o.owes(StopReport{Incarnation: 1, MemberID: 0xa1, WithLog: o.Local == L1})
	}},
	{"owes its word, under an incarnation to be taken", func(o *Observation) { o.owes(StopReport{Next: 2}) }},
	{"its incarnation has ended", func(o *Observation) { o.Ended = o.Local != L0 }},
	{"and nothing shows why", func(o *Observation) {
		o.Ended, o.EndUnproven = o.Local != L0, o.Local != L0 && o.Record != RUnreadable
	}},
	{"the former VM is silent", func(o *Observation) { o.FormerSilent = true }},
	{"the list names a successor", func(o *Observation) {
		if o.Remote == Quorum {
			o.Successor = "201"
		}
	}},
	{"left", func(o *Observation) { o.Left = o.Record != RUnreadable }},
	{"paused", func(o *Observation) { o.Paused = o.Record != RUnreadable }},
	{"pending incarnation", func(o *Observation) { o.OwnIncarnation, o.Pending, o.Confirmed = true, true, false }},
	{"confirmed incarnation", func(o *Observation) { o.OwnIncarnation, o.Pending, o.Confirmed = true, false, true }},
	{"a former entry", func(o *Observation) { o.Former = []record.MemberID{0xa0} }},
	{"a reusable entry", func(o *Observation) { o.Reusable = o.Local == L0 && !o.Ended }},
	{"too little room", func(o *Observation) { o.NoRoom = "1 MiB" }},
	{"listed by all", func(o *Observation) { o.ListedByAll = true }},
	{"a snapshot is offered", func(o *Observation) { o.SnapshotOffered = true }},
	{"a warm copy is offered", func(o *Observation) { o.WarmCopyOffered = true }},
	{"row 22 acts", func(o *Observation) { o.Survivors22 = PolicyActs }},
	{"row 22 offers", func(o *Observation) { o.Survivors22 = PolicyOffers }},
}

func (o *Observation) hasFormed() bool {
	return o.Record == Rf || o.Record == Rc || o.Record == Rs && o.HasSource
}

func (o *Observation) stranger(since time.Duration) {
	if o.Remote != Nobody && (o.Record == R0 || o.Record == Rs && o.Mine) {
		o.StrangerSince = t0.Add(-since)
	}
}

func (o *Observation) endedByOrder() {
	if !o.hasFormed() {
		return
	}
	o.EndedByOrder = o.DiskEpoch == DiskNone || o.DiskEpoch == DiskCurrent && o.Record != Rs ||
		o.DiskEpoch == DiskBelowClaimed
	o.Names.RestoreNumber, o.Names.Restore = 1, &record.RestoreOrder{Ends: 1, Replica: pb}
}

func (o *Observation) owes(w StopReport) {
	if o.hasFormed() {
		o.StopReport = w
		o.StopReport.Owed = true
	}
}

// impossible says why a cell cannot occur; empty: it can.
func impossible(o Observation) string {
	unformed := !o.hasFormed()
	switch {
	case o.Record == RUnreadable && o.DiskEpoch != DiskNone:
		return "a disk is not compared with a record that was not read"
	case o.Record == RUnreadable && o.Local == L3:
		return "whether a disk is rolled back is told by the record"
	case o.Record == RUnreadable && o.Remote == Quorum:
		return "which cluster is ours is told by the record"
	case o.Local == L0 && o.DiskEpoch != DiskNone:
		return "an empty disk is of no epoch"
	case (o.Local == L1 || o.Local == L3) && o.DiskEpoch == DiskNone && o.Record != RUnreadable:
		return "a directory is valid or rolled back only where agent.json names its epoch"
	case o.Record == RLost:
		return ""
	case unformed && o.Remote == Quorum:
		return "nothing is formed, so nobody's cluster is ours"
	case unformed && o.DiskEpoch == DiskBelowFormed:
		return "nothing is formed"
	case unformed && o.DiskEpoch == DiskBelowClaimed:
		return "every epoch below is abandoned"
	case o.Record == R0 && o.DiskEpoch == DiskCurrent:
		return "the newest epoch is abandoned"
	case (o.Record == Rf || o.Record == Rc) && o.DiskEpoch == DiskBelowClaimed:
		return "nothing above the newest formed epoch is claimed"
	}
	return ""
}

// cells are all cells of the classes, each also with the own member running where the disk is valid.
func cells() []Observation {
	var out []Observation
	for _, r := range records {
		for _, l := range locals {
			for _, remote := range remotes {
				for _, d := range diskEpochs {
					o := r
					o.Local, o.Remote, o.DiskEpoch, o.Ahead = l, remote, d, d == DiskAbove
					o.Names = Names{Place: pa.String(), MemberID: 0xa1, ClusterID: 0xc1, NewestEpoch: 2, FormedEpoch: 1,
						Restore: nil, Claimed: record.Source{Order: 1}}
					out = append(out, o)
					if l == L1 {
						o.Running = true
						out = append(out, o)
					}
				}
			}
		}
	}
	return out
}

func cellName(o Observation) string {
	r := string(o.Record)
	if o.Record == Rs {
		r += map[bool]string{true: " mine", false: ""}[o.Mine] + map[bool]string{true: " source",
			false: " empty"}[o.HasSource]
	}
	l := string(o.Local)
	if o.Running {
		l += " running"
	}
	return fmt.Sprintf("%-14s %-10s %s  disk epoch %s", r, l, o.Remote, o.DiskEpoch)
}

// TestTheTableIsTotal walks the whole product of the classes with every single predicate and every pair of them, and
// compares which rows each cell can reach with testdata/rows.txt.
func TestTheTableIsTotal(t *testing.T) {
	var b strings.Builder
	b.WriteString("# record, disk, remote: the row without any predicate | the rows that one or two predicates lead " +
		"to. Made by go test -run TheTableIsTotal -update\n")
	for _, cell := range cells() {
		if why := impossible(cell); why != "" {
			fmt.Fprintf(&b, "%s: cannot occur: %s\n", cellName(cell), why)
			continue
		}
		reached := map[Row]bool{}
		for i := range predicates {
			for j := i; j < len(predicates); j++ {
				o := cell
				predicates[i].set(&o)
				predicates[j].set(&o)
				p := Decide(t0, o)
				check(t, o, p)
				reached[p.Row] = true
			}
		}
		bare := Decide(t0, cell)
		check(t, cell, bare)
		delete(reached, bare.Row)
		fmt.Fprintf(&b, "%s: %s%s\n", cellName(cell), bare.Row, alternatives(reached))
	}
	golden(t, "testdata/rows.txt", b.String())
}

// goldens are embedded: go test keeps no result of a test that opens a file which is newer, as all are in a new clone.
//
//go:embed testdata/rows.txt testdata/losses.txt
var goldens embed.FS

// golden compares a text with the file that holds it, or writes the file.
func golden(t *testing.T, file, text string) {
	t.Helper()
	if *update {
		if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := goldens.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if diff := firstDifference(string(want), text); diff != "" {
		t.Errorf("it differs from %s (look at each, then -update): %s", file, diff)
	}
}

func alternatives(rows map[Row]bool) string {
	if len(rows) == 0 {
		return ""
	}
	var out []Row
	for r := range rows {
		out = append(out, r)
	}
	slices.Sort(out)
	words := make([]string, len(out))
	for i, r := range out {
		words[i] = r.String()
	}
	return " | " + strings.Join(words, " ")
}

func firstDifference(want, got string) string {
	w, g := strings.Split(want, "\n"), strings.Split(got, "\n")
	for i := range min(len(w), len(g)) {
		if w[i] != g[i] {
			return fmt.Sprintf("line %d\n was %s\n now %s", i+1, w[i], g[i])
		}
	}
	if len(w) != len(g) {
		return fmt.Sprintf("%d lines were, %d are", len(w), len(g))
	}
	return ""
}

// TestManyPredicatesAtOnce looks for a step that is not safe with three to twelve predicates at once, at random with a
// fixed seed; in `make test` among fewer.
func TestManyPredicatesAtOnce(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	all := slices.DeleteFunc(cells(), func(o Observation) bool { return impossible(o) != "" })
	tries := 300_000
	if testing.Short() {
		tries = 60_000
	}
	for range tries {
		o := all[random.IntN(len(all))]
		for range 3 + random.IntN(10) {
			predicates[random.IntN(len(predicates))].set(&o)
		}
		check(t, o, Decide(t0, o))
		if t.Failed() {
			return
		}
	}
}

// check is what no plan may ever do.
func check(t *testing.T, o Observation, p Plan) {
	t.Helper()
	if broken := unsafe(o, p); broken != "" {
		t.Errorf("%s\n%s: row %s, %s\n%+v", broken, cellName(o), p.Row, p.Act, o)
	}
}

func unsafe(o Observation, p Plan) string {
	is := func(acts ...Act) bool { return slices.Contains(acts, p.Act) }
	switch {
	case p.Act == "":
		return "a plan without an act"
	case is(ActWait, ActHalt) && (p.Blocked == nil || p.Blocked.Name == "" || p.Blocked.Next == "" ||
		!strings.HasSuffix(p.Blocked.Reason, ".")):
		return "a wait that does not say what it waits for"
	case p.Row == RowHalt && !is(ActHalt):
		return "an uncovered cell acts"
	case is(ActSeed) && (o.Record != Rs || !o.Mine || o.HasSource || o.Local != L0 || !o.StrangerSince.IsZero()):
		return "seeds without its own claim of an empty source, an empty disk and silence"
	case is(ActClaim) && p.Row == 14 && (o.Record != R0 || o.Local != L0 || o.Remote != Nobody || o.Left):
		return "claims a first epoch where something may exist"
	case is(ActClaim) && p.Row != 14 && (o.Record != Rc || !o.OrderNamesMe || len(o.Unproven) > 0 || !o.SourceHere ||
		!o.silent()):
		return "claims a restore before the old epoch is closed and silent"
	case is(ActCloseEpoch) && (!o.OrderNamesMe || len(o.Unproven) > 0 || !o.SourceHere || !o.silent()):
		return "closes an epoch that is not silent"
	case is(ActCloseEpoch) && !o.Closing:
		return "closes an epoch before the record says that its order is carried out"
	case is(ActSettle) && p.Closing && (!o.OrderNamesMe || len(o.Unproven) > 0 || !o.SourceHere || !o.silent() ||
		o.Record == Rc):
		return "settles an order for an epoch that is not silent"
	case is(ActSettle) && !p.Closing && o.Withdrawing == 0:
		return "takes back an order that nobody takes back"
	case is(ActStart) && (o.Record == RUnreadable || o.Record == RLost || o.Ahead) && o.Phase != PhaseStarted:
		return "starts, without a record that says it was formed, what may never have been"
	case is(ActCloseEpoch, ActStop) && o.ToAccept && p.Row == 8:
		return "ends an epoch before the order is accepted"
	case is(ActStart, ActStartJoined) && (o.EndUnproven && o.Record == Rf || o.Superseded):
		return "starts what has ended for no reason that is known, or a superseded instance"
	case is(ActStart) && o.Ended && (!o.OwnIncarnation || o.Record != Rf):
		return "starts under an incarnation that has ended"
	case is(ActRemoveMember) && o.Successor != "" && p.Row != RowRunning:
		return "removes a member while the list is newer than the record"
	case p.WithLog && !o.StopReport.WithLog:
		return "says where a log ends that it does not hold"
	case is(ActStart) && p.Row == 25 && o.Unusable != "":
		return "starts again beside a quorum what etcd says is unusable"
	case is(ActStart) && o.Local != L1:
		return "starts a directory that is not valid"
	case is(ActStartJoined) && (o.Local != L0 || !o.Reusable || !o.Confirmed):
		return "starts a learner that was not added for this disk"
	case is(ActForm) && (o.Local != L1 || !o.HasToken):
		return "forms from a directory without the claim's token"
	case is(ActRemoveMember) && (o.Record != Rf || o.Remote != Quorum):
		return "removes a member without a quorum of the open epoch"
	case is(ActRemoveMember) && !(p.MemberID == o.Names.MemberID && o.OwnPlace) &&
		!slices.Contains(o.Former, p.MemberID):
		return "removes another place's member"
	case o.Record == RUnreadable && !is(ActStart, ActKeep, ActWait, ActHalt):
		return "acts without a record"
	case o.Record == RLost && !is(ActStart, ActKeep, ActWait, ActHalt, ActFormedAgain, ActStop):
		return "acts on a damaged record"
	case o.Ahead && !is(ActStart, ActKeep, ActWait, ActHalt, ActFormedAgain, ActStop):
		return "acts on a record that was rolled back"
	case is(ActArchive) && o.Record == Rf && o.Remote != Quorum && o.DiskEpoch == DiskCurrent && o.Local != L5 &&
		!o.DiskClosed:
		return "puts away a directory that may be needed"
	case o.Running && !is(ActKeep, ActWait, ActHalt, ActStop, ActForm, ActFormedAgain, ActRemoveMember, ActAccept,
		ActSettle):
		return "touches what a running member uses"
	case o.Running && is(ActRemoveMember):
		return "removes the member that runs here"
	case is(ActAbandon) && o.Record != Rs:
		return "abandons what is not claimed"
	case p.WithLog && o.Local != L1:
		return "a directory that is not valid speaks for a survivor"
	case is(ActOrderRestore) && (o.Record != Rf || o.Remote == Quorum || o.Paused):
		return "a policy acts beside a quorum"
	}
	return ""
}
