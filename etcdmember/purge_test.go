package etcdmember

import (
	"context"
	"errors"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"go.etcd.io/bbolt"

	"github.com/quorate/quorate/etcdmember/datadir"
	"github.com/quorate/quorate/etcdmember/etcdtest"
	"github.com/quorate/quorate/etcdmember/table"
	"github.com/quorate/quorate/internal/record"
)

// attic is a replica that is a voter, with real archives on its disk. Each test changes one thing in it.
type attic struct {
	*machine
	t          *testing.T
	ms         *Membership
	observed   table.Observation
	observedAt time.Time
	status     table.MemberStatus
	names      map[string]string
}

// newAttic has three archives, put away 72, 48 and 31 hours ago, of members d1, d2 and d3, an incarnation of 30 hours
// ago, and a snapshot of half an hour ago.
func newAttic(t *testing.T) *attic {
	t.Helper()
	a := &attic{machine: newMachine(t, pa, etcdtest.NewRecord(testCluster)), t: t, observedAt: time.Now(),
		names: map[string]string{}}
	a.ms = a.open()
	if _, err := a.boot(a.ms); err != nil {
		t.Fatal(err)
	}
	s, err := a.ms.Status(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	s.Members = []table.Member{{ID: s.MemberID, Name: "x"}, {ID: 0xb1, Name: "y"}}
	a.status = s
	a.child.say = func(out *table.MemberStatus) { *out = a.status }
	a.observed = table.Observation{Local: table.L1, Record: table.Rf, Remote: table.Quorum, Phase: table.PhaseStarted,
		Running: true}
	a.observed.Names.DiskEpochNumber = 1
	a.put("d1", 72*time.Hour, 0xd1, 0xc1)
	a.put("d2", 48*time.Hour, 0xd2, 0xc1)
	a.put("d3", 31*time.Hour, 0xd3, 0xc1)
	a.began(30 * time.Hour)
	a.record.Stored = []record.Snapshot{{Name: "1/9-x", Epoch: 1, Term: 2, Index: 9,
		Time: time.Now().Add(-30 * time.Minute), Written: time.Now().Add(-29 * time.Minute)}}
	return a
}

// put makes an archive of some age.
func (a *attic) put(short string, age time.Duration, id, cluster record.MemberID) {
	a.t.Helper()
	name := datadir.ArchiveName(time.Now().Add(-age))
	if err := makeDirectory(filepath.Join(a.ms.cfg.dir().Archives(), name),
		&table.MemberStatus{MemberID: id, ClusterID: cluster}); err != nil {
		a.t.Fatal(err)
	}
	if old, ok := a.names[short]; ok {
		if err := os.RemoveAll(filepath.Join(a.ms.cfg.dir().Archives(), old)); err != nil {
			a.t.Fatal(err)
		}
	}
	a.names[short] = name
}

// began makes the incarnation of this replica so old, by both clocks.
func (a *attic) began(age time.Duration) {
	a.record.Change(func(v *record.View) {
		for n := range v.Replicas[pa] {
			v.Replicas[pa][n].Time = time.Now().Add(-age)
			v.Replicas[pa][n].Written = time.Now().Add(-age)
		}
	})
}

// path is an archive's.
func (a *attic) path(short string) string {
	return filepath.Join(a.ms.cfg.dir().Archives(), a.names[short])
}

// purge is one check of the archive, as the agent takes it.
func (a *attic) purge() (ArchivesHeld, error) {
	a.ms.reported.noteDecision(table.Facts{Now: a.observedAt}, a.observed, table.Plan{})
	return a.ms.PurgeArchives(context.Background())
}

// left are the archives that are there.
func (a *attic) left() string {
	a.t.Helper()
	entries, err := os.ReadDir(a.ms.cfg.dir().Archives())
	if err != nil {
		a.t.Fatal(err)
	}
	var out []string
	for _, e := range entries {
		name := e.Name()
		for short, n := range a.names {
			if n == e.Name() {
				name = short
			}
		}
		out = append(out, name)
	}
	return strings.Join(out, " ")
}

// order gives the record orders.
func (a *attic) order(orders ...record.Order) {
	a.record.Change(func(v *record.View) { v.Orders = orders })
}

var restoreOrder = record.Order{Number: 1, Kind: record.OrderRestore, Restore: &record.RestoreOrder{Ends: 1,
	Replica: pb, From: record.Source{Kind: record.SourceDirectory, MemberID: 0xd1}}}

// Each condition of the rule is missing once: then nothing is deleted, and it is said why.
func TestAnArchiveIsPurgedOnlyWhereAllConditionsHold(t *testing.T) {
	const voter, settled, snapshot = "not a voter|not run as a member|not serve|too long ago|data differ",
		"not of the newest epoch|in force|paused", "no verified snapshot"
	for _, tc := range []struct {
		name string
		do   func(a *attic)
		kept string // what is said; alternatives
	}{
		{"the member is a learner", func(a *attic) { a.status.Learner = true }, voter},
		{"the list has it as a learner", func(a *attic) { a.status.Members[0].Learner = true }, voter},
		{"the list does not have it", func(a *attic) { a.status.Members = a.status.Members[1:] }, voter},
		{"its client port does not serve", func(a *attic) { a.status.Ready = false }, voter},
		{"it knows no leader", func(a *attic) { a.status.Leader = 0 }, voter},
		{"it was removed", func(a *attic) { a.status.Removed = true }, voter},
		{"it does not answer", func(a *attic) { a.child.Stop(context.Background()) }, "ask the member's status"},
		{"members' data differ", func(a *attic) {
			a.status.Alarms = []table.Alarm{{MemberID: 0xb1,
				Kind: table.AlarmCorrupt}}
		},
			voter},
		{"no quorum answered the last observation", func(a *attic) { a.observed.Remote = table.Nobody }, voter},
		{"the last observation could not read the record", func(a *attic) { a.observed.Record = table.RUnreadable },
			voter},
		{"another row holds", func(a *attic) { a.observed.Superseded = true }, voter},
		{"there is a fault", func(a *attic) { a.observed.Fault = "x" }, voter},
		{"the member has not started for good", func(a *attic) { a.observed.Phase = table.PhaseSeeding }, voter},
		{"there was no observation for two minutes", func(a *attic) { a.observedAt = time.Now().Add(-2 * time.Minute) },
			voter},
		{"there was no observation yet", func(a *attic) { a.observedAt = time.Time{} }, voter},
		{"the record cannot be read", func(a *attic) { a.record.Fail(errors.New("the bucket is away")) },
			"the bucket is away"},
		{"the epoch has ended",
			func(a *attic) { a.record.Change(func(v *record.View) { v.Epochs[0].Closed = &record.Closed{} }) },
			settled},
		{"a newer epoch is claimed", func(a *attic) {
			a.record.Change(func(v *record.View) {
				v.Epochs = append(v.Epochs,
					record.Epoch{Number: 2, Claim: &record.Claim{}})
			})
		}, settled},
		{"the record's epoch is another cluster's", func(a *attic) { a.status.ClusterID = 0xc9 }, settled},
		{"the disk is of another epoch", func(a *attic) { a.observed.Names.DiskEpochNumber = 2 }, settled},
		{"a restore is ordered", func(a *attic) { a.order(restoreOrder) }, settled},
		{"a restore is ordered, and a newer one is done", func(a *attic) {
			done := record.Order{Number: 2, Kind: record.OrderRestore, Restore: &record.RestoreOrder{Ends: 1},
				Done: &record.Done{}}
			a.order(restoreOrder, done)
		}, settled},
		{"changes are paused", func(a *attic) { a.order(record.Order{Number: 1, Kind: record.OrderPause}) }, settled},
		{"there is no snapshot", func(a *attic) { a.record.Stored = []record.Snapshot{} }, snapshot},
		{"the snapshot is of an epoch before", func(a *attic) { a.record.Stored[0].Epoch = 9 }, snapshot},
		{"the snapshot was taken within a day of the incarnation",
			func(a *attic) { a.record.Stored[0].Time = time.Now().Add(-7 * time.Hour) }, snapshot},
		{"the snapshot was stored within a day of the incarnation",
			func(a *attic) { a.record.Stored[0].Written = time.Now().Add(-7 * time.Hour) }, snapshot},
		{"the store does not say when, and the saver's clock is far ahead", func(a *attic) {
			a.record.Stored[0].Time, a.record.Stored[0].Written = time.Now().Add(100*time.Hour), time.Time{}
		}, snapshot},
		{"the store does not say when the incarnation was written", func(a *attic) {
			a.record.Change(func(v *record.View) { v.Replicas[pa][0].Written = time.Time{} })
		}, snapshot},
		{"the VM has booted since", func(a *attic) {
			a.record.Change(func(v *record.View) {
				again := v.Replicas[pa][0]
				again.Number, again.BootID, again.Written = again.Number+1, "boot2", time.Now().Add(-time.Hour)
				v.Replicas[pa] = append(v.Replicas[pa], again)
			})
		}, snapshot},
		{"no incarnation names the member", func(a *attic) {
			a.record.Change(func(v *record.View) { v.Replicas[pa] = nil })
		}, snapshot},
		{"both are of members in the list", func(a *attic) {
			a.status.Members = append(a.status.Members, table.Member{ID: 0xd1}, table.Member{ID: 0xd2})
		}, "is of a member that is in the list"},
		{"they are old by this VM's clock, and its member is not a day older than the snapshot",
			func(a *attic) { a.began(24 * time.Hour) }, snapshot},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			a := newAttic(t)
			tc.do(a)
			held, err := a.purge()
			if left := a.left(); left != "d1 d2 d3" || err != nil {
				t.Errorf("left %q, error %v", left, err)
			}
			said := slices.ContainsFunc(strings.Split(tc.kept, "|"),
				func(w string) bool { return strings.Contains(held.Kept, w) })
			if !said || held.Count != 3 || held.Bytes < 3*(64<<10) {
				t.Errorf("it says %+v", held)
			}
		})
	}
}

