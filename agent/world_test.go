package agent

import (
	"context"
	"errors"
	"log/slog"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/quorate/quorate/agent/endpoint"
	"github.com/quorate/quorate/agent/kubelet"
	"github.com/quorate/quorate/certs"
	"github.com/quorate/quorate/etcdmember"
	"github.com/quorate/quorate/etcdmember/member"
	"github.com/quorate/quorate/internal/record"
	"github.com/quorate/quorate/internal/replica"
	"github.com/quorate/quorate/supervisor"
)

// vm is one machine around an agent: what the cloud, the service manager and the disk say to it.
type vm struct {
	t        *testing.T
	dir      string
	self     replica.Identity
	document string
	metadata *metadata
	record   *fixedRecord
	bundles  *bundles
	notify   *notifier
	// diskID answers for the Compute API; newVM's knows the disk.
	diskID   func(context.Context) (string, error)
	users    []replica.Place // of the data disk, as the Compute API says
	balancer endpoint.Balancer
	// openNode is Config.OpenNode.
	openNode func(replica.Kubelet) kubelet.Node
}

func newVM(t *testing.T) *vm {
	t.Helper()
	dir, err := os.MkdirTemp("", "q") // t.TempDir is too long for a unix socket
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	self := replica.Identity{Place: replica.Place{Zone: "us-central1-a", Name: "master-a"}, InstanceID: "101",
		BootID:  "boot1",
		Project: "p", ProjectNumber: "7", Addresses: []netip.Addr{netip.MustParseAddr("10.240.0.11")}}
	v := &vm{t: t, dir: dir, self: self, record: &fixedRecord{}, bundles: &bundles{}, notify: &notifier{}}
	v.diskID = func(context.Context) (string, error) { return "d1", nil }
	v.document = `
apiVersion: quorate.dev/v1alpha1
kind: Cluster
name: demo
endpoint: {externalIP: 203.0.113.7}
record: {url: "gs://record?endpoint=http://192.0.2.1"}
seal: {key: "base64key://c21hbGwga2V5IG9mIHRoaXJ0eS10d28gYnl0ZXMuLi4="}
etcd: {dataDir: ` + v.data() + `}
`
	v.metadata = &metadata{self: self, attributes: map[string]string{ClusterAttribute: v.document}}
	v.record.view.Inception = &record.Inception{UID: "uid", Name: "demo", ProjectNumber: "7", Region: "us-central1"}
	return v
}

func (v *vm) dataDisk(ctx context.Context) (replica.Disk, error) {
	id, err := v.diskID(ctx)
	return replica.Disk{ID: id, Users: v.users}, err
}

func (v *vm) data() string { return filepath.Join(v.dir, "data") }

func (v *vm) config() Config {
	return Config{
		Log: slog.New(slog.DiscardHandler), Metadata: v.metadata, Notify: v.notify, Self: "/bin/false",
		OpenNode: v.openNode,
		Open: func(context.Context, replica.Identity, *replica.Cluster) (Cloud, error) {
			return Cloud{Record: v.record, Bundles: v.bundles, Compute: noCompute{}, DataDisk: v.dataDisk,
				Balancer: v.balancer}, nil
		},
		Baked: filepath.Join(v.dir, "cluster.yaml"), RunDir: filepath.Join(v.dir, "run"),
		LogDir:    filepath.Join(v.dir, "log"),
		AuditDir:  filepath.Join(v.dir, "log"),
		HostsFile: filepath.Join(v.dir, "hosts"),
	}
}

// agent is an agent that has not begun its life.
func (v *vm) agent() *Agent {
	cfg := v.config()
	if err := os.MkdirAll(filepath.Dir(member.SocketIn(cfg.RunDir)), 0o700); err != nil {
		v.t.Fatal(err)
	}
	return newAgent(cfg, supervisor.New(supervisor.Config{LogDir: cfg.LogDir}))
}

// identified is an agent behind its first phases.
func (v *vm) identified() (*Agent, identified) {
	v.t.Helper()
	a := v.agent()
	in, err := a.identify(v.t.Context(), nothing{})
	if err == nil {
		in, err = a.awaitDisk(v.t.Context(), in)
	}
	if err != nil {
		v.t.Fatal(err)
	}
	return a, in
}

// certify issues a replica's certificates on the data disk, as an earlier boot did.
func (v *vm) certify(a *Agent, in identified, id replica.Identity, uid string) {
	v.t.Helper()
	b, err := certs.NewBundle(uid, time.Now())
	if err != nil {
		v.t.Fatal(err)
	}
	if _, err := certs.Ensure(certs.Request{Files: in.files, Bundle: b, ClusterUID: uid, Identity: id,
		Cluster: in.cluster, Now: time.Now()}); err != nil {
		v.t.Fatal(err)
	}
}

