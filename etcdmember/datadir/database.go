package datadir

import (
	"context"
	"encoding/binary"
	"fmt"
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

// CheckDatabase reads all of a snapshot file, which nobody may write to. The hash at the file's end has been checked
// before, so what is found here was wrong in the member already.
func CheckDatabase(ctx context.Context, path string) (Database, error) {
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
