package etcdmember

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"go.etcd.io/bbolt"
	bbolterrors "go.etcd.io/bbolt/errors"
	"go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/server/v3/storage/datadir"
	"go.etcd.io/etcd/server/v3/storage/wal"
	"go.etcd.io/etcd/server/v3/storage/wal/walpb"
	"go.etcd.io/raft/v3/raftpb"
	"go.uber.org/zap"
	"google.golang.org/protobuf/proto"

	"github.com/quorate/quorate/etcdmember/table"
	"github.com/quorate/quorate/internal/record"
)

// commitMarker is the file inside etcd's directory that says that a seed or a restore has been made whole. A directory
// that was being seeded or restored without it is half made.
const commitMarker = "quorate-complete"

// readDir reads the log and the head of the database, and what is known of the rest of it (readDamage), without
// changing a byte. An error means that the directory could not be looked at, which is not the same as
// Directory.OpenErr: that says what the files hold, and is written to the record for good where there is no quorum.
func readDir(dir string) (table.Directory, error) {
	var d table.Directory
	entries, err := os.ReadDir(filepath.Join(dir, "member"))
	if errors.Is(err, fs.ErrNotExist) || (err == nil && len(entries) == 0) {
		return d, nil
	}
	if err != nil {
		return d, fmt.Errorf("look into etcd's directory: %w", err)
	}
	d.Exists = true
	if _, err := os.Stat(filepath.Join(dir, commitMarker)); err == nil {
		d.Marker = true
	}
	if err := readWAL(&d, datadir.ToWALDir(dir)); err != nil {
		d.OpenErr = fmt.Errorf("read the write-ahead log: %w", err)
	} else if err := openDatabase(datadir.ToBackendFileName(dir)); err != nil {
		d.OpenErr = fmt.Errorf("open the database: %w", err)
	} else {
		d.OpenErr = readDamage(dir).error()
	}
	if mayPass(d.OpenErr) {
		return d, d.OpenErr
	}
	return d, nil
}

// mayPass: it is the machine that says no, and not the files: an I/O error, no memory, no permission, a lock that
// somebody has. A disk that is attached again may read what it could not. Of what the system says, only that a file is
// not there, or is no file, is about the files.
func mayPass(err error) bool {
	var said syscall.Errno
	if !errors.As(err, &said) {
		return errors.Is(err, bbolterrors.ErrTimeout)
	}
	switch said {
	case syscall.ENOENT, syscall.ENOTDIR, syscall.EISDIR, syscall.ELOOP:
		return false
	}
	return true
}

// errNoStart: no snapshot that the log names, not even the one at its beginning, is valid.
var errNoStart = errors.New("it holds no valid starting point")

func readWAL(d *table.Directory, dir string) error {
	lg := zap.NewNop()
	snaps, err := wal.ValidSnapshotEntries(lg, dir)
	if err != nil {
		return err
	}
	if len(snaps) == 0 {
		return errNoStart
	}
	newest := snaps[len(snaps)-1]
	w, err := wal.OpenForRead(lg, dir, &walpb.Snapshot{Index: newest.Index, Term: newest.Term})
	if err != nil {
		return err
	}
	defer w.Close()
	// Opened for reading, a torn last record is no error: etcd repairs it, and nothing in it was acknowledged.
	meta, state, entries, err := w.ReadAll()
	if err != nil && !errors.Is(err, io.ErrUnexpectedEOF) {
		return err
	}
	var m etcdserverpb.Metadata
	if err := proto.Unmarshal(meta, &m); err != nil {
		return fmt.Errorf("its metadata: %w", err)
	}
	d.MemberID, d.ClusterID = record.MemberID(m.GetNodeID()), record.MemberID(m.GetClusterID())
	d.Term, d.Commit = state.GetTerm(), state.GetCommit()
	d.LastIndex, d.LastTerm = newest.GetIndex(), newest.GetTerm()
	if n := len(entries); n > 0 {
		d.LastIndex, d.LastTerm = entries[n-1].GetIndex(), entries[n-1].GetTerm()
	}
	if cs := newest.GetConfState(); cs != nil {
		d.Voters, d.Learners = memberIDs(cs.GetVoters()), memberIDs(cs.GetLearners())
	}
	d.Changes = configChanges(entries)
	return nil
}

// openDatabase opens the database read-only: its magic, version and checksums are checked by that, and that it is not
// shorter than the pages that it says it has, on which etcd would panic.
func openDatabase(path string) error {
	if err := readHead(path); err != nil {
		return err
	}
	db, err := bbolt.Open(path, 0o600, &bbolt.Options{ReadOnly: true, Timeout: time.Second})
	if err != nil {
		return err
	}
	return errors.Join(wholeDatabase(db), db.Close())
}

// readHead reads what bbolt begins with, by read(2): bbolt maps the file, where a disk that fails is a signal that ends
// the process, and takes a head that it could not read for one that is no database's. It would also begin to fill an
// empty file, and fail at that by what the system says.
func readHead(path string) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	n, err := io.ReadFull(f, make([]byte, 2*os.Getpagesize())) // its two meta pages
	switch {
	case n == 0 && errors.Is(err, io.EOF):
		return errors.New("it is empty")
	case errors.Is(err, io.ErrUnexpectedEOF):
		return nil // that is bbolt's to say
	}
	return err
}

func wholeDatabase(db *bbolt.DB) error {
	info, err := os.Stat(db.Path())
	if err != nil {
		return err
	}
	return db.View(func(tx *bbolt.Tx) error {
		if info.Size() < tx.Size() {
			return fmt.Errorf("it has %d bytes, and its pages go up to %d", info.Size(), tx.Size())
		}
		return nil
	})
}

func configChanges(entries []*raftpb.Entry) []record.ConfigChange {
	var out []record.ConfigChange
	for _, e := range entries {
		if e.GetType() != raftpb.EntryConfChange {
			continue
		}
		var cc raftpb.ConfChange
		if err := proto.Unmarshal(e.GetData(), &cc); err != nil {
			// the entry is whole (its checksum holds), so this is a form of a newer etcd: version checks refuse it
			continue
		}
		kind := map[raftpb.ConfChangeType]string{
			raftpb.ConfChangeAddNode: "add-voter", raftpb.ConfChangeAddLearnerNode: "add-learner",
			raftpb.ConfChangeRemoveNode: "remove",
		}[cc.GetType()]
		if kind != "" {
			out = append(out, record.ConfigChange{Index: e.GetIndex(), Type: kind,
				MemberID: record.MemberID(cc.GetNodeId())})
		}
	}
	return out
}

func memberIDs(ids []uint64) []record.MemberID {
	out := make([]record.MemberID, len(ids))
	for i, id := range ids {
		out[i] = record.MemberID(id)
	}
	return out
}
