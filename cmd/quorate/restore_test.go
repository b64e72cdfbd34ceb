package main

import (
	"fmt"
	"maps"
	"strings"
	"testing"
	"time"

	"github.com/quorate/quorate/internal/record"
	"github.com/quorate/quorate/internal/replica"
)

var (
	placeA = replica.Place{Zone: "us-central1-a", Name: "master-a"}
	placeB = replica.Place{Zone: "us-central1-b", Name: "master-b"}
	placeC = replica.Place{Zone: "us-central1-c", Name: "master-c"}
	now    = time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)
)

// wrecked is a cluster of three that went silent ten minutes ago, with a snapshot an hour old.
func wrecked() wreck {
	w := wreck{now: now, View: record.View{Inception: &record.Inception{Name: "demo"},
		Replicas: map[replica.Place][]record.Incarnation{}, Marks: map[record.MemberID]record.Mark{}}}
	w.epoch = record.Epoch{Number: 1, Claim: &record.Claim{Token: "t"},
		Outcome: &record.Outcome{Formed: &record.Formed{ClusterID: 0xc1, MemberID: 0xa1},
			Time: now.Add(-24 * time.Hour)}}
	for i, p := range []replica.Place{placeA, placeB, placeC} {
		id := record.MemberID(0xa1 + 0x10*i)
		w.Replicas[p] = []record.Incarnation{{Place: p, Number: 1, InstanceID: "10" + string(rune('1'+i)), Epoch: 1,
			MemberID: id, DiskID: "d" + string(rune('1'+i)),
			Started: &record.Started{Epoch: 1, MemberID: id}}}
		w.Marks[id] = record.Mark{MemberID: id, Epoch: 1, Term: 3, Applied: uint64(1000 + 10*i),
			Time: now.Add(-10 * time.Minute)}
	}
	w.snapshots = []record.Snapshot{{Name: "1/77-x", Epoch: 1, Revision: 77, Index: 400,
		Time: now.Add(-70 * time.Minute)}}
	return w
}

func (w *wreck) stop(p replica.Place, term, index uint64, at time.Duration) {
	i := w.Replicas[p][0]
	w.epoch.Stopped = append(w.epoch.Stopped, record.Stopped{Place: p, Incarnation: 1, MemberID: i.MemberID, Term: term,
		LastIndex: index, Time: now.Add(at)})
}

// empty gives a place another VM, on an empty disk.
func (w *wreck) empty(p replica.Place, at time.Duration) {
	w.Replicas[p] = append(w.Replicas[p], record.Incarnation{Place: p, Number: 2,
		InstanceID: "2" + w.Replicas[p][0].InstanceID, Epoch: 1, DiskID: "e", EmptyDisk: true, Time: now.Add(at)})
}

// mark lets a member have come further some time ago.
func (w *wreck) mark(id record.MemberID, ago time.Duration) {
	m := w.Marks[id]
	m.Time = now.Add(-ago)
	w.Marks[id] = m
}

