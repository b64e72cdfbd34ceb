package snapshot

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"go.etcd.io/bbolt"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/server/v3/storage/schema"

	"github.com/quorate/quorate/certs"
	"github.com/quorate/quorate/etcdmember/datadir"
	"github.com/quorate/quorate/etcdmember/etcdtest"
	"github.com/quorate/quorate/etcdmember/member"
	"github.com/quorate/quorate/etcdmember/table"
	"github.com/quorate/quorate/internal/localgce/instance"
	"github.com/quorate/quorate/internal/record"
	"github.com/quorate/quorate/internal/record/bucket"
	"github.com/quorate/quorate/internal/record/bucket/buckettest"
)

// saving is a real member of one, its record in a folder, and a client.
type saving struct {
	t      *testing.T
	job    Job
	store  *bucket.Store
	folder string
	status table.MemberStatus
	client *clientv3.Client
}

// newSaving starts the member and forms its epoch in the record.
func newSaving(t *testing.T) *saving {
	t.Helper()
	cfg, files, status := served(t)
	s := &saving{t: t, folder: t.TempDir(), status: status}
	tlsConfig, err := certs.EtcdTLS(files)
	if err != nil {
		t.Fatal(err)
	}
	if s.client, err = member.Dial(cfg.DNSName, cfg.Address, tlsConfig); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.client.Close() })
	s.store = buckettest.Serve(t, s.folder, "test")
	seeder := record.Seeder{Place: pa, InstanceID: "1"}
	_, _, err = s.store.CreateClaim(t.Context(), 1, record.Claim{Token: "t", Seeder: seeder, MaxLearners: 4,
		Source: record.Source{Kind: record.SourceEmpty}})
	if err != nil {
		t.Fatal(err)
	}
	s.form(s.status.ClusterID)
	s.job = Job{DNSName: cfg.DNSName, Address: cfg.Address, TLS: tlsConfig, Dir: filepath.Join(t.TempDir(),
		"snapshots"), By: pa,
		Why: WhySchedule, Store: s.store}
	return s
}

func (s *saving) form(cluster record.MemberID) {
	_, _, err := s.store.CreateOutcome(s.t.Context(), 1,
		record.Outcome{Formed: &record.Formed{ClusterID: cluster, MemberID: s.status.MemberID}})
	if err != nil {
		s.t.Fatal(err)
	}
}

// put writes keys and returns the revision after them.
func (s *saving) put(n int) (revision int64) {
	s.t.Helper()
	for i := range n {
		r, err := s.client.Put(s.t.Context(), fmt.Sprintf("/registry/pods/%04d", i), strings.Repeat("x", 500))
		if err != nil {
			s.t.Fatal(err)
		}
		revision = r.Header.Revision
	}
	return revision
}

// stored is the file of a snapshot's database.
func (s *saving) stored(name string) string {
	return filepath.Join(s.folder, instance.BucketName, "test", "snapshots", name+".db.zst")
}

