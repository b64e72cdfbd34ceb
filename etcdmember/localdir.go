package etcdmember

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"go.etcd.io/bbolt"
	"go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/server/v3/storage/datadir"
	"go.etcd.io/etcd/server/v3/storage/wal"
	"go.etcd.io/etcd/server/v3/storage/wal/walpb"
	"go.etcd.io/raft/v3/raftpb"
	"go.uber.org/zap"
	"google.golang.org/protobuf/proto"

	"github.com/quorate/quorate/internal/record"
)

// commitMarker is the file inside etcd's directory that says that a seed or a restore has been made whole. A directory that
// was being seeded or restored without it is half made.
const commitMarker = "quorate-complete"

// readDir reads the log and the head of the database, and what is known of the rest of it (readDamage), without changing a byte. An error means that the directory could not be
// looked at, which is not the same as Directory.OpenErr.
func readDir(dir string) (Directory, error) {
	var d Directory
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
	if err := d.readWAL(datadir.ToWALDir(dir)); err != nil {
		d.OpenErr = fmt.Errorf("read the write-ahead log: %w", err)
		return d, nil
	}
	if err := openDatabase(datadir.ToBackendFileName(dir)); err != nil {
		d.OpenErr = fmt.Errorf("open the database: %w", err)
		return d, nil
	}
	d.OpenErr = readDamage(dir).error()
	return d, nil
}

// errNoStart: no snapshot that the log names, not even the one at its beginning, is valid.
var errNoStart = errors.New("it holds no valid starting point")

func (d *Directory) readWAL(dir string) error {
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

// openDatabase opens the database read-only: its magic, version and checksums are checked by that, and that it is not shorter than the
// pages that it says it has, on which etcd would panic.
func openDatabase(path string) error {
	db, err := bbolt.Open(path, 0o600, &bbolt.Options{ReadOnly: true, Timeout: time.Second})
	if err != nil {
		return err
	}
	return errors.Join(wholeDatabase(db), db.Close())
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
			continue // the entry is whole (its checksum holds), so this is a form of a newer etcd: version checks refuse it
		}
		kind := map[raftpb.ConfChangeType]string{
			raftpb.ConfChangeAddNode: "add-voter", raftpb.ConfChangeAddLearnerNode: "add-learner", raftpb.ConfChangeRemoveNode: "remove",
		}[cc.GetType()]
		if kind != "" {
			out = append(out, record.ConfigChange{Index: e.GetIndex(), Type: kind, MemberID: record.MemberID(cc.GetNodeId())})
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