func TestWhichArchivesGo(t *testing.T) {
	for _, tc := range []struct {
		name string
		do   func(a *attic)
		left string
	}{
		{"the last one always stays", func(*attic) {}, "d3"},
		{"also where it is old", func(a *attic) { a.put("d3", 40*time.Hour, 0xd3, 0xc1) }, "d3"},
		{"one that was put away after the incarnation came from elsewhere, and stays", func(a *attic) {
			a.put("d1", 29*time.Hour, 0xd1, 0xc1)
			a.put("d3", 28*time.Hour, 0xd3, 0xc1)
		}, "d1 d3"},
		{"an archive of a member in the list stays", func(a *attic) {
			a.status.Members = append(a.status.Members,
				table.Member{ID: 0xd1})
		}, "d1 d3"},
		{"a person's is left alone", func(a *attic) {
			if err := os.Rename(a.path("d1"), filepath.Join(a.ms.cfg.dir().Archives(), "mine")); err != nil {
				a.t.Fatal(err)
			}
		}, "d3 mine"},
		{"next to an empty one the last that holds anything stays", func(a *attic) {
			if err := os.RemoveAll(a.path("d3")); err != nil {
				a.t.Fatal(err)
			}
			a.putEmpty("d3", 31*time.Hour)
		}, "d2 d3"},
		{"next to a folder without a member's files, too", func(a *attic) {
			a.names["d4"] = datadir.ArchiveName(time.Now())
			if err := os.MkdirAll(filepath.Join(a.path("d4"), "member"), 0o700); err != nil {
				a.t.Fatal(err)
			}
		}, "d3 d4"},
		{"an empty one goes as any other", func(a *attic) {
			if err := os.RemoveAll(a.path("d1")); err != nil {
				a.t.Fatal(err)
			}
			a.putEmpty("d1", 72*time.Hour)
		}, "d3"},
		{"one whose log cannot be read goes as any other", func(a *attic) { a.breakLog("d1") }, "d3"},
		{"one that somebody has open is not read, and stays", func(a *attic) {
			db, err := bbolt.Open(datadir.DatabaseFile(a.path("d1")), 0o600, nil)
			if err != nil {
				a.t.Fatal(err)
			}
			a.t.Cleanup(func() { db.Close() })
		}, "d1 d3"},
		{"so does one of a history that the record does not know", func(a *attic) {
			a.put("d1", 72*time.Hour, 0xd1, 0xcc)
		}, "d3"},
		{"one of an epoch before goes by a snapshot of the epoch that runs", func(a *attic) {
			a.put("d1", 72*time.Hour, 0xd1, 0xc0)
			a.secondEpoch()
			a.record.Stored[0].Epoch, a.record.Stored[0].Term, a.record.Stored[0].Index = 2, 1, 1
		}, "d3"},
		{"and by no snapshot of its own", func(a *attic) {
			a.put("d1", 72*time.Hour, 0xd1, 0xc0)
			a.secondEpoch()
		}, "d1 d2 d3"},
		{"a restore that is done holds nothing back", func(a *attic) {
			done := restoreOrder
			done.Done = &record.Done{}
			a.order(done)
		}, "d3"},
		{"nor one of an epoch before, which nobody said was done",
			func(a *attic) { a.secondEpoch(); a.order(restoreOrder); a.record.Stored[0].Epoch = 2 }, "d3"},
		{"nor one that was withdrawn", func(a *attic) {
			a.order(restoreOrder, record.Order{Number: 2, Kind: record.OrderWithdraw, Withdraws: 1})
		}, "d3"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			a := newAttic(t)
			tc.do(a)
			_, err := a.purge()
			if left := a.left(); left != tc.left || err != nil {
				t.Errorf("left %q, error %v: want %q", left, err, tc.left)
			}
		})
	}
}

