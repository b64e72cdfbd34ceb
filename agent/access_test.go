package agent

import (
	"bytes"
	"context"
	"crypto/tls"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"sync"
	"testing"

	"github.com/quorate/quorate/certs"
	"github.com/quorate/quorate/internal/replica"
	"github.com/quorate/quorate/supervisor"
)

// clusterAPI is an apiserver that has objects by path. It refuses the agent until its role is there, and fails the
// first requests.
type clusterAPI struct {
	mu       sync.Mutex
	objects  map[string][]byte
	fails    int
	requests []string
	deleted  []byte // what the last deletion asked for
	onPut    func() // nil: nothing happens then
}

// put has an object there.
func (s *clusterAPI) put(path string, object any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	b, err := json.Marshal(object)
	if err != nil {
		panic(err)
	}
	s.objects[path] = b
}

func (s *clusterAPI) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.requests = append(s.requests, r.Method+" "+r.URL.Path)
	w.Header().Set("Content-Type", "application/json")
	status := func(code int, reason string) {
		w.WriteHeader(code)
		io.WriteString(w, `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"`+reason+`"}`)
	}
	b, _ := io.ReadAll(r.Body)
	switch {
	case s.fails > 0:
		s.fails--
		status(http.StatusInternalServerError, "InternalError")
	case r.Method == http.MethodPatch, r.Method == http.MethodPut:
		if r.Method == http.MethodPut && s.onPut != nil {
			s.onPut()
		}
		s.objects[r.URL.Path] = b
		w.Write(b)
	case r.Method == http.MethodDelete:
		s.deleted = b
		status(http.StatusOK, "")
	case r.Method == http.MethodPost:
		var o struct{ Metadata struct{ Name string } }
		if err := json.Unmarshal(b, &o); err != nil {
			status(http.StatusBadRequest, "BadRequest")
			return
		}
		s.objects[r.URL.Path+"/"+o.Metadata.Name] = b
		w.Write(b)
	case s.objects[rolePath] == nil:
		status(http.StatusForbidden, "Forbidden")
	case s.objects[r.URL.Path] == nil:
		status(http.StatusNotFound, "NotFound")
	default:
		w.Write(s.objects[r.URL.Path])
	}
}

func (s *clusterAPI) count(method string) (n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, r := range s.requests {
		if r[:len(method)] == method {
			n++
		}
	}
	return n
}

const (
	rbacPath    = "/apis/rbac.authorization.k8s.io/v1/"
	rolePath    = rbacPath + "clusterroles/quorate:agent"
	kubeletPath = rbacPath + "clusterrolebindings/quorate:apiserver-kubelet"
)

// answeringAPI has an apiserver answer where the replica's is, with the replica's own certificate.
func answeringAPI(t *testing.T, in *certified) *clusterAPI {
	t.Helper()
	pair, err := tls.LoadX509KeyPair(in.files.Leaf(certs.APIServer), in.files.Leaf(certs.APIServer))
	if err != nil {
		t.Fatal(err)
	}
	api := &clusterAPI{objects: map[string][]byte{}}
	l := listen(t, "127.0.0.1:0")
	server := httptest.NewUnstartedServer(api)
	server.TLS = &tls.Config{Certificates: []tls.Certificate{pair}}
	server.Listener.Close()
	server.Listener = l
	server.StartTLS()
	t.Cleanup(server.Close)
	in.cluster.Endpoint.Port = portOf(l)
	return api
}

// serving is that, and the agent knows that its apiserver runs.
func serving(t *testing.T, a *Agent, in *certified) *clusterAPI {
	t.Helper()
	api := answeringAPI(t, in)
	supervised(t, a)
	if err := a.supervisor.Start(sleeper("kube-apiserver")); err != nil {
		t.Fatal(err)
	}
	return api
}

