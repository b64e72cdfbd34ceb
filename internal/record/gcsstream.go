package record

import (
	"bytes"
	"context"
	"crypto/md5"
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"

	"gocloud.dev/blob"
)

const (
	// uploadPart is what Google's client sends, and if need be sends again, in one request: the memory that an upload takes.
	uploadPart = 8 << 20
	// stallTime ends a transfer of which nothing has moved. A part takes a second; the client tries one again for 32 s.
	stallTime = 2 * time.Minute
)

// stream begins a transfer that may take long: within it Google's client tries parts again by itself, and touch says that
// something moved. Without it for stallTime the transfer ends.
func (g *gcs) stream(ctx context.Context) (_ context.Context, a *attempt, touch, end func()) {
	stalled := fmt.Errorf("nothing moved for %s", stallTime)
	ctx, cancel := context.WithCancelCause(ctx)
	timer := time.AfterFunc(stallTime, func() { cancel(stalled) })
	a = &attempt{retriesItself: true}
	touch = func() { timer.Reset(stallTime) }
	end = func() { timer.Stop(); cancel(nil) }
	return context.WithValue(ctx, attemptKey{}, a), a, touch, end
}

func (g *gcs) createStream(ctx context.Context, key string, fill func(io.Writer) error) error {
	bucket, err := g.connect(ctx)
	if err != nil {
		return err
	}
	streaming, a, touch, end := g.stream(ctx)
	defer end()
	w, err := bucket.NewWriter(streaming, g.prefix+key, &blob.WriterOptions{
		IfNotExist: true, ContentType: "application/octet-stream", CacheControl: "no-store", BufferSize: uploadPart})
	if err != nil {
		return explain(int(a.status.Load()), g.bucket, err)
	}
	sum, size := md5.New(), int64(0)
	err = fill(writerFunc(func(p []byte) (int, error) {
		n, err := w.Write(p)
		sum.Write(p[:n])
		size += int64(n)
		touch()
		return n, err
	}))
	if err != nil {
		end()     // an upload whose context ended makes no object
		w.Close() // its error is that of ending
		return explain(int(a.status.Load()), g.bucket, err)
	}
	err = w.Close()
	status := int(a.status.Load())
	if err != nil && ctx.Err() != nil {
		return explain(status, g.bucket, err)
	}
	// Whatever was answered, also that the name is taken or that the upload is not known any more: what is stored tells.
	same, readErr := g.holds(ctx, key, size, sum.Sum(nil))
	switch {
	case same:
		return nil
	case err != nil && status != http.StatusPreconditionFailed:
		return explain(status, g.bucket, errors.Join(err, stallCause(streaming)))
	case readErr != nil:
		return fmt.Errorf("read back what it is: %w", readErr)
	}
	return errExists
}

// stallCause is why a transfer was ended by itself.
func stallCause(ctx context.Context) error {
	if ctx.Err() == nil {
		return nil
	}
	return context.Cause(ctx)
}

// holds reports whether an object is what was sent, by what the bucket says of it.
func (g *gcs) holds(ctx context.Context, key string, size int64, sum []byte) (bool, error) {
	found, err := do(ctx, g, func(ctx context.Context, b *blob.Bucket, _ *attempt) (*blob.Attributes, error) {
		return b.Attributes(ctx, g.prefix+key)
	})
	return err == nil && found.Size == size && bytes.Equal(found.MD5, sum), err
}

func (g *gcs) readStream(ctx context.Context, key string) (io.ReadCloser, error) {
	bucket, err := g.connect(ctx)
	if err != nil {
		return nil, err
	}
	streaming, a, touch, end := g.stream(ctx)
	r, err := bucket.NewReader(streaming, g.prefix+key, nil)
	if err != nil {
		err = errors.Join(err, stallCause(streaming))
		end()
		if a.status.Load() == http.StatusNotFound {
			return nil, errAbsent
		}
		return nil, explain(int(a.status.Load()), g.bucket, err)
	}
	return &streamReader{r: r, ctx: streaming, touch: touch, end: end}, nil
}

// streamReader is an object on its way.
type streamReader struct {
	r          io.ReadCloser
	ctx        context.Context
	touch, end func()
}

// Read implements io.Reader.
func (s *streamReader) Read(p []byte) (int, error) {
	n, err := s.r.Read(p)
	s.touch()
	if err != nil && err != io.EOF {
		err = errors.Join(err, stallCause(s.ctx))
	}
	return n, err
}

// Close implements io.Closer.
func (s *streamReader) Close() error {
	defer s.end()
	return s.r.Close()
}

func (g *gcs) deleteSnapshot(ctx context.Context, key string) error {
	if err := onlySnapshots(key); err != nil {
		return err
	}
	_, err := do(ctx, g, func(ctx context.Context, b *blob.Bucket, a *attempt) (struct{}, error) {
		err := b.Delete(ctx, g.prefix+key)
		if err != nil && a.status.Load() == http.StatusNotFound {
			err = nil
		}
		return struct{}{}, err
	})
	return err
}

// sweep has nothing to do: an upload that was not finished is no object, and the bucket forgets it after a week.
func (g *gcs) sweep(context.Context, time.Time) error { return nil }

// writerFunc is a function as a writer.
type writerFunc func(p []byte) (int, error)

// Write implements io.Writer.
func (f writerFunc) Write(p []byte) (int, error) { return f(p) }
