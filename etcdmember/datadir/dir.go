// Package datadir reads what a replica's data disk holds, without changing a byte of etcd's: the agent's file, etcd's
// directory with its log and its database page by page, and the directories that were put away.
//
// It tells what the files hold from what the machine could not read: only the first condemns a directory. It decides
// nothing, and does not start etcd.
package datadir

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"go.etcd.io/bbolt"
	bbolterrors "go.etcd.io/bbolt/errors"
	"go.etcd.io/etcd/api/v3/etcdserverpb"
	etcddir "go.etcd.io/etcd/server/v3/storage/datadir"
	"go.etcd.io/etcd/server/v3/storage/wal"
	"go.etcd.io/etcd/server/v3/storage/wal/walpb"
	"go.etcd.io/raft/v3/raftpb"
	"go.uber.org/zap"
	"google.golang.org/protobuf/proto"

	"github.com/quorate/quorate/etcdmember/table"
	"github.com/quorate/quorate/internal/record"
)

// Dir is a replica's data directory, the root of its data disk.
type Dir string

// AgentFile is the agent's own file.
func (d Dir) AgentFile() string { return filepath.Join(string(d), "agent.json") }

// Etcd is etcd's directory.
func (d Dir) Etcd() string { return filepath.Join(string(d), "etcd") }

// Archives holds the directories that were put away.
func (d Dir) Archives() string { return filepath.Join(string(d), "archive") }

// Scratch holds copies that a restore works on, and nothing else: it may be emptied at any time.
func (d Dir) Scratch() string { return filepath.Join(string(d), "restore") }

// Restored is the directory that a restore makes there.
func (d Dir) Restored() string { return filepath.Join(d.Scratch(), "etcd") }

// DatabaseFile is the database in etcd's directory.
func DatabaseFile(dir string) string { return etcddir.ToBackendFileName(dir) }

// LogDir is where etcd's directory has its write-ahead log.
func LogDir(dir string) string { return etcddir.ToWALDir(dir) }

// Marker is the file inside etcd's directory that says that a seed or a restore has been made whole. A directory
// that was being seeded or restored without it is half made.
const Marker = "quorate-complete"

// Read reads the log and the head of the database, and what is known of the rest of it (readDamage), without
// changing a byte. An error means that the directory could not be read, which is not the same as
// Directory.OpenErr: that says what the files hold, and is written to the record for good where there is no quorum.
func Read(dir string) (table.Directory, error) {
	var d table.Directory
	entries, err := os.ReadDir(filepath.Join(dir, "member"))
	if errors.Is(err, fs.ErrNotExist) || (err == nil && len(entries) == 0) {
		return d, nil
	}
	if err != nil {
		return d, fmt.Errorf("read etcd's directory: %w", err)
	}
	d.Exists = true
	if _, err := os.Stat(filepath.Join(dir, Marker)); err == nil {
		d.Marker = true
	}
	if newest, err := readWAL(&d, LogDir(dir)); err != nil {
		d.OpenErr = fmt.Errorf("read the write-ahead log: %w", err)
	} else if err := openNewest(dir, newest); err != nil {
		d.OpenErr = fmt.Errorf("open the database: %w", err)
	} else {
		d.OpenErr = readDamage(dir).Err()
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

// ErrNoStart: no snapshot that the log names, not even the one at its beginning, is valid.
var ErrNoStart = errors.New("it holds no valid starting point")

// readWAL reads the log, and returns the snapshot that it begins with.
func readWAL(d *table.Directory, dir string) (newest *walpb.Snapshot, err error) {
	newest, err = newestSnapshot(dir)
	if err != nil {
		return nil, err
	}
	w, err := wal.OpenForRead(zap.NewNop(), dir, &walpb.Snapshot{Index: newest.Index, Term: newest.Term})
	if err != nil {
		return nil, err
	}
	defer w.Close()
	// Opened for reading, a torn last record is no error: etcd repairs it, and nothing in it was acknowledged.
	meta, state, entries, err := w.ReadAll()
	if err != nil && !errors.Is(err, io.ErrUnexpectedEOF) {
		return nil, err
	}
	var m etcdserverpb.Metadata
	if err := proto.Unmarshal(meta, &m); err != nil {
		return nil, fmt.Errorf("its metadata: %w", err)
	}
	d.MemberID, d.ClusterID = record.MemberID(m.GetNodeID()), record.MemberID(m.GetClusterID())
	d.Term, d.Commit = state.GetTerm(), state.GetCommit()
	d.LastIndex, d.LastTerm = newest.GetIndex(), newest.GetTerm()
	if n := len(entries); n > 0 {
		d.LastIndex, d.LastTerm = entries[n-1].GetIndex(), entries[n-1].GetTerm()
	}
	if cs := newest.GetConfState(); cs != nil {
		d.Voters, d.Learners = MemberIDs(cs.GetVoters()), MemberIDs(cs.GetLearners())
	}
	d.Changes = ConfigChanges(entries)
	return newest, nil
}

// openDatabase opens the database read-only: its magic, version and checksums are checked by that, and that it is not
// shorter than the pages that it says it has, on which etcd would panic, and reaches what the log begins with.
func openDatabase(path string, newest *walpb.Snapshot) error {
	if err := readHead(path); err != nil {
		return err
	}
	db, err := bbolt.Open(path, 0o600, &bbolt.Options{ReadOnly: true, Timeout: time.Second})
	if err != nil {
		return err
	}
	return errors.Join(wholeDatabase(db, newest), db.Close())
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

func wholeDatabase(db *bbolt.DB, newest *walpb.Snapshot) error {
	info, err := os.Stat(db.Path())
	if err != nil {
		return err
	}
	return db.View(func(tx *bbolt.Tx) error {
		if info.Size() < tx.Size() {
			return fmt.Errorf("it has %d bytes, and its pages go up to %d", info.Size(), tx.Size())
		}
		return reaches(tx, newest)
	})
}

// ConfigChanges are the changes of the membership among entries of a log, in its order.
func ConfigChanges(entries []*raftpb.Entry) []record.ConfigChange {
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

// MemberIDs are raft's ids as the record spells them.
func MemberIDs(ids []uint64) []record.MemberID {
	out := make([]record.MemberID, len(ids))
	for i, id := range ids {
		out[i] = record.MemberID(id)
	}
	return out
}

// Key tells one content of etcd's directory from another without reading it: which folder the log is in, and
// when its files last changed. Empty: there is no log.
func Key(dir string) (string, error) {
	var key strings.Builder
	for _, sub := range []string{filepath.Join("member", "wal"), filepath.Join("member", "snap")} {
		info, err := os.Stat(filepath.Join(dir, sub))
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return "", err
		}
		inode := uint64(0)
		if st, ok := info.Sys().(*syscall.Stat_t); ok {
			inode = st.Ino
		}
		fmt.Fprintf(&key, "%s %d %d;", sub, inode, info.ModTime().UnixNano())
	}
	return key.String(), nil
}
