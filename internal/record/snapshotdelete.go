package record

import (
	"context"
	"fmt"
	"time"
)

// DeleteSnapshot removes one snapshot, and is retention's alone: first what makes it count, then the database.
func (s *Store) DeleteSnapshot(ctx context.Context, name string) error {
	for _, key := range []string{snapshotInfoKey(name), snapshotKey(name)} {
		if err := s.driver.deleteSnapshot(ctx, key); err != nil {
			return markRecord(fmt.Errorf("delete %s: %w", s.driver.where(key), err))
		}
	}
	return nil
}

// SweepSnapshots removes what savers that died before a moment left: databases without .json, and the reverse. It
// returns how many objects it removed. The moment must be longer ago than any saving takes.
func (s *Store) SweepSnapshots(ctx context.Context, before time.Time) (removed int, err error) {
	entries, err := s.list(ctx)
	if err != nil {
		return 0, err
	}
	halves := map[string]int{}
	for _, e := range entries {
		if k := parseKey(e.key); k.isSnapshot() {
			halves[k.name]++
		}
	}
	for _, e := range entries {
		k := parseKey(e.key)
		t, ok := takenOf(k.name)
		if !k.isSnapshot() || halves[k.name] == 2 || !ok || !t.Time.Before(before) {
			continue
		}
		if err := s.driver.deleteSnapshot(ctx, e.key); err != nil {
			return removed, markRecord(fmt.Errorf("delete %s: %w", s.driver.where(e.key), err))
		}
		removed++
	}
	return removed, nil
}
