package bucket

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/quorate/quorate/internal/record"
	"github.com/quorate/quorate/internal/setup"
)

// driver is a place that holds objects under keys relative to `<cluster>/`. Whatever is transient it has already
// retried. Only what is under snapshots/ can be deleted, and a probe of a check. Methods may be called concurrently,
// also by other processes
// and machines.
type driver interface {
	// list returns all keys, sorted. An empty listing is an answer, "nothing was ever written"; a place that cannot be
	// listed completely is an error.
	list(ctx context.Context) ([]entry, error)
	// read returns an object's bytes, errAbsent where the place answers that there is none, another error where it
	// could not be read, errTooLarge where it is larger than limitOf. errAbsent does not prove absence: only a listing
	// does.
	read(ctx context.Context, key string) ([]byte, error)
	// create writes an object that must not exist. nil: it exists now and is durable. errExists: it existed, or an
	// earlier try of this very call made it. Any other error: unknown, it may exist now or later. Never a part of it.
	create(ctx context.Context, key string, data []byte) error
	// overwrite writes an object whether it exists or not.
	overwrite(ctx context.Context, key string, data []byte) error
	// createStream is create for an object of any size: fill writes its bytes, once. An error of fill is returned, and
	// then there is no such object. nil: all bytes are there, compared with what was written, and durable.
	createStream(ctx context.Context, key string, fill func(io.Writer) error) error
	// readStream is read for an object of any size. An object that breaks off in the middle is an error of the reader.
	// Close it.
	readStream(ctx context.Context, key string) (io.ReadCloser, error)
	// deleteSnapshot removes an object under snapshots/, and refuses any other. One that is not there is no error.
	deleteSnapshot(ctx context.Context, key string) error
	// deleteProbe is the same for an object under checks/: to see whether the place refuses it.
	deleteProbe(ctx context.Context, key string) error
	// survey asks for what protects the objects: it fills in the facts about the bucket.
	survey(ctx context.Context, f *setup.Facts)
	// where spells a key with its place, for messages.
	where(key string) string
}

// entry is one object of a listing.
type entry struct {
	key string
	// stamp changes when the object is written again.
	stamp string
	// written is when the object was written, by the place's own clock; zero: it does not say.
	written time.Time
}

// onlyProbes guards the deletion that a check tries.
func onlyProbes(key string) error {
	if strings.HasPrefix(key, record.ProbesFolder) {
		return nil
	}
	return fmt.Errorf("delete %s: only probes are deleted by a check", key)
}

// onlySnapshots guards the deletion of what is obsolete.
func onlySnapshots(key string) error {
	if strings.HasPrefix(key, record.SnapshotsFolder) && record.ParseKey(key).IsSnapshot() {
		return nil
	}
	return fmt.Errorf("delete %s: only snapshots are ever deleted", key)
}

var (
	errAbsent = errors.New("the object is not there")
	errExists = errors.New("the object exists")
)