func TestTheSourceOfARestoreIsChosen(t *testing.T) {
	for _, tc := range []struct {
		name  string
		flags restoreFlags
		say   func(*wreck)
		want  string // the source and the replica, or what is refused
		loses string
	}{
		{"of nobody it is known whether his disk survives: a person must say", restoreFlags{}, nil,
			"--from directory=us-central1-c.master-c, --from directory=us-central1-b.master-b", ""},
		{"one has said that its disk is whole", restoreFlags{}, func(w *wreck) { w.stop(placeB, 3, 1015, 0) },
			"directory b1 d2 us-central1-b.master-b 3/1015 newest",
			"5 entries beyond that (2026-11-21 11:50:00): at least these are LOST"},
		{"of two that are whole the longer log", restoreFlags{},
			func(w *wreck) { w.stop(placeB, 3, 1015, 0); w.stop(placeA, 4, 900, 0) },
			"directory a1 d1 us-central1-a.master-a 4/900 newest", ""},
		{"two have lost their disks: the third is what is left", restoreFlags{},
			func(w *wreck) { w.empty(placeA, 0); w.empty(placeB, 0) },
			"directory c1 d3 us-central1-c.master-c 3/1020 newest", "not behind the cluster's last mark"},
		{"all have lost their disks: the newest snapshot, by whoever spoke last", restoreFlags{},
			func(w *wreck) { w.empty(placeC, time.Minute); w.empty(placeA, 0); w.empty(placeB, 0) },
			"snapshot 1/77-x us-central1-c.master-c",
			"Everything after 2026-11-21 10:50:00, revision 77, is LOST. The cluster's last mark is of " +
				"2026-11-21 11:50:00, 1h0m later and some 620 entries further."},
		{"the newest snapshot by its revision: the VM that saved it was an hour behind", restoreFlags{},
			func(w *wreck) {
				w.empty(placeC, time.Minute)
				w.empty(placeA, 0)
				w.empty(placeB, 0)
				behind := w.snapshots[0]
				behind.Name, behind.Revision, behind.Time = "1/90-x", 90, behind.Time.Add(-time.Hour)
				w.snapshots = append([]record.Snapshot{behind}, w.snapshots...)
			}, "snapshot 1/90-x us-central1-c.master-c", "revision 90, is LOST"},
		{"nothing is left", restoreFlags{}, func(w *wreck) {
			w.empty(placeA, 0)
			w.empty(placeB, 0)
			w.empty(placeC, 0)
			w.snapshots = nil
		}, "nothing to restore from", ""},
		{"a named directory", restoreFlags{from: "directory=master-a", exact: true}, nil,
			"directory a1 d1 us-central1-a.master-a 3/1000",
			"20 entries beyond that (2026-11-21 11:50:00): so much may be lost, or nothing"},
		{"a learner's directory", restoreFlags{from: "directory=master-b"}, nil,
			"directory b1 d2 us-central1-b.master-b 3/1010 newest", ""},
		{"a directory whose place stands on an empty disk, by name", restoreFlags{from: "directory=master-a"},
			func(w *wreck) { w.empty(placeA, 0) }, "directory a1 d1 us-central1-a.master-a 3/1000 newest", ""},
		{"one that was whole, and whose disk is another now", restoreFlags{},
			func(w *wreck) { w.stop(placeB, 3, 1015, 0); w.stop(placeC, 3, 1010, 0); w.empty(placeB, 0) },
			"directory c1 d3 us-central1-c.master-c 3/1010 newest", ""},
		{"one that stopped and went on under a later incarnation", restoreFlags{}, func(w *wreck) {
			w.stop(placeB, 3, 1015, 0)
			later := w.Replicas[placeB][0]
			later.Number = 2
			w.Replicas[placeB] = append(w.Replicas[placeB], later)
		}, "the record does not say whose disks survive", ""},
		{"another wrote its object for it", restoreFlags{}, func(w *wreck) {
			w.stop(placeB, 3, 1015,
				0)
			w.epoch.Stopped[0].InstanceID = "999"
		}, "the record does not say whose disks survive", ""},
		{"one has stopped without a log, which says nothing of its disk", restoreFlags{},
			func(w *wreck) { w.stop(placeB, 0, 0, 0); w.empty(placeA, 0); w.empty(placeC, 0) },
			"directory b1 d2 us-central1-b.master-b 3/1010 newest", ""},
		{"a snapshot, and nobody who has spoken", restoreFlags{from: "snapshot"}, nil, "--on is needed", ""},
		{"a snapshot on a named replica", restoreFlags{from: "snapshot=1/77-x", on: "master-b"}, nil,
			"snapshot 1/77-x us-central1-b.master-b", ""},
		{"a snapshot that is not there", restoreFlags{from: "snapshot=1/78-x", on: "master-b"}, nil,
			"there is no snapshot 1/78-x", ""},
		{"a directory is the best, and a replica is named for a snapshot", restoreFlags{on: "master-c"},
			func(w *wreck) { w.stop(placeB, 3, 1015, 0) },
			"--on master-c: the best there is to restore from is the directory of us-central1-b.master-b, and a " +
				"directory is restored by the replica whose it is: " +
				"for that leave --on out or say --from directory=us-central1-b.master-b; for a snapshot say --from " +
				"snapshot, too", ""},
		{"the only disk that may be whole, and a replica is named for a snapshot", restoreFlags{on: "master-c"},
			func(w *wreck) { w.empty(placeA, 0); w.empty(placeB, 0) },
			"or say --from directory=us-central1-c.master-c;", ""},
		{"no snapshot, and disks of which nothing bad is known", restoreFlags{from: "snapshot", on: "master-a"},
			func(w *wreck) { w.empty(placeC, 0); w.snapshots = nil },
			"no snapshot of epoch 1, but disks that are not known to be lost: name one that survives (--from " +
				"directory=us-central1-b.master-b, --from directory=us-central1-a.master-a)", ""},
		{"no disk, and the newest snapshot is of an older epoch", restoreFlags{}, func(w *wreck) {
			w.epoch.Number = 3
			w.snapshots = append(w.snapshots, record.Snapshot{Name: "2/9-x", Epoch: 2, Revision: 9},
				record.Snapshot{Name: "2/8-x", Epoch: 2, Revision: 8})
		}, "The newest snapshot of an older epoch is --from snapshot=2/9-x: all of epoch 3 is lost with it", ""},
		{"this very directory, and a snapshot", restoreFlags{from: "snapshot", exact: true}, nil,
			"--exact: it is about the directories of the others", ""},
		{"this very directory, and none is left", restoreFlags{exact: true},
			func(w *wreck) { w.empty(placeA, 0); w.empty(placeB, 0); w.empty(placeC, 0) },
			"--exact: no disk of epoch 1 is known to survive", ""},
		{"a directory on another replica", restoreFlags{from: "directory=master-a", on: "master-b"}, nil,
			"by the replica whose it is", ""},
		{"no replica", restoreFlags{from: "directory"}, nil, "which replica's?", ""},
		{"VMs stopped by nobody", restoreFlags{stopVMs: true, noWait: true}, nil, "--stop-vms with --no-wait", ""},
		{"another kind", restoreFlags{from: "tape"}, nil, "want snapshot, snapshot=NAME", ""},
		{"a learner", restoreFlags{from: "learner=master-b"}, nil, "want snapshot, snapshot=NAME or directory=", ""},
	} {
		t.Run(tc.name, func(t *testing.T) {
			w := wrecked()
			if tc.say != nil {
				tc.say(&w)
			}
			var c choice
			err := tc.flags.check()
			if err == nil {
				c, err = w.choose(&tc.flags)
			}
			if err != nil {
				if !strings.Contains(err.Error(), tc.want) || !strings.Contains(err.Error(), "nothing was written") {
					t.Errorf("refused: %v, want %s", err, tc.want)
				}
				return
			}
			o := c.order
			got := "snapshot " + o.From.Snapshot + " " + o.Replica.String()
			if o.From.Kind == record.SourceDirectory {
				got = "directory " + o.From.MemberID.String() + " " + o.From.DiskID + " " + o.Replica.String() + " " +
					position(o)
			}
			if got != tc.want || !strings.Contains(c.loses, tc.loses) || o.Ends != 1 {
				t.Errorf("%s, want %s; loses %q, want %q", got, tc.want, c.loses, tc.loses)
			}
		})
	}
}

