package rebuild

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/quorate/quorate/etcdmember/table"
	"github.com/quorate/quorate/internal/record"
	"github.com/quorate/quorate/internal/record/bucket/buckettest"
	"github.com/quorate/quorate/internal/replica"
)

// lostWorld is a cluster of three whose record may lose anything: what the record held, what the disks say, and what a
// person adds.
type lostWorld struct {
	remains record.Remains
	said    []Testimony
	wish    Wish
}

// threeThatRun is a cluster that m-a seeded, and that m-b and m-c joined; m-b is in its second incarnation.
func threeThatRun() *lostWorld {
	cluster, first, err := seededIDs("t1", pa.DNSName(testCluster))
	if err != nil {
		panic(err)
	}
	w := &lostWorld{wish: Wish{Cluster: testCluster, Now: t0}}
	w.remains.View = record.View{
		Inception: &record.Inception{UID: "uid", Name: testCluster, ProjectNumber: "7", Region: "us-central1",
			Time: t0.Add(-time.Hour)},
		Epochs: []record.Epoch{{Number: 1,
			Claim: &record.Claim{Token: "t1", MaxLearners: 4, Seeder: record.Seeder{Place: pa, InstanceID: "101"},
				Source: record.Source{Kind: record.SourceEmpty}},
			Outcome: &record.Outcome{Formed: &record.Formed{ClusterID: cluster, MemberID: first}}}},
		Replicas: map[replica.Place][]record.Incarnation{}, Marks: map[record.MemberID]record.Mark{}, Bundle: 1,
	}
	var members []table.Member
	for _, m := range []struct {
		place       replica.Place
		incarnation uint64
		id          record.MemberID
		instance    string
	}{{pa, 1, first, "101"}, {pb, 2, 0xb2, "202"}, {pc, 1, 0xc1, "103"}} {
		for k := uint64(1); k <= m.incarnation; k++ {
			w.remains.Replicas[m.place] = append(w.remains.Replicas[m.place], record.Incarnation{Place: m.place,
				Number: k, InstanceID: m.instance,
				BootID: fmt.Sprintf("boot%d", k), Epoch: 1, MemberID: m.id, Started: &record.Started{Epoch: 1,
					MemberID: m.id}})
		}
		members = append(members, table.Member{ID: m.id, Name: m.place.String() + "." + m.instance})
		w.said = append(w.said, Testimony{Format: testimonyFormat, Time: t0.Add(-time.Minute), Cluster: testCluster,
			Running: true, ClusterID: cluster, MemberID: m.id,
			Identity: &replica.Identity{Place: m.place, InstanceID: m.instance,
				BootID: fmt.Sprintf("boot%d", m.incarnation), ProjectNumber: "7"},
			Agent: table.AgentFile{ClusterUID: "uid", Epoch: 1, Token: "t1", Replica: m.place, InstanceID: m.instance,
				BootID:      fmt.Sprintf("boot%d", m.incarnation),
				Incarnation: m.incarnation, MemberID: m.id, NewestEpoch: 1, Phase: table.PhaseStarted}})
	}
	for i := range w.said {
		w.said[i].Members = members
	}
	return w
}

// loseAll is a bucket that is empty.
func (w *lostWorld) loseAll() { w.remains = record.Remains{} }

// rollBack is a record of which the inception alone is left.
func (w *lostWorld) rollBack() {
	w.remains = record.Remains{View: record.View{Inception: w.remains.Inception}}
}

// orphan loses an incarnation and keeps its confirmation.
func (w *lostWorld) orphan(p replica.Place, k uint64) {
	list := w.remains.Replicas[p]
	i := slices.IndexFunc(list, func(i record.Incarnation) bool { return i.Number == k })
	w.remains.Orphans = append(w.remains.Orphans, record.Orphan{Place: p, Number: k, Started: *list[i].Started})
	w.remains.Replicas[p] = slices.Delete(list, i, i+1)
}

func (w *lostWorld) epoch() *record.Epoch { return &w.remains.Epochs[0] }

const (
	keysOfA   = "replicas/us-central1-a.m-a/1.json replicas/us-central1-a.m-a/1.started.json "
	keysOfAll = keysOfA + "replicas/us-central1-b.m-b/2.json replicas/us-central1-b.m-b/2.started.json " +
		"replicas/us-central1-c.m-c/1.json replicas/us-central1-c.m-c/1.started.json epochs/1/outcome.json " +
		"epochs/1/claim.json"
)

