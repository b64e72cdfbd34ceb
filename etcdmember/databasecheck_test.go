package etcdmember

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go.etcd.io/bbolt"

	"github.com/quorate/quorate/etcdmember/datadir"
	"github.com/quorate/quorate/etcdmember/etcdtest"
	"github.com/quorate/quorate/etcdmember/table"
	"github.com/quorate/quorate/internal/record"
)

// endedOften is the membership of a stopped member on whose directory etcd has ended so many times.
func endedOften(t *testing.T, runs int, change func(database string)) (*Membership, *machine) {
	t.Helper()
	m := newMachine(t, pa, etcdtest.NewRecord(testCluster))
	if _, err := m.boot(m.open()); err != nil {
		t.Fatal(err)
	}
	m.child.Stop(t.Context())
	database := datadir.DatabaseFile(m.etcdDir())
	if err := os.Rename(etcdtest.Database(t, false), database); err != nil {
		t.Fatal(err)
	}
	change(database)
	ms := m.open()
	ms.disk.check.starts = table.Starts{Last: time.Now(), Runs: runs}
	return ms, m
}

// readNow is what the boot reads of the directory.
func readNow(t *testing.T, ms *Membership) table.Directory {
	t.Helper()
	return ms.disk.directory(t.Context(), ms.disk.stopToRead(t.Context(), false))
}

func zeroALeaf(t *testing.T) func(string) {
	return func(database string) {
		etcdtest.DamagePage(t, database, etcdtest.Pages(t, database, "leaf")[2], func(p []byte) { clear(p) })
	}
}

func TestADatabaseIsReadWholeOnceEtcdHasEndedOnItAgainAndAgain(t *testing.T) {
	ms, m := endedOften(t, StartsBeforeCheck-1, zeroALeaf(t))
	if d := readNow(t, ms); d.OpenErr != nil {
		t.Errorf("after %d starts: %v", ms.disk.check.starts.Runs, d.OpenErr)
	}
	ms.disk.check.starts.Runs++
	if d := readNow(t, ms); d.OpenErr == nil ||
		!strings.Contains(d.OpenErr.Error(), "says that it is page 0") {
		t.Fatalf("after %d starts: %v", ms.disk.check.starts.Runs, d.OpenErr)
	}
	before := ms.disk.etcd
	if readNow(t, ms); ms.disk.etcd != before {
		t.Error("what is known is found out again")
	}
	if o := table.Classify(ms.reconciler.observe(t.Context())); o.Local != table.L2 {
		t.Errorf("it is %s", o.Local)
	}
	if d := readNow(t, m.open()); d.OpenErr == nil {
		t.Error("the next agent does not know it")
	}
	if err := os.Rename(m.etcdDir(), m.etcdDir()+".moved"); err != nil {
		t.Fatal(err)
	}
	if d, err := datadir.Read(m.etcdDir() + ".moved"); err != nil || d.OpenErr == nil {
		t.Errorf("it is not known where the directory was moved to: %v", err)
	}
	if err := os.Rename(etcdtest.Database(t, false), datadir.DatabaseFile(m.etcdDir()+".moved")); err != nil {
		t.Fatal(err)
	}
	if d, err := datadir.Read(m.etcdDir() + ".moved"); err != nil || d.OpenErr != nil {
		t.Errorf("another database in its place is condemned: %v, %v", d.OpenErr, err)
	}
}

// What ends etcd on a sound database is for a person to find; that the database is sound helps.
func TestASoundDatabaseIsNotCondemnedHoweverOftenEtcdEnds(t *testing.T) {
	ms, m := endedOften(t, StartsBeforeCheck, func(string) {})
	var read []int
	for ; ms.disk.check.starts.Runs < 5*StartsBeforeCheck; ms.disk.check.starts.Runs++ {
		before := ms.disk.check.readAt
		if d := readNow(t, ms); d.OpenErr != nil {
			t.Fatal(d.OpenErr)
		}
		if ms.disk.check.readAt != before {
			read = append(read, ms.disk.check.starts.Runs)
		}
	}
	if len(read) != 3 || read[0] != 3 || read[1] != 6 || read[2] != 12 {
		t.Errorf("read after %v starts", read)
	}
	m.child.ended = "exited with code 2: panic: boom"
	ms.disk.forget()
	f := ms.reconciler.observe(t.Context())
	if f.Tries.Checked != "its database was read whole, and is sound" {
		t.Errorf("the wait does not say so: %q", f.Tries.Checked)
	}
	if f.Directory.End.Text != m.child.ended || f.Directory.End.Times != 0 {
		t.Errorf("it is said to have ended with %+v", f.Directory.End)
	}
	if _, err := os.Stat(filepath.Join(m.etcdDir(), datadir.DamageFile)); !os.IsNotExist(err) {
		t.Errorf("something is noted: %v", err)
	}
	ms.disk.check.starts.Runs = 1
	if readNow(t, ms); ms.disk.check.found != "" || ms.disk.check.readAt != 0 {
		t.Error("a new series of starts begins with what the last one found")
	}
}

// A damage that cannot be written down, because the disk is full, is known to this agent all the same.
func TestADamageThatCannotBeNotedCounts(t *testing.T) {
	ms, m := endedOften(t, StartsBeforeCheck, zeroALeaf(t))
	ms.files.write = func(string, []byte, os.FileMode) error { return errPasses }
	if d := ms.reconciler.observe(t.Context()).Directory; d.OpenErr == nil {
		t.Error("it does not count")
	}
	if d, err := datadir.Read(m.etcdDir()); err != nil || d.OpenErr != nil {
		t.Errorf("it was noted: %v, %v", d.OpenErr, err)
	}
}

// A directory whose database nobody can read is no source of a restore: that is found out before anybody stops for it.
func TestADamagedDirectoryIsNotAcceptedAsASource(t *testing.T) {
	for want, change := range map[string]func(string){"says that it is page 0": zeroALeaf(t), "": func(string) {}} {
		ms, _ := endedOften(t, 0, change)
		f := ms.reconciler.observe(t.Context())
		err := ms.reconciler.steps.CheckSource(t.Context(), f, record.Source{Kind: record.SourceDirectory,
			MemberID: f.Directory.MemberID})
		if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%v, want %q", err, want)
		}
	}
}

// A lone voter boots while somebody else has its database open: it waits, writes nothing, and starts once it can read
// it.
func TestALockedDatabaseIsWaitedFor(t *testing.T) {
	t.Parallel()
	m := newMachine(t, pa, etcdtest.NewRecord(testCluster))
	if _, err := m.boot(m.open()); err != nil {
		t.Fatal(err)
	}
	m.child.Stop(t.Context())
	m.me.BootID = "boot2"
	db, err := bbolt.Open(datadir.DatabaseFile(m.etcdDir()), 0o600, nil)
	if err != nil {
		t.Fatal(err)
	}
	ms := m.open()
	booted := boots(t, ms)
	etcdtest.Eventually(t, "it says what it waits for", func() bool {
		b := ms.cfg.Waits.All()
		return len(b) == 1 && b[0].Name == "fault" && strings.Contains(b[0].Reason, "timeout")
	})
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	if err := booted(); err != nil {
		t.Error(err)
	}
	v, err := m.record.Copied()
	if err != nil || len(v.Epochs[0].Stopped) > 0 {
		t.Errorf("the record says that it has stopped: %+v, %v", v.Epochs[0].Stopped, err)
	}
}
