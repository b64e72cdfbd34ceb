package etcdmember

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/quorate/quorate/internal/record"
)

// SnapshotReader is what verifying needs of the record.
type SnapshotReader interface {
	ReadSnapshot(ctx context.Context, name string, to io.Writer) (record.Snapshot, error)
}

// FetchSnapshot brings a stored snapshot into a file that does not exist, verified in every way: the stored hash and size, the hash that etcd
// appended, all pages of the database, and the revision that its name says. After an error there is no file. The folder needs room for the
// uncompressed database.
func FetchSnapshot(ctx context.Context, store SnapshotReader, s record.Snapshot, path string) (d Database, err error) {
	free, err := freeSpace(filepath.Dir(path))
	if err != nil {
		return d, err
	}
	if free < s.Size {
		return d, fmt.Errorf("%s has %d MiB free: snapshot %s needs %d MiB there", filepath.Dir(path), free>>20, s.Name, s.Size>>20+1)
	}
	f, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_RDWR, 0o600)
	if err != nil {
		return d, err
	}
	defer func() {
		if err = errors.Join(err, f.Close()); err != nil {
			os.Remove(path)
		}
	}()
	if s, err = store.ReadSnapshot(ctx, s.Name, f); err != nil {
		return d, err
	}
	if err := f.Sync(); err != nil {
		return d, err
	}
	if err := checkSeal(ctx, path); err != nil {
		return d, fmt.Errorf("snapshot %s: %w", s.Name, err)
	}
	if d, err = checkDatabase(ctx, path); err != nil {
		return d, fmt.Errorf("snapshot %s: %w", s.Name, err)
	}
	if d.Revision != s.Revision {
		return d, fmt.Errorf("snapshot %s: it holds revision %d, and not %d", s.Name, d.Revision, s.Revision)
	}
	return d, nil
}
