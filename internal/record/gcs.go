package record

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"sync"

	"cloud.google.com/go/storage"
	"gocloud.dev/blob"
	"gocloud.dev/blob/gcsblob"
	"gocloud.dev/gcp"
)

// gcs is the driver for a bucket of Google Cloud Storage. GCS lists, reads and creates with strong consistency, which is
// what the whole record rests on.
type gcs struct {
	bucket   string
	prefix   string   // [PREFIX/]CLUSTER/
	endpoint *url.URL // nil: Google's own
	pace     pace

	mu     sync.Mutex
	opened *blob.Bucket
	client *gcp.HTTPClient
}

func (g *gcs) where(key string) string { return "gs://" + g.bucket + "/" + g.prefix + key }

// connect opens the bucket at the first use. A failure is not kept: gocloud's own opener for gs:// URLs would keep one for the
// life of the process, print it to stdout and go on without credentials.
func (g *gcs) connect(ctx context.Context) (*blob.Bucket, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.opened != nil {
		return g.opened, nil
	}
	client, err := newClient(ctx, g.endpoint)
	if err != nil {
		return nil, err
	}
	bucket, err := gcsblob.OpenBucket(context.WithoutCancel(ctx), client, g.bucket, nil)
	if err != nil {
		return nil, err
	}
	g.opened, g.client = bucket, client
	return bucket, nil
}

// do runs one call against the bucket with retries and explains its failure.
func do[T any](ctx context.Context, g *gcs, call func(context.Context, *blob.Bucket, *attempt) (T, error)) (T, error) {
	bucket, err := g.connect(ctx)
	if err != nil {
		var zero T
		return zero, err
	}
	return retry(ctx, g.pace, func(ctx context.Context, a *attempt) (T, error) {
		v, err := call(ctx, bucket, a)
		return v, explain(int(a.status.Load()), g.bucket, err)
	})
}

// explain says what to do about answers that trying again does not change.
func explain(status int, bucket string, err error) error {
	if err == nil {
		return nil
	}
	switch status {
	case http.StatusUnauthorized, http.StatusForbidden:
		return fmt.Errorf("access denied (HTTP %d): the service account needs storage.objects.list, get, create and update on bucket %s, and delete to retire snapshots: %w",
			status, bucket, err)
	case http.StatusNotFound:
		if !errors.Is(err, errAbsent) {
			return fmt.Errorf("bucket %s does not exist: create it or correct the record's URL: %w", bucket, err)
		}
	}
	return err
}

// list asks page by page, each with the tries and the time of a call: a record that has grown for years is listed in as many pages as it takes. GCS lists
// in the order of the bytes of the names.
func (g *gcs) list(ctx context.Context) ([]entry, error) {
	var entries []entry
	for token := blob.FirstPageToken; len(token) > 0; {
		page, err := do(ctx, g, func(ctx context.Context, b *blob.Bucket, _ *attempt) (p listPage, err error) {
			p.objects, p.next, err = b.ListPage(ctx, token, mostPerPage, &blob.ListOptions{Prefix: g.prefix})
			return p, err
		})
		if err != nil {
			return nil, err
		}
		for _, o := range page.objects {
			stamp, err := stampOf(o)
			if err != nil {
				return nil, err
			}
			entries = append(entries, entry{key: strings.TrimPrefix(o.Key, g.prefix), stamp: stamp, written: o.ModTime.UTC()})
		}
		token = page.next
	}
	return entries, nil
}

// listPage is a part of a listing, and the token of the next; none: it was the last.
type listPage struct {
	objects []*blob.ListObject
	next    []byte
}

// mostPerPage is how many objects GCS puts into a page, at most.
const mostPerPage = 1000

// stampOf is GCS's generation, which is another one after each write. Time and size may stay the same, and with a key of the customer's
// own a listing has no hash.
func stampOf(o *blob.ListObject) (string, error) {
	var attrs storage.ObjectAttrs
	if !o.As(&attrs) || attrs.Generation == 0 {
		return "", fmt.Errorf("the listing does not say which generation of %s it has", o.Key)
	}
	return strconv.FormatInt(attrs.Generation, 36), nil
}

func (g *gcs) read(ctx context.Context, key string) ([]byte, error) {
	return do(ctx, g, func(ctx context.Context, b *blob.Bucket, a *attempt) ([]byte, error) {
		r, err := b.NewReader(ctx, g.prefix+key, nil)
		if err != nil {
			if a.status.Load() == http.StatusNotFound {
				err = errAbsent
			}
			return nil, err
		}
		defer r.Close()
		return readLimited(key, r, r.Size())
	})
}

func (g *gcs) create(ctx context.Context, key string, data []byte) error {
	return g.write(ctx, key, data, true)
}

func (g *gcs) overwrite(ctx context.Context, key string, data []byte) error {
	return g.write(ctx, key, data, false)
}

// write uploads in one request. gocloud's IfNotExist is GCS's ifGenerationMatch=0, which answers 412 for an object that
// exists, also for one that an earlier try of ours made.
func (g *gcs) write(ctx context.Context, key string, data []byte, onlyIfAbsent bool) error {
	_, err := do(ctx, g, func(ctx context.Context, b *blob.Bucket, a *attempt) (struct{}, error) {
		err := b.WriteAll(ctx, g.prefix+key, data, &blob.WriterOptions{
			IfNotExist:   onlyIfAbsent,
			ContentType:  "application/octet-stream",
			CacheControl: "no-store", // or GCS may serve an old mark from a cache
			BufferSize:   -1,         // no 16 MiB buffer for each object, and no retries of the client's own
		})
		if err != nil && onlyIfAbsent && a.status.Load() == http.StatusPreconditionFailed {
			return struct{}{}, errExists
		}
		return struct{}{}, err
	})
	return err
}