// secondEpoch makes the running epoch the second, after one of cluster 0xc0.
func (a *attic) secondEpoch() {
	a.record.Change(func(v *record.View) {
		first := record.Epoch{Number: 1, Outcome: &record.Outcome{Formed: &record.Formed{ClusterID: 0xc0}},
			Closed: &record.Closed{}}
		v.Epochs[0].Number = 2
		v.Replicas[pa][0].Epoch = 2
		v.Epochs = append([]record.Epoch{first}, v.Epochs...)
	})
	a.observed.Names.DiskEpochNumber = 2
}

// putEmpty archives what a learner leaves that never got the state: a log without an entry.
func (a *attic) putEmpty(short string, age time.Duration) {
	a.t.Helper()
	name := datadir.ArchiveName(time.Now().Add(-age))
	if err := makeLog(filepath.Join(a.ms.cfg.dir().Archives(), name), 0xd9, 0xc1); err != nil {
		a.t.Fatal(err)
	}
	a.names[short] = name
}

// breakLog makes an archive's log unreadable.
func (a *attic) breakLog(short string) {
	a.t.Helper()
	logs, err := filepath.Glob(filepath.Join(a.path(short), "member/wal/*.wal"))
	if err != nil || len(logs) == 0 {
		a.t.Fatal(logs, err)
	}
	if err := os.WriteFile(logs[0], []byte(strings.Repeat("x", 4096)), 0o600); err != nil {
		a.t.Fatal(err)
	}
}

