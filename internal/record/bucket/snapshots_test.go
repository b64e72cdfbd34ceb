package bucket

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/klauspost/compress/zstd"

	"github.com/quorate/quorate/internal/record"
)

// database is some bytes that compress about as well as a cluster's, longer than one part of an upload.
func database(size int) []byte {
	r := rand.New(rand.NewPCG(1, 2))
	out := make([]byte, 0, size+64)
	for len(out) < size {
		out = fmt.Appendf(out, "/registry/pods/ns-%d/pod-%x phase:Running\n", r.IntN(50), r.Uint64())
	}
	return out[:size]
}

func snapshotAt(epoch uint64, revision int64, hour int) record.Snapshot {
	return record.Snapshot{Epoch: epoch, Revision: revision, Time: time.Date(2026, 1, 2, hour, 0, 0, 0, time.UTC),
		EtcdVersion: "3.7.3"}
}

// parts is what happens to the requests of an upload of four parts: its beginning, each part, the last one's answer
// lost. The test's server appends a part that comes twice, where GCS knows it: so no answer to another part is lost.
func parts(doing string, n int) fault {
	if faults := []fault{refused, none, throttled, delayed, cut, late, none, lost}; doing == "upload" &&
		n < len(faults) {
		return faults[n]
	}
	return sevenths(doing, n)
}

// TestSnapshotComesBack also sends the longest through a bucket that fails: parts of an upload are sent again.
func TestSnapshotComesBack(t *testing.T) {
	for name, size := range map[string]int{"small": 1000, "several parts": 3*uploadPart + 12345} {
		data := database(size)
		if size > uploadPart {
			data = incompressible(size)
		}
		t.Run(name, func(t *testing.T) {
			test := func(t *testing.T, url string) {
				s := openStore(t, url)
				made, err := s.CreateSnapshot(t.Context(), snapshotAt(2, 77, 3), bytes.NewReader(data))
				if err != nil {
					t.Fatal(err)
				}
				sum := sha256.Sum256(data)
				if made.Name != "2/77-20260102T030000.000Z" || made.SHA256 != hex.EncodeToString(sum[:]) ||
					made.Size != int64(size) || made.Stored == 0 {
					t.Errorf("made %+v", made)
				}
				var back bytes.Buffer
				got, err := openStore(t, url).ReadSnapshot(t.Context(), made.Name, &back)
				if err != nil || got != made || !bytes.Equal(back.Bytes(), data) {
					t.Fatalf("read %+v, %d bytes, %v: want %+v and what was written", got, back.Len(), err, made)
				}
				checkTaken(t, s, made.Name)
			}
			eachBucket(t, test)
			t.Run("bucket that fails", func(t *testing.T) {
				b := newBucket(t)
				b.plan = parts
				test(t, b.url)
			})
		})
	}
}

// incompressible is a database whose objects are as long as it is.
func incompressible(size int) []byte {
	out := make([]byte, size)
	rand.NewChaCha8([32]byte{1}).Read(out)
	return out
}

