package bucket

import (
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"sync/atomic"
	"testing"
	"time"

	"github.com/quorate/quorate/internal/record"
)

// benchSize is the size of the benchmarks' database: long enough that what is measured is the stream and not its
// beginning.
const benchSize = 256 << 20

// benchDatabase writes a file that compresses about as a cluster's database does: objects with names and random ids, in
// pages that are not full.
func benchDatabase(b *testing.B) *os.File {
	b.Helper()
	f, err := os.Create(filepath.Join(b.TempDir(), "db"))
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { f.Close() })
	r := rand.New(rand.NewPCG(1, 2))
	page := make([]byte, 0, 4096)
	for written := 0; written < benchSize; written += 4096 {
		page = page[:0]
		for len(page) < 3000 {
			page = fmt.Appendf(page,
				`/registry/pods/ns-%d/app-%08x {"kind":"Pod","uid":"%016x%016x","node":"node-%d","phase":"Running","ip":"10.%d.%d.%d"}`,
				r.IntN(50), r.Uint32(), r.Uint64(), r.Uint64(), r.IntN(500), r.IntN(256), r.IntN(256), r.IntN(256))
		}
		if _, err := f.Write(append(page[:min(len(page), 4096)],
			make([]byte, 4096-min(len(page), 4096))...)); err != nil {
			b.Fatal(err)
		}
	}
	return f
}

// BenchmarkSnapshot stores a database and reads it back, next to a plain copy of the same bytes to the same disk with
// the same fsync. It says the ratio to the copy, how much was stored of each byte, and the most that the heap grew by.
func BenchmarkSnapshot(b *testing.B) {
	db := benchDatabase(b)
	dir := b.TempDir()
	s := openStore(b, newServed(b).url())
	copied := func() time.Duration {
		begin := time.Now()
		if err := plainCopy(db, filepath.Join(dir, "copy")); err != nil {
			b.Fatal(err)
		}
		return time.Since(begin)
	}
	copied() // the page cache is warm for both
	var plain time.Duration
	var made record.Snapshot
	b.Run("plain copy", func(b *testing.B) {
		b.SetBytes(benchSize)
		for b.Loop() {
			plain += copied()
		}
		plain /= time.Duration(b.N)
	})
	n := int64(0)
	b.Run("create", func(b *testing.B) {
		b.SetBytes(benchSize)
		grown := watchHeap(b)
		for b.Loop() {
			n++
			var err error
			if made, err = s.CreateSnapshot(b.Context(), snapshotAt(1, n, 1),
				io.NewSectionReader(db, 0, benchSize)); err != nil {
				b.Fatal(err)
			}
		}
		grown()
		b.ReportMetric(float64(b.Elapsed())/float64(b.N)/float64(plain), "x-plain-copy")
		b.ReportMetric(float64(made.Stored)/float64(made.Size), "stored/byte")
	})
	b.Run("read", func(b *testing.B) {
		b.SetBytes(benchSize)
		grown := watchHeap(b)
		for b.Loop() {
			if _, err := s.ReadSnapshot(b.Context(), made.Name, io.Discard); err != nil {
				b.Fatal(err)
			}
		}
		grown()
		b.ReportMetric(float64(b.Elapsed())/float64(b.N)/float64(plain), "x-plain-copy")
	})
}

// plainCopy is what a snapshot is compared with.
func plainCopy(from *os.File, path string) error {
	to, err := os.Create(path)
	if err != nil {
		return err
	}
	defer to.Close()
	if _, err := io.Copy(to, io.NewSectionReader(from, 0, benchSize)); err != nil {
		return err
	}
	return to.Sync()
}

// watchHeap polls the heap until the returned function is called, which reports the most that it grew by.
func watchHeap(b *testing.B) (report func()) {
	var before, now runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	var most atomic.Uint64
	stop, done := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		for {
			runtime.ReadMemStats(&now)
			if grown := now.HeapInuse - min(now.HeapInuse, before.HeapInuse); grown > most.Load() {
				most.Store(grown)
			}
			select {
			case <-stop:
				return
			case <-time.After(20 * time.Millisecond):
			}
		}
	}()
	return func() {
		close(stop)
		<-done
		b.ReportMetric(float64(most.Load())/(1<<20), "heap-MiB")
	}
}

// TestTheMemoryOfASnapshotDoesNotGrowWithIt stores and reads two databases, one sixteen times the other, and compares
// what was allocated.
func TestTheMemoryOfASnapshotDoesNotGrowWithIt(t *testing.T) {
	s := openStore(t, newServed(t).url()) // whose memory is its own
	revision := int64(0)
	allocated := func(size int64) uint64 {
		revision++
		var before, after runtime.MemStats
		page := database(1 << 20)
		runtime.ReadMemStats(&before)
		made, err := s.CreateSnapshot(t.Context(), snapshotAt(1, revision, 1), io.LimitReader(&repeated{page: page},
			size))
		if err == nil {
			_, err = s.ReadSnapshot(t.Context(), made.Name, io.Discard)
		}
		if err != nil {
			t.Fatal(err)
		}
		runtime.ReadMemStats(&after)
		return after.TotalAlloc - before.TotalAlloc
	}
	allocated(4 << 20) // what is made once
	small, large := allocated(4<<20), allocated(64<<20)
	if large > small+8<<20 {
		t.Errorf("allocated %d bytes for 4 MiB and %d for 64 MiB: it grows with the size", small, large)
	}
}

// repeated is one page of bytes again and again.
type repeated struct {
	page []byte
	at   int
}

func (r *repeated) Read(p []byte) (int, error) {
	n := copy(p, r.page[r.at:])
	r.at = (r.at + n) % len(r.page)
	return n, nil
}
