package etcdmember

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/quorate/quorate/etcdmember/acts"
	"github.com/quorate/quorate/etcdmember/datadir"
	"github.com/quorate/quorate/etcdmember/etcdtest"
	"github.com/quorate/quorate/etcdmember/table"
	"github.com/quorate/quorate/internal/record"
	"github.com/quorate/quorate/internal/replica"
)

// seededOnce is the one good end of a first boot, whatever happened on the way.
func seededOnce(t *testing.T, m *machine, ms *Membership) {
	t.Helper()
	v, _ := m.record.Copied()
	if len(v.Epochs) != 1 || v.Epochs[0].Outcome == nil || v.Epochs[0].Outcome.Formed == nil {
		t.Fatalf("the record's epochs: %+v", v.Epochs)
	}
	formed := *v.Epochs[0].Outcome.Formed
	s, err := ms.Status(t.Context())
	if err != nil || s.MemberID != formed.MemberID || s.ClusterID != formed.ClusterID {
		t.Errorf("formed %+v, the member that runs is %s of %s, %v", formed, s.MemberID, s.ClusterID, err)
	}
	a, err := datadir.LoadAgentFile(ms.cfg.dir().AgentFile())
	if err != nil || a.Phase != table.PhaseStarted || a.MemberID != formed.MemberID ||
		a.Token != v.Epochs[0].Claim.Token ||
		a.NewestEpoch != 1 || a != ms.disk.agent.File {
		t.Errorf("agent.json: %+v, %v; in memory: %+v", a, err, ms.disk.agent.File)
	}
	last := v.Replicas[m.me.Place][len(v.Replicas[m.me.Place])-1]
	if last.Number != a.Incarnation || last.Started == nil || last.Started.MemberID != formed.MemberID ||
		last.BootID != m.me.BootID {
		t.Errorf("the newest incarnation: %+v", last)
	}
}

func TestAFirstBootSeeds(t *testing.T) {
	m := newMachine(t, pa, etcdtest.NewRecord(testCluster))
	ms := m.open()
	if _, err := m.boot(ms); err != nil {
		t.Fatal(err)
	}
	seededOnce(t, m, ms)
	if blocked := blockedName(ms); blocked != "" || m.child.starts != 1 {
		t.Errorf("blocked by %q, etcd started %d times", blocked, m.child.starts)
	}
}

// Every step of a first boot is one at which the power may go, before it takes effect and after. What follows is
// another start of the agent, in the same boot or in another.
func TestASeedSurvivesEveryPowerCut(t *testing.T) {
	t.Parallel()
	cuts := cutLog{}
	for _, after := range []bool{false, true} {
		for _, reboot := range []bool{false, true} {
			for when := 1; ; when++ {
				m := newMachine(t, pa, etcdtest.NewRecord(testCluster))
				m.power.when, m.power.after = when, after
				wasCut, err := m.boot(m.open())
				if err != nil {
					t.Fatalf("step %d: %v", when, err)
				}
				if !wasCut {
					break
				}
				cuts[m.power.moment()] = true
				m.power.when = 0
				if reboot {
					m.me.BootID = "boot2"
				}
				ms := m.open()
				if _, err := m.boot(ms); err != nil {
					t.Fatalf("cut %d, %s: %v", when, m.power.moment(), err)
				}
				seededOnce(t, m, ms)
				if t.Failed() {
					t.Fatalf("cut %d, %s, reboot %t", when, m.power.moment(), reboot)
				}
			}
		}
	}
	cuts.want(t, seedSteps)
}

// A seed whose VM is made again with an empty disk before it formed: the claim is given up, and the next one forms,
// whenever the power goes.
func TestAClaimWhoseVMIsRecreatedIsAbandoned(t *testing.T) {
	cuts := cutLog{}
	for _, after := range []bool{false, true} {
		for when := 1; ; when++ {
			m := newMachine(t, pa, etcdtest.NewRecord(testCluster))
			m.record.Change(func(v *record.View) {
				v.Epochs = []record.Epoch{{Number: 1, Claim: &record.Claim{Token: "t1", MaxLearners: table.MaxLearners,
					Seeder: record.Seeder{Place: pa, InstanceID: "99"},
					Source: record.Source{Kind: record.SourceEmpty}}}}
			})
			m.power.when, m.power.after = when, after
			wasCut, err := m.boot(m.open())
			if err != nil {
				t.Fatal(err)
			}
			if wasCut {
				cuts[m.power.moment()] = true
				m.power.when = 0
				if _, err := m.boot(m.open()); err != nil {
					t.Fatalf("cut %d, %s: %v", when, m.power.moment(), err)
				}
			}
			v, _ := m.record.Copied()
			if len(v.Epochs) != 2 || v.Epochs[0].Outcome.Abandoned == nil || v.Epochs[1].Outcome.Formed == nil {
				t.Fatalf("cut %d, %s: epochs: %+v", when, m.power.moment(), v.Epochs)
			}
			if !wasCut || m.power.at == acts.StepClaim {
				break // what follows is any other seed
			}
		}
	}
	cuts.want(t, abandonSteps)
}

