package bucket

import (
	"context"
	"crypto/md5"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"net/http"
	"sync"
	"time"

	"google.golang.org/api/googleapi"
	"google.golang.org/api/storage/v1"
)

const (
	// uploadPart is what Google's client sends, and if need be sends again, in one request: the memory of an upload.
	uploadPart = 8 << 20
	// stallTime ends a transfer of which nothing has moved. A part takes a second; it is tried again within this time.
	stallTime = 2 * time.Minute
)

// errStalled is why a transfer was ended by itself.
var errStalled = fmt.Errorf("nothing moved for %s", stallTime)

// withStall is a context for a transfer that may take long: it ends once touch was not called for stallTime.
func withStall(ctx context.Context) (_ context.Context, touch func(), end context.CancelCauseFunc) {
	ctx, cancel := context.WithCancelCause(ctx)
	timer := time.AfterFunc(stallTime, func() { cancel(errStalled) })
	return ctx, func() { timer.Reset(stallTime) }, func(err error) { timer.Stop(); cancel(err) }
}

// createStream uploads in parts. What ends before the last part has come makes no object.
func (g *gcs) createStream(ctx context.Context, key string, fill func(io.Writer) error) error {
	sending, touch, end := withStall(ctx)
	defer end(nil)
	body, w := io.Pipe()
	sum := md5.New()
	var filling sync.WaitGroup
	filling.Go(func() {
		err := fill(writerFunc(func(p []byte) (int, error) {
			n, err := w.Write(p)
			sum.Write(p[:n]) // never fails
			touch()
			return n, err
		}))
		if err != nil {
			end(err)
		}
		w.CloseWithError(err)
	})
	stored, err := g.insert(sending, key, "", true).WithRetry(nil, transient).
		Media(body, googleapi.ContentType(contentType), googleapi.ChunkSize(uploadPart),
			googleapi.ChunkRetryDeadline(stallTime), googleapi.EnableAutoChecksum()).
		ProgressUpdater(func(int64, int64) { touch() }).Do()
	ended := context.Cause(sending) // before fill is told that nobody reads
	body.CloseWithError(errors.New("the upload has ended"))
	filling.Wait()
	switch {
	case err == nil && stored.Md5Hash == base64.StdEncoding.EncodeToString(sum.Sum(nil)):
		return nil
	case err != nil && ended != nil && !errors.Is(ended, errStalled):
		return ended // fill has failed, or the caller does not wait
	case err != nil && ended != nil:
		err = ended
	}
	return g.settle(ctx, key, base64.StdEncoding.EncodeToString(sum.Sum(nil)), err)
}

// settle says how an upload came out, by what is stored. Whatever was answered, also that the name is taken or that the
// upload is not known any more: it may be ours.
func (g *gcs) settle(ctx context.Context, key, sum string, answer error) error {
	found, err := do(ctx, g, func(ctx context.Context) (*storage.Object, error) {
		return g.api.Objects.Get(g.bucket, g.prefix+key).Fields("md5Hash").Context(ctx).Do()
	})
	switch {
	case err == nil && found.Md5Hash == sum:
		return nil
	case answer != nil && status(answer) != http.StatusPreconditionFailed:
		return explain(g.bucket, answer)
	case err != nil:
		return fmt.Errorf("read back what it is: %w", err)
	}
	return errExists
}

func (g *gcs) readStream(ctx context.Context, key string) (io.ReadCloser, error) {
	reading, touch, end := withStall(ctx)
	s := &streamReader{ctx: reading, touch: touch, end: end, pace: g.pace,
		open: func(from int64) (*http.Response, error) { return g.download(reading, key, from) }}
	s.pace.timeout = stallTime // the request goes on after the try that began it
	_, err := retry(reading, s.pace, func(context.Context) (struct{}, error) { return struct{}{}, s.connect() })
	if err != nil {
		end(nil)
		return nil, explain(g.bucket, err)
	}
	return s, nil
}

// streamReader is an object on its way. Where its connection breaks it goes on from there.
type streamReader struct {
	ctx   context.Context
	open  func(from int64) (*http.Response, error)
	touch func()
	end   context.CancelCauseFunc
	pace  pace

	body io.ReadCloser // nil: the connection broke
	read int64
}

func (s *streamReader) connect() error {
	res, err := s.open(s.read)
	if err != nil {
		return err
	}
	if s.read > 0 && res.StatusCode != http.StatusPartialContent {
		res.Body.Close()
		return fmt.Errorf("it cannot be read from byte %d on: HTTP %s", s.read, res.Status)
	}
	s.body = res.Body
	return nil
}

// Read implements io.Reader.
func (s *streamReader) Read(p []byte) (int, error) {
	return retry(s.ctx, s.pace, func(context.Context) (int, error) { return s.next(p) })
}

// next reads once, after connecting where it must.
func (s *streamReader) next(p []byte) (int, error) {
	if s.body == nil {
		if err := s.connect(); err != nil {
			return 0, err
		}
	}
	n, err := s.body.Read(p)
	switch {
	case n > 0:
		s.read += int64(n)
		s.touch()
		return n, nil // an error comes again
	case err == nil || err == io.EOF:
		return 0, err
	}
	s.body.Close()
	s.body = nil
	return 0, fmt.Errorf("the answer broke off: %w", err)
}

// Close implements io.Closer.
func (s *streamReader) Close() error {
	s.end(nil)
	if s.body == nil {
		return nil
	}
	return s.body.Close()
}

// writerFunc is a function as a writer.
type writerFunc func(p []byte) (int, error)

// Write implements io.Writer.
func (f writerFunc) Write(p []byte) (int, error) { return f(p) }
