package ringtest

import (
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"go.etcd.io/bbolt"
	"go.etcd.io/etcd/server/v3/storage/schema"
	"go.etcd.io/etcd/server/v3/storage/wal"
	"go.uber.org/zap"

	"github.com/quorate/quorate/etcdmember/datadir"
	"github.com/quorate/quorate/etcdmember/etcdtest"
	"github.com/quorate/quorate/internal/realtest"
	"github.com/quorate/quorate/internal/record"
	"github.com/quorate/quorate/internal/replica"
)

// The power went soon after a member had got the leader's database: the renaming is lost by which that took the place
// of the one before, but not what etcd wrote into that one while it closed it, the new index. The received file is
// there: the member goes on from it, as the one that it is.
func TestAReceivedDatabaseGetsThePlaceThatItLost(t *testing.T) {
	if !etcdtest.InOwnNetwork(t) {
		return
	}
	r, index, before, want := received(t)
	a := r.agents[pc]
	putBack(t, a.etcdDir(), index, true)
	if d, err := datadir.Read(a.etcdDir()); err != nil || d.OpenErr != nil {
		t.Fatalf("it does not count as whole: %v, %v", d.OpenErr, err)
	}
	a.begin()
	r.await("it is a voter again", func() error { return r.voters(pa, pb, pc) })
	if after := r.ids(pc)[pc]; after != before {
		t.Errorf("it is member %s, and was %s", after, before)
	}
	r.holds(pc, want)
}

// Without the received file such a database is damaged, though it is sound page by page: the member is replaced. So is
// one whose database ends before the log begins.
func TestADatabaseThatLacksWhatItsLogLeavesOutIsReplaced(t *testing.T) {
	realtest.OnlyInCases(t)
	if !etcdtest.InOwnNetwork(t) {
		return
	}
	r, _, before, want := received(t)
	for _, short := range []uint64{0, 1} {
		a := r.agents[pc]
		says := logBegins(t, a.etcdDir()) - short
		putBack(t, a.etcdDir(), says, false)
		a.begin()
		r.await(fmt.Sprintf("the member whose database says %d is replaced", says), func() error {
			if s, err := r.status(pc); err != nil || s.MemberID == before {
				return fmt.Errorf("%+v, %w", s, err)
			}
			return r.voters(pa, pb, pc)
		})
		r.holds(pc, want)
		before = r.ids(pc)[pc]
		a.end()
	}
	archived, err := filepath.Glob(filepath.Join(filepath.Dir(r.agents[pc].etcdDir()), "archive", "*"))
	if err != nil || len(archived) != 2 {
		t.Errorf("archived: %v, %v", archived, err)
	}
}

// A database that has members, but not those that the log goes on to name, is found by what etcd says of it: of a
// follower that had fallen behind and got the leader's database.
func TestADatabaseThatLacksAMemberOfItsLogIsReplaced(t *testing.T) {
	realtest.OnlyInCases(t)
	if !etcdtest.InOwnNetwork(t) {
		return
	}
	r, index, before, want := received(t)
	a := r.agents[pc]
	putBack(t, a.etcdDir(), index, false)
	db, err := bbolt.Open(datadir.DatabaseFile(a.etcdDir()), 0o600, nil)
	if err != nil {
		t.Fatal(err)
	}
	err = db.Update(func(tx *bbolt.Tx) error {
		stranger := []byte(`{"id":2989,"peerURLs":["https://127.0.0.3:2380"]}`)
		return tx.Bucket(schema.Members.Name()).Put([]byte("0000000000000bad"), stranger)
	})
	if err := errors.Join(err, db.Close()); err != nil {
		t.Fatal(err)
	}
	if d, err := datadir.Read(a.etcdDir()); err != nil || d.OpenErr != nil {
		t.Fatalf("it can be seen before etcd starts: %v, %v", d.OpenErr, err)
	}
	a.begin()
	r.await("the member is replaced", func() error {
		if s, err := r.status(pc); err != nil || s.MemberID == before {
			return fmt.Errorf("%+v, %w", s, err)
		}
		return r.voters(pa, pb, pc)
	})
	r.holds(pc, want)
}

// received is a ring whose third member got the leader's database and then stopped: where its log begins since then,
// its id, and what it holds.
func received(t *testing.T) (r *ring, index uint64, id record.MemberID, want map[string]string) {
	t.Helper()
	r = newRing(t, pa, pb, pc)
	r.begin(pa)
	want = r.writeMany(pa)
	r.agents[pa].end() // a log that is read from the disk begins with what is in the database
	for _, p := range []replica.Place{pa, pb, pc} {
		r.agents[p].begin()
	}
	r.await("all are voters", func() error { return r.voters(pa, pb, pc) })
	id = r.ids(pc)[pc]
	r.agents[pc].end()
	if index = logBegins(t, r.agents[pc].etcdDir()); index == 0 {
		t.Fatal("it got no database")
	}
	return r, index, id, want
}

// logBegins is the index of the snapshot that a log begins with.
func logBegins(t *testing.T, dir string) uint64 {
	t.Helper()
	snaps, err := wal.ValidSnapshotEntries(zap.NewNop(), datadir.LogDir(dir))
	if err != nil || len(snaps) == 0 {
		t.Fatal(snaps, err)
	}
	return snaps[len(snaps)-1].GetIndex()
}

// putBack puts an empty database in the place of a stopped member's, that says that it reaches an index; the former one
// becomes the received file of that index, or goes.
func putBack(t *testing.T, dir string, index uint64, keep bool) {
	t.Helper()
	path := datadir.DatabaseFile(dir)
	received := filepath.Join(filepath.Dir(path), fmt.Sprintf("%016x.snap.db", index)) // etcd's name for it
	err := os.Rename(path, received)
	if err == nil && !keep {
		err = os.Remove(received)
	}
	if err != nil {
		t.Fatal(err)
	}
	db, err := bbolt.Open(path, 0o600, nil)
	if err != nil {
		t.Fatal(err)
	}
	err = db.Update(func(tx *bbolt.Tx) error {
		for _, b := range schema.AllBuckets {
			if _, err := tx.CreateBucketIfNotExists(b.Name()); err != nil {
				return err
			}
		}
		m := tx.Bucket(schema.Meta.Name())
		number := binary.BigEndian.AppendUint64(nil, index)
		return errors.Join(m.Put(schema.MetaConsistentIndexKeyName, number),
			m.Put(schema.MetaTermKeyName, slices.Repeat([]byte{0}, 8)))
	})
	if err := errors.Join(err, db.Close()); err != nil {
		t.Fatal(err)
	}
}