// checkTaken compares the snapshots that count, listed and in a View, with the names wanted.
func checkTaken(t *testing.T, s *Store, want ...string) {
	t.Helper()
	list, err := s.Snapshots(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	view, err := s.View(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	var listed, viewed []string
	for _, i := range list {
		listed = append(listed, i.Name)
	}
	for _, n := range view.Taken {
		viewed = append(viewed, n.Name)
	}
	if !slices.Equal(listed, want) || !slices.Equal(viewed, want) {
		t.Errorf("listed %v, in the view %v: want %v", listed, viewed, want)
	}
}

func TestSnapshotsAreSortedAndReadOnce(t *testing.T) {
	m := newMemory()
	s := m.store()
	for _, i := range []record.Snapshot{snapshotAt(10, 5, 1), snapshotAt(2, 9, 5), snapshotAt(2, 100, 4)} {
		if _, err := s.CreateSnapshot(t.Context(), i, strings.NewReader("db")); err != nil {
			t.Fatal(err)
		}
	}
	m.put("snapshots/2/7-20260102T000000.000Z.db.zst", "without json")
	m.put("snapshots/2/8-20260102T000000.000Z.json", "without database")
	m.put("snapshots/3/8-20260102T000000.000Z.json", "not json")
	m.put("snapshots/3/8-20260102T000000.000Z.db.zst", "x")
	m.remove("snapshots/3/8-20260102T000000.000Z.db.zst")
	m.counted()
	want := []string{"2/100-20260102T040000.000Z", "2/9-20260102T050000.000Z", "10/5-20260102T010000.000Z"}
	checkTaken(t, s, want...)
	if _, reads := m.counted(); len(reads) != 3 {
		t.Errorf("first list read %v: want the three .json", reads)
	}
	checkTaken(t, s, want...)
	if _, reads := m.counted(); len(reads) != 0 {
		t.Errorf("second list read %v: want nothing", reads)
	}
	if err := s.DeleteSnapshot(t.Context(), want[1]); err != nil {
		t.Fatal(err)
	}
	checkTaken(t, s, want[0], want[2])
}

func TestSnapshotThatDoesNotDecodeDoesNotHideTheOthers(t *testing.T) {
	m := newMemory()
	s := m.store()
	made, err := s.CreateSnapshot(t.Context(), snapshotAt(1, 5, 1), strings.NewReader("db"))
	if err != nil {
		t.Fatal(err)
	}
	m.put("snapshots/1/8-20260102T000000.000Z.json", `{"name":"1/9-20260102T000000.000Z"}`)
	m.put("snapshots/1/8-20260102T000000.000Z.db.zst", "x")
	list, err := s.Snapshots(t.Context())
	if err != nil || len(list) != 1 || list[0] != made {
		t.Fatalf("%+v, %v", list, err)
	}
	for _, f := range s.Check(t.Context(), "") {
		if f.Subject == "snapshots/1/8-20260102T000000.000Z.json" && f.Level == record.Warn {
			return
		}
	}
	t.Error("Check does not name the one that does not decode")
}

func TestSnapshotThatFailsDoesNotCount(t *testing.T) {
	broken := errors.New("the stream broke off")
	data := incompressible(2*uploadPart + 100)
	other := sha256.Sum256([]byte("other"))
	for name, c := range map[string]struct {
		change func(*record.Snapshot)
		db     func(context.CancelFunc) io.Reader
		want   string
	}{
		"etcd's stream breaks off": {nil, func(context.CancelFunc) io.Reader {
			return io.MultiReader(bytes.NewReader(data), errReader{broken})
		}, broken.Error()},
		"another size than verified": {func(i *record.Snapshot) { i.Size = 5 }, nil,
			"and not the 5 that were verified"},
		"another hash than verified": {func(i *record.Snapshot) { i.SHA256 = hex.EncodeToString(other[:]) }, nil,
			"as verified"},
		"cancelled": {nil, func(cancel context.CancelFunc) io.Reader {
			return io.MultiReader(bytes.NewReader(data), callReader(cancel), bytes.NewReader(data))
		}, context.Canceled.Error()},
	} {
		t.Run(name, func(t *testing.T) {
			eachBucket(t, func(t *testing.T, url string) {
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				info, db := snapshotAt(1, 7, 1), io.Reader(bytes.NewReader(data))
				if c.change != nil {
					c.change(&info)
				}
				if c.db != nil {
					db = c.db(cancel)
				}
				s := openStore(t, url)
				if _, err := s.CreateSnapshot(ctx, info, db); err == nil || !strings.Contains(err.Error(), c.want) {
					t.Fatalf("error %v: want %q", err, c.want)
				}
				entries, err := s.driver.list(t.Context())
				if err != nil || len(entries) != 0 {
					t.Errorf("left %v, %v: want nothing", entries, err)
				}
			})
		})
	}
}

type errReader struct{ err error }

func (e errReader) Read([]byte) (int, error) { return 0, e.err }

type callReader func()

func (c callReader) Read([]byte) (int, error) { c(); return 0, io.EOF }

// TestDamageOfAStoredSnapshotIsFound changes what is stored behind the record's back.
func TestDamageOfAStoredSnapshotIsFound(t *testing.T) {
	data := database(3 << 20)
	for name, damage := range map[string]func([]byte) []byte{
		"one bit":   func(b []byte) []byte { b[len(b)/2] ^= 4; return b },
		"cut short": func(b []byte) []byte { return b[:len(b)/2] },
		"empty":     func([]byte) []byte { return nil },
		"another":   func([]byte) []byte { return compressed(t, database(3<<20+1)) },
		"longer":    func(b []byte) []byte { return append(b, b...) },
		"no zstd":   func(b []byte) []byte { return bytes.Repeat([]byte("x"), len(b)) },
	} {
		t.Run(name, func(t *testing.T) {
			url, folder := localBucket(t)
			s := openStore(t, url)
			made, err := s.CreateSnapshot(t.Context(), snapshotAt(1, 7, 1), bytes.NewReader(data))
			if err != nil {
				t.Fatal(err)
			}
			file := filepath.Join(folder, record.SnapshotKey(made.Name))
			stored, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(file, damage(stored), 0o600); err != nil {
				t.Fatal(err)
			}
			if _, err := s.ReadSnapshot(t.Context(), made.Name, io.Discard); !errors.Is(err, record.ErrRecord) {
				t.Errorf("error %v: want one of the record", err)
			}
		})
	}
}

func compressed(t *testing.T, data []byte) []byte {
	var b bytes.Buffer
	if _, err := compress(&b, bytes.NewReader(data)); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// storeIncompressible stores a snapshot as long as its database, in a bucket without faults.
func storeIncompressible(t *testing.T, b *testBucket, size int) (record.Snapshot, []byte) {
	t.Helper()
	data := incompressible(size)
	made, err := openStore(t, b.url).CreateSnapshot(t.Context(), snapshotAt(1, 7, 1), bytes.NewReader(data))
	if err != nil {
		t.Fatal(err)
	}
	return made, data
}

func TestASnapshotIsReadOnFromWhereItsConnectionBroke(t *testing.T) {
	b := newBucket(t)
	made, data := storeIncompressible(t, b, 1<<20)
	begin := b.count("read")
	b.mu.Lock()
	b.plan = func(doing string, n int) fault { // the first is the .json
		return []fault{none, torn, cut, torn, refused, torn, torn, none}[min(n-begin, 7)]
	}
	b.mu.Unlock()
	var back bytes.Buffer
	_, err := openStore(t, b.url).ReadSnapshot(t.Context(), made.Name, &back)
	if err != nil || !bytes.Equal(back.Bytes(), data) {
		t.Fatalf("%d bytes, %v", back.Len(), err)
	}
	if n := b.count("read") - begin; n != 8 {
		t.Errorf("%d requests: want the .json, the object, and a part of it after each of six faults", n)
	}
}

// A server that answers, and breaks off each time before a byte has come, is left.
func TestASnapshotThatNeverComesEndsItsReading(t *testing.T) {
	for name, f := range map[string]fault{"cut": cut, "refused": refused} {
		b := newBucket(t)
		made, _ := storeIncompressible(t, b, 1<<20)
		begin := b.count("read")
		b.mu.Lock()
		b.plan = func(_ string, n int) fault { return []fault{none, torn, f}[min(n-begin, 2)] }
		b.mu.Unlock()
		_, err := openStore(t, b.url).ReadSnapshot(t.Context(), made.Name, io.Discard)
		if !errors.Is(err, record.ErrRecord) {
			t.Errorf("%s: %v: want an error of the record", name, err)
		}
		if n := b.count("read") - begin; n > 2+fastPace.tries {
			t.Errorf("%s: %d requests", name, n)
		}
	}
}

// A stand-in that knows no ranges would begin again from the start, and what it sends would be taken for the rest.
func TestASnapshotIsNotPutTogetherFromItsStart(t *testing.T) {
	b := newBucket(t)
	made, _ := storeIncompressible(t, b, 1<<20)
	front := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		r.Header.Del("Range")
		b.ServeHTTP(w, r)
	}))
	defer front.Close()
	begin := b.count("read")
	b.mu.Lock()
	b.plan = func(_ string, n int) fault { return []fault{none, torn, none}[min(n-begin, 2)] }
	b.mu.Unlock()
	_, err := openStore(t, "gs://b/some/prefix?endpoint="+front.URL).ReadSnapshot(t.Context(), made.Name, io.Discard)
	if err == nil || !strings.Contains(err.Error(), "cannot be read from byte") {
		t.Error(err)
	}
}

