package restoring

import (
	"fmt"
	"maps"
	"strings"
	"testing"
	"time"

	"github.com/quorate/quorate/etcdmember/order"
	"github.com/quorate/quorate/internal/record"
	"github.com/quorate/quorate/internal/replica"
)

var (
	placeA = replica.Place{Zone: "us-central1-a", Name: "master-a"}
	placeB = replica.Place{Zone: "us-central1-b", Name: "master-b"}
	placeC = replica.Place{Zone: "us-central1-c", Name: "master-c"}
	now    = time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)
)

// lostQuorum is a cluster of three that went silent ten minutes ago, with a snapshot an hour old.
func lostQuorum() order.Restore {
	r := order.Restore{Now: now, Record: record.View{Inception: &record.Inception{Name: "demo"},
		Replicas: map[replica.Place][]record.Incarnation{}, Marks: map[record.MemberID]record.Mark{}}}
	r.Ends = record.Epoch{Number: 1, Claim: &record.Claim{Token: "t"},
		Outcome: &record.Outcome{Formed: &record.Formed{ClusterID: 0xc1, MemberID: 0xa1},
			Time: now.Add(-24 * time.Hour)}}
	for i, p := range []replica.Place{placeA, placeB, placeC} {
		id := record.MemberID(0xa1 + 0x10*i)
		r.Record.Replicas[p] = []record.Incarnation{{Place: p, Number: 1, InstanceID: "10" + string(rune('1'+i)),
			Epoch:    1,
			MemberID: id, DiskID: "d" + string(rune('1'+i)),
			Started: &record.Started{Epoch: 1, MemberID: id}}}
		r.Record.Marks[id] = record.Mark{MemberID: id, Epoch: 1, Term: 3, Applied: uint64(1000 + 10*i),
			Time: now.Add(-10 * time.Minute)}
	}
	r.Snapshots = []record.Snapshot{{Name: "1/77-x", Epoch: 1, Revision: 77, Index: 400,
		Time: now.Add(-70 * time.Minute)}}
	return r
}

// stop lets a replica say that it stopped, empty gives its place another VM, on an empty disk.
func stop(r *order.Restore, p replica.Place, term, index uint64) {
	i := r.Record.Replicas[p][0]
	r.Ends.Stopped = append(r.Ends.Stopped, record.Stopped{Place: p, Incarnation: 1, MemberID: i.MemberID, Term: term,
		LastIndex: index, Time: now})
}

func empty(r *order.Restore, p replica.Place) {
	r.Record.Replicas[p] = append(r.Record.Replicas[p], record.Incarnation{Place: p, Number: 2,
		InstanceID: "2" + r.Record.Replicas[p][0].InstanceID, Epoch: 1, DiskID: "e", EmptyDisk: true, Time: now})
}

func TestWhatARestoreLosesIsSaid(t *testing.T) {
	for _, tc := range []struct {
		name  string
		wish  order.Wish
		say   func(*order.Restore)
		loses string
	}{
		{"a whole disk that is behind", order.Wish{}, func(r *order.Restore) { stop(r, placeB, 3, 1015) },
			"(2026-11-21 11:50:00 UTC): at least 5 entries will be LOST"},
		{"the disk that was furthest on", order.Wish{}, func(r *order.Restore) { empty(r, placeA); empty(r, placeB) },
			"so nothing up to there is lost"},
		{"a snapshot", order.Wish{On: "master-c"},
			func(r *order.Restore) { empty(r, placeC); empty(r, placeA); empty(r, placeB) },
			"Everything written after 2026-11-21 10:50:00 UTC (revision 77) will be LOST. The cluster was last heard " +
				"of at 2026-11-21 11:50:00 UTC, 1h0m later and about 620 entries further."},
		{"the newest snapshot by its revision: the VM that saved it was an hour behind", order.Wish{On: "master-c"},
			func(r *order.Restore) {
				empty(r, placeC)
				empty(r, placeA)
				empty(r, placeB)
				behind := r.Snapshots[0]
				behind.Name, behind.Revision, behind.Time = "1/90-x", 90, behind.Time.Add(-time.Hour)
				r.Snapshots = append([]record.Snapshot{behind}, r.Snapshots...)
			}, "(revision 90) will be LOST"},
		{"a disk that has not stopped", order.Wish{From: "directory=master-a", Exact: true}, nil,
			"(2026-11-21 11:50:00 UTC): up to 20 entries may be lost."},
	} {
		r := lostQuorum()
		if tc.say != nil {
			tc.say(&r)
		}
		c, err := r.Choose(tc.wish)
		if err != nil {
			t.Errorf("%s: %v", tc.name, err)
			continue
		}
		if _, loses := choiceText(r, c); !strings.Contains(loses, tc.loses) {
			t.Errorf("%s: loses %q, want %q", tc.name, loses, tc.loses)
		}
	}
}

