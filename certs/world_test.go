package certs

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/quorate/quorate/internal/durable"
	"github.com/quorate/quorate/internal/replica"
)

// t0 is when the tests' bundles are made. No test waits: now moves.
var t0 = time.Date(2027, 1, 15, 12, 0, 0, 0, time.UTC)

func testIdentity() replica.Identity {
	return replica.Identity{
		Place:         replica.Place{Zone: "us-central1-a", Name: "master-1"},
		InstanceID:    "1234567890123456789",
		Project:       "example.com:proj",
		ProjectNumber: "42",
		Addresses:     []netip.Addr{netip.MustParseAddr("10.128.0.2"), netip.MustParseAddr("fd20::2")},
	}
}

func testCluster() *replica.Cluster {
	return &replica.Cluster{
		Name: "prod",
		Endpoint: replica.Endpoint{ExternalIP: "203.0.113.7", InternalIP: "10.128.0.100",
			DNSNames: []string{"api.prod.example.net"}, Port: 443},
		Network: replica.Network{ServiceCIDRs: []string{"10.96.0.0/12", "fd00:96::/112"}, DNSDomain: "cluster.local"},
	}
}

func testBundle(t testing.TB) *Bundle {
	t.Helper()
	b, err := NewBundle("uid-1", t0)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// rotated is the next generation with new CAs and keys, the former still trusted.
func rotated(t testing.TB, b *Bundle, now time.Time) *Bundle {
	t.Helper()
	next, err := NewBundle(b.ClusterUID, now)
	if err != nil {
		t.Fatal(err)
	}
	next.Generation = b.Generation + 1
	for _, name := range Authorities() {
		a, err := newAuthority(name, b.ClusterUID, next.Generation, now)
		if err != nil {
			t.Fatal(err)
		}
		a.former = b.authorities[name].trust()
		next.authorities[name] = a
	}
	next.serviceAccount = append(next.serviceAccount, b.serviceAccount...)
	next.encryption[0].name = "g2"
	next.encryption = append(next.encryption, b.encryption...)
	return next
}

// inTwo is a rotation as a running cluster can take it: the next generation knows new CAs and keys, and the one after
// it works with them.
func inTwo(t testing.TB, b *Bundle, now time.Time) (knows, works *Bundle) {
	t.Helper()
	works = rotated(t, b, now)
	first := *works
	first.authorities = map[Authority]authority{}
	for name, a := range b.authorities {
		first.authorities[name] = authority{cert: a.cert, key: a.key,
			former: []*x509.Certificate{works.authorities[name].cert}}
	}
	first.serviceAccount = append(slices.Clone(b.serviceAccount), works.serviceAccount[0])
	first.encryption = append(slices.Clone(b.encryption), works.encryption[0])
	works.Generation++
	return &first, works
}

func testRequest(t testing.TB, b *Bundle) Request {
	t.Helper()
	dir := t.TempDir()
	return Request{
		Files:    Files{Dir: filepath.Join(dir, "pki"), Volatile: filepath.Join(dir, "run", "pki")},
		Bundle:   b,
		Identity: testIdentity(),
		Cluster:  testCluster(),
		Now:      t0,
	}
}

// fastDisk replaces files as internal/durable does, without its fsync: what the tests check does not depend on it.
func fastDisk() disk {
	return disk{read: readRegular, rename: os.Rename, sync: func(string) error { return nil },
		write: func(files ...durable.File) (int, error) {
			for n, f := range files {
				temp := filepath.Join(filepath.Dir(f.Path), ".durable-"+filepath.Base(f.Path))
				if err := os.WriteFile(temp, f.Data, f.Perm); err != nil {
					return n, err
				}
				if err := os.Rename(temp, f.Path); err != nil {
					return n, err
				}
			}
			return len(files), nil
		}}
}

func mustEnsure(t testing.TB, r Request) Report {
	t.Helper()
	report, err := ensure(r, fastDisk())
	if err != nil {
		t.Fatal(err)
	}
	return report
}

// testLeaves is the test replica's table.
func testLeaves(t testing.TB) []Spec {
	t.Helper()
	specs, err := Leaves(testIdentity(), testCluster())
	if err != nil {
		t.Fatal(err)
	}
	return specs
}

// specOf is a leaf's row for the test replica.
func specOf(t testing.TB, l Leaf) Spec {
	t.Helper()
	for _, s := range testLeaves(t) {
		if s.Leaf == l {
			return s
		}
	}
	t.Fatalf("no leaf %s", l)
	return Spec{}
}

func testIssuer(t testing.TB, b *Bundle, now time.Time) *issuer {
	t.Helper()
	i, err := newIssuer(b, now)
	if err != nil {
		t.Fatal(err)
	}
	return i
}

// mustIssue issues a leaf of the table.
func mustIssue(t testing.TB, b *Bundle, l Leaf, now time.Time) pair {
	t.Helper()
	p, err := testIssuer(t, b, now).issue(specOf(t, l))
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// loadLeaf reads a leaf's file as etcd and the apiserver do.
func loadLeaf(t testing.TB, f Files, l Leaf) *x509.Certificate {
	t.Helper()
	c, err := tls.LoadX509KeyPair(f.Leaf(l), f.Leaf(l))
	if err != nil {
		t.Fatalf("leaf %s: %v", l, err)
	}
	return c.Leaf
}

// contents is all that stands in a request's folders, by path.
func contents(t testing.TB, f Files) map[string]string {
	t.Helper()
	out := map[string]string{}
	for _, dir := range []string{f.Dir, f.Volatile} {
		entries, err := os.ReadDir(dir)
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range entries {
			path := filepath.Join(dir, e.Name())
			data, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			out[path] = string(data)
		}
	}
	return out
}

func weakKey(t testing.TB) *ecdsa.PrivateKey {
	t.Helper()
	k, err := ecdsa.GenerateKey(elliptic.P224(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	return k
}