// inBackground runs a loop until the test ends it.
func inBackground(t *testing.T, loop func(context.Context) error) (end func() error) {
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- loop(ctx) }()
	return func() error {
		cancel()
		select {
		case err := <-done:
			return err
		case <-time.After(etcdtest.Patience):
			t.Fatal("the loop does not heed its context")
			return nil
		}
	}
}

// boots runs the boot in the background; the returned function waits until it has ended by itself.
func boots(t *testing.T, ms *Membership) (wait func() error) {
	done := make(chan error, 1)
	go func() {
		_, err := ms.Claim(t.Context())
		if err == nil {
			err = ms.Settle(t.Context())
		}
		done <- err
	}()
	return func() error {
		select {
		case err := <-done:
			return err
		case <-time.After(etcdtest.Patience):
			return fmt.Errorf("the boot does not end; blocked: %+v", ms.cfg.Waits.All())
		}
	}
}

func TestTheLoserOfAClaimWaitsForTheBundle(t *testing.T) {
	r := etcdtest.NewRecord(testCluster)
	r.Change(func(v *record.View) {
		v.Epochs = []record.Epoch{{Number: 1, Claim: &record.Claim{Token: "t1", MaxLearners: table.MaxLearners,
			Seeder: record.Seeder{Place: pb, InstanceID: "102"}, Source: record.Source{Kind: record.SourceEmpty}}}}
	})
	m := newMachine(t, pa, r)
	ms := m.open()
	holder := true
	end := inBackground(t, func(ctx context.Context) (err error) { holder, err = ms.Claim(ctx); return err })
	etcdtest.Eventually(t, "seed-in-progress", func() bool { return blockedName(ms) == "seed-in-progress" })
	r.Change(func(v *record.View) { v.Bundle = 1 })
	etcdtest.Eventually(t, "the wait ends", func() bool { return blockedName(ms) == "" })
	if err := end(); err != nil || holder || m.child.starts != 0 {
		t.Errorf("%v, holder %t, etcd started %d times", err, holder, m.child.starts)
	}
}

// A master that is recreated needs certificates first. What else exists is asked only after that, and only if nobody
// answers: a list takes the Compute API seconds.
func TestACertificateIsNotHeldUpByTheComputeAPI(t *testing.T) {
	r := etcdtest.NewRecord(testCluster)
	r.Change(func(v *record.View) {
		v.Epochs = []record.Epoch{{Number: 1, Claim: &record.Claim{Token: "t1", MaxLearners: table.MaxLearners,
			Seeder: record.Seeder{Place: pb, InstanceID: "102"}, Source: record.Source{Kind: record.SourceEmpty}},
			Outcome: &record.Outcome{Formed: &record.Formed{ClusterID: 0xc9}}}}
		v.Bundle = 1
	})
	m := newMachine(t, pa, r)
	ms := m.open()
	api := &countedCompute{}
	ms.observer.lists.api = api
	if makesBundle, err := ms.Claim(t.Context()); err != nil || makesBundle || api.lists != 0 {
		t.Errorf("%v, it makes a bundle: %t, %d lists", err, makesBundle, api.lists)
	}
	if name := blockedName(ms); name != "" {
		t.Errorf("it waits: %s", name)
	}
}