func TestTheProgressOfARestoreIsTold(t *testing.T) {
	r := lostQuorum()
	given := record.Order{Number: 4, Kind: record.OrderRestore, Restore: &record.RestoreOrder{Ends: 1, Replica: placeA},
		Accepted: &record.Accepted{}}
	at := func(change func(*record.View)) string {
		v := r.Record
		v.Epochs, v.Orders = []record.Epoch{r.Ends}, []record.Order{given}
		change(&v)
		restore, p := order.Follow(v, 1, now)
		text, detail := progressText(restore, p)
		text = strings.TrimSpace(text + " " + detail)
		if p.Stage == order.StageFormed {
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
		{"Order 4: us-central1-a.master-a checks first whether it can carry it out; nobody stops before that.",
			func(v *record.View) { v.Orders[0].Accepted = nil }},
		{"waits until each of these has said that it has stopped, or is proven silent: us-central1-b.master-b " +
			"(instance 102), us-central1-c.master-c (instance 103). " +
			"Last heartbeats, by the store's clock: us-central1-b.master-b 34s ago, us-central1-c.master-c 10m0s ago " +
			"(its VM is stopped). " +
			"'quorate status' on us-central1-a.master-a says what it still waits for, and how long.",
			func(v *record.View) {
				v.Marks = maps.Clone(v.Marks)
				v.Marks[0xb1] = record.Mark{MemberID: 0xb1, Epoch: 1, Time: now.Add(-time.Hour),
					Beat: now.Add(-time.Minute), Written: now.Add(-34 * time.Second)}
				v.Orders[0].VMStops = map[string]record.VMStop{"103": {InstanceID: "103"}}
			}},
		{"proven silent: us-central1-b.master-b (instance 102). Last heartbeats",
			func(v *record.View) { r := *given.Restore; r.Silent = []string{"103"}; v.Orders[0].Restore = &r }},
		{"Order 4: us-central1-a.master-a ends the epoch. It cannot be withdrawn any more.",
			func(v *record.View) { v.Orders[0].Verdict = &record.Verdict{Closing: true} }},
		{"Order 4 is being withdrawn by order 5: the agents settle whether it was in time.", func(v *record.View) {
			v.Orders = append(v.Orders, record.Order{Number: 5, Kind: record.OrderWithdraw, Withdraws: 4})
		}},
		{"", func(v *record.View) { v.Orders[0].Verdict = &record.Verdict{Withdrawn: true} }},
		{"Order 4: everybody says that they have stopped.", silent},
		{"Epoch 1 has ended. us-central1-a.master-a claims the next.",
			func(v *record.View) { v.Epochs[0].Closed = &record.Closed{} }},
		{"us-central1-a.master-a builds the directory of epoch 2.",
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
	r := lostQuorum()
	for n := range 5 {
		next := r.Record.Replicas[placeB][0]
		next.Number, next.InstanceID = uint64(n+2), fmt.Sprint(200+n)
		r.Record.Replicas[placeB] = append(r.Record.Replicas[placeB], next)
	}
	want := "us-central1-b.master-b (instance 204), us-central1-c.master-c (instance 103), 5 earlier VMs of " +
		"these places"
	if got := strings.Join(notStoppedNames(r, r.NotStopped(placeA)), ", "); got != want {
		t.Errorf("%s, want %s", got, want)
	}
	if got := notStoppedNames(r, r.NotStopped(placeB)); !strings.HasSuffix(strings.Join(got, ", "),
		", 5 earlier VMs of these places") {
		t.Errorf("the restorer's own place had others before: %s", got)
	}
}

func TestTheStatesOfTheSourcesAreShown(t *testing.T) {
	r := lostQuorum()
	stop(&r, placeB, 3, 1015)
	stop(&r, placeC, 0, 0)
	empty(&r, placeA)
	c, err := r.Choose(order.Wish{})
	if err != nil {
		t.Fatal(err)
	}
	var out strings.Builder
	ShowChoice(&out, r, c, false)
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
