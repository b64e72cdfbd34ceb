package table

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/quorate/quorate/internal/record"
	"github.com/quorate/quorate/internal/replica"
)

// The guards of a restore's silence. In each case I restore, all but b have said that they stopped, and one witness
// at a time speaks for b.

// waitsForB is a restore that waits for b alone. VM 102 is in no list for an hour, its disk is attached to nothing,
// and its last mark is old: silent.
func waitsForB(f *Facts) {
	orderMe(f)
	meStopped(f)
	f.stopped(pc, 1, 0xc3, 90)
	f.lists("101", "103")
	f.Beats = map[BeatKey]Beat{}
}

func bAbsent() Facts { return from(three, waitsForB)() }

// bTerminated: the same, but the lists call VM 102 stopped, since an hour ago by the clock of the API.
func bTerminated() Facts {
	return from(three, waitsForB, func(f *Facts) {
		f.lists("101", "102", "103")
		f.status("102", "TERMINATED")
	})()
}

// bRebooted: VM 102 took a second incarnation after it booted on another host, and that one has ended by its own
// word.
func bRebooted() Facts {
	return from(three, waitsForB, func(f *Facts) {
		f.incarnation(pb, 2, "102", "d2", 1, 0xb2)
		f.Record.Replicas[pb][1].BootID, f.Record.Replicas[pb][1].Written = "boot2", t0.Add(-time.Minute)
		f.stopped(pb, 2, 0xb2, 90)
	})()
}

// beat is a mark of the member by a boot: written by the store's clock and first seen so long ago.
func beat(id record.MemberID, boot string, written, seen time.Duration) func(*Facts) {
	return func(f *Facts) {
		f.Beats[BeatKey{id, boot}] = Beat{Written: t0.Add(-written), Seen: t0.Add(-seen)}
	}
}

// first and second change one of the two lists.
func first(change func(*Listing)) func(*Facts)  { return func(f *Facts) { change(&f.Compute.First) } }
func second(change func(*Listing)) func(*Facts) { return func(f *Facts) { change(&f.Compute.Second) } }

func failed(l *Listing)        { l.Err = errors.New("503") }
func disksFailed(l *Listing)   { l.DisksErr = errors.New("503") }
func withoutMe(l *Listing)     { l.Instances = instances("103") }
func lacksB(l *Listing)        { l.Instances = instances("101", "103") }
func attachedToB(l *Listing)   { l.Users = map[string][]replica.Place{"d2": {pb}} }
func attachedToC(l *Listing)   { l.Users = map[string][]replica.Place{"d2": {pc}} }
func nameIsTaken(l *Listing)   { l.Instances = instances("101", "103", "202") }
func nameIsUnclear(l *Listing) { nameIsTaken(l); l.Instances[2].Status = StatusUnknown }

// run replaces what all lists say of VM 102 by a run that is so long.
func run(kind RunKind, d time.Duration) func(*Facts) {
	return func(f *Facts) { f.Compute.Runs["102"] = Run{kind, f.Compute.Second.Time.Add(-d)} }
}

// lastStop is how long ago VM 102 was stopped when the second list was made, both by the clock of the API, which is
// hours away from ours.
func lastStop(d time.Duration) func(*Facts) {
	return second(func(l *Listing) {
		l.ServerTime = t0.Add(5 * time.Hour)
		l.Instances[1].LastStop = l.ServerTime.Add(-d)
	})
}

func noLastStop(f *Facts) { f.Compute.Second.Instances[1].LastStop = time.Time{} }

// weStop: our own operation stopped the VM, and its end was written two minutes ago.
func weStop(order int, instance string) func(*Facts) {
	return func(f *Facts) {
		f.Record.Orders[order-1].VMStops = map[string]record.VMStop{instance: {InstanceID: instance,
			Written: t0.Add(-2 * time.Minute)}}
	}
}

func neverConfirmed(f *Facts) { f.Record.Replicas[pb][0].Started = nil }
func bDiskUnknown(f *Facts)   { f.Record.Replicas[pb][0].DiskID = "" }
func saysSilent(f *Facts)     { f.Record.Orders[0].Restore.Silent = []string{"102"} }
func bListed(f *Facts)        { f.lists("101", "102", "103") }
func bStatus(s string) func(*Facts) {
	return func(f *Facts) { bListed(f); f.status("102", s) }
}