func TestRebuildFindsWhatIsLost(t *testing.T) {
	for name, c := range map[string]struct {
		lose func(*lostWorld)
		want string // keys
	}{
		"nothing":               {func(*lostWorld) {}, ""},
		"the whole record":      {(*lostWorld).loseAll, keysOfAll + " inception.json"},
		"all but the inception": {(*lostWorld).rollBack, keysOfAll},
		"the inception":         {func(w *lostWorld) { w.remains.Inception = nil }, "inception.json"},
		"the outcome":           {func(w *lostWorld) { w.epoch().Outcome = nil }, "epochs/1/outcome.json"},
		"the claim":             {func(w *lostWorld) { w.epoch().Claim = nil }, "epochs/1/claim.json"},
		"claim and outcome": {func(w *lostWorld) { w.remains.Epochs = nil },
			"epochs/1/outcome.json epochs/1/claim.json"},
		"a place": {func(w *lostWorld) { delete(w.remains.Replicas, pa) },
			strings.TrimSpace(keysOfA)},
		"an incarnation's first half": {func(w *lostWorld) { w.orphan(pa, 1) },
			"replicas/us-central1-a.m-a/1.json"},
		"a former incarnation's half": {func(w *lostWorld) { w.orphan(pb, 1) },
			"replicas/us-central1-b.m-b/1.json"},
		"the confirmation of one that runs": {func(w *lostWorld) { w.remains.Replicas[pc][0].Started = nil },
			"replicas/us-central1-c.m-c/1.started.json"},
		"the confirmation of one that does not: its agent writes it": {func(w *lostWorld) {
			w.remains.Replicas[pc][0].Started = nil
			w.said[2].Running, w.said[2].Members = false, nil
		}, ""},
		"all, and one disk is lost for good": {func(w *lostWorld) {
			w.loseAll()
			w.said, w.wish.Without = w.said[1:2], []record.MemberID{w.said[0].MemberID, 0xc1}
		}, "replicas/us-central1-b.m-b/2.json replicas/us-central1-b.m-b/2.started.json epochs/1/outcome.json " +
			"epochs/1/claim.json inception.json"},
		"all, and the disk of a place is new and empty": {func(w *lostWorld) {
			w.loseAll()
			w.said = append(w.said, Testimony{Format: testimonyFormat, Cluster: testCluster})
		}, keysOfAll + " inception.json"},
		"all, and nothing runs": {func(w *lostWorld) {
			w.loseAll()
			for i := range w.said {
				w.said[i].Running, w.said[i].Members = false, []table.Member{{ID: w.said[0].MemberID}, {ID: 0xb2},
					{ID: 0xc1}}
			}
		}, keysOfAll + " inception.json"},
		"all, and the seeder is long gone": {func(w *lostWorld) {
			w.loseAll()
			seeder := pa
			w.said, w.wish.Seeder = w.said[1:], &seeder
			for i := range w.said {
				w.said[i].Members = w.said[i].Members[1:]
			}
		}, strings.TrimPrefix(keysOfAll, keysOfA) + " inception.json"},
		"all of a second epoch, which one disk has missed": {func(w *lostWorld) {
			w.loseAll()
			for i := range w.said[:2] {
				w.said[i].Agent.Epoch, w.said[i].Agent.NewestEpoch, w.said[i].Members = 2, 2, w.said[i].Members[:2]
			}
			w.said[2].Running, w.said[2].ClusterID, w.said[2].Agent.Token = false, 0xdead, "t0" // of epoch 1
		}, strings.ReplaceAll(keysOfAll, "epochs/1/", "epochs/2/") + " inception.json"},
		"all, and one was about to join": {func(w *lostWorld) {
			w.loseAll()
			w.said[2].Agent.Phase, w.said[2].Agent.MemberID, w.said[2].Running, w.said[2].MemberID,
				w.said[2].ClusterID = table.PhaseAdding, 0, false, 0, 0
			for i := range w.said {
				w.said[i].Members = w.said[i].Members[:2]
			}
		}, strings.Replace(keysOfAll, "replicas/us-central1-c.m-c/1.started.json ", "", 1) + " inception.json"},
	} {
		t.Run(name, func(t *testing.T) {
			w := threeThatRun()
			c.lose(w)
			got, err := Find(w.remains, w.said, w.wish)
			if err != nil {
				t.Fatal(err)
			}
			if keys := strings.Join(keysOf(got.Lost), " "); keys != c.want {
				t.Errorf("it would create\n%s\nwant\n%s", keys, c.want)
			}
		})
	}
}

