package snapshot

import (
	"context"
	"encoding/binary"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"go.etcd.io/bbolt"
	"go.etcd.io/etcd/server/v3/storage/schema"

	"github.com/quorate/quorate/etcdmember/etcdtest"
	"github.com/quorate/quorate/internal/record"
)

// shelfOfOne is a store with one snapshot, the same for every name.
type shelfOfOne struct {
	data     []byte
	revision int64
	// meanwhile is called while the snapshot is read; nil: nothing is.
	meanwhile func()
}

func (s shelfOfOne) ReadSnapshot(_ context.Context, name string, to io.Writer) (record.Snapshot, error) {
	if s.meanwhile != nil {
		s.meanwhile()
	}
	_, err := to.Write(s.data)
	return record.Snapshot{Name: name, Revision: s.revision}, err
}

// newShelfOfOne holds a whole snapshot with one key.
func newShelfOfOne(t *testing.T) shelfOfOne {
	t.Helper()
	file := filepath.Join(t.TempDir(), "db")
	db, err := bbolt.Open(file, 0o600, nil)
	if err != nil {
		t.Fatal(err)
	}
	err = db.Update(func(tx *bbolt.Tx) error {
		keys, err := tx.CreateBucket(schema.Key.Name())
		if err != nil {
			return err
		}
		if _, err := tx.CreateBucket(schema.Meta.Name()); err != nil {
			return err
		}
		return keys.Put(append(binary.BigEndian.AppendUint64(nil, 7), "_00000000"...), etcdtest.KeyValue("k"))
	})
	if err = errors.Join(err, db.Close()); err != nil {
		t.Fatal(err)
	}
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	data = append(data, make([]byte, sealed)...)
	seal(data, func([]byte) {})
	return shelfOfOne{data: data, revision: 7}
}

// Who has to act is in the error: the record's keeper, or whoever has this machine.
func TestAFetchSaysWhoseAffairItsErrorIs(t *testing.T) {
	for name, c := range map[string]struct {
		change func(s *shelfOfOne, size *int64, cancel func())
		want   error
		not    error
	}{
		"nothing is wrong": {func(*shelfOfOne, *int64, func()) {}, nil, nil},
		"its own hash is wrong": {func(s *shelfOfOne, _ *int64, _ func()) { s.data[len(s.data)-1]++ },
			record.ErrRecord, syscall.ENOSPC},
		"a page is wrong": {func(s *shelfOfOne, _ *int64,
			_ func()) {
			seal(s.data, func(b []byte) { clear(b[2*4096:]) })
		}, record.ErrRecord, syscall.ENOSPC},
		"it is no database": {func(s *shelfOfOne, _ *int64,
			_ func()) {
			seal(s.data, func(b []byte) { clear(b) })
		}, record.ErrRecord, syscall.ENOSPC},
		"it is another's revision": {func(s *shelfOfOne, _ *int64, _ func()) { s.revision = 8 }, record.ErrRecord,
			syscall.ENOSPC},
		"there is no room": {func(_ *shelfOfOne, size *int64, _ func()) { *size = 1 << 60 }, syscall.ENOSPC,
			record.ErrRecord},
		"the command was ended": {func(s *shelfOfOne, _ *int64, cancel func()) { s.meanwhile = cancel },
			context.Canceled, record.ErrRecord},
	} {
		t.Run(name, func(t *testing.T) {
			s, path := newShelfOfOne(t), filepath.Join(t.TempDir(), "db")
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			size := int64(0)
			c.change(&s, &size, cancel)
			_, err := Fetch(ctx, s, record.Snapshot{Name: "1/7-x", Size: size}, path)
			if !errors.Is(err, c.want) || c.not != nil && errors.Is(err, c.not) {
				t.Errorf("%v: want %v, and not %v", err, c.want, c.not)
			}
			if err != nil && strings.Contains(err.Error(), "no space left") {
				t.Errorf("%v: the mark shows", err)
			}
			if _, serr := os.Stat(path); (serr == nil) != (err == nil) {
				t.Errorf("the file: %v, after %v", serr, err)
			}
		})
	}
	// A copy that this machine cannot read is not the record's.
	if err := foundIn(record.Snapshot{}, checkSeal(t.Context(), filepath.Join(t.TempDir(), "none"))); errors.Is(err,
		record.ErrRecord) {
		t.Errorf("%v: is the record's", err)
	}
}
