package leaders

import (
	"context"
	"encoding/json"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	coordination "k8s.io/client-go/kubernetes/typed/coordination/v1"
	"k8s.io/client-go/rest"

	"github.com/quorate/quorate/certs"
	"github.com/quorate/quorate/controlplane"
	"github.com/quorate/quorate/etcdmember/table"
	"github.com/quorate/quorate/internal/record"
	"github.com/quorate/quorate/internal/replica"
	"github.com/quorate/quorate/internal/waits"
	"github.com/quorate/quorate/supervisor"
)

// world is a replica whose member runs, with the elections of its components.
type world struct {
	t       *testing.T
	self    replica.Identity
	cluster *replica.Cluster
	leaders *Leaders

	mu     sync.Mutex
	status table.MemberStatus // how its member sees itself and the others
}

func newWorld(t *testing.T, change func(*table.MemberStatus)) *world {
	t.Helper()
	cluster, err := controlplane.Load(replica.Source{Name: "test", Data: []byte(`
apiVersion: quorate.dev/v1alpha1
kind: Cluster
name: demo
endpoint: {externalIP: 203.0.113.7}
record: {url: "gs://record?endpoint=http://192.0.2.1"}
seal: {key: "base64key://c21hbGwga2V5IG9mIHRoaXJ0eS10d28gYnl0ZXMuLi4="}
`)})
	if err != nil {
		t.Fatal(err)
	}
	w := &world{t: t, cluster: cluster, status: threeOf(change),
		self: replica.Identity{Place: replica.Place{Zone: "us-central1-a", Name: "master-a"}, InstanceID: "101",
			BootID: "boot1"}}
	log := slog.New(slog.DiscardHandler)
	own := &waits.Phased{Source: waits.New(log, "").Source("agent", "phase", 0)}
	w.leaders = New(log, own, supervised(t))
	w.leaders.Join(Replica{Self: w.self, Cluster: cluster,
		Members: func(context.Context) (table.MemberStatus, error) {
			w.mu.Lock()
			defer w.mu.Unlock()
			return w.status, nil
		}})
	return w
}

// members changes how its member sees itself and the others.
func (w *world) members(change func(*table.MemberStatus)) {
	w.mu.Lock()
	defer w.mu.Unlock()
	change(&w.status)
}

// Three members: the own one, the leader, and one that only follows.
const own, leading, following record.MemberID = 0xa1, 0xb1, 0xc1

func threeOf(change func(*table.MemberStatus)) table.MemberStatus {
	s := table.MemberStatus{MemberID: own, Leader: leading, Ready: true, Members: []table.Member{
		{ID: own, Name: "us-central1-a.master-a.101"}, {ID: following, Name: "us-central1-c.master-c.103"},
		{ID: leading, Name: "us-central1-b.master-b.102"},
	}}
	if change != nil {
		change(&s)
	}
	return s
}

// leasing opens the leases of an apiserver that has one, held on this machine for another hour and renewed now.
func (w *world) leasing() *leaseServer {
	w.t.Helper()
	host, err := os.Hostname()
	if err != nil {
		w.t.Fatal(err)
	}
	holder, lasts := host+"_1", int32(3600)
	s := &leaseServer{lease: &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Name: "kube-scheduler"},
		Spec: coordinationv1.LeaseSpec{HolderIdentity: &holder, LeaseDurationSeconds: &lasts}}}
	s.renew()
	server := httptest.NewServer(s)
	w.t.Cleanup(server.Close)
	client, err := coordination.NewForConfig(&rest.Config{Host: server.URL,
		ContentConfig: rest.ContentConfig{ContentType: "application/json"}})
	if err != nil {
		w.t.Fatal(err)
	}
	if err := w.leaders.Open(func(certs.Leaf) (Client, error) { return client.Leases(Namespace), nil }); err != nil {
		w.t.Fatal(err)
	}
	return s
}

// leaseServer answers like an apiserver that has one lease.
type leaseServer struct {
	mu             sync.Mutex
	lease          *coordinationv1.Lease
	conflict       bool
	fails          int // how many requests fail at first
	refuses        bool
	reads, updates int
	dryRuns        int
}

func (s *leaseServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	w.Header().Set("Content-Type", "application/json")
	switch {
	case s.fails > 0:
		s.fails--
		w.WriteHeader(http.StatusInternalServerError)
	case s.lease == nil:
		w.WriteHeader(http.StatusNotFound)
		json.NewEncoder(w).Encode(metav1.Status{Status: "Failure", Reason: metav1.StatusReasonNotFound, Code: 404})
	case r.Method == http.MethodPut && s.conflict:
		w.WriteHeader(http.StatusConflict)
		json.NewEncoder(w).Encode(metav1.Status{Status: "Failure", Reason: metav1.StatusReasonConflict, Code: 409})
	case r.Method == http.MethodPut && r.URL.Query().Get("dryRun") != "":
		if s.dryRuns++; s.refuses {
			w.WriteHeader(http.StatusForbidden)
			json.NewEncoder(w).Encode(metav1.Status{Status: "Failure", Reason: metav1.StatusReasonForbidden, Code: 403,
				Message: "webhook x denied the request"})
			return
		}
		json.NewEncoder(w).Encode(s.lease)
	case r.Method == http.MethodPut:
		s.updates++
		json.NewDecoder(r.Body).Decode(s.lease)
		json.NewEncoder(w).Encode(s.lease)
	case strings.HasSuffix(r.URL.Path, "/leases"):
		json.NewEncoder(w).Encode(coordinationv1.LeaseList{Items: []coordinationv1.Lease{*s.lease,
			{ObjectMeta: metav1.ObjectMeta{Name: "apiserver-abc"}}}})
	default:
		s.reads++
		json.NewEncoder(w).Encode(s.lease)
	}
}

// renew notes that the holder renews the lease now.
func (s *leaseServer) renew() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.lease.Spec.RenewTime = new(metav1.NowMicro())
}

// supervised runs a supervisor for a test.
func supervised(t *testing.T) *supervisor.Supervisor {
	t.Helper()
	s := supervisor.New(supervisor.Config{LogDir: t.TempDir()})
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- s.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
	return s
}

// sleeper is a process that does nothing.
func sleeper(name string) supervisor.Spec {
	return supervisor.Spec{Name: name, Path: "/bin/sleep", Args: []string{"1000"}}
}

// runs starts a process under the component's name, and returns its status once it runs.
func (w *world) runs(component string) (s supervisor.Status) {
	w.t.Helper()
	if err := w.leaders.supervisor.Start(sleeper(component)); err != nil {
		w.t.Fatal(err)
	}
	eventually(w.t, "it runs", func() bool {
		s, _ = w.leaders.supervisor.StatusOf(component)
		return s.State == supervisor.Ready
	})
	return s
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
