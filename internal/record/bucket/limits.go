package bucket

import (
	"errors"
	"fmt"
	"io"

	"github.com/quorate/quorate/internal/record"
)

// The most bytes that are read of an object, and written as one. Whoever may write into the bucket must not be able to
// take an agent's memory: a View reads 16 objects at once. A snapshot's database has no limit, since it is streamed.
const (
	// maxJSON is for all objects that hold JSON but a snapshot's. The largest is stopped/PLACE.K.json, with 100 bytes
	// for each change of the membership in a log that was not applied: a few, where 10,000 would still fit.
	maxJSON = 1 << 20
	// maxSnapshotInfo is for snapshots/E/NAME.json, which has a fixed number of short fields: 600 bytes.
	maxSnapshotInfo = 64 << 10
	// maxSealed is for bundle/G.sealed: what the key takes, and as much again for what the seal adds.
	maxSealed = 2 * maxBundle
)

// limitOf is the limit of the object at a key.
func limitOf(key string) int64 {
	switch record.ParseKey(key).Kind {
	case record.SealedObject:
		return maxSealed
	case record.SnapshotInfoObject:
		return maxSnapshotInfo
	}
	return maxJSON
}

// errTooLarge is in the error of an object that is larger than its limit.
var errTooLarge = errors.New("too large for what belongs under this name")

// withinLimit refuses a size that is not to be read or written.
func withinLimit(key string, size int64) error {
	if limit := limitOf(key); size > limit {
		return fmt.Errorf("it has %d bytes, and at most %d are allowed: %w", size, limit, errTooLarge)
	}
	return nil
}

// readLimited reads an object whole. Its place says that it has so many bytes, which decides nothing: no more than the
// limit is ever read.
func readLimited(key string, r io.Reader, said int64) ([]byte, error) {
	if err := withinLimit(key, said); err != nil {
		return nil, err
	}
	limit := limitOf(key)
	data, err := io.ReadAll(io.LimitReader(r, limit+1))
	if err == nil && int64(len(data)) > limit {
		return nil, fmt.Errorf("it has more than the %d bytes that are allowed, though its place says %d: %w",
			limit, said, errTooLarge)
	}
	return data, err
}