func TestAnUnreadableRecordIsOneLineAndOneWait(t *testing.T) {
	var log bytes.Buffer
	m := newMachine(t, pa, etcdtest.NewRecord(testCluster))
	m.log = slog.New(slog.NewTextHandler(&log, nil))
	m.record.Fail(errors.New("503"))
	ms := m.open()
	end := inBackground(t, func(ctx context.Context) error { _, err := ms.Claim(ctx); return err })
	etcdtest.Eventually(t, "record-unreadable", func() bool { return blockedName(ms) == "record-unreadable" })
	since := ms.cfg.Waits.All()[0].Since
	time.Sleep(3 * bootPause)
	if b := ms.cfg.Waits.All(); len(b) != 1 || !b[0].Since.Equal(since) {
		t.Errorf("the wait began again: %+v, was since %s", b, since)
	}
	begin := time.Now()
	if err := end(); !errors.Is(err, context.Canceled) || time.Since(begin) > time.Second {
		t.Errorf("the end of a waiting boot: %v after %s", err, time.Since(begin))
	}
	if n := strings.Count(log.String(), "msg=blocked"); n != 1 {
		t.Errorf("%d lines:\n%s", n, &log)
	}
}

func TestARestartStartsAsItIsWithoutTheRecordAndARebootWaits(t *testing.T) {
	m := newMachine(t, pa, etcdtest.NewRecord(testCluster))
	if _, err := m.boot(m.open()); err != nil {
		t.Fatal(err)
	}
	m.child.Stop(t.Context())
	m.record.Fail(errors.New("503"))
	ms := m.open()
	if !ms.Established() || ms.ClusterUID() != "uid" {
		t.Errorf("a disk on which etcd ran: established %t, cluster %q", ms.Established(), ms.ClusterUID())
	}
	if _, err := m.boot(ms); err != nil {
		t.Fatal(err)
	}
	if got := blockedName(ms); m.child.starts != 2 || got != "record-unreadable" {
		t.Errorf("etcd started %d times, blocked by %q", m.child.starts, got)
	}
	m.child.Stop(t.Context())
	m.me.BootID = "boot2"
	ms = m.open()
	end := inBackground(t, ms.Settle)
	etcdtest.Eventually(t, "record-unreadable", func() bool { return blockedName(ms) == "record-unreadable" })
	end()
	if m.child.starts != 2 {
		t.Error("etcd was started after a reboot without the record")
	}
}

// A directory of an epoch that was abandoned is put away, with its bytes, whenever the power goes.
func TestAnArchiveSurvivesEveryPowerCut(t *testing.T) {
	t.Parallel()
	cuts := cutLog{}
	for _, after := range []bool{false, true} {
		for when := 1; ; when++ {
			m := newMachine(t, pa, etcdtest.NewRecord(testCluster))
			m.record.Change(func(v *record.View) {
				v.Epochs = []record.Epoch{{Number: 1, Claim: &record.Claim{Token: "t1", MaxLearners: table.MaxLearners,
					Seeder: record.Seeder{Place: pa, InstanceID: "101"},
					Source: record.Source{Kind: record.SourceEmpty}},
					Outcome: &record.Outcome{Abandoned: &record.Abandoned{By: "x", Why: "y"}}}}
			})
			if err := makeDirectory(m.etcdDir(), &table.MemberStatus{MemberID: 0xa1, ClusterID: 0xc9}); err != nil {
				t.Fatal(err)
			}
			ms := m.open()
			agent := table.AgentFile{ClusterUID: "uid", Epoch: 1, Token: "t1", Replica: pa, InstanceID: "101",
				BootID: "boot1", Phase: table.PhaseSeeding, NewestEpoch: 1}
			if err := ms.disk.agent.Set(func(a *table.AgentFile) { *a = agent }); err != nil {
				t.Fatal(err)
			}
			m.power.n, m.power.when, m.power.after = 0, when, after
			wasCut, err := m.boot(ms)
			if err != nil {
				t.Fatal(err)
			}
			if wasCut {
				cuts[m.power.moment()] = true
				m.power.when = 0
				ms = m.open()
				if _, err := m.boot(ms); err != nil {
					t.Fatalf("cut %d, %s: %v", when, m.power.moment(), err)
				}
			}
			kept, _ := filepath.Glob(filepath.Join(m.dir, "data", "archive", "*"))
			found := false
			for _, k := range kept {
				d, err := datadir.Read(k)
				found = found || err == nil && d.MemberID == 0xa1
			}
			if v, _ := m.record.Copied(); !found || len(v.Epochs) != 2 || v.Epochs[1].Outcome.Formed == nil {
				t.Fatalf("cut %d, %s: archives %v, epochs %+v", when, m.power.moment(), kept, v.Epochs)
			}
			if !wasCut {
				break
			}
		}
	}
	cuts.want(t, archiveSteps)
}

