package etcdmember

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"hash"
	"io"
	"os"
	"slices"
)

// Database is what a whole snapshot file holds.
type Database struct {
	// Revision is the newest key revision; 1 where nothing was ever written. Entries are the key revisions in it, not
	// the living keys: to count those takes memory for each.
	Revision int64 `json:"revision"`
	Entries  int64 `json:"entries"`
	// Term and Index say how far the log was applied.
	Term  uint64 `json:"term"`
	Index uint64 `json:"index"`
}

// The buckets and keys of etcd's database that matter here (server/storage/schema).
var (
	keyBucket       = []byte("key")
	metaBucket      = []byte("meta")
	consistentIndex = []byte("consistent_index")
	consistentTerm  = []byte("term")
	compactionMarks = []string{"scheduledCompactRev", "finishedCompactRev"}
)

// checkDatabase reads all of a snapshot file, which nobody may write to. The hash at the file's end has been checked
// before, so what is found here was wrong in the member already.
func checkDatabase(ctx context.Context, path string) (Database, error) {
	t, err := readPages(ctx, path)
	if err != nil {
		return Database{}, fmt.Errorf("check the database: %w", err)
	}
	for _, name := range [][]byte{keyBucket, metaBucket} {
		if !slices.Contains(t.buckets, string(name)) {
			return Database{}, fmt.Errorf("check the database: it has no bucket %q: not a database of etcd", name)
		}
	}
	t.found.Revision = max(t.found.Revision, 1)
	return t.found, nil
}

// leading is the first eight bytes of a value, 0 where there are none.
func leading(b []byte) uint64 {
	if len(b) < 8 {
		return 0
	}
	return binary.BigEndian.Uint64(b)
}

// sealed is what etcd appends to a snapshot: the hash of all before it.
const sealed = sha256.Size

// errUnsealed says that a snapshot is not what the member sent: it broke off, or was changed.
var errUnsealed = errors.New("the hash at its end does not fit: it broke off or was changed on its way")

// checkSeal reads a stored snapshot file and compares it with the hash at its end. A file of the wrong length needs no
// reading.
func checkSeal(ctx context.Context, path string) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	s := newSealing()
	if _, err := io.CopyBuffer(s, &untilDone{ctx, f}, make([]byte, 1<<20)); err != nil {
		return err
	}
	_, err = s.finish()
	return err
}

// sealing hashes a snapshot as it passes, but for the hash at its end.
type sealing struct {
	hash hash.Hash
	tail []byte // the newest bytes, which may be the appended hash
	size int64
}

func newSealing() *sealing { return &sealing{hash: sha256.New()} }

// Write implements io.Writer.
func (s *sealing) Write(p []byte) (int, error) {
	s.size += int64(len(p))
	if len(p) >= sealed {
		s.hash.Write(s.tail)
		s.hash.Write(p[:len(p)-sealed])
		s.tail = append(s.tail[:0], p[len(p)-sealed:]...)
		return len(p), nil
	}
	s.tail = append(s.tail, p...)
	if extra := len(s.tail) - sealed; extra > 0 {
		s.hash.Write(s.tail[:extra])
		s.tail = append(s.tail[:0], s.tail[extra:]...)
	}
	return len(p), nil
}

// finish compares, and returns the hash of the whole file in hexadecimal.
func (s *sealing) finish() (string, error) {
	if s.size%512 != sealed || !bytes.Equal(s.hash.Sum(nil), s.tail) {
		return "", errUnsealed
	}
	s.hash.Write(s.tail)
	return fmt.Sprintf("%x", s.hash.Sum(nil)), nil
}

// untilDone ends reading with a context.
type untilDone struct {
	ctx context.Context
	r   io.Reader
}

// Read implements io.Reader.
func (u *untilDone) Read(p []byte) (int, error) {
	if u.ctx.Err() != nil {
		return 0, context.Cause(u.ctx)
	}
	return u.r.Read(p)
}