func TestReadSnapshotEndsWithItsContext(t *testing.T) {
	eachBucket(t, func(t *testing.T, url string) {
		s := openStore(t, url)
		data := incompressible(4 << 20)
		made, err := s.CreateSnapshot(t.Context(), snapshotAt(1, 7, 1), bytes.NewReader(data))
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		written := 0
		_, err = s.ReadSnapshot(ctx, made.Name, writerFunc(func(p []byte) (int, error) {
			written += len(p)
			cancel()
			return len(p), nil
		}))
		if !errors.Is(err, context.Canceled) || written == len(data) {
			t.Errorf("%v after %d bytes", err, written)
		}
	})
}

// A part of which no answer comes is sent again; an upload of which nothing moves any more ends.
func TestAPartWithoutAnAnswerIsSentAgain(t *testing.T) {
	t.Parallel()
	b := newBucket(t)
	b.plan = func(doing string, n int) fault {
		if doing == "upload" && n == 1 {
			return hung
		}
		return none
	}
	network := http.DefaultTransport.(*http.Transport).Clone()
	network.ResponseHeaderTimeout = time.Second
	var uploads int
	s, err := Open(b.url, "c1", &http.Client{Transport: roundTrip(func(r *http.Request) (*http.Response, error) {
		if strings.HasPrefix(r.URL.Path, "/upload/") {
			uploads++
		}
		if uploads == 2 {
			return network.RoundTrip(r)
		}
		return http.DefaultTransport.RoundTrip(r) // a busy machine may take longer to answer
	})})
	if err != nil {
		t.Fatal(err)
	}
	patient(s)
	data := incompressible(uploadPart + 100)
	if _, err := s.CreateSnapshot(t.Context(), snapshotAt(1, 7, 1), bytes.NewReader(data)); err != nil {
		t.Error(err)
	}
	if n := b.count("upload"); n != 5 {
		t.Errorf("%d requests: want the beginning, the first part twice, the second, and the .json", n)
	}
}