// The roles are granted however often that fails at first: without them nobody frees leases, and kubelets refuse the
// apiserver.
func TestTheRolesAreGrantedUntilThatIsDone(t *testing.T) {
	_, a, in := renewing(t)
	api := serving(t, a, &in)
	api.fails = 2
	ctx, cancel := context.WithCancel(t.Context())
	var reading sync.WaitGroup
	reading.Go(func() { a.leaders.Keep(ctx) }) // it reads the leases as soon as they are open
	defer reading.Wait()
	defer cancel()
	done := make(chan struct{})
	go func() { defer close(done); a.keepAccess(t.Context(), joined{in}) }()
	eventually(t, "the failure is said", func() bool {
		return slices.ContainsFunc(a.tracker.All(), func(b replica.Wait) bool { return b.Name == roleNotGranted })
	})
	<-done
	eventually(t, "the leases are read", func() bool {
		api.mu.Lock()
		defer api.mu.Unlock()
		return slices.Contains(api.requests, "GET /apis/coordination.k8s.io/v1/namespaces/kube-system/leases")
	})
	if len(api.objects) != 3 || api.objects[kubeletPath] == nil || len(a.tracker.All()) != 0 ||
		!isClosed(a.leaders.Opened()) {
		t.Errorf("granted %d, waits %+v", len(api.objects), a.tracker.All())
	}
}

// A boot that has not read the bundle asks whether the roles are there, and reads it where they are not.
func TestABootWithoutTheBundleGrantsWhatIsNotGranted(t *testing.T) {
	v, a, in := renewing(t)
	api := serving(t, a, &in)
	in.issued.Bundle = nil
	without := func() (patches int) {
		t.Helper()
		api.mu.Lock()
		api.requests = nil
		api.mu.Unlock()
		a.keepAccess(t.Context(), joined{in})
		return api.count(http.MethodPatch)
	}
	if n := without(); n != 3 || len(api.objects) != 3 {
		t.Errorf("nothing is granted: %d patches", n)
	}
	v.bundles.err = errBroken // it is not needed from here on
	if n := without(); n != 0 || api.count(http.MethodGet) != 3 {
		t.Errorf("all is granted: %d patches, %q", n, api.requests)
	}
	v.bundles.err = nil
	more := bytes.Replace(api.objects[rolePath], []byte(`"rules":[`), []byte(`"rules":[{"verbs":["get"]},`), 1)
	api.objects[rolePath] = more // another version's
	if n := without(); n != 0 {
		t.Errorf("a role that allows more: %d patches", n)
	}
	other := []byte(`{"apiVersion":"rbac.authorization.k8s.io/v1","metadata":{"name":"x"}}`)
	for _, c := range []struct {
		name, path string
		is         []byte
	}{
		{"another role", rolePath, other},
		{"another binding", kubeletPath, other},
		{"a binding that was taken away", kubeletPath, nil},
		{"a role that was taken away", rolePath, nil},
	} {
		api.objects[c.path] = c.is
		if n := without(); n != 3 {
			t.Errorf("%s: %d patches", c.name, n)
		}
	}
}

// Nothing is asked of an apiserver that is not ready, for as long as it takes.
func TestTheRolesWaitForTheAPIServer(t *testing.T) {
	_, a, in := renewing(t)
	api := serving(t, a, &in)
	if err := a.supervisor.Stop(t.Context(), "kube-apiserver"); err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	go func() { defer close(done); a.keepAccess(t.Context(), joined{in}) }()
	select {
	case <-done:
		t.Error("granted by whom?")
	default:
	}
	if n := api.count(""); n != 0 || len(a.tracker.All()) != 0 {
		t.Errorf("%d requests, waits %+v", n, a.tracker.All())
	}
	if err := a.supervisor.Start(supervisor.Spec{Name: "kube-apiserver", Path: "/bin/sleep",
		Args: []string{"1000"}}); err != nil {
		t.Fatal(err)
	}
	<-done
	if len(api.objects) != 3 {
		t.Errorf("granted %d", len(api.objects))
	}
}

func isClosed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}
