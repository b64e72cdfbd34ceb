package record

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
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"
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

func snapshotAt(epoch uint64, revision int64, hour int) Snapshot {
	return Snapshot{Epoch: epoch, Revision: revision, Time: time.Date(2026, 1, 2, hour, 0, 0, 0, time.UTC), EtcdVersion: "3.7.3"}
}

// parts is what happens to the requests of an upload of four parts: its beginning, each part, the last one's answer lost. The test's
// server appends a part that comes twice, where GCS knows it: so no answer to another part is lost.
func parts(doing string, n int) fault {
	if faults := []fault{refused, none, throttled, delayed, cut, late, none, lost}; doing == "upload" && n < len(faults) {
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
				if made.Name != "2/77-20260102T030000.000Z" || made.SHA256 != hex.EncodeToString(sum[:]) || made.Size != int64(size) || made.Stored == 0 {
					t.Errorf("made %+v", made)
				}
				var back bytes.Buffer
				got, err := openStore(t, url).ReadSnapshot(t.Context(), made.Name, &back)
				if err != nil || got != made || !bytes.Equal(back.Bytes(), data) {
					t.Fatalf("read %+v, %d bytes, %v: want %+v and what was written", got, back.Len(), err, made)
				}
				checkTaken(t, s, made.Name)
			}
			eachDriver(t, test)
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
	for _, i := range []Snapshot{snapshotAt(10, 5, 1), snapshotAt(2, 9, 5), snapshotAt(2, 100, 4)} {
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
	for _, f := range s.Check(t.Context()) {
		if f.Subject == "snapshots/1/8-20260102T000000.000Z.json" && f.Level == Warn {
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
		change func(*Snapshot)
		db     func(context.CancelFunc) io.Reader
		want   string
	}{
		"etcd's stream breaks off": {nil, func(context.CancelFunc) io.Reader {
			return io.MultiReader(bytes.NewReader(data), errReader{broken})
		}, broken.Error()},
		"another size than verified": {func(i *Snapshot) { i.Size = 5 }, nil, "and not the 5 that were verified"},
		"another hash than verified": {func(i *Snapshot) { i.SHA256 = hex.EncodeToString(other[:]) }, nil, "as verified"},
		"cancelled": {nil, func(cancel context.CancelFunc) io.Reader {
			return io.MultiReader(bytes.NewReader(data), callReader(cancel), bytes.NewReader(data))
		}, context.Canceled.Error()},
	} {
		t.Run(name, func(t *testing.T) {
			eachDriver(t, func(t *testing.T, url string) {
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
				checkNoTemp(t, url)
			})
		})
	}
}

// checkNoTemp fails where a folder has unfinished files.
func checkNoTemp(t *testing.T, url string) {
	t.Helper()
	left, _ := filepath.Glob(filepath.Join(strings.TrimPrefix(url, "file://"), "c1", "snapshots", "*", ".*"))
	if len(left) > 0 {
		t.Errorf("left %v", left)
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
			dir := t.TempDir()
			s := openStore(t, "file://"+dir)
			made, err := s.CreateSnapshot(t.Context(), snapshotAt(1, 7, 1), bytes.NewReader(data))
			if err != nil {
				t.Fatal(err)
			}
			file := filepath.Join(dir, "c1", snapshotKey(made.Name))
			stored, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(file, damage(stored), 0o600); err != nil {
				t.Fatal(err)
			}
			if _, err := s.ReadSnapshot(t.Context(), made.Name, io.Discard); !errors.Is(err, ErrRecord) {
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

func TestReadSnapshotTellsWhoseFaultItIs(t *testing.T) {
	s := openStore(t, "file://"+t.TempDir())
	made, err := s.CreateSnapshot(t.Context(), snapshotAt(1, 7, 1), bytes.NewReader(database(1<<20)))
	if err != nil {
		t.Fatal(err)
	}
	full := errors.New("no space left")
	_, err = s.ReadSnapshot(t.Context(), made.Name, writerFunc(func([]byte) (int, error) { return 0, full }))
	if !errors.Is(err, full) || errors.Is(err, ErrRecord) {
		t.Errorf("a full disk: %v: want it without the record's mark", err)
	}
	if _, err = s.ReadSnapshot(t.Context(), "1/8-20260102T000000.000Z", io.Discard); !errors.Is(err, errAbsent) {
		t.Errorf("no such snapshot: %v", err)
	}
	for _, name := range []string{"", "../epochs/1/claim", "1/7", "snapshots/" + made.Name} {
		if _, err := s.ReadSnapshot(t.Context(), name, io.Discard); err == nil || !strings.Contains(err.Error(), "a name is") {
			t.Errorf("name %q: %v", name, err)
		}
	}
}

// TestSweepClearsOnlyWhatIsOldAndHalf is the crash of a saver at each point: before the object, before the .json, within a deletion.
func TestSweepClearsOnlyWhatIsOldAndHalf(t *testing.T) {
	eachDriver(t, func(t *testing.T, url string) {
		s := openStore(t, url)
		whole, err := s.CreateSnapshot(t.Context(), snapshotAt(1, 7, 1), strings.NewReader("db"))
		if err != nil {
			t.Fatal(err)
		}
		for _, key := range []string{"snapshots/1/8-20260102T020000.000Z.db.zst", "snapshots/1/9-20260102T020000.000Z.json",
			"snapshots/1/8-20260102T050000.000Z.db.zst"} {
			if err := s.driver.create(t.Context(), key, []byte("x")); err != nil {
				t.Fatal(err)
			}
		}
		var temp string
		if dir, ok := strings.CutPrefix(url, "file://"); ok {
			temp = filepath.Join(dir, "c1/snapshots/1/.durable-8-20260102T020000.000Z.db.zst-1")
			if err := os.WriteFile(temp, []byte("x"), 0o600); err != nil {
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
		if temp == "" {
			return
		}
		if _, err := os.Stat(temp); err != nil {
			t.Errorf("a file that is being written: %v", err)
		}
		if _, err := s.SweepSnapshots(t.Context(), time.Now().Add(time.Hour)); err != nil {
			t.Error(err)
		}
		if _, err := os.Stat(temp); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("a file whose writer died stays: %v", err)
		}
	})
}

func TestNothingButSnapshotsIsDeleted(t *testing.T) {
	eachDriver(t, func(t *testing.T, url string) {
		s := openStore(t, url)
		if _, _, err := s.CreateClaim(t.Context(), 1, testClaim("m1", "first")); err != nil {
			t.Fatal(err)
		}
		for _, name := range []string{"../epochs/1/claim", "1/../../epochs/1/claim", ""} {
			if err := s.DeleteSnapshot(t.Context(), name); err == nil {
				t.Errorf("%q was deleted", name)
			}
		}
		if err := s.driver.deleteSnapshot(t.Context(), claimKey(1)); err == nil {
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
	m.onList = func(n int) { m.remove(snapshotInfoKey(fmt.Sprintf("1/%d-20260102T010000.000Z", n))) }
	if _, err := s.View(t.Context()); err != nil {
		t.Error(err)
	}
}

// TestUploadThatLostItsNameToAnotherDoesNotCount is the case of two savers with one name.
func TestUploadThatLostItsNameToAnotherDoesNotCount(t *testing.T) {
	eachDriver(t, func(t *testing.T, url string) {
		s := openStore(t, url)
		if err := s.driver.create(t.Context(), "snapshots/1/7-20260102T010000.000Z.db.zst", []byte("another's")); err != nil {
			t.Fatal(err)
		}
		if _, err := s.CreateSnapshot(t.Context(), snapshotAt(1, 7, 1), strings.NewReader("db")); !errors.Is(err, errExists) {
			t.Errorf("error %v: want errExists", err)
		}
		checkTaken(t, s)
	})
}

// TestAFullDiskLeavesNothingThatCounts stores into a file system that has room for the record and not for the snapshot.
func TestAFullDiskLeavesNothingThatCounts(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("needs root: a small file system is mounted")
	}
	dir := t.TempDir()
	if err := syscall.Mount("tmpfs", dir, "tmpfs", 0, "size=1m"); err != nil {
		t.Skipf("mount a small file system: %v", err)
	}
	t.Cleanup(func() {
		if err := syscall.Unmount(dir, 0); err != nil {
			t.Error(err)
		}
	})
	s := openStore(t, "file://"+dir)
	_, err := s.CreateSnapshot(t.Context(), snapshotAt(1, 7, 1), bytes.NewReader(incompressible(4<<20)))
	if !errors.Is(err, syscall.ENOSPC) {
		t.Errorf("error %v: want a full disk", err)
	}
	checkNoTemp(t, "file://"+dir)
	checkTaken(t, s)
	made, err := s.CreateSnapshot(t.Context(), snapshotAt(1, 8, 2), bytes.NewReader(incompressible(100<<10)))
	if err != nil {
		t.Fatalf("one that has room: %v", err)
	}
	checkTaken(t, s, made.Name)
}

// failing is a network on which every request ends in one way.
type failing struct{ err error }

func (f failing) RoundTrip(*http.Request) (*http.Response, error) { return nil, f.err }

// TestAPartIsTriedAgainHoweverItsConnectionEnded: Google's client knows some of the ways by their text; for the others it asks the error.
func TestAPartIsTriedAgainHoweverItsConnectionEnded(t *testing.T) {
	lost := errors.New("http2: client connection lost")
	_, a, _, end := (&gcs{}).stream(t.Context())
	defer end()
	req, err := http.NewRequestWithContext(context.WithValue(t.Context(), attemptKey{}, a), http.MethodPut, "http://b/", nil)
	if err != nil {
		t.Fatal(err)
	}
	_, err = (&transport{base: failing{lost}}).RoundTrip(req)
	var temporary interface{ Temporary() bool }
	if !errors.Is(err, lost) || !errors.As(err, &temporary) || !temporary.Temporary() {
		t.Errorf("error %v: want one that may be tried again", err)
	}
}