// The power goes at every step of a purge, before it takes effect and after. What is left of an archive is then never
// read as one, and the next check ends it.
func TestAPurgeSurvivesEveryPowerCut(t *testing.T) {
	t.Parallel()
	cuts := cutLog{}
	for _, after := range []bool{false, true} {
		for when := 1; ; when++ {
			a := newAttic(t)
			a.power.n, a.power.when, a.power.after = 0, when, after
			if !a.cutPurge() {
				if a.power.n < 8 {
					t.Fatalf("a purge of two archives is %d steps", a.power.n)
				}
				break
			}
			cuts[a.power.moment()] = true
			a.nextLife()
		}
	}
	cuts.want(t, purgeSteps)
}

// cutPurge purges until the power goes, and reports whether it did. Every write belongs to a step, and is its only one.
func (a *attic) cutPurge() (wasCut bool) {
	a.power.booting = true
	defer func() {
		a.power.booting = false
		if p := recover(); p != nil {
			if _, ok := p.(cut); !ok {
				panic(p)
			}
			wasCut = true
		}
	}()
	if _, err := a.purge(); err != nil {
		a.t.Error(err)
	}
	return false
}

// nextLife is the next process on the same disk: it reads no archive that is not whole, not even before it has
// observed, and ends what was begun.
func (a *attic) nextLife() {
	a.t.Helper()
	where := a.power.moment()
	a.power.when, a.power.step = 0, ""
	a.ms = a.open()
	whole := map[record.MemberID]bool{}
	for _, r := range a.ms.purger.archives.Read() {
		if r.OpenErr != nil || r.ReadErr != nil || r.LastIndex == 0 {
			a.t.Errorf("cut at %s: %s is read: %+v", where, r.Name, r)
		}
		whole[r.MemberID] = true
	}
	if !whole[0xd3] {
		a.t.Errorf("cut at %s: only %v are whole", where, slices.Collect(maps.Keys(whole)))
	}
	status := a.status
	a.child.say = func(out *table.MemberStatus) { *out = status }
	if _, err := a.purge(); err != nil || a.left() != "d3" {
		a.t.Errorf("cut at %s: left %q, %v", where, a.left(), err)
	}
}

// A purge that was begun is ended whatever holds by then: nobody can use what is left.
func TestWhatAPurgeHasBegunIsEnded(t *testing.T) {
	a := newAttic(t)
	a.status.Learner = true
	if err := os.Rename(a.path("d1"), a.path("d1")+datadir.PurgingSuffix); err != nil {
		t.Fatal(err)
	}
	if held, err := a.purge(); err != nil || a.left() != "d2 d3" || held.Count != 2 {
		t.Errorf("left %q, %+v, %v", a.left(), held, err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := os.Rename(a.path("d2"), a.path("d2")+datadir.PurgingSuffix); err != nil {
		t.Fatal(err)
	}
	if _, err := a.ms.PurgeArchives(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("a stop: %v", err)
	}
}

// Where the data disk is not mounted nothing beneath its mount point is touched.
func TestNothingIsPurgedBeneathAMountPoint(t *testing.T) {
	a := newAttic(t)
	a.cluster.Etcd.DataDisk = "data"
	a.ms.disk.mountinfo = filepath.Join(a.dir, "no-mounts")
	if _, err := a.purge(); err != nil || a.left() != "d1 d2 d3" {
		t.Errorf("left %q, %v", a.left(), err)
	}
}
