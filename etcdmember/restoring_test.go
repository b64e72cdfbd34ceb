package etcdmember

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/quorate/quorate/etcdmember/acts"
	"github.com/quorate/quorate/etcdmember/datadir"
	"github.com/quorate/quorate/etcdmember/etcdtest"
	"github.com/quorate/quorate/etcdmember/restoredir"
	"github.com/quorate/quorate/etcdmember/table"
	"github.com/quorate/quorate/internal/record"
)

// damaged is a machine whose cluster had another voter, which has stopped for good, and an order to restore from what
// there is.
func damaged(t *testing.T, order record.RestoreOrder) *machine {
	t.Helper()
	m := newMachine(t, pa, etcdtest.NewRecord(testCluster))
	if _, err := m.boot(m.open()); err != nil {
		t.Fatal(err)
	}
	m.child.Stop(t.Context())
	m.record.Change(func(v *record.View) {
		order.Ends, order.Replica = 1, pa
		if order.From.Kind == record.SourceDirectory {
			order.From.MemberID, order.From.DiskID = v.Epochs[0].Outcome.Formed.MemberID, "d1"
		}
		v.Replicas[pb] = []record.Incarnation{{Place: pb, Number: 1, InstanceID: "102", BootID: "b", Epoch: 1,
			Started: &record.Started{Epoch: 1, MemberID: 0xb1}}}
		v.Epochs[0].Stopped = []record.Stopped{{Place: pb, Incarnation: 1, MemberID: 0xb1}}
		v.Orders = []record.Order{{Number: 1, Kind: record.OrderRestore, By: "x", Restore: &order}}
	})
	m.power.n, m.power.seen, m.child.starts = 0, nil, 0
	return m
}

// endsRestored is the one good end, whatever happened on the way: epoch 1 is closed, one newer one is formed by this
// replica from the source, the old directory is kept whole, and the order is done.
func endsRestored(t *testing.T, m *machine, ms *Membership, wantArchived bool) {
	t.Helper()
	v, _ := m.record.Copied()
	if v.Epochs[0].Closed == nil || v.Epochs[0].Closed.Order != 1 {
		t.Errorf("epoch 1 is not closed: %+v", v.Epochs[0])
	}
	var formed []record.Epoch
	for _, e := range v.Epochs[1:] {
		if e.Outcome != nil && e.Outcome.Formed != nil {
			formed = append(formed, e)
		}
	}
	if len(formed) != 1 || formed[0].Number != v.Epochs[len(v.Epochs)-1].Number {
		t.Fatalf("formed: %+v", formed)
	}
	e := formed[0]
	if e.Claim.Source.Order != 1 || e.Outcome.Formed.MemberID != idOf(e.Claim.Token) ||
		e.Outcome.Formed.ClusterID == v.Epochs[0].Outcome.Formed.ClusterID {
		t.Errorf("epoch %d: claim %+v, formed %+v", e.Number, e.Claim, e.Outcome.Formed)
	}
	a, err := datadir.LoadAgentFile(ms.cfg.dir().AgentFile())
	if err != nil || a.Phase != table.PhaseStarted || a.Epoch != e.Number || a.Token != e.Claim.Token ||
		a.MemberID != e.Outcome.Formed.MemberID {
		t.Errorf("agent.json: %+v, %v", a, err)
	}
	if d, err := datadir.Read(m.etcdDir()); err != nil || !d.Marker || d.MemberID != a.MemberID {
		t.Errorf("the directory: %+v, %v", d, err)
	}
	last := v.Replicas[pa][len(v.Replicas[pa])-1]
	if last.Epoch != e.Number || last.Started == nil || last.Started.MemberID != a.MemberID ||
		last.InstanceID != m.me.InstanceID {
		t.Errorf("the newest incarnation: %+v", last)
	}
	if v.Orders[0].Done == nil {
		t.Error("the order is not completed")
	}
	if kept := archived(t, m); slices.Contains(kept, v.Epochs[0].Outcome.Formed.MemberID) != wantArchived {
		t.Errorf("archived: %v, want the old member there: %t", kept, wantArchived)
	}
	if _, err := os.Stat(ms.cfg.dir().Scratch()); !os.IsNotExist(err) {
		t.Errorf("the restore's scratch folder is still there: %v", err)
	}
}