// renewing is a replica whose certificates were made now, with the bundle in the record, as it is on its way to its
// place in etcd.
func renewing(t *testing.T) (*vm, *Agent, certified) {
	t.Helper()
	v := newVM(t)
	a, in := v.identified()
	b, err := certs.NewBundle("uid", time.Now())
	if err != nil {
		t.Fatal(err)
	}
	if v.bundles.held, err = b.Encode(); err != nil {
		t.Fatal(err)
	}
	v.record.view.Bundle = 1
	m := membershipOf(a, in)
	if _, err := m.Claim(t.Context()); err != nil { // says whose cluster it is
		t.Fatal(err)
	}
	a.openCertificates(in, m)
	// It is the one that made the bundle: what counts later is the newest, not what it made.
	out, err := a.certify(t.Context(), recorded{identified: in, membership: m, makeBundle: true})
	if err != nil {
		t.Fatal(err)
	}
	return v, a, out
}

type metadata struct {
	documents  chan string
	self       replica.Identity
	attributes map[string]string
	err        error
	hangs      bool
	// spot: the VM is one.
	spot bool
	// events are what the host plans; nil: it never says anything.
	events chan string
	// time is its clock's; nil: it is the VM's.
	time func() (time.Time, error)
}

func (m *metadata) Time(context.Context) (time.Time, error) {
	if m.time == nil {
		return time.Now(), m.err
	}
	return m.time()
}

// WatchInterfaces never says anything.
func (m *metadata) WatchInterfaces(ctx context.Context, _ func([]replica.Interface), _ func(error)) error {
	<-ctx.Done()
	return ctx.Err()
}

func (m *metadata) Spot(context.Context) (bool, error) { return m.spot, nil }

// WatchMaintenanceEvent says what events holds.
func (m *metadata) WatchMaintenanceEvent(ctx context.Context, changed func(string)) error {
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case event := <-m.events:
			changed(event)
		}
	}
}

func (m *metadata) Identity(ctx context.Context) (replica.Identity, error) {
	if m.hangs {
		<-ctx.Done()
		return replica.Identity{}, context.Cause(ctx)
	}
	return m.self, m.err
}

// Watch says what documents holds.
func (m *metadata) Watch(ctx context.Context, _ string, changed func(string, bool)) error {
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case document := <-m.documents:
			changed(document, document != "")
		}
	}
}

func (m *metadata) Attribute(_ context.Context, key string) (string, bool, error) {
	value, found := m.attributes[key]
	return value, found, m.err
}

type notifier struct {
	mu   sync.Mutex
	said []string
}

func (n *notifier) say(what string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.said = append(n.said, what)
}

func (n *notifier) Ready()             { n.say("READY") }
func (n *notifier) Stopping()          { n.say("STOPPING") }
func (n *notifier) Status(text string) { n.say(text) }

func (n *notifier) all() []string {
	n.mu.Lock()
	defer n.mu.Unlock()
	return slices.Clone(n.said)
}

// fixedRecord shows what it is given; nothing can be written.
type fixedRecord struct {
	etcdmember.Record
	mu    sync.Mutex
	view  record.View
	err   error
	views int
}

func (r *fixedRecord) View(context.Context) (record.View, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.views++
	return r.view, r.err
}

func (r *fixedRecord) CreateIncarnation(context.Context, record.Incarnation) (record.Incarnation, bool, error) {
	return record.Incarnation{}, false, errBroken
}

// bundles is a record with one generation.
type bundles struct {
	mu      sync.Mutex
	held    []byte
	err     error
	creates int
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

func (b *bundles) Generations(context.Context) ([]uint64, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.held == nil || b.err != nil {
		return nil, b.err
	}
	return []uint64{1}, nil
}

func (b *bundles) Read(context.Context, uint64) ([]byte, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.held, b.err
}

type noCompute struct{}

func (noCompute) VMs(context.Context) ([]replica.VM, time.Time, error) {
	return nil, time.Time{}, errors.New("no API")
}
func (noCompute) VM(context.Context, replica.Place) (replica.VM, bool, error) {
	return replica.VM{}, false, errors.New("no API")
}
func (noCompute) Disks(context.Context) ([]replica.Disk, error) {
	return nil, errors.New("no API")
}
func (noCompute) Disk(context.Context, string) (replica.Disk, bool, error) {
	return replica.Disk{}, false, errors.New("no API")
}

// eventually waits for a condition that another goroutine brings about.
func eventually(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for end := time.Now().Add(5 * time.Second); time.Now().Before(end); time.Sleep(5 * time.Millisecond) {
		if ok() {
			return
		}
	}
	t.Fatalf("never: %s", what)
}