func TestASnapshotOfARealMemberIsSavedAndVerified(t *testing.T) {
	s := newSaving(t)
	ctx := t.Context()
	revision := s.put(200)
	saved, err := Save(ctx, s.job)
	if err != nil {
		t.Fatal(err)
	}
	want := record.Snapshot{Name: saved.Name, Epoch: 1, Revision: revision, Time: saved.Time, SHA256: saved.SHA256,
		Size: saved.Size, Stored: saved.Stored,
		Keys: 200, EtcdVersion: "3.7.3", ClusterID: s.status.ClusterID, MemberID: s.status.MemberID, Term: saved.Term,
		Index: saved.Index, By: pa.String(), Why: WhySchedule}
	if saved.Snapshot != want || saved.Index == 0 || saved.Term == 0 || saved.Stored >= saved.Size {
		t.Errorf("saved %+v\nwant  %+v, compressed, with term and index", saved.Snapshot, want)
	}
	if local, err := os.ReadFile(saved.Local); err != nil || int64(len(local)) != saved.Size {
		t.Errorf("local copy: %d bytes, %v: want %d", len(local), err, saved.Size)
	}
	path := filepath.Join(t.TempDir(), "db")
	d, err := Fetch(ctx, s.store, saved.Snapshot, path)
	if err != nil || d.Revision != revision || d.Entries != 200 || d.Index != saved.Index {
		t.Fatalf("fetched %+v, %v", d, err)
	}
	if err := checkSeal(ctx, path); err != nil {
		t.Error(err)
	}
	// The last thing that happened is a deletion, and what was before it is compacted away.
	if _, err := s.client.Delete(ctx, "/registry/pods/0000"); err != nil {
		t.Fatal(err)
	}
	if _, err := s.client.Compact(ctx, revision+1, clientv3.WithCompactPhysical()); err != nil {
		t.Fatal(err)
	}
	second, err := Save(ctx, s.job)
	if err != nil || second.Revision != revision+1 || second.Keys != 200 {
		t.Fatalf("second %+v, %v: want revision %d, and 199 entries with the deletion", second, err, revision+1)
	}
	if files, _ := filepath.Glob(filepath.Join(s.job.Dir, "*.db")); len(files) != 1 || files[0] != second.Local {
		t.Errorf("local copies %v: want the newest alone", files)
	}
	list, err := s.store.Snapshots(ctx)
	if err != nil || len(list) != 2 || list[1].Written.IsZero() {
		t.Fatalf("list %+v, %v: want two, and when the store wrote them", list, err)
	}
	second.Written = list[1].Written // a list alone knows it
	if list[1] != second.Snapshot {
		t.Errorf("list %+v: want %+v at its end", list, second.Snapshot)
	}
}

func TestAnEmptyClusterCanBeSaved(t *testing.T) {
	s := newSaving(t)
	saved, err := Save(t.Context(), s.job)
	if err != nil || saved.Revision != 1 || saved.Keys != 0 {
		t.Errorf("saved %+v, %v", saved, err)
	}
}

// TestDamageOfAStoredSnapshotIsFoundByFetching changes the stored object in ways that its own checksums show, and in
// one that they do not.
func TestDamageOfAStoredSnapshotIsFoundByFetching(t *testing.T) {
	s := newSaving(t)
	s.put(200)
	saved, err := Save(t.Context(), s.job)
	if err != nil {
		t.Fatal(err)
	}
	good, err := os.ReadFile(s.stored(saved.Name))
	if err != nil {
		t.Fatal(err)
	}
	for name, damage := range map[string]func([]byte) []byte{
		"one bit":   func(b []byte) []byte { b[len(b)/2] ^= 1; return b },
		"cut short": func(b []byte) []byte { return b[:len(b)-10] },
	} {
		t.Run(name, func(t *testing.T) {
			if err := os.WriteFile(s.stored(saved.Name), damage(bytes.Clone(good)), 0o600); err != nil {
				t.Fatal(err)
			}
			path := filepath.Join(t.TempDir(), "db")
			if _, err := Fetch(t.Context(), s.store, saved.Snapshot, path); !errors.Is(err, record.ErrRecord) {
				t.Errorf("error %v: want one of the record", err)
			}
			if _, err := os.Stat(path); !errors.Is(err, os.ErrNotExist) {
				t.Errorf("a file stayed: %v", err)
			}
		})
	}
}

// liar stores a database that another has changed together with its hashes.
type liar struct{ data []byte }

func (l liar) ReadSnapshot(_ context.Context, name string, to io.Writer) (record.Snapshot, error) {
	_, err := to.Write(l.data)
	return record.Snapshot{Name: name, Revision: 201}, err
}

func TestADatabaseThatIsWrongInItselfIsFound(t *testing.T) {
	s := newSaving(t)
	s.put(200)
	saved, err := Save(t.Context(), s.job)
	if err != nil {
		t.Fatal(err)
	}
	good, err := os.ReadFile(saved.Local)
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		damage func([]byte)
		want   string
	}{
		"nothing":           {func([]byte) {}, ""},
		"no hash":           {func(b []byte) { b[len(b)-1]++ }, errUnsealed.Error()},
		"pages overwritten": {func(b []byte) { seal(b, func(b []byte) { clear(b[3*4096:]) }) }, "database"},
		"pages of rubbish":  {func(b []byte) { seal(b, rubbish) }, "database"},
		"no database":       {func(b []byte) { seal(b, func(b []byte) { clear(b) }) }, "open the database"},
	} {
		t.Run(name, func(t *testing.T) {
			data := bytes.Clone(good)
			c.damage(data)
			_, err := Fetch(t.Context(), liar{data}, record.Snapshot{Name: "1/2-x"},
				filepath.Join(t.TempDir(), "db"))
			if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
				t.Errorf("error %v: want %q", err, c.want)
			}
			if err != nil && !errors.Is(err, record.ErrRecord) {
				t.Errorf("error %v: want one of the record", err)
			}
		})
	}
}