type roundTrip func(*http.Request) (*http.Response, error)

// RoundTrip implements http.RoundTripper.
func (f roundTrip) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

func TestATransferEndsOnceNothingMoves(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, touch, end := withStall(t.Context())
		defer end(nil)
		begin := time.Now()
		for range 5 {
			time.Sleep(stallTime - time.Second)
			touch()
		}
		<-ctx.Done()
		if d := time.Since(begin); d != 5*(stallTime-time.Second)+stallTime || context.Cause(ctx) != errStalled {
			t.Errorf("ended after %s: %v", d, context.Cause(ctx))
		}
	})
}

// A window is what a reader must keep in memory: damage must not ask for gigabytes.
func TestAWindowAboveTheLimitIsRefused(t *testing.T) {
	for window, want := range map[int]bool{maxWindow: true, 2 * maxWindow: false} {
		var stored bytes.Buffer
		z, err := zstd.NewWriter(&stored, zstd.WithWindowSize(window))
		if err != nil {
			t.Fatal(err)
		}
		data := incompressible(1 << 20)
		if _, err := z.Write(data); err != nil {
			t.Fatal(err)
		}
		z.Flush() // so that the frame does not say how long it is, which would bound its window
		if err := z.Close(); err != nil {
			t.Fatal(err)
		}
		if _, err := decompress(t.Context(), &stored, io.Discard, int64(len(data))); (err == nil) != want {
			t.Errorf("a window of %d MiB: %v", window>>20, err)
		}
	}
}

