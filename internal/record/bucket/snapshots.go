package bucket

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/quorate/quorate/internal/record"
)

// CreateSnapshot stores a database that was verified, compressed, and then what it is. Time, if zero, is now; the rest
// of what is unset among Name, SHA256, Size and Stored is found here. A SHA256 or Size that is set must be what db
// gives. db is read once; memory does not grow with its size. After an error the snapshot does not count, or it counts
// and is whole: list again (Snapshots).
func (s *Store) CreateSnapshot(ctx context.Context, info record.Snapshot, db io.Reader) (record.Snapshot, error) {
	stamp(&info.Time)
	info.Time = info.Time.UTC().Truncate(time.Millisecond)
	info.Name = fmt.Sprintf("%d/%d-%s", info.Epoch, info.Revision, info.Time.Format(snapshotTime))
	key := record.SnapshotKey(info.Name)
	if record.ParseKey(key).Name != info.Name {
		return record.Snapshot{}, fmt.Errorf("create snapshot %s: epochs and revisions start at 1", info.Name)
	}
	in := newDigest(ctx, db)
	err := s.driver.createStream(ctx, key, func(w io.Writer) (err error) {
		info.Stored, err = compress(w, in)
		return errors.Join(err, in.differs(info))
	})
	if err != nil {
		return record.Snapshot{}, record.AtFault(fmt.Errorf("create %s: %w", s.driver.where(key), err))
	}
	info.SHA256, info.Size = in.sum(), in.size
	got, won, err := create(ctx, s, record.SnapshotInfoKey(info.Name), info)
	if err == nil && !won {
		err = record.AtFault(fmt.Errorf("create %s: another saver took the name",
			s.driver.where(record.SnapshotInfoKey(info.Name))))
	}
	return got, err
}

// Snapshots lists the snapshots that count, by epoch and then by time, the newest last. What each one is is read once
// in the life of the Store. One whose .json cannot be understood does not count; Check names it.
func (s *Store) Snapshots(ctx context.Context) ([]record.Snapshot, error) {
	entries, err := s.list(ctx)
	if err != nil {
		return nil, err
	}
	infos := counting(entries)
	s.mu.Lock()
	known := s.snapshots
	s.mu.Unlock()
	found := make([]cached, len(infos))
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(readers)
	for n, e := range infos {
		if c, ok := known[e.key]; ok && c.stamp == e.stamp {
			found[n] = c
			continue
		}
		group.Go(func() error {
			v, err := s.readSnapshotInfo(ctx, e.key)
			found[n] = cached{e.stamp, v}
			return err
		})
	}
	if err := group.Wait(); err != nil {
		return nil, err
	}
	return s.rememberSnapshots(infos, found), nil
}

// rememberSnapshots replaces the cache and returns the snapshots in order.
func (s *Store) rememberSnapshots(infos []entry, found []cached) (out []record.Snapshot) {
	cache := make(map[string]cached, len(infos))
	for n, e := range infos {
		cache[e.key] = found[n]
		if info := found[n].value.(*record.Snapshot); info != nil {
			s := *info
			s.Written = e.written
			out = append(out, s)
		}
	}
	s.mu.Lock()
	s.snapshots = cache
	s.mu.Unlock()
	slices.SortFunc(out, func(a, b record.Snapshot) int { return compareTaken(takenAs(a), takenAs(b)) })
	return out
}

// readSnapshotInfo reads what one snapshot is: nil where it was deleted meanwhile, or is not to be understood.
func (s *Store) readSnapshotInfo(ctx context.Context, key string) (*record.Snapshot, error) {
	data, err := s.driver.read(ctx, key)
	if errors.Is(err, errAbsent) || errors.Is(err, errTooLarge) {
		return nil, nil
	}
	if err != nil {
		return nil, record.AtFault(fmt.Errorf("read %s: %w", s.driver.where(key), err))
	}
	info, err := record.Decode[record.Snapshot](record.ParseKey(key), data)
	if err != nil {
		return nil, nil
	}
	return &info, nil
}

// ReadSnapshot writes the uncompressed database to a writer, and checks its size and hash while it passes: what was
// written counts only if there was no error. Memory does not grow with the size.
func (s *Store) ReadSnapshot(ctx context.Context, name string, to io.Writer) (record.Snapshot, error) {
	key, infoKey := record.SnapshotKey(name), record.SnapshotInfoKey(name)
	if record.ParseKey(key).Name != name || name == "" {
		return record.Snapshot{}, fmt.Errorf("read snapshot %q: a name is <epoch>/<revision>-<time>, as `quorate snapshot "+
			"list` prints it", name)
	}
	data, err := s.driver.read(ctx, infoKey)
	if err != nil {
		return record.Snapshot{}, record.AtFault(fmt.Errorf("read %s: %w", s.driver.where(infoKey), err))
	}
	info, err := record.Decode[record.Snapshot](record.ParseKey(infoKey), data)
	if err != nil {
		return record.Snapshot{}, record.AtFault(fmt.Errorf("decode %s: %w", s.driver.where(infoKey), err))
	}
	stored, err := s.driver.readStream(ctx, key)
	if err != nil {
		return record.Snapshot{}, record.AtFault(fmt.Errorf("read %s: %w", s.driver.where(key), err))
	}
	defer stored.Close()
	out := &target{w: to}
	in, err := decompress(ctx, stored, out, info.Size)
	switch {
	case out.err != nil: // it is not the record's fault
		return record.Snapshot{}, fmt.Errorf("write snapshot %s: %w", name, out.err)
	case err == nil:
		err = in.differs(info)
	}
	if err != nil {
		return record.Snapshot{}, record.AtFault(fmt.Errorf("read %s: %w", s.driver.where(key), err))
	}
	return info, nil
}
