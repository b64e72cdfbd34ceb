package certificates

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/quorate/quorate/agent/status"
	"github.com/quorate/quorate/certs"
	"github.com/quorate/quorate/controlplane"
	"github.com/quorate/quorate/etcdmember/acts"
	"github.com/quorate/quorate/internal/replica"
	"github.com/quorate/quorate/internal/waits"
)

var errBroken = errors.New("broken")

// world is a replica's disk, the record's bundles and a clock.
type world struct {
	t       *testing.T
	me      Replica
	bundles *bundles
	// atStep is called at the making of the bundle.
	atStep func(s acts.Step, m acts.Moment)
	// time is the other clock's; nil: it is the VM's.
	time func() (time.Time, error)

	tracker *waits.Tracker
	waits   *waits.Phased
	renewed bool
}

// uid is the cluster's.
const uid = "uid"

func newWorld(t *testing.T) *world {
	t.Helper()
	dir := t.TempDir()
	document := `
apiVersion: quorate.dev/v1alpha1
kind: Cluster
name: demo
endpoint: {externalIP: 203.0.113.7}
record: {url: "gs://record?endpoint=http://192.0.2.1"}
seal: {key: "base64key://c21hbGwga2V5IG9mIHRoaXJ0eS10d28gYnl0ZXMuLi4="}
etcd: {dataDir: ` + filepath.Join(dir, "data") + `}
`
	cluster, err := controlplane.Load(replica.Source{Name: "test", Data: []byte(document)})
	if err != nil {
		t.Fatal(err)
	}
	w := &world{t: t, bundles: &bundles{}, tracker: waits.New(slog.New(slog.DiscardHandler), "")}
	w.waits = &waits.Phased{Source: w.tracker.Source("agent", "phase", 0)}
	w.me = Replica{
		Self: replica.Identity{Place: replica.Place{Zone: "us-central1-a", Name: "master-a"}, InstanceID: "101",
			BootID: "boot1", Project: "p", ProjectNumber: "7",
			Addresses: []netip.Addr{netip.MustParseAddr("10.240.0.11")}},
		Cluster: cluster, Bundles: w.bundles, ClusterUID: func() string { return uid },
		Files: certs.Files{Dir: filepath.Join(cluster.Etcd.DataDir, "pki"), Volatile: filepath.Join(dir, "run", "pki")},
	}
	return w
}

// data is the data disk.
func (w *world) data() string { return w.me.Cluster.Etcd.DataDir }

// start is another start of the agent.
func (w *world) start() *Certificates {
	c := New(Config{Log: slog.New(slog.DiscardHandler), Waits: w.waits, Clock: w,
		Owners: func(certs.Files) map[string]certs.Owner { return nil }, Renewed: func() { w.renewed = true },
		AtStep: w.atStep})
	c.Open(w.me)
	return c
}

// Time implements Clock.
func (w *world) Time(context.Context) (time.Time, error) {
	if w.time == nil {
		return time.Now(), nil
	}
	return w.time()
}

// remove deletes files and folders.
func (w *world) remove(paths ...string) {
	w.t.Helper()
	for _, path := range paths {
		if err := os.RemoveAll(path); err != nil {
			w.t.Fatal(err)
		}
	}
}

// scraped is what a scrape shows of the waits.
func (w *world) scraped() string {
	rec := httptest.NewRecorder()
	status.Metrics(func(context.Context) status.Status { return status.Status{Blocked: w.tracker.All()} }).
		ServeHTTP(rec, httptest.NewRequest(http.MethodGet, "/metrics", nil))
	return rec.Body.String()
}

// renewing is a replica whose certificates were made now, with the bundle in the record, as it is on its way to its
// place in etcd.
func renewing(t *testing.T) (*world, *Certificates, Issued) {
	t.Helper()
	w := newWorld(t)
	b, err := certs.NewBundle(uid, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	if w.bundles.held, err = b.Encode(); err != nil {
		t.Fatal(err)
	}
	// It is the one that made the bundle: what counts later is the newest, not what it made.
	c := w.start()
	issued, err := c.Certify(t.Context(), true)
	if err != nil {
		t.Fatal(err)
	}
	return w, c, issued
}

// renewal runs Renew until the returned function is called.
func renewal(ctx context.Context, c *Certificates, issued Issued) (stop func()) {
	ctx, cancel := context.WithCancel(ctx)
	var running sync.WaitGroup
	running.Go(func() { c.Renew(ctx, issued) })
	return func() { cancel(); running.Wait() }
}

type bundles struct {
	mu      sync.Mutex
	held    []byte   // generation 1
	later   [][]byte // from generation 2 on
	err     error
	creates int
	lists   int
}

func (b *bundles) Create(_ context.Context, _ uint64, plaintext []byte) ([]byte, bool, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.creates++
	if b.err != nil {
		return nil, false, b.err
	}
	won := b.held == nil
	if won {
		b.held = plaintext
	}
	return b.held, won, nil
}

func (b *bundles) Generations(context.Context) (out []uint64, err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.lists++
	if b.held == nil || b.err != nil {
		return nil, b.err
	}
	for n := range len(b.later) + 1 {
		out = append(out, uint64(n+1))
	}
	return out, nil
}

func (b *bundles) Read(_ context.Context, generation uint64) ([]byte, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.err != nil || generation == 1 {
		return b.held, b.err
	}
	return b.later[generation-2], nil
}