// archived are the members whose directories were put away.
func archived(t *testing.T, m *machine) (ids []record.MemberID) {
	t.Helper()
	kept, _ := filepath.Glob(filepath.Join(m.dir, "data", "archive", "*"))
	for _, k := range kept {
		if d, err := datadir.Read(k); err == nil && d.OpenErr == nil {
			ids = append(ids, d.MemberID)
		}
	}
	return ids
}

var (
	fromDirectory = record.RestoreOrder{From: record.Source{Kind: record.SourceDirectory}}
	fromSnapshot  = record.RestoreOrder{From: record.Source{Kind: record.SourceSnapshot,
		Snapshot: etcdtest.OneSnapshot}}
)

// Every step of a restore is one at which the power may go, before it takes effect and after. What follows is another
// start of the agent, in the same boot, after a reboot, or on a VM that was made again with the disk.
func TestARestoreSurvivesEveryPowerCut(t *testing.T) {
	t.Parallel()
	var mu sync.Mutex
	cuts := cutLog{}
	t.Run("cuts", func(t *testing.T) {
		for _, order := range []record.RestoreOrder{fromDirectory, fromSnapshot} {
			thens := []string{"restart", "reboot", "recreate"}
			if order.From.Kind == record.SourceSnapshot {
				thens = thens[2:] // a new instance has no claim that names it
			}
			for _, then := range thens {
				for _, after := range []bool{false, true} {
					t.Run(fmt.Sprintf("%s, %s, after %t", order.From.Kind, then, after), func(t *testing.T) {
						t.Parallel()
						wasCut, moment := true, cutAt{}
						for when := 1; wasCut; when++ {
							if wasCut, moment = restoreCutAt(t, order, then, when, after); wasCut {
								mu.Lock()
								cuts[moment] = true
								mu.Unlock()
							}
						}
					})
				}
			}
		}
	})
	cuts.want(t, restoreSteps)
}

// restoreCutAt makes a restore in which the power goes at a step, and the one after that.
func restoreCutAt(t *testing.T, order record.RestoreOrder, then string, when int, after bool) (wasCut bool,
	moment cutAt) {
	t.Helper()
	m := damaged(t, order)
	m.power.when, m.power.after = when, after
	ms := m.open()
	wasCut, err := m.boot(ms)
	if err != nil {
		t.Fatalf("step %d: %v", when, err)
	}
	if wasCut {
		moment = m.power.moment()
		m.power.when = 0
		m.after(then)
		ms = m.openAfter(then)
		if _, err := m.boot(ms); err != nil {
			t.Fatalf("cut %d, %s: %v", when, moment, err)
		}
	}
	endsRestored(t, m, ms, true)
	if t.Failed() {
		t.Fatalf("cut %d, %s", when, moment)
	}
	return wasCut, moment
}

// after is what a person or the cloud does with a VM whose power went.
func (m *machine) after(what string) {
	switch what {
	case "reboot":
		m.me.BootID = "boot2"
	case "recreate":
		m.me.BootID, m.me.InstanceID = "boot2", "201"
		m.compute[0].InstanceID = "201"
	}
}

// openAfter is open, where two lists of instances have proven the former one gone already: they take 10 s.
func (m *machine) openAfter(what string) *Membership {
	ms := m.open()
	if what == "recreate" {
		for _, id := range []string{"101", "102", "201", "order 1, accepted false", "order 1, accepted true"} {
			ms.observer.lists.instances[id] = true
		}
		now := time.Now()
		ms.observer.lists.compute = table.Compute{First: table.Listing{Time: now.Add(-11 * time.Second),
			Instances: instances("201")},
			Second: table.Listing{Time: now, Instances: instances("201")}}
		ms.longGone(now, "101", "102")
	}
	return ms
}