func position(o record.RestoreOrder) string {
	text := fmt.Sprint(o.Term) + "/" + fmt.Sprint(o.Commit)
	if o.Newest {
		text += " newest"
	}
	return text
}

func TestALivingClusterIsNotEnded(t *testing.T) {
	for _, tc := range []struct {
		name string
		say  func(*wreck)
		want string
		left time.Duration
	}{
		{"silent for ten minutes", func(*wreck) {}, "", 0},
		{"a mark of half a minute ago", func(w *wreck) { w.mark(0xa1, 30*time.Second) },
			"the cluster lives: member a1 went on 30s ago, which takes a quorum.", 30 * time.Second},
		{"the newest of two", func(w *wreck) {
			w.mark(0xa1, 30*time.Second)
			w.mark(0xb1, 20*time.Second)
		}, "member b1 went on 20s ago", 40 * time.Second},
		{"a heartbeat of a member that does not come further", func(w *wreck) {
			m := w.Marks[0xa1]
			m.Beat,
				m.Written = now, now
			w.Marks[0xa1] = m
		}, "", 0},
		{"a mark of another epoch", func(w *wreck) {
			w.Marks[0xff] = record.Mark{MemberID: 0xff, Epoch: 7,
				Time: now}
		}, "", 0},
		{"formed just now", func(w *wreck) { w.epoch.Outcome.Time = now.Add(-time.Minute) },
			"epoch 1 was formed 1m0s ago, so it may well have a quorum: a member that serves writes its first mark " +
				"only up to a minute after its control plane has started, and that takes a while, too.", time.Minute},
		{"rebuilt just now", func(w *wreck) {
			w.epoch.Outcome.Time, w.epoch.Claim.Source.Kind = now.Add(-time.Minute), record.SourceRebuilt
		}, "the record of epoch 1 was rebuilt 1m0s ago, and its members' marks with it are gone, so it may",
			time.Minute},
		{"closed already", func(w *wreck) { w.epoch.Outcome.Time, w.epoch.Closed = now, &record.Closed{} }, "", 0},
	} {
		w := wrecked()
		tc.say(&w)
		got, left := w.living()
		if !strings.Contains(got, tc.want) || (got == "") != (tc.want == "") || left != tc.left {
			t.Errorf("%s: %q for %s, want %q for %s", tc.name, got, left, tc.want, tc.left)
		}
	}
}