func keysOf(lost []Lost) (out []string) {
	for _, l := range lost {
		out = append(out, l.Key)
	}
	return out
}

func TestRebuildRefuses(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*lostWorld)
		want   string
	}{
		"two tokens for one epoch": {func(w *lostWorld) { w.loseAll(); w.said[1].Agent.Token = "t9" },
			"us-central1-b.m-b holds another token of epoch 1 than us-central1-a.m-a: these are two histories"},
		"a token that the claim has not": {func(w *lostWorld) { w.epoch().Outcome = nil; w.epoch().Claim.Token = "t9" },
			"us-central1-a.m-a holds another token of epoch 1 than epochs/1/claim.json: these are two histories"},
		"two uids": {func(w *lostWorld) { w.loseAll(); w.said[2].Agent.ClusterUID = "other" },
			"us-central1-c.m-c belongs to the cluster with uid other, us-central1-a.m-a says uid: these are two " +
				"clusters"},
		"a uid that the inception has not": {func(w *lostWorld) { w.rollBack(); w.remains.Inception.UID = "other" },
			"us-central1-a.m-a belongs to the cluster with uid uid, inception.json says other"},
		"member ids of different clusters": {func(w *lostWorld) { w.loseAll(); w.said[1].ClusterID = 0xdead },
			"us-central1-b.m-b is a member of etcd cluster dead, us-central1-a.m-a of"},
		"another etcd cluster than the outcome's": {func(
			w *lostWorld) {
			w.remains.Inception = nil
			w.epoch().Outcome.Formed.ClusterID = 0xdead
		},
			"is a member of etcd cluster"},
		"a token that is not the cluster's": {func(w *lostWorld) {
			w.loseAll()
			for i := range w.said {
				w.said[i].Agent.Token = "t9"
			}
		}, "was not seeded with the token of epoch 1 by any of us-central1-a.m-a, us-central1-b.m-b, " +
			"us-central1-c.m-c"},
		"an epoch that is abandoned by the record": {func(w *lostWorld) {
			w.epoch().Outcome = &record.Outcome{Abandoned: &record.Abandoned{By: "x"}}
		}, "says that x abandoned the epoch, and a member ran in it"},
		"a record that knows more": {func(w *lostWorld) {
			w.remains.Epochs = append(w.remains.Epochs, record.Epoch{Number: 2})
		}, "epochs/2 is of epoch 2, and the newest of these disks is of epoch 1: the record knows more than they do"},
		"a mark of an epoch that nobody knows": {func(w *lostWorld) {
			w.loseAll()
			w.remains.Marks = map[record.MemberID]record.Mark{7: {MemberID: 7, Epoch: 3}}
		},
			"marks/7.json is of epoch 3"},
		"a disk that has seen a newer epoch": {func(w *lostWorld) { w.loseAll(); w.said[0].Agent.NewestEpoch = 2 },
			"us-central1-a.m-a has seen epoch 2, and no disk here has a member that ran in it"},
		"a disk that is said to be lost, and whose member has just written its mark": {func(w *lostWorld) {
			w.loseAll()
			w.said = w.said[:2]
			w.wish.Without = []record.MemberID{0xc1}
			w.remains.Marks = map[record.MemberID]record.Mark{0xc1: {MemberID: 0xc1, Epoch: 1,
				Time: t0.Add(-30 * time.Second)}}
		}, "--without c1: its member wrote a mark 30s ago, so it seems to run: give its file, or wait two minutes"},
		"a member that nobody speaks for": {func(w *lostWorld) { w.loseAll(); w.said = w.said[:2] },
			"member c1, us-central1-c.m-c, is in the list of us-central1-a.m-a, and nobody speaks for it"},
		"an incarnation that another took": {func(
			w *lostWorld) {
			w.remains.Epochs = nil
			w.remains.Replicas[pa][0].InstanceID = "999"
		},
			"the record was rolled back and went on without this disk"},
		"two disks of one place": {func(w *lostWorld) { w.loseAll(); w.said = append(w.said, w.said[0]) },
			"us-central1-a.m-a is there twice"},
		"another cluster's name": {func(w *lostWorld) { w.loseAll(); w.wish.Cluster = "prod" },
			`us-central1-a.m-a is of cluster "demo", the document is of "prod"`},
		"two regions": {func(w *lostWorld) { w.loseAll(); w.said[1].Agent.Replica.Zone = "europe-west1-b" },
			"are in two regions"},
		"no disk on which anything ran": {func(
			w *lostWorld) {
			w.loseAll()
			w.said = []Testimony{{Format: testimonyFormat, Cluster: testCluster}}
		},
			"no disk here has a member that ever ran"},
		"nothing that knows the cluster id": {func(w *lostWorld) {
			w.loseAll()
			for i := range w.said {
				w.said[i].ClusterID, w.said[i].Running, w.said[i].Members = 0, false, nil
			}
		}, "etcd's cluster id of epoch 1 is not known"},
		"a file of another format": {func(w *lostWorld) { w.said[0].Format = 9 },
			"its format is 9, this quorate reads 1"},
		"a disk whose agent.json is another member's": {func(w *lostWorld) { w.said[0].MemberID = 0xff },
			"and its etcd is member ff"},
		"no project": {func(w *lostWorld) {
			w.loseAll()
			for i := range w.said {
				w.said[i].Identity = nil
			}
		}, "name it with --project-number"},
		"the newest incarnation's instance": {func(w *lostWorld) {
			w.orphan(pc, 1)
			w.said = w.said[:2] // etcd's list names an instance, and neither whether it is the newest nor its addresses
		}, "replicas/us-central1-c.m-c/1.json is lost, and no file says which instance it was"},
	} {
		t.Run(name, func(t *testing.T) {
			w := threeThatRun()
			c.change(w)
			got, err := Find(w.remains, w.said, w.wish)
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v, %v; want an error with %q", keysOf(got.Lost), err, c.want)
			}
			if len(got.Lost) > 0 {
				t.Errorf("it refuses, and would create %v", keysOf(got.Lost))
			}
		})
	}
}