// longGone lets an agent have seen lists without these instances for an hour, and no mark of theirs.
func (m *Membership) longGone(now time.Time, ids ...string) {
	for _, id := range ids {
		if id != m.cfg.Me.InstanceID {
			m.observer.lists.runs[id] = table.Run{Kind: table.RunAbsent, Since: now.Add(-time.Hour)}
		}
	}
}

// The VM of the restorer is made again with an empty disk at any moment of a restore from a snapshot: the claim is
// given up, and the next one forms.
func TestARestorerThatIsRecreatedEmptyBeginsAgain(t *testing.T) {
	t.Parallel()
	for _, after := range []bool{false, true} {
		for when := 1; ; when++ {
			m := damaged(t, fromSnapshot)
			m.power.when, m.power.after = when, after
			ms := m.open()
			wasCut, err := m.boot(ms)
			if err != nil {
				t.Fatal(err)
			}
			if !wasCut {
				break
			}
			if v, _ := m.record.Copied(); v.Epochs[len(v.Epochs)-1].Number > 1 &&
				v.Epochs[len(v.Epochs)-1].Outcome != nil {
				continue // it is formed: this is a lost voter, and another restore
			}
			m.power.when = 0
			m.after("recreate")
			if err := os.RemoveAll(filepath.Join(m.dir, "data")); err != nil {
				t.Fatal(err)
			}
			if err := os.Mkdir(filepath.Join(m.dir, "data"), 0o700); err != nil {
				t.Fatal(err)
			}
			ms = m.openAfter("recreate")
			if _, err := m.boot(ms); err != nil {
				t.Fatalf("cut %d, %s: %v", when, m.power.moment(), err)
			}
			endsRestored(t, m, ms, false)
			if t.Failed() {
				t.Fatalf("cut %d, %s", when, m.power.moment())
			}
		}
	}
}

// The survivor's VM is recreated with an empty disk right after it closed the epoch: nothing is left to restore from,
// and it says so; an order for a snapshot then goes on.
func TestASurvivorThatLosesItsDiskAfterClosingSaysSo(t *testing.T) {
	t.Parallel()
	for when := 1; ; when++ {
		m := damaged(t, fromDirectory)
		m.power.when, m.power.after = when, true
		if wasCut, err := m.boot(m.open()); !wasCut || err != nil {
			t.Fatalf("no cut after closing: %v", err)
		}
		if m.power.at != acts.StepClose && m.power.at != acts.StepClaim {
			continue
		}
		m.power.when = 0
		m.after("recreate")
		data := filepath.Join(m.dir, "data")
		if err := os.RemoveAll(data); err != nil {
			t.Fatal(err)
		}
		if err := os.Mkdir(data, 0o700); err != nil {
			t.Fatal(err)
		}
		m.record.Change(func(v *record.View) { v.Bundle = 1 })
		m.config = func(c *Config) { c.DiskID = onDisk("d2") }
		ms := m.openAfter("recreate")
		booted := boots(t, ms)
		etcdtest.Eventually(t, "source-gone", func() bool { return blockedName(ms) == "source-gone" })
		m.record.Change(func(v *record.View) {
			o := fromSnapshot
			o.Ends, o.Replica = 1, pa
			v.Orders = append(v.Orders, record.Order{Number: 2, Kind: record.OrderRestore, By: "x", Restore: &o})
		})
		if err := booted(); err != nil {
			t.Fatalf("cut after %s: %v", m.power.at, err)
		}
		v, _ := m.record.Copied()
		last := v.Epochs[len(v.Epochs)-1]
		if last.Outcome == nil || last.Outcome.Formed == nil || last.Claim.Source.Order != 2 ||
			v.Orders[0].Done == nil || v.Orders[1].Done == nil {
			t.Errorf("the newest epoch: %+v, orders: %+v", last, v.Orders)
		}
		if m.power.at == acts.StepClaim {
			break
		}
	}
}