// rubbish makes every page but the two that come first point anywhere.
func rubbish(b []byte) {
	for i := 2 * 4096; i < len(b); i++ {
		b[i] = byte(i * 7)
	}
}

// seal changes what is before the appended hash, and appends one that fits.
func seal(b []byte, change func([]byte)) {
	body := b[:len(b)-sealed]
	change(body)
	s := newSealing()
	s.hash.Write(body)
	copy(b[len(b)-sealed:], s.hash.Sum(nil))
}

func TestSavingIsRefused(t *testing.T) {
	s := newSaving(t)
	s.put(3)
	for name, c := range map[string]struct {
		change func(*Job)
		want   string
	}{
		"no room": {func(j *Job) { j.Dir = "/proc/self/x" }, "make the folder"},
		"nobody answers": {func(j *Job) { j.Address = netip.MustParseAddr("127.0.0.8") },
			"ask the member on this machine"},
		"the record is away": {func(j *Job) { j.Store = brokenStore{s.store, errors.New("away"), nil} },
			"away"},
		"the upload breaks off": {func(j *Job) { j.Store = brokenStore{s.store, nil, errors.New("cut")} },
			"cut"},
	} {
		t.Run(name, func(t *testing.T) {
			job := s.job
			job.Dir = filepath.Join(t.TempDir(), "snapshots")
			c.change(&job)
			ctx, cancel := context.WithTimeout(t.Context(), 500*time.Millisecond)
			defer cancel()
			if _, err := Save(ctx, job); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("error %v: want %q", err, c.want)
			}
			if left, _ := filepath.Glob(filepath.Join(job.Dir, "*.db")); len(left) > 0 {
				t.Errorf("left %v", left)
			}
			if left, _ := filepath.Glob(filepath.Join(job.Dir, ".*.db")); len(left) > 0 {
				t.Errorf("left %v", left)
			}
		})
	}
	release, err := lockSnapshots(s.job.Dir)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := Save(t.Context(), s.job); !errors.Is(err, ErrSaving) {
		t.Errorf("while another saves: %v", err)
	}
	release()
	if err := s.job.makeRoom(1 << 60); !errors.Is(err, syscall.ENOSPC) || !strings.Contains(err.Error(), "MiB free") {
		t.Errorf("a database larger than the disk: %v", err)
	}
	if list, err := s.store.Snapshots(t.Context()); err != nil || len(list) != 0 {
		t.Errorf("list %v, %v: want nothing", list, err)
	}
}

// brokenStore fails to be read, or in the middle of what it stores.
type brokenStore struct {
	Store
	viewErr, storeErr error
}

func (b brokenStore) View(ctx context.Context) (record.View, error) {
	if b.viewErr != nil {
		return record.View{}, b.viewErr
	}
	return b.Store.View(ctx)
}

func (b brokenStore) CreateSnapshot(ctx context.Context, info record.Snapshot, db io.Reader) (record.Snapshot, error) {
	if b.storeErr != nil {
		return record.Snapshot{}, b.storeErr
	}
	return b.Store.CreateSnapshot(ctx, info, db)
}

func TestAMemberOfNoOpenEpochIsNotSaved(t *testing.T) {
	s := newSaving(t)
	if _, _, err := s.store.CreateClosed(t.Context(), 1, record.Closed{By: "x"}); err != nil {
		t.Fatal(err)
	}
	if _, err := Save(t.Context(), s.job); err == nil || !strings.Contains(err.Error(), "no open epoch") {
		t.Errorf("error %v", err)
	}
}

