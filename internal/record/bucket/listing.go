package bucket

import (
	"context"
	"fmt"
	"slices"

	"github.com/quorate/quorate/internal/record"
)

// stableTries bounds the listings of one View. Only first boots and restores write several objects a second.
const stableTries = 10

// list is one listing, with its place in the error.
func (s *Store) list(ctx context.Context) ([]entry, error) {
	entries, err := s.driver.list(ctx)
	if err != nil {
		return nil, record.AtFault(fmt.Errorf("list %s: %w", s, err))
	}
	return entries, nil
}

// stableList returns the objects that existed together at one moment. A single listing does not: while its pages are
// read, an epoch may be formed behind the reader's back and a later page name it, which would look like a lost epoch.
// But objects are only ever added, so when two listings in a row are equal, all of it existed at each moment between
// them, and nothing else did. The last stable listing counts as the first of the two, so a record that did not change
// is listed once.
func (s *Store) stableList(ctx context.Context) ([]entry, error) {
	s.mu.Lock()
	before := s.seen
	s.mu.Unlock()
	for range stableTries {
		all, err := s.list(ctx)
		if err != nil {
			return nil, err
		}
		now := steady(all)
		if before != nil && slices.Equal(before, now) {
			return all, nil
		}
		before = append([]entry{}, now...) // never nil: an empty listing must be seen twice, too
		s.mu.Lock()
		s.seen = before
		s.mu.Unlock()
	}
	return nil, fmt.Errorf("list %s: it changed during each of %d listings", s, stableTries)
}

// steady is what two listings are compared by: all but marks and checks, which are overwritten all the time and of no
// consequence. Snapshots come and go by the hundred when retention works; what a View concludes from them is that their
// epoch was formed, so each epoch stands there once.
func steady(all []entry) []entry {
	var now []entry
	last := uint64(0)
	for _, e := range all {
		k := record.ParseKey(e.key)
		switch {
		case k.Kind == record.MarkObject || k.Kind == record.ProbeObject:
		case !k.IsSnapshot():
			now = append(now, e)
		case k.Epoch != last: // a listing is sorted, so the snapshots of an epoch stand together
			now = append(now, entry{key: fmt.Sprintf("%s%d/", record.SnapshotsFolder, k.Epoch)})
			last = k.Epoch
		}
	}
	return now
}
