package bucket

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"hash"
	"io"

	"github.com/quorate/quorate/internal/record"
)

// digest counts and hashes what is read through it, and ends with its context.
type digest struct {
	ctx  context.Context
	r    io.Reader
	hash hash.Hash
	size int64
}

func newDigest(ctx context.Context, r io.Reader) *digest {
	return &digest{ctx: ctx, r: r, hash: sha256.New()}
}

// Read implements io.Reader.
func (d *digest) Read(p []byte) (int, error) {
	if d.ctx.Err() != nil {
		return 0, context.Cause(d.ctx)
	}
	n, err := d.r.Read(p)
	d.hash.Write(p[:n]) // never fails
	d.size += int64(n)
	return n, err
}

func (d *digest) sum() string { return hex.EncodeToString(d.hash.Sum(nil)) }

// differs compares what passed with what a snapshot should be, as far as that is said.
func (d *digest) differs(want record.Snapshot) error {
	switch {
	case want.Size != 0 && want.Size != d.size:
		return fmt.Errorf("the database has %d bytes, and not the %d that were verified: it is damaged", d.size,
			want.Size)
	case want.SHA256 != "" && want.SHA256 != d.sum():
		return fmt.Errorf("the hash of the database is %s, and not %s as verified: it is damaged", d.sum(), want.SHA256)
	}
	return nil
}

// target remembers that writing failed, which is not the fault of what is read.
type target struct {
	w   io.Writer
	err error
}

// Write implements io.Writer.
func (t *target) Write(p []byte) (int, error) {
	n, err := t.w.Write(p)
	if err != nil {
		t.err = err
	}
	return n, err
}