// ofAnotherEpoch makes the first of two orders one to end another epoch.
func ofAnotherEpoch(f *Facts) { f.Record.Orders[0].Restore.Ends = 0 }

// alsoOrdered gives a second order, which is not the one that is carried out.
func alsoOrdered(o record.Order) func(*Facts) { return func(f *Facts) { f.order(o) } }

// saidBy is b's word that it stopped, by a boot.
func saidBy(boot string) func(*Facts) {
	return func(f *Facts) {
		f.stopped(pb, 1, 0xb1, 90)
		f.last().Stopped[2].BootID = boot
	}
}

// strange is a mark of a member of the epoch that no incarnation names, first seen so long ago.
func strange(epoch uint64, seen time.Duration) func(*Facts) {
	return func(f *Facts) {
		f.Record.Marks[0xd1] = record.Mark{MemberID: 0xd1, Epoch: epoch, BootID: "bootd"}
		beat(0xd1, "bootd", seen, seen)(f)
	}
}

// Each witness by itself keeps an instance unproven, and where all are silent the restore goes on.
func TestSilenceHasWitnesses(t *testing.T) {
	const (
		lists    = "the last two lists of VMs"
		twoLists = "not yet two lists"
		attached = "data disk d2 is attached"
		noDisks  = "the disks cannot be listed"
		noDisk   = "which data disk it had is not known"
		since    = "does not say since when"
		byOther  = "by another than"
		mark     = "no further mark of its member"
		older    = "an older boot of it"
		nobodys  = "no incarnation in the record is its"
	)
	cases := []struct {
		name   string
		f      func() Facts
		speaks string // a part of what the witness says; empty: all are silent
	}{
		{"absent for an hour, detached, no mark", bAbsent, ""},
		{"the first list failed", from(bAbsent, first(failed)), twoLists},
		{"the second list failed", from(bAbsent, second(failed)), twoLists},
		{"the first list lacks me", from(bAbsent, first(withoutMe)), twoLists},
		{"the second list lacks me", from(bAbsent, second(withoutMe)), twoLists},
		{"the lists are less than 10 s apart",
			from(bAbsent, first(func(l *Listing) { l.Time = l.Time.Add(time.Millisecond) })), twoLists},
		{"the first list failed, and no run of lists lacks it",
			from(bAbsent, first(failed), func(f *Facts) { delete(f.Compute.Runs, "102") }), twoLists},
		{"no run of lists lacks it", from(bAbsent, func(f *Facts) { delete(f.Compute.Runs, "102") }), lists},
		{"it runs", from(bAbsent, bListed), lists},
		{"it is stopping", from(bAbsent, bStatus("STOPPING")), lists},
		{"it is suspended", from(bAbsent, bStatus("SUSPENDED")), lists},
		{"it is called something that is not known", from(bAbsent, bStatus(StatusUnknown)), lists},
		{"absent for less than 10 s, and never confirmed",
			from(bAbsent, neverConfirmed, run(RunAbsent, listingGap-time.Millisecond)), lists},
		{"absent for 10 s, and never confirmed", from(bAbsent, neverConfirmed, run(RunAbsent, listingGap)), ""},
		{"absent for 10 s, and confirmed: it could have written a mark", from(bAbsent, run(RunAbsent, listingGap)),
			mark},

		{"its disk is attached to it by the first list", from(bAbsent, first(attachedToB)), attached},
		{"by the second", from(bAbsent, second(attachedToB)), attached},
		{"also where we stopped it", from(bAbsent, second(attachedToB), weStop(1, "102")), attached},
		{"its disk is attached to another", from(bAbsent, first(attachedToC), second(attachedToC)), ""},
		{"its disk is attached to the name, which another instance has",
			from(bAbsent, second(attachedToB), second(nameIsTaken)), ""},
		{"and it is not known whether that one exists", from(bAbsent, second(attachedToB), second(nameIsUnclear)),
			attached},
		{"another has the name in the other list only", from(bAbsent, second(attachedToB), first(nameIsTaken)),
			attached},
		{"the disks were not listed the first time", from(bAbsent, first(disksFailed)), noDisks},
		{"nor the second time", from(bAbsent, second(disksFailed)), noDisks},
		{"its disk is not known", from(bAbsent, bDiskUnknown), noDisk},

		{"TERMINATED for an hour, no mark", bTerminated, ""},
		{"the same where the list begins with it",
			from(bTerminated, second(func(l *Listing) { slices.Reverse(l.Instances[:2]) })), ""},
		{"STOPPED for an hour", from(bAbsent, bStatus("STOPPED")), ""},
		{"TERMINATED, its disk attached and unknown: a stopped VM keeps its disk",
			from(bTerminated, bDiskUnknown, second(attachedToB), second(disksFailed)), ""},
		{"the API does not say since when", from(bTerminated, noLastStop), since},
		{"the API does not say which time it has",
			from(bTerminated, second(func(l *Listing) { l.ServerTime = time.Time{} })), since},
		{"the newest list does not name it", from(bTerminated, second(lacksB)), since},
		{"stopped for less than 450 s by the clock of the API",
			from(bTerminated, lastStop(StopSilence-time.Millisecond)), byOther},
		{"stopped for 450 s", from(bTerminated, lastStop(StopSilence)), ""},

		{"we stopped it", from(bTerminated, noLastStop, weStop(1, "102")), ""},
		{"we stopped it, by two lists that are too young",
			from(bTerminated, weStop(1, "102"), run(RunStopped, listingGap-time.Millisecond)), lists},
		{"we stopped it, and it is suspended by now", from(bAbsent, bStatus("SUSPENDED"), weStop(1, "102")), lists},
		{"we stopped another", from(bTerminated, noLastStop, weStop(1, "103")), since},
		{"we stopped it, and a mark was written before that",
			from(bTerminated, noLastStop, weStop(1, "102"), beat(0xb1, "boot1", 2*time.Minute, time.Second)), ""},
		{"we stopped it, and a mark was written since",
			from(bTerminated, noLastStop, weStop(1, "102"), beat(0xb1, "boot1", 119*time.Second, time.Second)), since},
		{"by a boot that did not say which it was",
			from(bTerminated, noLastStop, weStop(1, "102"), beat(0xb1, "", 119*time.Second, time.Second)), since},
		{"by another boot",
			from(bTerminated, noLastStop, weStop(1, "102"), beat(0xb1, "boot9", 119*time.Second, time.Second)), ""},
		{"we stopped it for an order to end another epoch",
			from(bTerminated, noLastStop, orderMe, weStop(1, "102"), ofAnotherEpoch), since},
		{"we stopped it for an order that was taken back",
			from(bTerminated, noLastStop, weStop(1, "102"), tookBack, orderMe), since},
		{"what stopped it is no order to restore",
			from(bTerminated, noLastStop, alsoOrdered(record.Order{Kind: record.OrderReplicas, Replicas: 3}), weStop(2,
				"102")), since},

		{"absent, and a mark was seen less than four periods ago",
			from(bAbsent, beat(0xb1, "boot1", time.Hour, MarkSilence-time.Millisecond)), mark},
		{"and four periods ago", from(bAbsent, beat(0xb1, "boot1", time.Hour, MarkSilence)), ""},
		{"TERMINATED, and a mark was seen less than four periods ago",
			from(bTerminated, beat(0xb1, "boot1", time.Hour, MarkSilence-time.Millisecond)), mark},
		{"and four periods ago", from(bTerminated, beat(0xb1, "boot1", time.Hour, MarkSilence)), ""},
		{"the lists are younger than four periods", from(bTerminated, run(RunStopped, time.Minute)), mark},
		{"the lists are younger than four periods, and the last mark is older",
			from(bAbsent, run(RunAbsent, time.Minute), beat(0xb1, "boot1", time.Hour, time.Hour)), mark},
		{"a mark by a boot that did not say which it was", from(bAbsent, beat(0xb1, "", time.Hour, time.Second)), mark},
		{"the younger of two marks counts",
			from(bAbsent, beat(0xb1, "boot1", time.Hour, time.Second), beat(0xb1, "", time.Hour, 30*time.Minute)),
			mark},
		{"a mark by another boot", from(bAbsent, beat(0xb1, "boot9", time.Hour, time.Second)), ""},
		{"a mark of another member", from(bAbsent, beat(0xc3, "boot1", time.Hour, time.Second)), ""},
		{"a mark of what was never confirmed",
			from(bAbsent, neverConfirmed, beat(0xb1, "boot1", time.Hour, time.Second)), ""},

		{"a person says that it runs nothing", from(bAbsent, bListed, saysSilent), ""},
		{"a person says so of another",
			from(bAbsent, bListed, func(f *Facts) { f.Record.Orders[0].Restore.Silent = []string{"103"} }), lists},
		{"a person said so in an order that was taken back", from(bAbsent, bListed, saysSilent, tookBack, orderMe),
			lists},
		{"a person said so in an order to end another epoch",
			from(bAbsent, bListed, orderMe, saysSilent, ofAnotherEpoch), lists},
		{"a newer order without the word: it is about another day", from(bAbsent, bListed, saysSilent, orderMe),
			"it has not said"},

		{"its own word", from(bAbsent, bListed, func(f *Facts) { f.stopped(pb, 1, 0xb1, 90) }), ""},
		{"the same with its name", from(bAbsent, bListed, func(f *Facts) {
			f.stopped(pb, 1, 0xb1,
				90)
			f.last().Stopped[2].InstanceID = "102"
		}), ""},
		{"its word by another instance", from(bAbsent, bListed, func(f *Facts) {
			f.stopped(pb, 1, 0xb1,
				90)
			f.last().Stopped[2].InstanceID = "202"
		}), lists},
		{"its word by a later boot, and the older one writes marks",
			from(bAbsent, bListed, saidBy("boot2"), beat(0xb1, "boot1", time.Second, time.Second)),
			"a later boot of it has said that it stopped"},
		{"the same, and its marks have ended",
			from(bAbsent, bListed, saidBy("boot2"), beat(0xb1, "boot1", time.Hour, MarkSilence)), ""},
		{"its word by its own boot, and a mark from before it",
			from(bAbsent, bListed, saidBy("boot1"), beat(0xb1, "boot1", time.Second, time.Second)), ""},
		{"its word by a boot that did not say which it was",
			from(bAbsent, bListed, saidBy(""), beat(0xb1, "boot1", time.Second, time.Second)), ""},
		{"its word about another incarnation", from(bAbsent, bListed, func(f *Facts) { f.stopped(pb, 2, 0xb1, 90) }),
			lists},
		{"a newer incarnation of another instance, which has stopped", from(bAbsent, bListed, func(f *Facts) {
			f.incarnation(pb, 2, "202", "d2", 1, 0)
			f.stopped(pb, 2, 0xb1, 90)
		}), lists},

		{"the newest incarnation speaks for the instance", from(bRebooted, bListed), ""},
		{"and where that one runs",
			from(bRebooted, bListed, func(f *Facts) { f.last().Stopped = f.last().Stopped[:2] }), lists},
		{"an older boot wrote a mark after the newer one began",
			from(bRebooted, beat(0xb1, "boot1", 59*time.Second, 119*time.Second)), older},
		{"no older than four periods", from(bRebooted, beat(0xb1, "boot1", 59*time.Second, MarkSilence)), ""},
		{"shortly before the newer one began",
			from(bRebooted, beat(0xb1, "boot1", time.Minute+MarkSilence-time.Second, time.Second)), older},
		{"and no mark since that", from(bRebooted, beat(0xb1, "boot1", time.Minute+MarkSilence-time.Second,
			MarkSilence)), ""},
		{"it had fallen silent before the newer one began",
			from(bRebooted, beat(0xb1, "boot1", time.Minute+MarkSilence, time.Second)), ""},
		{"when the newer one began is not known",
			from(bRebooted, beat(0xb1, "boot1", time.Second, time.Second),
				func(f *Facts) { f.Record.Replicas[pb][1].Written = time.Time{} }), ""},
		{"the newer incarnation is of the same boot",
			from(bRebooted, beat(0xb1, "boot1", time.Second, time.Second),
				func(f *Facts) { f.Record.Replicas[pb][1].BootID = "boot1" }), ""},
		{"the newer boot wrote the mark", from(bRebooted, beat(0xb1, "boot2", time.Second, time.Second)), ""},

		{"a member that no incarnation names writes marks", from(bAbsent, strange(1, MarkSilence-time.Millisecond)),
			nobodys},
		{"it has not written one for four periods", from(bAbsent, strange(1, MarkSilence)), ""},
		{"it is of another epoch", from(bAbsent, strange(0, time.Second)), ""},
		{"an incarnation names it", from(bAbsent, strange(1, time.Second), func(f *Facts) {
			f.incarnation(pb, 2, "102", "d2", 1, 0xd1)
			f.stopped(pb, 2, 0xd1, 90)
		}), ""},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			f := c.f()
			o := Classify(f)
			p := Decide(f.Now, o)
			if c.speaks == "" {
				if len(o.Unproven) > 0 || p.Act != ActSettle || !p.Closing {
					t.Errorf("%s: %v", p.Act, o.Unproven)
				}
				return
			}
			if len(o.Unproven) != 1 || !strings.Contains(o.Unproven[0].Witness, c.speaks) {
				t.Errorf("%v, want one that says %q", o.Unproven, c.speaks)
			}
			if p.Act != ActWait || p.Blocked == nil || p.Blocked.Name != "restore-waits" {
				t.Errorf("%s while something speaks", p.Act)
			}
		})
	}
}