// While anybody could still serve the old history the epoch is not closed, and the wait names who.
func TestARestoreWaitsForTheOthersSilence(t *testing.T) {
	t.Parallel()
	m := damaged(t, fromDirectory)
	m.record.Change(func(v *record.View) { v.Epochs[0].Stopped, v.Bundle = nil, 1 })
	ms := m.open()
	booted := boots(t, ms)
	etcdtest.Eventually(t, "restore-waits", func() bool { return blockedName(ms) == "restore-waits" })
	if b := ms.cfg.Waits.All()[0]; !strings.Contains(b.Reason, pb.String()) || b.Row != "8" {
		t.Errorf("%+v", b)
	}
	if v, _ := m.record.Copied(); v.Epochs[0].Closed != nil || len(v.Epochs) != 1 {
		t.Errorf("it went on: %+v", v.Epochs)
	}
	m.record.Change(func(v *record.View) {
		v.Epochs[0].Stopped = append(slices.Clone(v.Epochs[0].Stopped), record.Stopped{Place: pb, Incarnation: 1,
			MemberID: 0xb1})
	})
	if err := booted(); err != nil {
		t.Fatal(err)
	}
	endsRestored(t, m, ms, true)
}

// A replica that stopped with a longer log than the named one is named by the next order, unless the order wants this
// very source.
func TestALongerLogThatTurnsUpIsNamedNext(t *testing.T) {
	t.Parallel()
	for _, newest := range []bool{true, false} {
		order := fromDirectory
		order.Newest = newest
		m := damaged(t, order)
		m.record.Change(func(v *record.View) {
			v.Bundle = 1
			v.Replicas[pb][0].DiskID = "d7"
			v.Epochs[0].Stopped = []record.Stopped{{Place: pb, Incarnation: 1, MemberID: 0xb1, Term: 9, LastIndex: 9,
				CommitIndex: 9}}
		})
		ms := m.open()
		if !newest {
			if _, err := m.boot(ms); err != nil {
				t.Fatal(err)
			}
			endsRestored(t, m, ms, true)
			continue
		}
		end := inBackground(t, ms.Settle)
		etcdtest.Eventually(t, "it waits for the other", func() bool { return blockedName(ms) == "epoch-closed" })
		end()
		v, _ := m.record.Copied()
		if len(v.Orders) != 2 || v.Epochs[0].Closed != nil {
			t.Fatalf("orders: %+v; closed: %v", v.Orders, v.Epochs[0].Closed)
		}
		got := v.Orders[1].Restore
		want := record.RestoreOrder{Ends: 1, Replica: pb, Term: 9, Commit: 9, Newest: true,
			From: record.Source{Kind: record.SourceDirectory, MemberID: 0xb1, DiskID: "d7"}}
		if !reflect.DeepEqual(*got, want) || !strings.HasPrefix(v.Orders[1].By, acts.PolicyName) {
			t.Errorf("%+v by %s", got, v.Orders[1].By)
		}
	}
}

// A build that fails changes nothing, is shown, and is tried again.
func TestADirectoryThatCannotBeBuiltLeavesTheSourceInPlace(t *testing.T) {
	t.Parallel()
	m := damaged(t, fromDirectory)
	m.record.Change(func(v *record.View) { v.Bundle = 1 })
	fails := make(chan struct{})
	m.config = func(c *Config) {
		good := c.MakeDirectory
		c.MakeDirectory = func(ctx context.Context, w restoredir.Job) error {
			select {
			case <-fails:
				return good(ctx, w)
			default:
				return fmt.Errorf("%w: it is full", restoredir.ErrNoRoom)
			}
		}
	}
	ms := m.open()
	booted := boots(t, ms)
	etcdtest.Eventually(t, "step-failed", func() bool { return blockedName(ms) == "step-failed" })
	if d, err := datadir.Read(m.etcdDir()); err != nil || !d.Exists || d.OpenErr != nil {
		t.Errorf("the source: %+v, %v", d, err)
	}
	if v, _ := m.record.Copied(); len(v.Replicas[pa]) != 1 {
		t.Errorf("incarnations were taken: %+v", v.Replicas[pa])
	}
	close(fails)
	if err := booted(); err != nil {
		t.Fatal(err)
	}
	endsRestored(t, m, ms, true)
}

