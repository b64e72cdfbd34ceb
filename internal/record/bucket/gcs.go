package bucket

import (
	"bytes"
	"context"
	"crypto/md5"
	"encoding/base64"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"google.golang.org/api/googleapi"
	"google.golang.org/api/option"
	"google.golang.org/api/storage/v1"
)

// gcs is the driver for a bucket of Google Cloud Storage. GCS lists, reads and creates with strong consistency, which
// is what the whole record rests on. It speaks the JSON API through Google's generated client, which sends one
// request for each call. The larger client (cloud.google.com/go/storage) reads on without a limit where connections
// break, looks for default credentials by itself, and brings gRPC's service mesh into the program.
type gcs struct {
	bucket string
	prefix string // [PREFIX/]CLUSTER/
	pace   pace
	api    *storage.Service
}

// storageAPI is what an endpoint replaces the beginning of.
const storageAPI = "https://storage.googleapis.com"

// newGCS asks nobody.
func newGCS(bucket, prefix, endpoint string, client *http.Client) (*gcs, error) {
	if endpoint == "" {
		endpoint = storageAPI
	}
	api, err := storage.NewService(context.Background(), option.WithHTTPClient(client), option.WithUserAgent("quorate"),
		option.WithEndpoint(strings.TrimSuffix(endpoint, "/")+"/storage/v1/"))
	if err != nil {
		return nil, err
	}
	return &gcs{bucket: bucket, prefix: prefix, pace: normalPace, api: api}, nil
}

func (g *gcs) where(key string) string { return "gs://" + g.bucket + "/" + g.prefix + key }

// do runs one call against the bucket with retries and explains its failure.
func do[T any](ctx context.Context, g *gcs, call func(context.Context) (T, error)) (T, error) {
	v, err := retry(ctx, g.pace, call)
	return v, explain(g.bucket, err)
}

// explain says what to do about answers that trying again does not change.
func explain(bucket string, err error) error {
	if err == nil {
		return nil
	}
	switch code := status(err); {
	case errors.As(err, new(scopesTooNarrow)):
		return fmt.Errorf("access denied: %w", inOneLine{err})
	case code == http.StatusUnauthorized || code == http.StatusForbidden:
		return fmt.Errorf("access denied (HTTP %d): the service account needs storage.objects.list, get and create "+
			"on bucket %s, and delete below marks/, snapshots/ and the reports' folder; what was just granted takes "+
			"effect within 7 minutes: %w", code, bucket, inOneLine{err})
	case code == http.StatusNotFound && !errors.Is(err, errAbsent):
		return marked{fmt.Errorf("bucket %s does not exist: create it or correct the record's URL: %w",
			bucket, inOneLine{err}), ErrNoBucket}
	}
	return inOneLine{err}
}

// scopesTooNarrow marks a refusal of a VM whose access scopes lack what quorate needs. Such an error of gce.Metadata's
// Client says what to do, and advice about IAM would lead astray.
type scopesTooNarrow interface{ NarrowScopes() }

// inOneLine leaves out of an error what net/http and Google's client add for programmers: the request's URL, lines.
type inOneLine struct{ error }

// Unwrap returns the error itself.
func (e inOneLine) Unwrap() error { return e.error }

// Error implements error.
func (e inOneLine) Error() string {
	text := e.error.Error()
	var asked *url.Error
	if errors.As(e.error, &asked) {
		text = strings.Replace(text, asked.Error(), asked.Err.Error(), 1)
	}
	var answered *googleapi.Error
	if errors.As(e.error, &answered) {
		said := answered.Message
		if said == "" {
			said = answered.Body
		}
		said = fmt.Sprintf("HTTP %d %s: %.300s", answered.Code, http.StatusText(answered.Code), said)
		text = strings.Replace(text, answered.Error(), said, 1)
	}
	return strings.Join(strings.Fields(text), " ")
}

// mostPerPage is how many objects GCS puts into a page, at most.
const mostPerPage = 1000

