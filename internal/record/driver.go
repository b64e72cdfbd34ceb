package record

import (
	"context"
	"errors"
)

// driver is a place that holds objects under keys relative to `<cluster>/`. It has no call that deletes. Whatever is
// transient it has already retried. Methods may be called concurrently, also by other processes and machines.
type driver interface {
	// list returns all keys, sorted. An empty listing is an answer, "nothing was ever written"; a place that cannot be
	// listed completely is an error.
	list(ctx context.Context) ([]entry, error)
	// read returns an object's bytes, errAbsent where the place answers that there is none, another error where it could
	// not be read. errAbsent does not prove absence: only a listing does.
	read(ctx context.Context, key string) ([]byte, error)
	// create writes an object that must not exist. nil: it exists now and is durable. errExists: it existed, or an earlier
	// try of this very call made it. Any other error: unknown, it may exist now or later. Never a part of it.
	create(ctx context.Context, key string, data []byte) error
	// overwrite writes an object whether it exists or not.
	overwrite(ctx context.Context, key string, data []byte) error
	// guards reports what protects the objects from being deleted, as far as that can be told.
	guards(ctx context.Context) []Finding
	// where spells a key with its place, for messages.
	where(key string) string
}

// entry is one object of a listing.
type entry struct {
	key string
	// stamp changes when the object is written again.
	stamp string
}

var (
	errAbsent = errors.New("the object is not there")
	errExists = errors.New("the object exists")
)
