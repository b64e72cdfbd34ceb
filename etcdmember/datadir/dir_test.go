package datadir

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"go.etcd.io/bbolt"
	bbolterrors "go.etcd.io/bbolt/errors"
	"go.etcd.io/etcd/server/v3/storage/wal"
	"go.etcd.io/etcd/server/v3/storage/wal/walpb"
)

// A database that lost its end opens, read-only: etcd panics on it at every start, so it must not count as one that can
// be started.
func TestADatabaseThatLostItsEndIsFound(t *testing.T) {
	path := filepath.Join(t.TempDir(), "db")
	db, err := bbolt.Open(path, 0o600, nil)
	if err != nil {
		t.Fatal(err)
	}
	err = db.Update(func(tx *bbolt.Tx) error {
		b, err := tx.CreateBucket([]byte("key"))
		if err != nil {
			return err
		}
		return b.Put([]byte("k"), make([]byte, 1<<20))
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	if err := openDatabase(path, nil); err != nil {
		t.Errorf("as it was written: %v", err)
	}
	if err := os.Truncate(path, 8192); err != nil {
		t.Fatal(err)
	}
	if err := openDatabase(path, nil); err == nil {
		t.Error("cut to two pages it counts as a database")
	}
}

// What the machine says is no damage: without a quorum damage is written to the record for good, and beside one a good
// member is replaced.
func TestAnErrorThatMayPassIsNoDamage(t *testing.T) {
	for err, want := range map[error]bool{
		nil: false,
		&fs.PathError{Op: "read", Err: syscall.EIO}:                           true,
		fmt.Errorf("wal: %w", &fs.PathError{Op: "open", Err: syscall.EACCES}): true,
		&os.SyscallError{Syscall: "mmap", Err: syscall.ENOMEM}:                true,
		bbolterrors.ErrTimeout:                                                true,
		&fs.PathError{Op: "open", Err: syscall.ENOENT}:                        false,
		&fs.PathError{Op: "read", Err: syscall.EISDIR}:                        false,
		fmt.Errorf("open the database: %w", bbolterrors.ErrInvalid):           false,
		fmt.Errorf("read the write-ahead log: %w", walpb.ErrCRCMismatch):      false,
		fmt.Errorf("read the write-ahead log: %w", wal.ErrFileNotFound):       false,
	} {
		if got := mayPass(err); got != want {
			t.Errorf("%v: may pass: %t", err, got)
		}
	}
	empty := filepath.Join(t.TempDir(), "db")
	if err := os.WriteFile(empty, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := openDatabase(empty, nil); err == nil || mayPass(err) {
		t.Errorf("an empty database: %v", err)
	}
}