func TestASavingThatIsEndedLeavesNothing(t *testing.T) {
	s := newSaving(t)
	s.put(50)
	ctx, cancel := context.WithCancel(t.Context())
	job := s.job
	job.Store = cancelStore{s.store, cancel}
	if _, err := Save(ctx, job); !errors.Is(err, context.Canceled) {
		t.Errorf("error %v", err)
	}
	entries, _ := os.ReadDir(job.Dir)
	for _, e := range entries {
		if e.Name() != lockSnapshot {
			t.Errorf("left %s", e.Name())
		}
	}
	if left, _ := filepath.Glob(filepath.Join(s.folder, instance.BucketName, "test/snapshots/*/*")); len(left) > 0 {
		t.Errorf("left %v", left)
	}
	if _, err := Save(t.Context(), s.job); err != nil {
		t.Errorf("the next one: %v", err)
	}
}

// cancelStore is told to stop in the middle of storing.
type cancelStore struct {
	Store
	cancel context.CancelFunc
}

func (c cancelStore) CreateSnapshot(ctx context.Context, info record.Snapshot, db io.Reader) (record.Snapshot, error) {
	return c.Store.CreateSnapshot(ctx, info, io.MultiReader(io.LimitReader(db, 1000), endReader(c.cancel), db))
}

type endReader func()

func (e endReader) Read([]byte) (int, error) { e(); return 0, io.EOF }

func TestSealingFindsTheHashWhateverTheWritesAre(t *testing.T) {
	for _, chunk := range []int{1, 7, 31, 32, 33, 100, 5000} {
		data := bytes.Repeat([]byte("abcdefgh"), 64*4)
		data = append(data, make([]byte, sealed)...)
		seal(data, func([]byte) {})
		s := newSealing()
		for rest := data; len(rest) > 0; {
			n := min(chunk, len(rest))
			s.Write(rest[:n])
			rest = rest[n:]
		}
		if _, err := s.finish(); err != nil {
			t.Errorf("writes of %d: %v", chunk, err)
		}
	}
	s := newSealing()
	s.Write(make([]byte, 544))
	if _, err := s.finish(); !errors.Is(err, errUnsealed) {
		t.Errorf("zeros: %v", err)
	}
}

// TestARevisionThatWasCompactedAwayCounts is what older members leave of a deletion that was the last thing to happen:
// nothing but the mark of the compaction.
func TestARevisionThatWasCompactedAwayCounts(t *testing.T) {
	path := filepath.Join(t.TempDir(), "db")
	db, err := bbolt.Open(path, 0o600, nil)
	if err != nil {
		t.Fatal(err)
	}
	revision := func(n uint64) []byte { return binary.BigEndian.AppendUint64(nil, n) }
	err = db.Update(func(tx *bbolt.Tx) error {
		keys, _ := tx.CreateBucket(schema.Key.Name())
		meta, _ := tx.CreateBucket(schema.Meta.Name())
		return errors.Join(keys.Put(append(revision(7), "_00000000"...), etcdtest.KeyValue("k")),
			meta.Put([]byte("finishedCompactRev"), append(revision(9), "_00000000"...)),
			meta.Put(schema.MetaConsistentIndexKeyName, revision(40)), meta.Put(schema.MetaTermKeyName, revision(3)))
	})
	if err := errors.Join(err, db.Close()); err != nil {
		t.Fatal(err)
	}
	if d, err := datadir.CheckDatabase(t.Context(), path); err != nil ||
		d != (datadir.Database{Revision: 9, Entries: 1, Term: 3, Index: 40}) {
		t.Errorf("%+v, %v", d, err)
	}
}

// A member without a bucket of etcd's would make it again; a snapshot without one is something else.
func TestADatabaseWithoutEtcdsBucketsIsNoSnapshot(t *testing.T) {
	path := filepath.Join(t.TempDir(), "db")
	db, err := bbolt.Open(path, 0o600, nil)
	if err != nil {
		t.Fatal(err)
	}
	err = db.Update(func(tx *bbolt.Tx) error {
		_, err := tx.CreateBucket(schema.Key.Name())
		return err
	})
	if err := errors.Join(err, db.Close(), datadir.CheckPages(t.Context(), path)); err != nil {
		t.Fatal(err)
	}
	if _, err := datadir.CheckDatabase(t.Context(), path); err == nil ||
		!strings.Contains(err.Error(), `no bucket "meta"`) {
		t.Errorf("%v", err)
	}
}