// Little that is stored may become much: no more is written than there should be, and one byte that shows that there
// is more.
func TestADatabaseThatIsLongerThanItShouldBeIsNotWritten(t *testing.T) {
	var written bytes.Buffer
	in, err := decompress(t.Context(), bytes.NewReader(compressed(t, make([]byte, 16<<20))), &written, 1000)
	if err != nil || written.Len() != 1001 || in.differs(record.Snapshot{Size: 1000}) == nil {
		t.Errorf("%d bytes are written, and it is taken for whole; %v", written.Len(), err)
	}
}

// failingDelete is a place of which the second deletion fails.
type failingDelete struct {
	*memory
	deleted []string
}

func (f *failingDelete) deleteSnapshot(ctx context.Context, key string) error {
	if f.deleted = append(f.deleted, key); len(f.deleted) > 1 {
		return errors.New("no more")
	}
	return f.memory.deleteSnapshot(ctx, key)
}

// A deletion that is interrupted leaves a database that does not count, and no .json whose database is gone.
func TestAHalfDeletedSnapshotDoesNotCount(t *testing.T) {
	f := &failingDelete{memory: newMemory()}
	s := &Store{driver: f, cluster: "c1", cache: map[string]cached{}}
	made, err := s.CreateSnapshot(t.Context(), snapshotAt(1, 7, 1), strings.NewReader("db"))
	if err != nil {
		t.Fatal(err)
	}
	if err := s.DeleteSnapshot(t.Context(), made.Name); !errors.Is(err, record.ErrRecord) {
		t.Errorf("%v: want an error of the record", err)
	}
	if _, there := f.objects[record.SnapshotInfoKey(made.Name)]; there ||
		f.objects[record.SnapshotKey(made.Name)] == nil {
		t.Errorf("deleted %v", f.deleted)
	}
	checkTaken(t, s)
}

func TestReadSnapshotTellsWhoseFaultItIs(t *testing.T) {
	s := openStore(t, newBucket(t).url)
	made, err := s.CreateSnapshot(t.Context(), snapshotAt(1, 7, 1), bytes.NewReader(database(1<<20)))
	if err != nil {
		t.Fatal(err)
	}
	full := errors.New("no space left")
	_, err = s.ReadSnapshot(t.Context(), made.Name, writerFunc(func([]byte) (int, error) { return 0, full }))
	if !errors.Is(err, full) || errors.Is(err, record.ErrRecord) {
		t.Errorf("a full disk: %v: want it without the record's mark", err)
	}
	if _, err = s.ReadSnapshot(t.Context(), "1/8-20260102T000000.000Z", io.Discard); !errors.Is(err, errAbsent) {
		t.Errorf("no such snapshot: %v", err)
	}
	for _, name := range []string{"", "../epochs/1/claim", "1/7", "snapshots/" + made.Name} {
		if _, err := s.ReadSnapshot(t.Context(), name, io.Discard); err == nil ||
			!strings.Contains(err.Error(), "a name is") {
			t.Errorf("name %q: %v", name, err)
		}
	}
}

// TestSweepClearsOnlyWhatIsOldAndHalf is the crash of a saver at each point: before the object, before the .json,
// within a deletion.
func TestSweepClearsOnlyWhatIsOldAndHalf(t *testing.T) {
	eachBucket(t, func(t *testing.T, url string) {
		s := openStore(t, url)
		whole, err := s.CreateSnapshot(t.Context(), snapshotAt(1, 7, 1), strings.NewReader("db"))
		if err != nil {
			t.Fatal(err)
		}
		for _, key := range []string{"snapshots/1/8-20260102T020000.000Z.db.zst",
			"snapshots/1/9-20260102T020000.000Z.json",
			"snapshots/1/8-20260102T050000.000Z.db.zst"} {
			if err := s.driver.create(t.Context(), key, []byte("x")); err != nil {
				t.Fatal(err)
			}
		}
		before := time.Date(2026, 1, 2, 3, 0, 0, 0, time.UTC)
		if n, err := s.SweepSnapshots(t.Context(), before); n != 2 || err != nil {
			t.Errorf("removed %d, %v: want 2", n, err)
		}
		checkTaken(t, s, whole.Name)
		if entries, _ := s.driver.list(t.Context()); len(entries) != 3 {
			t.Errorf("kept %v: want the whole one and the young half", entries)
		}
	})
}