func TestTheProgressOfARestoreIsTold(t *testing.T) {
	w := wrecked()
	order := record.Order{Number: 4, Kind: record.OrderRestore, Restore: &record.RestoreOrder{Ends: 1, Replica: placeA},
		Accepted: &record.Accepted{}}
	at := func(change func(*record.View)) string {
		v := w.View
		v.Epochs, v.Orders = []record.Epoch{w.epoch}, []record.Order{order}
		change(&v)
		text, detail, formed := progress(v, 1, now)
		text = strings.TrimSpace(text + " " + detail)
		if formed {
			text += " (formed)"
		}
		return text
	}
	silent := func(v *record.View) {
		v.Epochs[0].Stopped = []record.Stopped{{Place: placeB, Incarnation: 1}, {Place: placeC, Incarnation: 1}}
	}
	next := record.Epoch{Number: 2, Claim: &record.Claim{Seeder: record.Seeder{Place: placeA}}}
	for _, tc := range []struct {
		want   string
		change func(*record.View)
	}{
		{"Order 4: us-central1-a.master-a looks first whether it can carry it out; nobody stops before that.",
			func(v *record.View) { v.Orders[0].Accepted = nil }},
		{"waits until each of these has said that it has stopped, or is proven silent: us-central1-b.master-b " +
			"(instance 102), us-central1-c.master-c (instance 103). " +
			"Last heartbeats, by the store's clock: us-central1-b.master-b 34s ago, us-central1-c.master-c 10m0s ago " +
			"(its VM is stopped). " +
			"'quorate status' on us-central1-a.master-a names the witness that is awaited, and for how long.",
			func(v *record.View) {
				v.Marks = maps.Clone(v.Marks)
				v.Marks[0xb1] = record.Mark{MemberID: 0xb1, Epoch: 1, Time: now.Add(-time.Hour),
					Beat: now.Add(-time.Minute), Written: now.Add(-34 * time.Second)}
				v.Orders[0].VMStops = map[string]record.VMStop{"103": {InstanceID: "103"}}
			}},
		{"proven silent: us-central1-b.master-b (instance 102). Last heartbeats",
			func(v *record.View) { r := *order.Restore; r.Silent = []string{"103"}; v.Orders[0].Restore = &r }},
		{"Order 4: us-central1-a.master-a ends the epoch. It cannot be withdrawn any more.",
			func(v *record.View) { v.Orders[0].Verdict = &record.Verdict{Closing: true} }},
		{"Order 4 is being withdrawn by order 5: the agents settle whether it was in time.", func(v *record.View) {
			v.Orders = append(v.Orders, record.Order{Number: 5, Kind: record.OrderWithdraw, Withdraws: 4})
		}},
		{"", func(v *record.View) { v.Orders[0].Verdict = &record.Verdict{Withdrawn: true} }},
		{"Order 4: everybody says that they have stopped.", silent},
		{"Epoch 1 has ended. us-central1-a.master-a claims the next.",
			func(v *record.View) { v.Epochs[0].Closed = &record.Closed{} }},
		{"us-central1-a.master-a makes the directory of epoch 2.",
			func(v *record.View) { v.Epochs = append(v.Epochs, next) }},
		{"Epoch 2 is formed: etcd cluster c2. The other replicas join it by themselves. (formed)",
			func(v *record.View) {
				done := next
				done.Outcome = &record.Outcome{Formed: &record.Formed{ClusterID: 0xc2, MemberID: 1}}
				v.Epochs = append(v.Epochs, done)
			}},
		{"", func(v *record.View) { v.Orders = nil }},
	} {
		if got := at(tc.change); !strings.Contains(got, tc.want) || (got == "") != (tc.want == "") {
			t.Errorf("%q, want %q", got, tc.want)
		}
	}
}