// The data disk is mounted a while after the agent started: until then the folder beneath is not the disk.
func TestADiskThatIsMountedLateIsNotReadBefore(t *testing.T) {
	m := newMachine(t, pa, etcdtest.NewRecord(testCluster))
	if _, err := m.boot(m.open()); err != nil {
		t.Fatal(err)
	}
	m.child.Stop(t.Context())
	m.me.BootID = "boot2"
	m.cluster.Etcd.DataDisk = "data"
	data, beneath := filepath.Join(m.dir, "data"), filepath.Join(m.dir, "disk")
	if err := os.Rename(data, beneath); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(data, 0o700); err != nil {
		t.Fatal(err)
	}
	mounts := filepath.Join(m.dir, "mountinfo")
	if err := os.WriteFile(mounts, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	ms := m.open()
	ms.disk.mountinfo = mounts
	if ms.Established() {
		t.Error("a disk that is not there is established")
	}
	booted := boots(t, ms)
	etcdtest.Eventually(t, "the fault is shown", func() bool { return blockedName(ms) == "fault" })
	if err := errors.Join(os.Remove(data), os.Rename(beneath, data),
		os.WriteFile(mounts, []byte("36 35 98:0 / "+data+" rw,noatime - ext4 /dev/sdb rw\n"), 0o600)); err != nil {
		t.Fatal(err)
	}
	if err := booted(); err != nil || blockedName(ms) != "" {
		t.Fatalf("%v; it waits for %q", err, blockedName(ms))
	}
	seededOnce(t, m, ms)
	if v, _ := m.record.Copied(); len(v.Epochs[0].Stopped) != 0 {
		t.Errorf("a valid member was declared stopped: %+v", v.Epochs[0].Stopped)
	}
	if archives, _ := filepath.Glob(filepath.Join(data, "archive", "*")); len(archives) != 0 {
		t.Errorf("a valid directory was put away: %v", archives)
	}
}

func TestAFaultHoldsTheClaimBack(t *testing.T) {
	r := etcdtest.NewRecord(testCluster)
	r.Change(func(v *record.View) { v.Bundle, v.Inception.ProjectNumber = 1, "8" })
	m := newMachine(t, pa, r)
	ms := m.open()
	end := inBackground(t, func(ctx context.Context) error { _, err := ms.Claim(ctx); return err })
	etcdtest.Eventually(t, "the fault is shown", func() bool { return blockedName(ms) == "fault" })
	if err := end(); err == nil {
		t.Error("a replica of another project may have certificates")
	}
}

// An agent.json that cannot be read is replaced when its directory is put away, and believed again from then on.
func TestAnUnreadableAgentFileIsReplacedOnce(t *testing.T) {
	m := newMachine(t, pa, etcdtest.NewRecord(testCluster))
	if err := os.WriteFile(filepath.Join(m.dir, "data", "agent.json"), []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	ms := m.open()
	if _, err := m.boot(ms); err != nil {
		t.Fatal(err)
	}
	seededOnce(t, m, ms)
	if v, _ := m.record.Copied(); len(v.Replicas[pa]) != 1 {
		t.Errorf("%d incarnations were taken", len(v.Replicas[pa]))
	}
}

func TestAFailedWriteOfAgentFileIsMadeAgain(t *testing.T) {
	m := newMachine(t, pa, etcdtest.NewRecord(testCluster))
	ms := m.open()
	good, fail, writes := ms.files.write, true, 0
	ms.files.write = func(path string, data []byte, perm os.FileMode) error {
		writes++
		if err := good(path, data, perm); err != nil || !fail {
			return err
		}
		return errors.New("sync folder: input/output error")
	}
	set := func() error { return ms.disk.agent.Set(func(a *table.AgentFile) { a.NewestEpoch = 1 }) }
	if set() == nil || ms.disk.agent.File.NewestEpoch != 0 {
		t.Error("what may not last is believed")
	}
	fail = false
	// Back to what is believed: the disk may hold the other, so that it has to be written.
	if err := ms.disk.agent.Set(func(*table.AgentFile) {}); err != nil || writes != 2 {
		t.Errorf("%v, %d writes", err, writes)
	}
	if err := errors.Join(set(), set()); err != nil || writes != 3 {
		t.Errorf("%v, %d writes", err, writes)
	}
}

// The disk may be a copy: the VM whose disk it was can have started the member that was added for it.
func TestANewIncarnationDoesNotUseAnEntryOfTheOneBefore(t *testing.T) {
	m := newMachine(t, pa, etcdtest.NewRecord(testCluster))
	ms := m.open()
	ctx := t.Context()
	f := table.Facts{Now: t0}
	f.Record.Inception = &record.Inception{UID: "uid"}
	take := func(k uint64) error {
		return ms.reconciler.act(ctx, f, table.Plan{Act: table.ActTakeIncarnation, Epoch: 1, Incarnation: k})
	}
	if err := errors.Join(take(1), ms.disk.agent.Set(func(a *table.AgentFile) {
		a.Phase, a.MemberID = table.PhaseAdded,
			0xa1
	}),
		take(2)); err != nil {
		t.Fatal(err)
	}
	if ms.disk.agent.File.Phase != table.PhaseAdding || ms.disk.agent.File.MemberID != 0 ||
		ms.disk.agent.File.Incarnation != 2 {
		t.Errorf("%+v", ms.disk.agent.File)
	}
}

// A person puts another directory in place while the agent waits: it is read, not remembered.
func TestADirectoryThatWasReplacedIsReadAgain(t *testing.T) {
	m := newMachine(t, pa, etcdtest.NewRecord(testCluster))
	ms := m.open()
	see := func() record.MemberID { return readNow(t, ms).MemberID }
	if got := see(); got != 0 {
		t.Errorf("an empty disk holds %s", got)
	}
	for _, id := range []record.MemberID{0xa1, 0xa2} {
		if err := errors.Join(os.RemoveAll(m.etcdDir()),
			makeDirectory(m.etcdDir(), &table.MemberStatus{MemberID: id, ClusterID: 0xc1})); err != nil {
			t.Fatal(err)
		}
		if got := see(); got != id {
			t.Errorf("member %s, want %s", got, id)
		}
	}
	before := ms.disk.etcd
	if see(); ms.disk.etcd != before {
		t.Error("an unchanged directory was read again")
	}
}

// A member that ends right after each start is started at once the first time, then slower and slower, and the status
// says so.
func TestStartsThatDoNotLastArePaced(t *testing.T) {
	m := newMachine(t, pa, etcdtest.NewRecord(testCluster))
	if _, err := m.boot(m.open()); err != nil {
		t.Fatal(err)
	}
	m.child.Stop(t.Context())
	m.child.dead, m.child.starts = true, 0
	ms := m.open()
	end := inBackground(t, ms.Settle)
	etcdtest.Eventually(t, "the wait is shown", func() bool { return blockedName(ms) == "etcd-does-not-stay-up" })
	end()
	if m.child.starts != 2 {
		t.Errorf("%d starts", m.child.starts)
	}
}

// A step that fails is shown with its cause as long as it does, and logged once.
func TestAFailingStepIsShown(t *testing.T) {
	t.Parallel()
	var log bytes.Buffer
	m := newMachine(t, pa, etcdtest.NewRecord(testCluster))
	m.log = slog.New(slog.NewTextHandler(&log, nil))
	ms := m.open()
	good := ms.files.write
	broken := make(chan struct{})
	ms.files.write = func(path string, data []byte, perm os.FileMode) error {
		select {
		case <-broken:
			return good(path, data, perm)
		default:
			return errors.New("no space left on device")
		}
	}
	booted := boots(t, ms)
	etcdtest.Eventually(t, "step-failed", func() bool { return blockedName(ms) == "step-failed" })
	if b := ms.cfg.Waits.All()[0]; b.Row != "16" || !strings.Contains(b.Reason, "no space left on device") {
		t.Errorf("%+v", b)
	}
	time.Sleep(errorPause + 200*time.Millisecond)
	close(broken)
	if err := booted(); err != nil || blockedName(ms) != "" {
		t.Errorf("%v; it waits for %q", err, blockedName(ms))
	}
	if n := strings.Count(log.String(), "act=seed"); n != 1 || strings.Count(log.String(), "msg=blocked") != 1 {
		t.Errorf("%d lines of the step:\n%s", n, &log)
	}
}

// Two lists that are older than the first sight of an instance prove nothing of it.
func TestListsFromBeforeAnInstanceExistedAreForgotten(t *testing.T) {
	m := newMachine(t, pa, etcdtest.NewRecord(testCluster))
	ms := m.open()
	ms.observer.lists.compute = table.Compute{First: table.Listing{Time: time.Now().Add(-20 * time.Second),
		Instances: instances("101")},
		Second: table.Listing{Time: time.Now().Add(-5 * time.Second), Instances: instances("101")}}
	m.record.Change(func(v *record.View) {
		v.Epochs = []record.Epoch{{Number: 1, Claim: &record.Claim{Token: "t", MaxLearners: table.MaxLearners,
			Seeder: record.Seeder{Place: pa, InstanceID: "101"}, Source: record.Source{Kind: record.SourceEmpty}}}}
		v.Replicas[pb] = []record.Incarnation{{Place: pb, Number: 1, InstanceID: "102", BootID: "b", Epoch: 1}}
	})
	v, _ := m.record.Copied()
	gone := func() bool {
		return table.HistoryOf(table.Facts{Me: m.me, Record: v, Compute: ms.observer.lists.compute}).Gone(pb, "102")
	}
	if !gone() {
		t.Fatal("the test shows nothing: these lists would prove it gone")
	}
	ms.observer.lists.noteInstances(v)
	if gone() {
		t.Error("an instance that was made after both lists is taken for gone")
	}
	ms.observer.lists.compute = table.Compute{First: table.Listing{Time: time.Now()}}
	ms.observer.lists.noteInstances(v)
	if ms.observer.lists.compute.First.Time.IsZero() {
		t.Error("lists from after the first sight were dropped")
	}
	v.Orders = []record.Order{{Number: 1, Kind: record.OrderRestore, Restore: &record.RestoreOrder{Ends: 1}}}
	ms.observer.lists.noteInstances(v)
	if !ms.observer.lists.compute.First.Time.IsZero() {
		t.Error("lists from before a restore was ordered still say who is TERMINATED")
	}
	ms.observer.lists.compute = table.Compute{First: table.Listing{Time: time.Now()}}
	v.Orders[0].Accepted = &record.Accepted{}
	ms.observer.lists.noteInstances(v)
	if !ms.observer.lists.compute.First.Time.IsZero() {
		t.Error("lists from before a restore was accepted, when it stopped nobody yet, still say who is TERMINATED")
	}
}

func TestAVMWithoutAnAddressIsNotAsked(t *testing.T) {
	ms := newMachine(t, pa, etcdtest.NewRecord(testCluster)).open()
	ms.observer.lists.vms = []replica.VM{{Place: pb, InstanceID: "102"}, {Place: pc, InstanceID: "103",
		Addresses: ms.cfg.Me.Addresses},
		{Place: pa, InstanceID: "101", Addresses: ms.cfg.Me.Addresses}}
	got := ms.observer.addresses(record.View{}, true)
	if len(got) != 1 || got[0].Place != pc {
		t.Errorf("asked: %+v", got)
	}
}

// A member of an older epoch has the same authorities. It must not be asked to change anything.
func TestOnlyTheFormedEpochsClusterIsAskedForChanges(t *testing.T) {
	f := three()
	answerThrough(&f)
	other := f.Answers[0]
	other.ClusterID = 0xdead
	f.Answers = append([]table.Answer{other}, f.Answers...)
	if a, ok := table.QuorumAnswer(f); !ok || a.ClusterID != 0xc1 {
		t.Errorf("%+v, %t", a, ok)
	}
	f.Answers = f.Answers[:1]
	if _, ok := table.QuorumAnswer(f); ok {
		t.Error("another cluster's answer counts")
	}
}

// A record that does not even refuse holds a restart of the agent up for a moment only: row 1 needs none.
func TestARestartDoesNotWaitForASilentRecord(t *testing.T) {
	t.Parallel()
	m := newMachine(t, pa, etcdtest.NewRecord(testCluster))
	if _, err := m.boot(m.open()); err != nil {
		t.Fatal(err)
	}
	m.child.Stop(t.Context())
	m.record.Silent = true
	ms := m.open()
	if _, err := m.boot(ms); err != nil {
		t.Fatal(err)
	}
	if m.child.starts != 2 || ms.disk.agent.File.Phase != table.PhaseStarted {
		t.Errorf("etcd started %d times, phase %s", m.child.starts, ms.disk.agent.File.Phase)
	}
	m.me.BootID = "boot2" // after a reboot the record must be read: the wait has no end of its own
	ms = m.open()
	ctx, cancel := context.WithTimeout(t.Context(), RestartPatience+500*time.Millisecond)
	defer cancel()
	if err := ms.Settle(ctx); !errors.Is(err, context.DeadlineExceeded) || m.child.starts != 2 {
		t.Errorf("after a reboot: %v, etcd started %d times", err, m.child.starts)
	}
}
