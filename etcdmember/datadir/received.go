package datadir

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"go.etcd.io/bbolt"
	"go.etcd.io/etcd/server/v3/storage/schema"
	"go.etcd.io/etcd/server/v3/storage/wal"
	"go.etcd.io/etcd/server/v3/storage/wal/walpb"
	"go.uber.org/zap"
)

// receivedFile is where etcd saves the database that a leader sends, of a log's snapshot (api/snap/db.go).
func receivedFile(dir string, index uint64) string {
	return filepath.Join(filepath.Dir(DatabaseFile(dir)), fmt.Sprintf("%016x.snap.db", index))
}

// TakeReceived gives the database that a leader sent its place, where etcd's renaming of it was lost, and reports
// whether it did. etcd syncs that database and the log that goes on from it, but not the renaming
// (etcdserver.applySnapshot). It then writes the new index into the database that was replaced. So after a power cut
// that one may be back, and say that it holds what it lacks: etcd starts on it, and panics, or serves old keys and
// believes that they are new. The received file is still there then. To begin with it is right in any case: the log
// holds all that came after it.
//
// Nobody may use the directory meanwhile.
func TakeReceived(dir string) (bool, error) {
	newest, err := newestSnapshot(LogDir(dir))
	if errors.Is(err, wal.ErrFileNotFound) || errors.Is(err, fs.ErrNotExist) || errors.Is(err, ErrNoStart) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("read the log's snapshots: %w", err)
	}
	received, place := receivedFile(dir, newest.GetIndex()), DatabaseFile(dir)
	if _, err := os.Stat(received); errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err := os.Rename(received, place); err != nil {
		return false, fmt.Errorf("put the received database in its place: %w", err)
	}
	folder, err := os.Open(filepath.Dir(place))
	if err == nil {
		err = errors.Join(folder.Sync(), folder.Close())
	}
	if err != nil {
		return false, fmt.Errorf("sync the folder of the database: %w", err)
	}
	return true, nil
}

// newestSnapshot is the point from which etcd begins to read a log.
func newestSnapshot(logDir string) (*walpb.Snapshot, error) {
	snaps, err := wal.ValidSnapshotEntries(zap.NewNop(), logDir)
	if err != nil {
		return nil, err
	}
	if len(snaps) == 0 {
		return nil, ErrNoStart
	}
	return snaps[len(snaps)-1], nil
}

// openNewest opens the database that etcd will begin with, and wants it to have what the log leaves out.
func openNewest(dir string, newest *walpb.Snapshot) error {
	received := receivedFile(dir, newest.GetIndex())
	if _, err := os.Stat(received); err == nil {
		return openDatabase(received, newest)
	}
	return openDatabase(DatabaseFile(dir), newest)
}

// reaches wants a database to have what a log leaves out that begins with a snapshot: everything up to that index. etcd
// stops at each start on one that ends before, and on one without a single member.
func reaches(tx *bbolt.Tx, newest *walpb.Snapshot) error {
	if newest.GetIndex() == 0 || len(newest.GetConfState().GetVoters()) == 0 {
		return nil
	}
	index := uint64(0)
	if b := tx.Bucket(metaBucket); b != nil {
		index = leading(b.Get(consistentIndex))
	}
	if index < newest.GetIndex() {
		return fmt.Errorf("it ends with entry %d, and the log begins after entry %d", index, newest.GetIndex())
	}
	if members := tx.Bucket(schema.Members.Name()); members != nil {
		if first, _ := members.Cursor().First(); first != nil {
			return nil
		}
	}
	return fmt.Errorf("it says that entry %d is in it, and has no member", index)
}
