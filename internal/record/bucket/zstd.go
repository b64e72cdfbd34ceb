package bucket

import (
	"context"
	"fmt"
	"io"

	"github.com/klauspost/compress/zstd"
)

// The window bounds the memory of both directions: 9 MiB to write and 8 to read, measured. A larger one hardly
// compresses etcd's pages better.
const (
	window = 2 << 20
	// what another version may have written; more is refused, so that damage cannot ask for gigabytes
	maxWindow = 32 << 20
)

// compress writes r, compressed, and returns how much it wrote. One goroutine does it: the machine has an apiserver to
// run.
func compress(w io.Writer, r io.Reader) (int64, error) {
	out := &counter{w: w}
	z, err := zstd.NewWriter(out, zstd.WithEncoderLevel(zstd.SpeedFastest), zstd.WithEncoderConcurrency(1),
		zstd.WithWindowSize(window))
	if err != nil {
		return 0, err
	}
	if _, err := z.ReadFrom(r); err != nil {
		return out.n, err // unclosed, the frame has no end: nobody can take it for whole
	}
	err = z.Close()
	return out.n, err
}

// decompress writes what stored holds, uncompressed, and stops where it is longer than it should be.
func decompress(ctx context.Context, stored io.Reader, to io.Writer, size int64) (*digest, error) {
	z, err := zstd.NewReader(stored, zstd.WithDecoderConcurrency(1), zstd.WithDecoderLowmem(true),
		zstd.WithDecoderMaxWindow(maxWindow))
	if err != nil {
		return nil, err
	}
	defer z.Close()
	in := newDigest(ctx, z)
	if _, err := io.CopyBuffer(onlyWriter{to}, io.LimitReader(in, size+1), make([]byte, 1<<20)); err != nil {
		return nil, fmt.Errorf("decompress, after %d of %d bytes: %w", in.size, size, err)
	}
	return in, nil
}

// counter counts what is written.
type counter struct {
	w io.Writer
	n int64
}

// Write implements io.Writer.
func (c *counter) Write(p []byte) (int, error) {
	n, err := c.w.Write(p)
	c.n += int64(n)
	return n, err
}

// onlyWriter hides a file's ReadFrom, which would copy with a small buffer of its own.
type onlyWriter struct{ io.Writer }
