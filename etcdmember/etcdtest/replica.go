package etcdtest

import (
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/quorate/quorate/certs"
	"github.com/quorate/quorate/etcdmember/hosts"
	"github.com/quorate/quorate/internal/replica"
)

// Replica is one whose member runs in the test's own process, on loopback.
type Replica struct {
	Me      replica.Identity
	Cluster *replica.Cluster
	Files   certs.Files
	RunDir  string
}

// onlyHosts is what `quorate run-etcd` does first.
var onlyHosts = sync.OnceFunc(func() { net.DefaultResolver = hosts.Resolver(hosts.Path) })

// NewReplica makes a replica and its certificates.
func NewReplica(t testing.TB) Replica {
	t.Helper()
	onlyHosts()
	dir := t.TempDir()
	r := Replica{RunDir: dir, Cluster: Cluster(t, "test"),
		Files: certs.Files{Dir: filepath.Join(dir, "pki"), Volatile: filepath.Join(dir, "volatile")},
		Me: replica.Identity{Place: replica.Place{Zone: "us-central1-a", Name: "master-a"}, InstanceID: "1",
			Project: "p", Addresses: []netip.Addr{netip.MustParseAddr("10.240.0.9")}}}
	r.Cluster.Etcd.DataDir = dir
	b, err := certs.NewBundle("uid", time.Now())
	if err != nil {
		t.Fatal(err)
	}
	Issue(t, r.Files, b, r.Me, r.Cluster)
	// The certificates are for a VM's address, and the test has loopback.
	r.Me.Addresses = []netip.Addr{netip.MustParseAddr("127.0.0.9")}
	return r
}

// Cluster is a document of a cluster with a name, and the defaults.
func Cluster(t testing.TB, name string) *replica.Cluster {
	t.Helper()
	c, err := replica.Load(replica.Source{Name: "test", Data: []byte(`
apiVersion: quorate.dev/v1alpha1
kind: Cluster
name: ` + name + `
endpoint: {externalIP: 203.0.113.7}
record: {url: "gs://record?endpoint=http://192.0.2.1"}
seal: {key: "base64key://c21hbGwga2V5IG9mIHRoaXJ0eS10d28gYnl0ZXMuLi4="}
`)})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// Issue makes a replica's leaves.
func Issue(t testing.TB, files certs.Files, b *certs.Bundle, me replica.Identity, c *replica.Cluster) {
	t.Helper()
	for _, d := range []string{files.Dir, files.Volatile} {
		if err := os.MkdirAll(d, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := certs.Ensure(certs.Request{Files: files, Bundle: b, ClusterUID: "uid", Identity: me, Cluster: c,
		Now: time.Now()}); err != nil {
		t.Fatal(err)
	}
}

// Patience is how long a test waits for what has to come. On a busy machine it takes many times as long as on another.
const Patience = 2 * time.Minute

// Eventually waits for a condition that another goroutine or process brings about.
func Eventually(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for end := time.Now().Add(Patience); time.Now().Before(end); time.Sleep(5 * time.Millisecond) {
		if ok() {
			return
		}
	}
	t.Fatalf("never: %s", what)
}
