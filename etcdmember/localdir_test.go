package etcdmember

import (
	"os"
	"path/filepath"
	"testing"

	"go.etcd.io/bbolt"
)

// A database that lost its end opens, read-only: etcd panics on it at every start, so it must not count as one that can be started.
func TestADatabaseThatLostItsEndIsFound(t *testing.T) {
	path := filepath.Join(t.TempDir(), "db")
	db, err := bbolt.Open(path, 0o600, nil)
	if err != nil {
		t.Fatal(err)
	}
	err = db.Update(func(tx *bbolt.Tx) error {
		b, err := tx.CreateBucket([]byte("key"))
		if err != nil {
			return err
		}
		return b.Put([]byte("k"), make([]byte, 1<<20))
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	if err := openDatabase(path); err != nil {
		t.Errorf("as it was written: %v", err)
	}
	if err := os.Truncate(path, 8192); err != nil {
		t.Fatal(err)
	}
	if err := openDatabase(path); err == nil {
		t.Error("cut to two pages it counts as a database")
	}
}

func TestMembersWithOneAddressAreNotStartedFrom(t *testing.T) {
	for urls, fits := range map[[2]string]bool{
		{"https://localhost:2380", "https://127.0.0.1:2380"}: false,
		{"https://localhost:2380", "https://127.0.0.2:2380"}: true,
	} {
		c := MemberConfig{InitialCluster: map[string]string{"a": urls[0], "b": urls[1]}}
		if err := c.apart(t.Context()); (err == nil) != fits {
			t.Errorf("%v: %v", urls, err)
		}
	}
}
