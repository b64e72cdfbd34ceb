package bucket

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"maps"
	"slices"
	"sync"

	"github.com/quorate/quorate/internal/setup"
)

// memory is a driver in memory that counts its calls, keeps the write-once rule by itself, and does what a test tells
// it to before a call.
type memory struct {
	mu      sync.Mutex
	objects map[string][]byte
	version map[string]int
	lists   int
	reads   []string
	onList  func(n int)            // n counts from 1; runs before the listing
	midList func(n int)            // runs after the first half of the keys was collected
	onRead  func(key string) error // an error fails the read
}

func newMemory() *memory {
	return &memory{objects: map[string][]byte{}, version: map[string]int{}}
}

func (m *memory) store() *Store { return &Store{driver: m, cluster: "c1", cache: map[string]cached{}} }

// put changes an object behind every Store's back.
func (m *memory) put(key, data string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.objects[key] = []byte(data)
	m.version[key]++
}

func (m *memory) remove(key string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.objects, key)
}

// counted returns and resets the calls since the last time.
func (m *memory) counted() (lists int, reads []string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	lists, reads = m.lists, m.reads
	m.lists, m.reads = 0, nil
	slices.Sort(reads)
	return lists, reads
}

func (m *memory) list(ctx context.Context) ([]entry, error) {
	m.mu.Lock()
	m.lists++
	n := m.lists
	m.mu.Unlock()
	if m.onList != nil {
		m.onList(n)
	}
	first := m.page("", "o") // inception, epochs, bundle, marks; then orders, replicas, snapshots: as pages of a bucket
	if m.midList != nil {
		m.midList(n)
	}
	return append(first, m.page("o", "\xff")...), ctx.Err()
}

// page lists the keys in [from, to).
func (m *memory) page(from, to string) (out []entry) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, key := range slices.Sorted(maps.Keys(m.objects)) {
		if from <= key && key < to {
			out = append(out, entry{key: key, stamp: fmt.Sprint(m.version[key])})
		}
	}
	return out
}

func (m *memory) read(_ context.Context, key string) ([]byte, error) {
	if m.onRead != nil {
		if err := m.onRead(key); err != nil {
			return nil, err
		}
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.reads = append(m.reads, key)
	data, ok := m.objects[key]
	if !ok {
		return nil, errAbsent
	}
	return bytes.Clone(data), nil
}

func (m *memory) create(_ context.Context, key string, data []byte) error {
	m.mu.Lock()
	_, exists := m.objects[key]
	m.mu.Unlock()
	if exists {
		return errExists
	}
	m.put(key, string(data))
	return nil
}

func (m *memory) overwrite(_ context.Context, key string, data []byte) error {
	m.put(key, string(data))
	return nil
}

func (m *memory) createStream(ctx context.Context, key string, fill func(io.Writer) error) error {
	var b bytes.Buffer
	if err := fill(&b); err != nil {
		return err
	}
	return m.create(ctx, key, b.Bytes())
}

func (m *memory) readStream(ctx context.Context, key string) (io.ReadCloser, error) {
	data, err := m.read(ctx, key)
	return io.NopCloser(bytes.NewReader(data)), err
}

func (m *memory) deleteSnapshot(_ context.Context, key string) error {
	m.remove(key)
	return onlySnapshots(key)
}

func (m *memory) deleteProbe(_ context.Context, key string) error {
	m.remove(key)
	return onlyProbes(key)
}

// survey shows a bucket that lacks nothing.
func (m *memory) survey(_ context.Context, f *setup.Facts) {
	f.Bucket.Answer = setup.Bucket{UniformAccess: true, PublicAccessPrevented: true, Versioning: true,
		Lifecycle: []setup.Rule{{OldVersionsOnly: true}}}
}

func (m *memory) where(key string) string { return "memory:" + key }