// list asks page by page, each with the tries and the time of a call: a record that has grown for years is listed in as
// many pages as it takes. GCS lists in the order of the bytes of the names.
func (g *gcs) list(ctx context.Context) ([]entry, error) {
	var entries []entry
	err := g.eachPage(ctx, "", "", "", func(page *storage.Objects) error {
		for _, o := range page.Items {
			e, err := g.entry(o)
			if err != nil {
				return err
			}
			entries = append(entries, e)
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return entries, nil
}

// eachPage lists what lies below a prefix, from one name on and before another; where these are empty, all of it.
func (g *gcs) eachPage(ctx context.Context, below, from, before string, take func(*storage.Objects) error) error {
	for token := ""; ; {
		page, err := do(ctx, g, func(ctx context.Context) (*storage.Objects, error) {
			call := g.api.Objects.List(g.bucket).Prefix(g.prefix+below).MaxResults(mostPerPage).PageToken(token).
				Fields("nextPageToken", "items(name,generation,updated)").Context(ctx)
			if from != "" {
				call = call.StartOffset(g.prefix + from)
			}
			if before != "" {
				call = call.EndOffset(g.prefix + before)
			}
			return call.Do()
		})
		if err != nil {
			return err
		}
		if err := take(page); err != nil {
			return err
		}
		if token = page.NextPageToken; token == "" {
			return nil
		}
	}
}

// entry is an object of a listing. Its stamp is GCS's generation, which is another one after each write. Time and
// size may stay the same, and with a key of the customer's own a listing has no hash.
func (g *gcs) entry(o *storage.Object) (entry, error) {
	if o.Generation == 0 {
		return entry{}, fmt.Errorf("the listing does not say which generation of %s it has", o.Name)
	}
	written, err := time.Parse(time.RFC3339, o.Updated)
	if err != nil {
		return entry{}, fmt.Errorf("the listing does not say when %s was written: %w", o.Name, err)
	}
	key, stamp := strings.TrimPrefix(o.Name, g.prefix), strconv.FormatInt(o.Generation, 36)
	return entry{key: key, stamp: stamp, written: written.UTC()}, nil
}

func (g *gcs) read(ctx context.Context, key string) ([]byte, error) {
	return do(ctx, g, func(ctx context.Context) ([]byte, error) {
		res, err := g.download(ctx, key, 0)
		if err != nil {
			return nil, err
		}
		defer res.Body.Close()
		data, err := readLimited(key, res.Body, res.ContentLength)
		switch {
		case errors.Is(err, errTooLarge):
			return nil, err
		case err != nil:
			return nil, fmt.Errorf("the answer broke off: %w", err)
		}
		return data, sameHash(res, data)
	})
}

// download asks once for an object, from a position on. That it is not there is errAbsent.
func (g *gcs) download(ctx context.Context, key string, from int64) (*http.Response, error) {
	call := g.api.Objects.Get(g.bucket, g.prefix+key).Context(ctx)
	if from > 0 {
		call.Header().Set("Range", fmt.Sprintf("bytes=%d-", from))
	}
	res, err := call.Download()
	if status(err) == http.StatusNotFound {
		return nil, errAbsent
	}
	return res, err
}

// castagnoli is the polynomial of GCS's checksums.
var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// sameHash compares what was read with the checksum that GCS has sent along. That of an object which somebody has
// stored compressed is of its compressed form.
func sameHash(res *http.Response, data []byte) error {
	if encoding := res.Header.Get("X-Goog-Stored-Content-Encoding"); encoding != "" && encoding != "identity" {
		return nil
	}
	sum := binary.BigEndian.AppendUint32(nil, crc32.Checksum(data, castagnoli))
	got := "crc32c=" + base64.StdEncoding.EncodeToString(sum)
	for _, hash := range strings.Split(strings.Join(res.Header.Values("X-Goog-Hash"), ","), ",") {
		if hash = strings.TrimSpace(hash); strings.HasPrefix(hash, "crc32c=") && hash != got {
			return fmt.Errorf("what arrived has the checksum %s, and what is stored %s", got, hash)
		}
	}
	return nil
}

func (g *gcs) create(ctx context.Context, key string, data []byte) error {
	return g.write(ctx, key, data, true)
}

func (g *gcs) overwrite(ctx context.Context, key string, data []byte) error {
	return g.write(ctx, key, data, false)
}

// write uploads in one request, with a hash without which GCS does not take it.
func (g *gcs) write(ctx context.Context, key string, data []byte, onlyIfAbsent bool) error {
	sum := md5.Sum(data)
	_, err := do(ctx, g, func(ctx context.Context) (*storage.Object, error) {
		o, err := g.insert(ctx, key, base64.StdEncoding.EncodeToString(sum[:]), onlyIfAbsent).
			Media(bytes.NewReader(data), googleapi.ContentType(contentType), googleapi.ChunkSize(0)).Do()
		if onlyIfAbsent && status(err) == http.StatusPreconditionFailed {
			err = errExists
		}
		return o, err
	})
	return err
}

const contentType = "application/octet-stream"

// insert begins an upload. ifGenerationMatch=0 is GCS's "only if absent": it answers 412 for an object that exists,
// also for one that an earlier try of ours made.
func (g *gcs) insert(ctx context.Context, key, hash string, onlyIfAbsent bool) *storage.ObjectsInsertCall {
	o := &storage.Object{Name: g.prefix + key, ContentType: contentType, Md5Hash: hash,
		CacheControl: "no-store"} // or GCS may serve an old mark from a cache
	call := g.api.Objects.Insert(g.bucket, o).Context(ctx)
	if onlyIfAbsent {
		call = call.IfGenerationMatch(0)
	}
	return call
}

func (g *gcs) deleteSnapshot(ctx context.Context, key string) error {
	if err := onlySnapshots(key); err != nil {
		return err
	}
	return g.remove(ctx, key)
}

func (g *gcs) deleteProbe(ctx context.Context, key string) error {
	if err := onlyProbes(key); err != nil {
		return err
	}
	return g.remove(ctx, key)
}

// remove deletes an object; one that is not there is no error. Its callers say which objects that may be.
func (g *gcs) remove(ctx context.Context, key string) error {
	_, err := do(ctx, g, func(ctx context.Context) (struct{}, error) {
		err := g.api.Objects.Delete(g.bucket, g.prefix+key).Context(ctx).Do()
		if status(err) == http.StatusNotFound {
			err = nil
		}
		return struct{}{}, err
	})
	return err
}