// ordered is a machine that is left alone after quorum was lost, with the lists of instances that prove the others
// gone.
func (m *machine) ordered(disks ...string) *Membership {
	ms := m.open()
	now := time.Now()
	for _, id := range []string{"101", "102", m.me.InstanceID, "order 1, accepted false", "order 1, accepted true"} {
		ms.observer.lists.instances[id] = true
	}
	list := table.Listing{Time: now, Instances: instances(m.me.InstanceID), Disks: disks}
	before := list
	before.Time = now.Add(-11 * time.Second)
	ms.observer.lists.compute = table.Compute{First: before, Second: list}
	ms.longGone(now, "101", "102")
	return ms
}

// restoredBy fails unless this one gave the one order, and it was carried out.
func restoredBy(t *testing.T, m *machine, by string, kind record.SourceKind) {
	t.Helper()
	v, _ := m.record.Copied()
	last := v.Epochs[len(v.Epochs)-1]
	if len(v.Orders) != 1 || !strings.HasPrefix(v.Orders[0].By, by) || v.Orders[0].Restore.From.Kind != kind ||
		v.Orders[0].Done == nil {
		t.Fatalf("orders: %+v", v.Orders)
	}
	if v.Epochs[0].Closed == nil || last.Number != 2 || last.Outcome == nil || last.Outcome.Formed == nil {
		t.Errorf("epochs: %+v", v.Epochs)
	}
}

// pairOfVoters is a replica that is one of two voters; the other is gone with its disk.
func pairOfVoters(t *testing.T, survivors string) *machine {
	t.Helper()
	m := newMachine(t, pa, etcdtest.NewRecord(testCluster))
	if _, err := m.boot(m.open()); err != nil {
		t.Fatal(err)
	}
	m.child.Stop(t.Context())
	v, _ := m.record.Copied()
	if err := addVoters(m.etcdDir(), v.Epochs[0].Outcome.Formed.MemberID, 0xb1); err != nil {
		t.Fatal(err)
	}
	m.cluster.Survivors = survivors
	m.record.Change(func(v *record.View) {
		v.Replicas[pb] = []record.Incarnation{{Place: pb, Number: 1, InstanceID: "102", BootID: "b", Epoch: 1,
			DiskID: "d2", Started: &record.Started{Epoch: 1, MemberID: 0xb1, DiskID: "d2"}}}
	})
	return m
}

func TestASurvivorThatHoldsEverythingGoesOnByItself(t *testing.T) {
	t.Parallel()
	m := pairOfVoters(t, "restore")
	ms := m.ordered("d1")
	if _, err := m.boot(ms); err != nil {
		t.Fatal(err)
	}
	restoredBy(t, m, acts.PolicyName, record.SourceDirectory)
	endsRestored(t, m, ms, true)
}