// While the objects come back one after the other, no agent may take what there is for a cluster that is to be formed,
// and none that runs may be stopped or superseded. After the last, every replica goes on without a word.
func TestARebuildIsSafeAtEachStep(t *testing.T) {
	for name, lose := range map[string]func(*lostWorld){
		"the whole record": (*lostWorld).loseAll, "all but the inception": (*lostWorld).rollBack,
		"claim and outcome": func(w *lostWorld) { w.remains.Epochs = nil },
	} {
		t.Run(name, func(t *testing.T) {
			w := threeThatRun()
			lose(w)
			got, err := Find(w.remains, w.said, w.wish)
			if err != nil {
				t.Fatal(err)
			}
			for n := range len(got.Lost) + 1 {
				b := rebuilder{Remains: w.remains, epoch: 1, lost: got.Lost[:n]}
				done := n == len(got.Lost)
				w.lookAs(t, b.after(), done)
				if n > 0 {
					lookEmpty(t, b.after())
				}
			}
		})
	}
}

// lookAs decides as each replica that runs.
func (w *lostWorld) lookAs(t *testing.T, v record.View, done bool) {
	t.Helper()
	for _, s := range w.said {
		f := blank()
		f.Record, f.Me, f.Agent, f.DiskID = v, *s.Identity, s.Agent, ""
		f.Directory = table.Directory{Running: true, Exists: true, MemberID: s.MemberID, ClusterID: s.ClusterID}
		p := table.Decide(t0, table.Classify(f))
		if p.Act != table.ActKeep && p.Act != table.ActWait && p.Act != table.ActFormedAgain || done &&
			(p.Row != table.RowRunning || p.Blocked != nil) {
			t.Errorf("%s: row %s wants to %s: %+v", s, p.Row, p.Act, p.Blocked)
		}
	}
}

// lookEmpty decides as a fourth VM with an empty disk, whom nobody answers.
func lookEmpty(t *testing.T, v record.View) {
	t.Helper()
	f := blank()
	f.Record, f.Me.Place, f.Me.InstanceID = v, replica.Place{Zone: "us-central1-d", Name: "m-d"}, "104"
	f.Compute.First.Instances = append(f.Compute.First.Instances, table.Instance{InstanceID: "104"})
	f.Compute.Second.Instances = append(f.Compute.Second.Instances, table.Instance{InstanceID: "104"})
	if p := table.Decide(t0, table.Classify(f)); p.Act != table.ActWait && p.Act != table.ActHalt {
		t.Errorf("with %v an empty disk wants to %s", slices.Collect(maps.Keys(v.Replicas)), p.Act)
	}
}

