package etcdmember

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go.etcd.io/etcd/server/v3/storage/datadir"

	"github.com/quorate/quorate/etcdmember/table"
	"github.com/quorate/quorate/internal/record"
)

// endedOften is the membership of a stopped member on whose directory etcd has ended so many times.
func endedOften(t *testing.T, runs int, change func(database string)) (*Membership, *machine) {
	t.Helper()
	m := newMachine(t, pa, newRecord())
	if _, err := m.boot(m.open()); err != nil {
		t.Fatal(err)
	}
	m.child.Stop(t.Context())
	database := datadir.ToBackendFileName(m.etcdDir())
	if err := os.Rename(databaseOf(t, false), database); err != nil {
		t.Fatal(err)
	}
	change(database)
	ms := m.open()
	ms.starts = pacing{last: time.Now(), runs: runs}
	return ms, m
}

// readNow is what the boot reads of the directory.
func readNow(t *testing.T, ms *Membership) table.Directory {
	t.Helper()
	return ms.observeDirectory(t.Context(), ms.stopToRead(t.Context()))
}

func zeroALeaf(t *testing.T) func(string) {
	return func(database string) {
		damagePage(t, database, pagesOf(t, database, "leaf")[2], func(p []byte) { clear(p) })
	}
}

func TestADatabaseIsReadWholeOnceEtcdHasEndedOnItAgainAndAgain(t *testing.T) {
	ms, m := endedOften(t, startsBeforeCheck-1, zeroALeaf(t))
	if d := readNow(t, ms); d.OpenErr != nil {
		t.Errorf("after %d starts: %v", ms.starts.runs, d.OpenErr)
	}
	ms.starts.runs++
	if d := readNow(t, ms); d.OpenErr == nil ||
		!strings.Contains(d.OpenErr.Error(), "says that it is page 0") {
		t.Fatalf("after %d starts: %v", ms.starts.runs, d.OpenErr)
	}
	before := ms.directory
	if readNow(t, ms); ms.directory != before {
		t.Error("what is known is found out again")
	}
	if o := table.Classify(ms.gather(t.Context())); o.Local != table.L2 {
		t.Errorf("it is %s", o.Local)
	}
	if d := readNow(t, m.open()); d.OpenErr == nil {
		t.Error("the next agent does not know it")
	}
	if err := os.Rename(m.etcdDir(), m.etcdDir()+".moved"); err != nil {
		t.Fatal(err)
	}
	if d, err := readDir(m.etcdDir() + ".moved"); err != nil || d.OpenErr == nil {
		t.Errorf("it is not known where the directory was moved to: %v", err)
	}
	if err := os.Rename(databaseOf(t, false), datadir.ToBackendFileName(m.etcdDir()+".moved")); err != nil {
		t.Fatal(err)
	}
	if d, err := readDir(m.etcdDir() + ".moved"); err != nil || d.OpenErr != nil {
		t.Errorf("another database in its place is condemned: %v, %v", d.OpenErr, err)
	}
}

// What ends etcd on a sound database is for a person to find; that the database is sound helps.
func TestASoundDatabaseIsNotCondemnedHoweverOftenEtcdEnds(t *testing.T) {
	ms, m := endedOften(t, startsBeforeCheck, func(string) {})
	var read []int
	for ; ms.starts.runs < 5*startsBeforeCheck; ms.starts.runs++ {
		before := ms.checkedAt
		if d := readNow(t, ms); d.OpenErr != nil {
			t.Fatal(d.OpenErr)
		}
		if ms.checkedAt != before {
			read = append(read, ms.starts.runs)
		}
	}
	if len(read) != 3 || read[0] != 3 || read[1] != 6 || read[2] != 12 {
		t.Errorf("read after %v starts", read)
	}
	f := table.Facts{Now: time.Now(), Directory: *ms.directory}
	ms.starts.last = f.Now
	if p := ms.hold(f, table.Plan{Act: table.ActStart}); p.Blocked == nil ||
		!strings.Contains(p.Blocked.Reason, "read whole, and is sound") {
		t.Errorf("the wait does not say so: %+v", p.Blocked)
	}
	if _, err := os.Stat(filepath.Join(m.etcdDir(), damageFile)); !os.IsNotExist(err) {
		t.Errorf("something is noted: %v", err)
	}
	ms.starts.runs = 1
	if readNow(t, ms); ms.checked != "" || ms.checkedAt != 0 {
		t.Error("a new story begins with what the last one found")
	}
}

// A damage that cannot be written down, because the disk is full, is known to this agent all the same.
func TestADamageThatCannotBeNotedCounts(t *testing.T) {
	ms, m := endedOften(t, startsBeforeCheck, zeroALeaf(t))
	ms.disk.write = func(string, []byte, os.FileMode) error { return errWalk }
	if d := ms.gather(t.Context()).Directory; d.OpenErr == nil {
		t.Error("it does not count")
	}
	if d, err := readDir(m.etcdDir()); err != nil || d.OpenErr != nil {
		t.Errorf("it was noted: %v, %v", d.OpenErr, err)
	}
}

// A directory whose database nobody can read is no source of a restore: that is found out before anybody stops for it.
func TestADamagedDirectoryIsNotAcceptedAsASource(t *testing.T) {
	for want, change := range map[string]func(string){"says that it is page 0": zeroALeaf(t), "": func(string) {}} {
		ms, _ := endedOften(t, 0, change)
		f := ms.gather(t.Context())
		err := ms.trySource(t.Context(), f, record.Source{Kind: record.SourceDirectory, MemberID: f.Directory.MemberID})
		if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%v, want %q", err, want)
		}
	}
}