// An incarnation is asked about where it is of the epoch that ends, and a later one speaks for it only there.
func TestSilenceIsAskedOfTheEpochThatEnds(t *testing.T) {
	f := from(bAbsent, bListed, func(f *Facts) { f.incarnation(pb, 2, "102", "d2", 2, 0xb2) })()
	if got := HistoryOf(f).unproven(); len(got) != 1 || got[0].InstanceID != "102" {
		t.Errorf("a later epoch's incarnation spoke for it: %v", got)
	}
	f = from(bAbsent, bListed, func(f *Facts) {
		f.Record.Replicas[pb][0].Epoch = 0
		f.incarnation(pc, 2, "203", "d3", 1, 0xc4)
		f.lists("101", "102", "103", "203")
	})()
	if got := HistoryOf(f).unproven(); len(got) != 1 || got[0].InstanceID != "203" || got[0].Place != pc {
		t.Errorf("an older epoch's incarnation was asked about: %v", got)
	}
}

// The list of those that are waited for is in one order, whatever the maps' is, and names each.
func TestSilenceIsWaitedForInOneOrder(t *testing.T) {
	f := from(three, orderMe, meStopped, func(f *Facts) {
		f.Beats = map[BeatKey]Beat{}
		strange(1, time.Second)(f)
	})()
	for range 20 {
		var names []string
		for _, u := range Classify(f).Unproven {
			names = append(names, strings.SplitN(u.String(), ": ", 2)[0])
		}
		if got := strings.Join(names,
			", "); got != "member d1, "+pb.String()+" (instance 102), "+pc.String()+" (instance 103)" {
			t.Fatal(got)
		}
	}
}

