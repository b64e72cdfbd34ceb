package bucket

import (
	"context"
	"fmt"
	"time"

	"github.com/quorate/quorate/internal/record"
)

// DeleteSnapshot removes one snapshot, and is retention's alone: first what makes it count, then the database.
func (s *Store) DeleteSnapshot(ctx context.Context, name string) error {
	for _, key := range []string{record.SnapshotInfoKey(name), record.SnapshotKey(name)} {
		if err := s.driver.deleteSnapshot(ctx, key); err != nil {
			return record.AtFault(fmt.Errorf("delete %s: %w", s.driver.where(key), err))
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
		if k := record.ParseKey(e.key); k.IsSnapshot() {
			halves[k.Name]++
		}
	}
	for _, e := range entries {
		k := record.ParseKey(e.key)
		t, ok := takenOf(k.Name)
		if !k.IsSnapshot() || halves[k.Name] == 2 || !ok || !t.Time.Before(before) {
			continue
		}
		if err := s.driver.deleteSnapshot(ctx, e.key); err != nil {
			return removed, record.AtFault(fmt.Errorf("delete %s: %w", s.driver.where(e.key), err))
		}
		removed++
	}
	return removed, nil
}
