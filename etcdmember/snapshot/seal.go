package snapshot

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"hash"
	"io"
	"os"
)

// sealed is what etcd appends to a snapshot: the hash of all before it.
const sealed = sha256.Size

// errUnsealed says that a snapshot is not what the member sent: it broke off, or was changed.
var errUnsealed = errors.New("the hash at its end does not fit: it broke off or was changed on its way")

// checkSeal reads a stored snapshot file and compares it with the hash at its end. A file of the wrong length needs no
// reading.
func checkSeal(ctx context.Context, path string) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	s := newSealing()
	if _, err := io.CopyBuffer(s, &untilDone{ctx, f}, make([]byte, 1<<20)); err != nil {
		return err
	}
	_, err = s.finish()
	return err
}

// sealing hashes a snapshot as it passes, but for the hash at its end.
type sealing struct {
	hash hash.Hash
	tail []byte // the newest bytes, which may be the appended hash
	size int64
}

func newSealing() *sealing { return &sealing{hash: sha256.New()} }

// Write implements io.Writer.
func (s *sealing) Write(p []byte) (int, error) {
	s.size += int64(len(p))
	if len(p) >= sealed {
		s.hash.Write(s.tail)
		s.hash.Write(p[:len(p)-sealed])
		s.tail = append(s.tail[:0], p[len(p)-sealed:]...)
		return len(p), nil
	}
	s.tail = append(s.tail, p...)
	if extra := len(s.tail) - sealed; extra > 0 {
		s.hash.Write(s.tail[:extra])
		s.tail = append(s.tail[:0], s.tail[extra:]...)
	}
	return len(p), nil
}

// finish compares, and returns the hash of the whole file in hexadecimal.
func (s *sealing) finish() (string, error) {
	if s.size%512 != sealed || !bytes.Equal(s.hash.Sum(nil), s.tail) {
		return "", errUnsealed
	}
	s.hash.Write(s.tail)
	return fmt.Sprintf("%x", s.hash.Sum(nil)), nil
}

// untilDone ends reading with a context.
type untilDone struct {
	ctx context.Context
	r   io.Reader
}

// Read implements io.Reader.
func (u *untilDone) Read(p []byte) (int, error) {
	if u.ctx.Err() != nil {
		return 0, context.Cause(u.ctx)
	}
	return u.r.Read(p)
}