// A survivor runs without a quorum when its policy finds out that it holds everything: it stops, orders the restore and
// takes it, whenever the power goes.
func TestASurvivorThatStopsAndOrdersSurvivesEveryPowerCut(t *testing.T) {
	t.Parallel()
	cuts := cutLog{}
	for _, after := range []bool{false, true} {
		for when := 1; ; when++ {
			m := pairOfVoters(t, "restore")
			ms := m.ordered("d1")
			m.child.alone = []table.Member{{ID: ms.disk.agent.File.MemberID}, {ID: 0xb1}}
			if err := ms.reconciler.act(t.Context(), table.Facts{}, table.Plan{Act: table.ActStart,
				MemberID: ms.disk.agent.File.MemberID}); err != nil {
				t.Fatal(err)
			}
			m.child.alone, m.power.n, m.power.when, m.power.after = nil, 0, when, after
			wasCut, err := m.boot(ms)
			if err != nil {
				t.Fatal(err)
			}
			if wasCut {
				cuts[m.power.moment()] = true
				m.power.when = 0
				if when%2 == 0 {
					m.me.BootID = "boot2"
				}
				ms = m.ordered("d1")
				if _, err := m.boot(ms); err != nil {
					t.Fatalf("cut %d, %s: %v", when, m.power.moment(), err)
				}
			}
			restoredBy(t, m, acts.PolicyName, record.SourceDirectory)
			endsRestored(t, m, ms, true)
			if t.Failed() {
				t.Fatalf("cut %d, %s", when, m.power.moment())
			}
			if !wasCut || m.power.at == acts.StepAccept {
				break // what follows is any other restore
			}
		}
	}
	cuts.want(t, survivorSteps)
}

// Nothing is ordered while the lost disk exists, where the document says wait, or where a person has withdrawn such an
// order.
func TestASurvivorWaitsWhereItMayNotGoOn(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		name, survivors, disk, want string
		orders                      []record.Order
	}{
		{"the disk exists", "restore", "d2", "survivor-waits-for-disk", nil},
		{"the document says wait", "wait", "d1", "restore-offered", nil},
		{"a person withdrew it", "restore", "d1", "restore-offered", []record.Order{
			{Number: 1, Kind: record.OrderRestore, By: acts.PolicyName + "x", Restore: &record.RestoreOrder{Ends: 1,
				Replica: pa}}, {Number: 2, Kind: record.OrderWithdraw, Withdraws: 1}}},
	} {
		m := pairOfVoters(t, tc.survivors)
		m.record.Change(func(v *record.View) { v.Orders = tc.orders })
		ms := m.ordered(tc.disk)
		f := ms.reconciler.observe(t.Context())
		if p := table.Decide(f.Now,
			table.Classify(f)); p.Act == table.ActOrderRestore || p.Blocked != nil && p.Blocked.Name != tc.want ||
			p.Blocked == nil && table.Classify(f).Survivors22 == table.PolicyActs {
			t.Errorf("%s: %+v, blocked %+v", tc.name, p, p.Blocked)
		}
		o := table.Classify(f)
		if blocked := o.WithOffer(table.Plan{}).Blocked; blocked == nil || blocked.Name != tc.want {
			t.Errorf("%s: it says %+v, want %s", tc.name, blocked, tc.want)
		}
	}
}

func TestALoneReplicaThatLostItsDiskOffersTheSnapshot(t *testing.T) {
	t.Parallel()
	m := newMachine(t, pa, etcdtest.NewRecord(testCluster))
	m.cluster.Replicas = 1
	if _, err := m.boot(m.open()); err != nil {
		t.Fatal(err)
	}
	m.child.Stop(t.Context())
	m.after("recreate")
	data := filepath.Join(m.dir, "data")
	if err := os.RemoveAll(data); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(data, 0o700); err != nil {
		t.Fatal(err)
	}
	offered := m.ordered("d2").reconciler.observe(t.Context())
	if o := table.Classify(offered); !o.SnapshotOffered || o.Names.PolicyText == "" {
		t.Errorf("no snapshot is offered: %+v", o)
	}
	m.record.Change(func(v *record.View) {
		v.Orders = []record.Order{{Number: 1, Kind: record.OrderRestore, By: "a person",
			Restore: &record.RestoreOrder{Ends: 1, Replica: pa,
				From: record.Source{Kind: record.SourceSnapshot, Snapshot: offered.Policy.Snapshot.Name}}}}
	})
	if _, err := m.boot(m.ordered("d2")); err != nil {
		t.Fatal(err)
	}
	restoredBy(t, m, "a person", record.SourceSnapshot)
}