// An instance does not hold its name against itself.
func TestSilenceANameIsHeldByAnother(t *testing.T) {
	i := record.Incarnation{Place: pb, InstanceID: "102"}
	for ids, want := range map[string]bool{"102": false, "202": true, "103": false} {
		if got := holdsName(Listing{Instances: instances(ids)}, i); got != want {
			t.Errorf("%s: %v", ids, got)
		}
	}
}

// What a list says of a VM proves that it does not run only by two words, and by its absence.
func TestSilenceByTheStatusOfAVM(t *testing.T) {
	for status, want := range map[string]RunKind{
		"": RunAbsent, "TERMINATED": RunStopped, "STOPPED": RunStopped,
		"STOPPING": "", "SUSPENDED": "", "SUSPENDING": "", "RUNNING": "", "PROVISIONING": "", "STAGING": "",
		"REPAIRING": "", "DEPROVISIONING": "",
		StatusUnknown: "", "terminated": "", "PENDING_STOP": "",
	} {
		if got := RunKindOf(status); got != want {
			t.Errorf("%q: %q, want %q", status, got, want)
		}
	}
}

// A run of lists goes on as long as each whole list says the same of the instance.
func TestSilenceByRunsOfLists(t *testing.T) {
	at := t0.Add(-time.Minute)
	without := Listing{Time: t0, Instances: instances("101", "103")}
	with := func(status string) Listing {
		l := Listing{Time: t0, Instances: instances("101", "102", "103")}
		l.Instances[1].Status = status
		return l
	}
	fails, lacksMe := without, Listing{Time: t0, Instances: instances("103")}
	fails.Err = errors.New("503")
	cases := []struct {
		name   string
		before map[string]Run
		list   Listing
		want   Run // zero: there is none
	}{
		{"absent for the first time", nil, without, Run{RunAbsent, t0}},
		{"absent again", map[string]Run{"102": {RunAbsent, at}}, without, Run{RunAbsent, at}},
		{"TERMINATED for the first time", nil, with("TERMINATED"), Run{RunStopped, t0}},
		{"STOPPED after TERMINATED is the same",
			map[string]Run{"102": {RunStopped, at}}, with("STOPPED"), Run{RunStopped, at}},
		{"absent after it was stopped begins anew", map[string]Run{"102": {RunStopped, at}}, without,
			Run{RunAbsent, t0}},
		{"stopped after it was absent begins anew",
			map[string]Run{"102": {RunAbsent, at}}, with("TERMINATED"), Run{RunStopped, t0}},
		{"a VM that runs ends it", map[string]Run{"102": {RunStopped, at}}, with("RUNNING"), Run{}},
		{"so does one that is stopping", map[string]Run{"102": {RunStopped, at}}, with("STOPPING"), Run{}},
		{"a list that failed says nothing", map[string]Run{"102": {RunStopped, at}}, fails, Run{RunStopped, at}},
		{"nor does it begin one", nil, fails, Run{}},
		{"a list without me begins none", nil, lacksMe, Run{}},
		{"and changes none", map[string]Run{"102": {RunStopped, at}}, lacksMe, Run{RunStopped, at}},
	}
	for _, c := range cases {
		runs := map[string]Run{}
		for id, r := range c.before {
			runs[id] = r
		}
		NoteRuns(runs, c.list, three().Record, "101")
		if got := runs["102"]; got != c.want {
			t.Errorf("%s: %v, want %v", c.name, got, c.want)
		}
	}
	runs := map[string]Run{}
	NoteRuns(runs, without, blank().Record, "101")
	if len(runs) > 0 {
		t.Errorf("an instance that the record does not name may be younger than the list: %v", runs)
	}
}

