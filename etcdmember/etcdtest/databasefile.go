// Package etcdtest is what tests of several packages need of etcd: its files, made by hand and damaged. Only tests
// import it.
package etcdtest

import (
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"go.etcd.io/bbolt"
	"go.etcd.io/etcd/api/v3/mvccpb"
	"go.etcd.io/etcd/server/v3/storage/schema"
	"google.golang.org/protobuf/proto"
)

// Database writes a database as etcd does: revisions in order, in many commits, some with a value of many pages, some
// deleted again, and small buckets.
func Database(t *testing.T, freelist bool) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "db")
	db, err := bbolt.Open(path, 0o600, &bbolt.Options{NoSync: true, NoFreelistSync: !freelist})
	if err != nil {
		t.Fatal(err)
	}
	key := func(i int) []byte {
		k := binary.BigEndian.AppendUint64(nil, uint64(i))
		return binary.BigEndian.AppendUint64(append(k, '_'), 0)
	}
	for commit := range 30 {
		err = errors.Join(err, db.Update(func(tx *bbolt.Tx) error {
			b, err := tx.CreateBucketIfNotExists(schema.Key.Name())
			m, metaErr := tx.CreateBucketIfNotExists(schema.Meta.Name())
			_, emptyErr := tx.CreateBucketIfNotExists([]byte("alarm"))
			err = errors.Join(err, metaErr, emptyErr)
			for i := commit * 40; i < commit*40+40 && err == nil; i++ {
				size := 300
				if i%400 == 7 {
					size = 20000
				}
				value, _ := proto.Marshal(&mvccpb.KeyValue{Key: fmt.Appendf(nil, "/registry/%d", i),
					Value: make([]byte, size), ModRevision: int64(i)})
				err = errors.Join(b.Put(key(i), value), m.Put(schema.MetaConsistentIndexKeyName, key(i)[:8]))
				if i > 100 && i%3 == 0 {
					err = errors.Join(err, b.Delete(key(i-60)))
				}
			}
			return err
		}))
	}
	if err := errors.Join(err, db.Close()); err != nil {
		t.Fatal(err)
	}
	return path
}

// KeyValue is a value of the bucket of keys.
func KeyValue(key string) []byte {
	b, _ := proto.Marshal(&mvccpb.KeyValue{Key: []byte(key)})
	return b
}

// Pages are the pages of a kind that are in use, by bbolt's own word: those that its tree has and that say of
// themselves what they are.
func Pages(t *testing.T, path, kind string) (out []int) {
	t.Helper()
	db, err := bbolt.Open(path, 0o600, &bbolt.Options{ReadOnly: true, PreLoadFreelist: true})
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	err = db.View(func(tx *bbolt.Tx) error {
		for i := 0; ; i++ {
			p, err := tx.Page(i)
			if p == nil || err != nil {
				return err
			}
			if p.Type == kind {
				out = append(out, i)
			}
			i += p.OverflowCount
		}
	})
	if err != nil || len(out) == 0 {
		t.Fatalf("%s pages: %v, %v", kind, out, err)
	}
	return out
}

// DamagePage changes a page of a database file.
func DamagePage(t *testing.T, path string, page int, change func(page []byte)) {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	change(b[page*os.Getpagesize():][:os.Getpagesize()])
	if err := os.WriteFile(path, b, 0o600); err != nil {
		t.Fatal(err)
	}
}