func TestNothingButSnapshotsIsDeleted(t *testing.T) {
	eachBucket(t, func(t *testing.T, url string) {
		s := openStore(t, url)
		if _, _, err := s.CreateClaim(t.Context(), 1, testClaim("m1", "first")); err != nil {
			t.Fatal(err)
		}
		for _, name := range []string{"../epochs/1/claim", "1/../../epochs/1/claim", ""} {
			if err := s.DeleteSnapshot(t.Context(), name); err == nil {
				t.Errorf("%q was deleted", name)
			}
		}
		if err := s.driver.deleteSnapshot(t.Context(), record.ClaimKey(1)); err == nil {
			t.Error("the claim was deleted")
		}
		if view, err := s.View(t.Context()); err != nil || len(view.Epochs) != 1 {
			t.Errorf("view %+v, %v", view, err)
		}
	})
}

// TestRetentionDoesNotUnsettleAView deletes a snapshot between any two listings.
func TestRetentionDoesNotUnsettleAView(t *testing.T) {
	m := newMemory()
	s := m.store()
	for n := range 40 {
		if _, err := s.CreateSnapshot(t.Context(), snapshotAt(1, int64(n+1), 1), strings.NewReader("db")); err != nil {
			t.Fatal(err)
		}
	}
	m.onList = func(n int) { m.remove(record.SnapshotInfoKey(fmt.Sprintf("1/%d-20260102T010000.000Z", n))) }
	if _, err := s.View(t.Context()); err != nil {
		t.Error(err)
	}
}

// The first snapshot of an epoch proves that this was formed: a listing with it is not the same as one without it.
func TestAnEpochsFirstSnapshotIsSeenInTheListing(t *testing.T) {
	list := func(names ...string) (all []entry) {
		for _, name := range names {
			all = append(all, entry{key: record.SnapshotKey(name)}, entry{key: record.SnapshotInfoKey(name)})
		}
		return all
	}
	one := list("1/7-20260102T010000.000Z")
	if more := list("1/7-20260102T010000.000Z", "1/8-20260102T020000.000Z"); !slices.Equal(steady(one), steady(more)) {
		t.Errorf("%v is not %v", steady(one), steady(more))
	}
	for _, other := range [][]entry{nil, list("1/7-20260102T010000.000Z", "2/9-20260102T030000.000Z"),
		list("2/9-20260102T030000.000Z")} {
		if slices.Equal(steady(one), steady(other)) {
			t.Errorf("%v is taken for %v", other, one)
		}
	}
}

// TestUploadThatLostItsNameToAnotherDoesNotCount is the case of two savers with one name.
func TestUploadThatLostItsNameToAnotherDoesNotCount(t *testing.T) {
	eachBucket(t, func(t *testing.T, url string) {
		s := openStore(t, url)
		// the second as long as ours
		others := [][]byte{[]byte("another's"), make([]byte, len(compressed(t, []byte("db"))))}
		for n, data := range others {
			i := snapshotAt(1, int64(n+1), 1)
			key := fmt.Sprintf("snapshots/1/%d-20260102T010000.000Z.db.zst", n+1)
			if err := s.driver.create(t.Context(), key, data); err != nil {
				t.Fatal(err)
			}
			if _, err := s.CreateSnapshot(t.Context(), i, strings.NewReader("db")); !errors.Is(err, errExists) {
				t.Errorf("error %v: want errExists", err)
			}
		}
		checkTaken(t, s)
	})
}