// Against a real record: what is lost is created, the second time it is found, and what another created meanwhile
// stays.
func TestALostObjectIsCreatedOnce(t *testing.T) {
	w := threeThatRun()
	whole := w.remains.View
	w.loseAll()
	got, err := Find(w.remains, w.said, w.wish)
	if err != nil {
		t.Fatal(err)
	}
	store := buckettest.Serve(t, t.TempDir(), testCluster)
	for range 2 {
		for _, l := range got.Lost {
			if err := l.Create(t.Context(), store); err != nil {
				t.Fatal(err)
			}
		}
	}
	v, err := store.View(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if *v.Epochs[0].Outcome.Formed != *whole.Epochs[0].Outcome.Formed || v.Epochs[0].Claim.Token != "t1" ||
		v.Epochs[0].Claim.Seeder.Place != pa {
		t.Errorf("it created %+v", v.Epochs[0])
	}
	if again, err := Find(record.Remains{View: v}, w.said, w.wish); err != nil || len(again.Lost) > 0 {
		t.Errorf("of the rebuilt record %v is lost, %v", keysOf(again.Lost), err)
	}
	for _, l := range got.Lost {
		switch o := l.Object.(type) {
		case record.Outcome:
			o.Formed = &record.Formed{ClusterID: 1, MemberID: 1}
			l.Object = o
		case record.Inception:
			o.UID = "other"
			l.Object = o
		default:
			continue
		}
		if err := l.Create(t.Context(), store); err == nil || !strings.Contains(err.Error(), "meanwhile") {
			t.Errorf("%s is another by now: %v", l.Key, err)
		}
	}
}

// Whatever part of the record is lost, with all three to speak it comes back: every replica goes on without a word, and
// nothing else is lost by then. The parts are lost in every combination.
func TestEveryCombinationOfLossesIsRebuilt(t *testing.T) {
	losses := []func(*lostWorld){
		func(w *lostWorld) { w.remains.Inception = nil },
		func(w *lostWorld) { w.epoch().Claim = nil },
		func(w *lostWorld) { w.epoch().Outcome = nil },
		func(w *lostWorld) { w.remains.Replicas[pa][0].Started = nil },
		func(w *lostWorld) { w.remains.Replicas[pb][1].Started = nil },
		func(w *lostWorld) { w.forget(pa, 1) },
		func(w *lostWorld) { w.forget(pb, 1) },
		func(w *lostWorld) { w.forget(pb, 2) },
		func(w *lostWorld) { w.forget(pc, 1) },
		func(w *lostWorld) { // the epoch's folder, where nothing is left in it
			if e := w.epoch(); e.Claim == nil && e.Outcome == nil {
				w.remains.Epochs = nil
			}
		},
	}
	for set := range 1 << len(losses) {
		w := threeThatRun()
		for n, lose := range losses {
			if set&(1<<n) != 0 {
				lose(w)
			}
		}
		got, err := Find(w.remains, w.said, w.wish)
		if err != nil {
			t.Fatalf("losses %b: %v", set, err)
		}
		b := rebuilder{Remains: w.remains, epoch: 1, lost: got.Lost}
		w.lookAs(t, b.after(), true)
		for _, o := range w.remains.Orphans {
			if !slices.ContainsFunc(b.after().Replicas[o.Place],
				func(i record.Incarnation) bool { return i.Number == o.Number && i.Started != nil }) {
				t.Errorf("incarnation %d of %s stays an orphan, which nobody can read past", o.Number, o.Place)
			}
		}
		if again, err := Find(record.Remains{View: b.after()}, w.said, w.wish); err != nil || len(again.Lost) > 0 {
			t.Fatalf("losses %b: after it %v is lost, %v", set, keysOf(again.Lost), err)
		}
		if t.Failed() {
			t.Fatalf("losses %b, brought back: %v", set, keysOf(got.Lost))
		}
	}
}

// forget loses an incarnation: without its confirmation whole, else as an orphan.
func (w *lostWorld) forget(p replica.Place, k uint64) {
	list := w.remains.Replicas[p]
	if i := slices.IndexFunc(list, func(i record.Incarnation) bool { return i.Number == k }); list[i].Started == nil {
		w.remains.Replicas[p] = slices.Delete(list, i, i+1)
		return
	}
	w.orphan(p, k)
}