// Places in which many VMs have followed one another are named once; those before count.
func TestEarlierVMsAreCounted(t *testing.T) {
	w := wrecked()
	for n := range 5 {
		next := w.Replicas[placeB][0]
		next.Number, next.InstanceID = uint64(n+2), fmt.Sprint(200+n)
		w.Replicas[placeB] = append(w.Replicas[placeB], next)
	}
	want := "us-central1-b.master-b (instance 204), us-central1-c.master-c (instance 103), 5 earlier VMs of " +
		"these places"
	if got := strings.Join(w.notStoppedNames(placeA), ", "); got != want {
		t.Errorf("%s, want %s", got, want)
	}
	if got := w.notStoppedNames(placeB); !strings.HasSuffix(strings.Join(got, ", "), ", 5 earlier VMs of these places") {
		t.Errorf("the restorer's own place had others before: %s", got)
	}
}

func TestTheStatesOfTheSourcesAreShown(t *testing.T) {
	w := wrecked()
	w.stop(placeB, 3, 1015, 0)
	w.stop(placeC, 0, 0, 0)
	w.empty(placeA, 0)
	c, err := w.choose(&restoreFlags{})
	if err != nil {
		t.Fatal(err)
	}
	var out strings.Builder
	w.show(&out, c, false)
	text := strings.Join(strings.Fields(out.String()), " ")
	for _, want := range []string{"directory=us-central1-b.master-b stopped, whole index 1015 ",
		"directory=us-central1-c.master-c stopped, log not known index 1020 or more ",
		"directory=us-central1-a.master-a its disk is empty now index 1000 or more ",
		"The former disks of these may come back, and hold more than any snapshot: us-central1-a.master-a."} {
		if !strings.Contains(text, want) {
			t.Errorf("no %q in %s", want, text)
		}
	}
}
