// Package bucket keeps a record in a bucket: objects that are written once and the databases of snapshots (Store), and
// the sealed bundle of keys (Bundles). Next to them, in a folder of their own, it keeps what decides nothing: reports
// and events (Reports).
//
//	             CreateClaim, CreateOutcome, …            View, Check
//	                        |                                 |
//	Store    create if absent, read back, compare    list until stable, read what is new
//	                        |                                 |
//	driver         a bucket: ifGenerationMatch=0, retried here and nowhere else
//
// Guarantees:
//   - An object but a mark is created or it is not: it is never overwritten, and nothing but a snapshot and the probe
//
// of
//
//	  a check is ever deleted.
//	- Of any number of writers of one object, in any number of processes and machines, exactly one wins, and all that
//	  get an answer get the same one. A create whose answer was lost is read back, never assumed.
//	- "Absent" is concluded from a complete listing only, never from a failed read: gs answers 404 also where the
//	  bucket is gone.
//	- No more of an object than the limit of its kind is read into memory (limits.go), whatever size its place names.
//	- A View is the record as it stood at one moment, whole and decoded, or it is an error. A half-read record decides
//	  nothing.
//
// Who retries: this package, a bounded number of times and only what is transient (a refused or cut connection, no
// answer in time, 408, 429, 5xx), for the bucket and for Cloud KMS. Callers do not retry: they read again at their
// next turn.
//
// It does not say what the facts mean (package record and etcdmember do), log, or take part in etcd.
package bucket

import (
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"sync"
)

// Store is the record of one cluster. Its methods may be called concurrently.
type Store struct {
	driver  driver
	cluster string
	client  *http.Client // Google's services are reached by it

	mu sync.Mutex
	// seen is the last listing that was found stable, without marks and checks.
	seen []entry
	// cache holds the decoded objects by key, each with the stamp that its entry had.
	cache map[string]cached
	// snapshots is the same for what Snapshots reads.
	snapshots map[string]cached
}

// cached is one object that need not be read again while its entry carries the same stamp.
type cached struct {
	stamp string
	value any
}

// Open opens the record of a cluster in gs://BUCKET[/PREFIX]. It only checks the form of its arguments and asks no
// server, so that an agent can be restarted while the record is out of reach. That is the first call's error then, and
// View's or Check's are the ones made for people.
//
// The bucket is reached by client, which adds what authorizes a request, follows no redirect, and decides what a server
// that is not Google's is sent; nil adds nothing. With ?endpoint=http://ADDRESS another server that speaks GCS's API is
// asked in Google's place.
func Open(recordURL, cluster string, client *http.Client) (*Store, error) {
	if client == nil {
		client = http.DefaultClient
	}
	d, err := openFolder(recordURL, cluster, cluster+"/", client)
	if err != nil {
		return nil, err
	}
	return &Store{driver: d, cluster: cluster, client: client, cache: map[string]cached{}}, nil
}

// openFolder opens one folder of a cluster's in the bucket that a record's URL names.
func openFolder(recordURL, cluster, folder string, client *http.Client) (*gcs, error) {
	if cluster == "" || strings.ContainsAny(cluster, "/\\ ") || strings.HasPrefix(cluster, ".") {
		return nil, fmt.Errorf("open record: cluster name %q: want a DNS label", cluster)
	}
	d, err := openBucket(recordURL, folder, client)
	if err != nil {
		return nil, fmt.Errorf("open record %q: %w", recordURL, err)
	}
	return d, nil
}

// openBucket checks a bucket's URL.
func openBucket(recordURL, folder string, client *http.Client) (*gcs, error) {
	u, err := url.Parse(recordURL)
	switch {
	case err != nil:
		return nil, err
	case u.Scheme == "":
		return nil, errors.New("no scheme: want gs://BUCKET[/PREFIX]")
	case u.Scheme != "gs":
		return nil, fmt.Errorf("scheme %q is not known: want gs://BUCKET[/PREFIX]", u.Scheme)
	case u.User != nil || u.Fragment != "":
		return nil, errors.New("a user or a fragment has no meaning here: want gs://BUCKET[/PREFIX]")
	case u.Host == "":
		return nil, errors.New("no bucket: want gs://BUCKET[/PREFIX]")
	}
	query := u.Query()
	endpoint := query.Get("endpoint")
	query.Del("endpoint")
	for name := range query {
		return nil, fmt.Errorf("query parameter %q is not known: a bucket takes endpoint only", name)
	}
	e, err := url.Parse(endpoint)
	if endpoint != "" && (err != nil || e.Scheme != "http" && e.Scheme != "https" || e.Host == "") {
		return nil, fmt.Errorf("endpoint %q: want http://ADDRESS or https://ADDRESS", endpoint)
	}
	prefix := strings.Trim(u.Path, "/")
	if prefix != "" {
		prefix += "/"
	}
	return newGCS(u.Host, prefix+folder, endpoint, client)
}

// String names the place of the record, for messages: gs://BUCKET/PREFIX/CLUSTER/.
func (s *Store) String() string { return s.driver.where("") }
