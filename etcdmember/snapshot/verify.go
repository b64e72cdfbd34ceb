package snapshot

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"

	"github.com/quorate/quorate/etcdmember/datadir"
	"github.com/quorate/quorate/internal/local"
	"github.com/quorate/quorate/internal/record"
)

// Reader is what verifying needs of the record.
type Reader interface {
	ReadSnapshot(ctx context.Context, name string, to io.Writer) (record.Snapshot, error)
}

// Fetch brings a stored snapshot into a file that does not exist, verified in every way: the stored hash and
// size, the hash that etcd appended, all pages of the database, and the revision that its name says. What is wrong with
// it is record.ErrRecord, too little room syscall.ENOSPC. After an error there is no file. The folder needs room for
// the uncompressed database.
func Fetch(ctx context.Context, store Reader, s record.Snapshot, path string) (d datadir.Database,
	err error) {
	free, _, err := local.Room(filepath.Dir(path))
	if err != nil {
		return d, err
	}
	if free < s.Size {
		return d, noRoom{fmt.Errorf("%s has %d MiB free: snapshot %s needs %d MiB there", filepath.Dir(path), free>>20,
			s.Name, s.Size>>20+1)}
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
		return d, foundIn(s, err)
	}
	if d, err = datadir.CheckDatabase(ctx, path); err != nil {
		return d, foundIn(s, err)
	}
	if d.Revision != s.Revision {
		return d, foundIn(s, fmt.Errorf("it holds revision %d, and not %d", d.Revision, s.Revision))
	}
	return d, nil
}

// foundIn is what is wrong with a stored snapshot, which is a fault of the record, unless this machine could not read
// its own copy, or was not to.
func foundIn(s record.Snapshot, err error) error {
	err = fmt.Errorf("snapshot %s: %w", s.Name, err)
	var file *fs.PathError
	var errno syscall.Errno
	if errors.As(err, &file) || errors.As(err, &errno) || errors.Is(err, context.Canceled) ||
		errors.Is(err, context.DeadlineExceeded) {
		return err
	}
	return record.AtFault(err)
}
