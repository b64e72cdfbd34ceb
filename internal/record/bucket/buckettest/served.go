// Package buckettest has a record for the tests of other packages. Only tests import it.
package buckettest

import (
	"testing"

	"github.com/quorate/quorate/internal/localgce/buckets"
	"github.com/quorate/quorate/internal/localgce/instance"
	"github.com/quorate/quorate/internal/record/bucket"
)

// Serve opens a record whose bucket is served from a folder, as local projects serve it, without a network.
func Serve(t testing.TB, folder, cluster string) *bucket.Store {
	t.Helper()
	b, err := buckets.Open(folder, nil)
	if err != nil {
		t.Fatal(err)
	}
	store, err := bucket.Open("gs://"+instance.BucketName, cluster, b.Client())
	if err != nil {
		t.Fatal(err)
	}
	return store
}
