package record

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"

	"golang.org/x/sync/errgroup"
)

// Snapshot is snapshots/<e>/<revision>-<time>.json: what the compressed database beside it holds. It is written last,
// and its writer has verified the database before: a database without it does not count, and retention clears it away.
type Snapshot struct {
	// Name is <e>/<revision>-<time>, as people and orders name it.
	Name  string `json:"name"`
	Epoch uint64 `json:"epoch"`
	// Revision is the newest key revision in it; Time is before the moment that it shows.
	Revision int64     `json:"revision"`
	Time     time.Time `json:"time"`
	// SHA256 and Size, in bytes, are of the file as etcd sent it, uncompressed and with the hash that etcd appends.
	SHA256 string `json:"sha256"`
	Size   int64  `json:"size"`
	// Stored is the size of the compressed object, in bytes.
	Stored int64 `json:"stored"`
	// Keys is the number of key revisions in it, deletions too: not of living keys.
	Keys int `json:"keys,omitempty"`
	// EtcdVersion is the version of the member that sent it.
	EtcdVersion string `json:"etcdVersion,omitempty"`
	// Bundle is the generation of the bundle whose encryption keys the cluster used then.
	Bundle uint64 `json:"bundle,omitempty"`
	// ClusterID and MemberID are of the member that sent it; Term and Index say how far its log was applied, at the
	// least.
	ClusterID MemberID `json:"clusterID,omitempty"`
	MemberID  MemberID `json:"memberID,omitempty"`
	Term      uint64   `json:"term,omitempty"`
	Index     uint64   `json:"index,omitempty"`
	// By is the replica that saved it, Why what for: "schedule", an order, "by hand".
	By  string `json:"by,omitempty"`
	Why string `json:"why,omitempty"`
	// Written is when the store says that this was written, by its own clock; zero: it does not say. Only Snapshots
	// sets it.
	Written time.Time `json:"-"`
}

// CreateSnapshot stores a database that was verified, compressed, and then what it is. Time, if zero, is now; the rest
// of what is unset among Name, SHA256, Size and Stored is found here. A SHA256 or Size that is set must be what db
// gives. db is read once; memory does not grow with its size. After an error the snapshot does not count, or it counts
// and is whole: look again (Snapshots).
func (s *Store) CreateSnapshot(ctx context.Context, info Snapshot, db io.Reader) (Snapshot, error) {
	stamp(&info.Time)
	info.Time = info.Time.UTC().Truncate(time.Millisecond)
	info.Name = fmt.Sprintf("%d/%d-%s", info.Epoch, info.Revision, info.Time.Format(snapshotTime))
	key := snapshotKey(info.Name)
	if parseKey(key).name != info.Name {
		return Snapshot{}, fmt.Errorf("create snapshot %s: epochs and revisions start at 1", info.Name)
	}
	in := newDigest(ctx, db)
	err := s.driver.createStream(ctx, key, func(w io.Writer) (err error) {
		info.Stored, err = compress(w, in)
		return errors.Join(err, in.differs(info))
	})
	if err != nil {
		return Snapshot{}, markRecord(fmt.Errorf("create %s: %w", s.driver.where(key), err))
	}
	info.SHA256, info.Size = in.sum(), in.size
	got, won, err := create(ctx, s, snapshotInfoKey(info.Name), info)
	if err == nil && !won {
		err = markRecord(fmt.Errorf("create %s: another saver took the name",
			s.driver.where(snapshotInfoKey(info.Name))))
	}
	return got, err
}

// Snapshots lists the snapshots that count, by epoch and then by time, the newest last. What each one is is read once
// in the life of the Store. One whose .json cannot be understood does not count; Check names it.
func (s *Store) Snapshots(ctx context.Context) ([]Snapshot, error) {
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
func (s *Store) rememberSnapshots(infos []entry, found []cached) (out []Snapshot) {
	cache := make(map[string]cached, len(infos))
	for n, e := range infos {
		cache[e.key] = found[n]
		if info := found[n].value.(*Snapshot); info != nil {
			s := *info
			s.Written = e.written
			out = append(out, s)
		}
	}
	s.mu.Lock()
	s.snapshots = cache
	s.mu.Unlock()
	slices.SortFunc(out, func(a, b Snapshot) int { return compareTaken(a.taken(), b.taken()) })
	return out
}

// readSnapshotInfo reads what one snapshot is: nil where it was deleted meanwhile, or is not to be understood.
func (s *Store) readSnapshotInfo(ctx context.Context, key string) (*Snapshot, error) {
	data, err := s.driver.read(ctx, key)
	if errors.Is(err, errAbsent) || errors.Is(err, errTooLarge) {
		return nil, nil
	}
	if err != nil {
		return nil, markRecord(fmt.Errorf("read %s: %w", s.driver.where(key), err))
	}
	info, err := decode[Snapshot](parseKey(key), data)
	if err != nil {
		return nil, nil
	}
	return &info, nil
}

// ReadSnapshot writes the uncompressed database to a writer, and checks its size and hash while it passes: what was
// written counts only if there was no error. Memory does not grow with the size.
func (s *Store) ReadSnapshot(ctx context.Context, name string, to io.Writer) (Snapshot, error) {
	key, infoKey := snapshotKey(name), snapshotInfoKey(name)
	if parseKey(key).name != name || name == "" {
		return Snapshot{}, fmt.Errorf("read snapshot %q: a name is <epoch>/<revision>-<time>, as `quorate snapshot "+
			"list` prints it", name)
	}
	data, err := s.driver.read(ctx, infoKey)
	if err != nil {
		return Snapshot{}, markRecord(fmt.Errorf("read %s: %w", s.driver.where(infoKey), err))
	}
	info, err := decode[Snapshot](parseKey(infoKey), data)
	if err != nil {
		return Snapshot{}, markRecord(fmt.Errorf("decode %s: %w", s.driver.where(infoKey), err))
	}
	stored, err := s.driver.readStream(ctx, key)
	if err != nil {
		return Snapshot{}, markRecord(fmt.Errorf("read %s: %w", s.driver.where(key), err))
	}
	defer stored.Close()
	out := &target{w: to}
	in, err := decompress(ctx, stored, out, info.Size)
	switch {
	case out.err != nil: // it is not the record's fault
		return Snapshot{}, fmt.Errorf("write snapshot %s: %w", name, out.err)
	case err == nil:
		err = in.differs(info)
	}
	if err != nil {
		return Snapshot{}, markRecord(fmt.Errorf("read %s: %w", s.driver.where(key), err))
	}
	return info, nil
}