// Where the record names a new instance or order, what was stopped may have been started since. What is absent stays
// so.
func TestSilenceOfStoppedVMsIsForgotten(t *testing.T) {
	runs := map[string]Run{"102": {RunStopped, t0}, "103": {RunAbsent, t0}}
	ForgetStops(runs)
	if _, ok := runs["102"]; ok || len(runs) != 1 {
		t.Errorf("%v", runs)
	}
}

// A mark counts as new when the store's time of it changes: for a record that does not say it, when the writer's
// does.
func TestSilenceByMarks(t *testing.T) {
	beats := map[BeatKey]Beat{}
	key := BeatKey{0xb1, "boot1"}
	see := func(mark record.Mark, now time.Time) Beat {
		mark.MemberID, mark.BootID = 0xb1, "boot1"
		NoteBeats(beats, record.View{Marks: map[record.MemberID]record.Mark{0xb1: mark}}, now)
		return beats[key]
	}
	at := func(s int) time.Time { return t0.Add(time.Duration(s) * time.Second) }
	if b := see(record.Mark{Written: at(-9), Beat: at(1000)}, at(0)); b != (Beat{at(-9), at(0)}) {
		t.Errorf("the first one: %v", b)
	}
	if b := see(record.Mark{Written: at(-9), Beat: at(2000)}, at(30)); b != (Beat{at(-9), at(0)}) {
		t.Errorf("the same again: %v", b)
	}
	if b := see(record.Mark{Written: at(21)}, at(60)); b != (Beat{at(21), at(60)}) {
		t.Errorf("another: %v", b)
	}
	if b := see(record.Mark{Beat: at(5)}, at(90)); b != (Beat{at(5), at(90)}) {
		t.Errorf("without the store's time: %v", b)
	}
	if b := see(record.Mark{Beat: at(5)}, at(120)); b != (Beat{at(5), at(90)}) {
		t.Errorf("the same again: %v", b)
	}
	NoteBeats(beats, record.View{Marks: map[record.MemberID]record.Mark{0xb1: {BootID: "boot2", Written: at(100)}}},
		at(130))
	if beats[key] != (Beat{at(5), at(90)}) || beats[BeatKey{0xb1, "boot2"}] != (Beat{at(100), at(130)}) {
		t.Errorf("each boot has its own: %v", beats)
	}
	NoteBeats(beats, record.View{Marks: map[record.MemberID]record.Mark{0xc3: {BootID: "boot1"}}}, at(150))
	if b := beats[BeatKey{0xc3, "boot1"}]; !b.Seen.Equal(at(150)) {
		t.Errorf("one that says no time at all was seen all the same: %v", b)
	}
}
