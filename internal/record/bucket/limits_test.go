package bucket

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/fsouza/fake-gcs-server/fakestorage"

	"github.com/quorate/quorate/internal/record"
)

// huge is what an attack left in the bucket: read whole, it takes more memory than a small master has.
const huge = 3 << 30

// reads are the ways to one object of each limit.
var reads = map[string]struct {
	limit int64
	read  func(context.Context, *Store) error
}{
	record.InceptionKey: {maxJSON, func(ctx context.Context, s *Store) error { _, err := s.View(ctx); return err }},
	record.OrderKey(1):  {maxJSON, func(ctx context.Context, s *Store) error { _, err := s.View(ctx); return err }},
	record.SealedKey(1): {maxSealed, func(ctx context.Context, s *Store) error {
		_,
			err := s.ReadSealed(ctx, 1)
		return err
	}},
	hugeSnapshotKey: {maxSnapshotInfo, func(ctx context.Context, s *Store) error {
		_, err := s.ReadSnapshot(ctx, hugeSnapshot, io.Discard)
		return err
	}},
}

const (
	hugeSnapshot    = "1/7-20270115T120000.000Z"
	hugeSnapshotKey = record.SnapshotsFolder + hugeSnapshot + ".json"
)

// checkTooLarge reads the object at a key: an error that names it and its limit, and little memory.
func checkTooLarge(t *testing.T, s *Store, key, want string) {
	t.Helper()
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	err := reads[key].read(t.Context(), s)
	runtime.ReadMemStats(&after)
	if !errors.Is(err, errTooLarge) || !errors.Is(err, record.ErrRecord) {
		t.Fatalf("%s: %v, want an error of the record for its size", key, err)
	}
	for _, part := range []string{s.driver.where(key), want, fmt.Sprint(reads[key].limit)} {
		if !strings.Contains(err.Error(), part) {
			t.Errorf("%s: %v does not say %q", key, err, part)
		}
	}
	if took := after.TotalAlloc - before.TotalAlloc; took > 32<<20 {
		t.Errorf("%s: reading it took %d bytes of memory", key, took)
	}
}

func TestAHugeObjectOfABucketIsRefusedBeforeItTakesMemory(t *testing.T) {
	for key := range reads {
		for _, says := range []bool{true, false} {
			b := newBucket(t, fakestorage.Object{ObjectAttrs: fakestorage.ObjectAttrs{BucketName: "b",
				Name: "some/prefix/c1/" + key},
				Content: []byte("small")})
			var sent int64
			front := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if !strings.HasSuffix(r.URL.Path, key) {
					b.ServeHTTP(w, r)
					return
				}
				if says {
					w.Header().Set("Content-Length", fmt.Sprint(int64(huge)))
				}
				zeros := make([]byte, 64<<10)
				for sent = 0; sent < huge; sent += int64(len(zeros)) {
					if _, err := w.Write(zeros); err != nil {
						return
					}
				}
			}))
			s := openStore(t, "gs://b/some/prefix?endpoint="+url.QueryEscape(front.URL))
			want := "though its place says"
			if says {
				want = fmt.Sprintf("%d bytes", huge)
			}
			checkTooLarge(t, s, key, want)
			front.Close() // waits for the handler
			if sent > 256<<20 {
				t.Errorf("%s, its size said %t: %d bytes were sent before the reader went away", key, says, sent)
			}
		}
	}
}

// The snapshots that can be understood count beside one whose .json is too large, and the check names that one.
func TestAHugeSnapshotInfoDoesNotHideTheOthers(t *testing.T) {
	url, folder := localBucket(t)
	s := openStore(t, url)
	taken, err := s.CreateSnapshot(t.Context(), snapshotAt(1, 5, 1), strings.NewReader("database"))
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(folder, hugeSnapshotKey)
	if err := os.WriteFile(strings.TrimSuffix(path, ".json")+record.DatabaseSuffix, []byte("x"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(os.WriteFile(path, nil, 0o600), os.Truncate(path, maxSnapshotInfo+1)); err != nil {
		t.Fatal(err)
	}
	if list, err := s.Snapshots(t.Context()); err != nil || len(list) != 1 || list[0].Name != taken.Name {
		t.Errorf("listed %v, %v, want %s", list, err, taken.Name)
	}
	if got := find(s.Check(t.Context(), ""), hugeSnapshotKey); !strings.Contains(got, "too large") {
		t.Errorf("the check says %q", got)
	}
}

func TestWhatNobodyCouldReadIsNotWritten(t *testing.T) {
	s := newMemory().store()
	if _, _, err := s.CreateSealed(t.Context(), 1, make([]byte, maxSealed+1)); !errors.Is(err, errTooLarge) {
		t.Errorf("a bundle: %v", err)
	}
	if _, _, err := s.CompleteOrder(t.Context(), 1, record.Done{What: strings.Repeat("x", maxJSON)}); !errors.Is(err,
		errTooLarge) {
		t.Errorf("an object: %v", err)
	}
	if _, _, err := s.CreateSealed(t.Context(), 1, make([]byte, maxSealed)); err != nil {
		t.Errorf("a bundle of the largest size: %v", err)
	}
}
