package gce

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/quorate/quorate/internal/replica"
)

const testBootID = "0f6e8ac3-5b5d-4f2e-9d43-6a0b8e1c7f10"

// fakeMetadata is a metadata server of one VM that can misbehave.
type fakeMetadata struct {
	t  *testing.T
	mu sync.Mutex
	// values are by path below /computeMetadata/v1/, with the query of recursive questions.
	values map[string]string
	// version is the ETag of everything; changed is closed and replaced with each change.
	version int
	changed chan struct{}
	// fault answers in place of the server, when it returns true.
	fault func(w http.ResponseWriter, r *http.Request) bool
}

func newFakeMetadata(t *testing.T) *fakeMetadata {
	return &fakeMetadata{t: t, changed: make(chan struct{}), values: map[string]string{
		"instance/id":                 "4520031799277581759",
		"instance/name":               "demo-master-a",
		"instance/zone":               "projects/123456789/zones/us-central1-a",
		"project/project-id":          "example.com:demo",
		"project/numeric-project-id":  "123456789\n",
		interfacesPath:                `[{"ip":"10.240.0.2","ipv6s":["fd20:0:0:1::2","2600:1900::5"],"accessConfigs":[{"externalIp":"198.51.100.7"}],"forwardedIps":["203.0.113.10"]},{"ip":"192.168.7.2"}]`,
		"instance/attributes/empty":   "",
		"instance/attributes/quorate": "kind: Cluster\n",
		"instance/maintenance-event":  "NONE",
		watchedAttributes:             `{"empty":"","quorate":"kind: Cluster\n"}`,
	}}
}

const watchedAttributes = "instance/attributes/?recursive=true&alt=json"

func (f *fakeMetadata) set(path, value string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.values[path] = value
	f.version++
	close(f.changed)
	f.changed = make(chan struct{})
}

func (f *fakeMetadata) setFault(fault func(http.ResponseWriter, *http.Request) bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.fault = fault
}

func (f *fakeMetadata) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	f.mu.Lock()
	fault := f.fault
	f.mu.Unlock()
	if fault != nil && fault(w, r) {
		return
	}
	if r.Header.Get("Metadata-Flavor") != "Google" {
		f.t.Errorf("%s was asked without the header Metadata-Flavor", r.URL)
	}
	w.Header().Set("Metadata-Flavor", "Google")
	f.hold(r)
	f.mu.Lock()
	defer f.mu.Unlock()
	path := strings.TrimPrefix(r.URL.Path, "/computeMetadata/v1/")
	if r.URL.Query().Get("recursive") != "" {
		path += "?recursive=true&alt=json"
	}
	value, ok := f.values[path]
	w.Header().Set("ETag", fmt.Sprintf("v%d", f.version))
	if !ok {
		w.Header().Set("Content-Type", "text/html; charset=UTF-8")
		w.WriteHeader(http.StatusNotFound)
		return
	}
	w.Header().Set("Content-Type", "application/text")
	fmt.Fprint(w, value)
}

// hold keeps a question that waits for a change.
func (f *fakeMetadata) hold(r *http.Request) {
	f.mu.Lock()
	same := fmt.Sprintf("v%d", f.version) == r.URL.Query().Get("last_etag")
	changed := f.changed
	f.mu.Unlock()
	if same && r.URL.Query().Get("wait_for_change") == "true" {
		select {
		case <-changed:
		case <-r.Context().Done():
		}
	}
}

// dial starts the fake and makes a client of it that gives up after wait.
func (f *fakeMetadata) dial(wait time.Duration) *Metadata {
	f.t.Helper()
	server := httptest.NewServer(f)
	f.t.Cleanup(server.Close)
	boot := filepath.Join(f.t.TempDir(), "boot_id")
	if err := os.WriteFile(boot, []byte(testBootID+"\n"), 0o600); err != nil {
		f.t.Fatal(err)
	}
	return NewMetadata(MetadataConfig{Host: strings.TrimPrefix(server.URL, "http://"), Wait: wait, BootIDFile: boot})
}

func TestIdentityIsReadAsTheServerTellsIt(t *testing.T) {
	t.Parallel()
	id, err := newFakeMetadata(t).dial(time.Second).Identity(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	want := replica.Identity{
		Place:      replica.Place{Zone: "us-central1-a", Name: "demo-master-a"},
		InstanceID: "4520031799277581759", BootID: testBootID, Project: "example.com:demo", ProjectNumber: "123456789",
		Addresses: []netip.Addr{netip.MustParseAddr("10.240.0.2"), netip.MustParseAddr("fd20:0:0:1::2"),
			netip.MustParseAddr("192.168.7.2")},
	}
	if diff := cmp.Diff(want, id, cmp.Comparer(func(a, b netip.Addr) bool { return a == b })); diff != "" {
		t.Error(diff)
	}
}

// Each piece that is missing or malformed is one error that names the key; nothing is guessed.
func TestIdentityRefuses(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct{ name, key, value, want string }{
		{"an id that is no number", "instance/id", "demo-master-a",
			`instance/id: found "demo-master-a"; allowed: the VM's number`},
		{"an id of zero", "instance/id", "0", `instance/id: found "0"`},
		{"a zone without project", "instance/zone", "us-central1-a",
			`instance/zone: found "us-central1-a"; allowed: projects/NUMBER/zones/ZONE`},
		{"a zone that ends early", "instance/zone", "projects/1/zones/", `instance/zone: found "projects/1/zones/"`},
		{"a zone with a dot", "instance/zone", "projects/1/zones/us.central1-a", "instance/zone: found"},
		{"a name that climbs", "instance/name", "../../etc", `instance/name: found "../../etc"`},
		{"a name of two lines", "instance/name", "a\nb", `instance/name: found "a\nb"`},
		{"an empty project", "project/project-id", "", `project/project-id: found ""`},
		{"a project number in words", "project/numeric-project-id", "one", `project/numeric-project-id: found "one"`},
		{"interfaces that are no JSON", interfacesPath, "0/\n", "instance/network-interfaces/: invalid character"},
		{"no interface", interfacesPath, "[]", "found no internal address"},
		{"an interface without address", interfacesPath, `[{"ip":""}]`, "found no internal address"},
		{"an address that is none", interfacesPath, `[{"ip":"nic0"}]`,
			`instance/network-interfaces/0: found "nic0"; allowed: an internal address`},
		{"a loopback address", interfacesPath, `[{"ip":"127.0.0.1"}]`, `found "127.0.0.1"`},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			f := newFakeMetadata(t)
			f.values[tc.key] = tc.value
			_, err := f.dial(time.Second).Identity(t.Context())
			if !errors.Is(err, ErrMetadata) || !strings.Contains(err.Error(), tc.want) ||
				strings.Contains(err.Error(), "\n") {
				t.Errorf("got %v, want %q", err, tc.want)
			}
		})
	}
	for key := range newFakeMetadata(t).values {
		if strings.HasPrefix(key, "instance/attributes/") || key == maintenancePath {
			continue
		}
		f := newFakeMetadata(t)
		delete(f.values, key)
		if _, err := f.dial(time.Second).Identity(t.Context()); err == nil || !strings.Contains(err.Error(), key) {
			t.Errorf("without %s: got %v", key, err)
		}
	}
}

func TestIdentityNeedsABootID(t *testing.T) {
	t.Parallel()
	m := newFakeMetadata(t).dial(time.Second)
	if err := os.WriteFile(m.bootIDFile, []byte("none"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := m.Identity(t.Context()); err == nil ||
		!strings.Contains(err.Error(), `found "none"; allowed: a UUID`) {
		t.Errorf("got %v", err)
	}
	m.bootIDFile += "-away"
	if _, err := m.Identity(t.Context()); err == nil || !strings.Contains(err.Error(), "read the kernel's boot id") {
		t.Errorf("got %v", err)
	}
}

func TestAttribute(t *testing.T) {
	t.Parallel()
	m := newFakeMetadata(t).dial(time.Second)
	for _, tc := range []struct {
		key, value string
		found      bool
	}{{"quorate", "kind: Cluster\n", true}, {"empty", "", true}, {"absent", "", false}} {
		value, found, err := m.Attribute(t.Context(), tc.key)
		if value != tc.value || found != tc.found || err != nil {
			t.Errorf("%s: got %q, %v, %v", tc.key, value, found, err)
		}
	}
	if _, _, err := m.Attribute(t.Context(), "../service-accounts/default/token"); err == nil {
		t.Error("a key that climbs was asked for")
	}
}

// No fault of the server may look like an attribute that is absent.
func TestAttributeWhenTheServerMisbehaves(t *testing.T) {
	t.Parallel()
	answer := func(status int, header, body string) func(http.ResponseWriter, *http.Request) bool {
		return func(w http.ResponseWriter, _ *http.Request) bool {
			if k, v, ok := strings.Cut(header, ": "); ok {
				w.Header().Set(k, v)
			}
			w.WriteHeader(status)
			fmt.Fprint(w, body)
			return true
		}
	}
	google := "Metadata-Flavor: Google"
	for _, tc := range []struct {
		name  string
		want  string
		quick bool
		fault func(http.ResponseWriter, *http.Request) bool
	}{
		{"a web page", "found an answer (200 OK, text/html) without the header Metadata-Flavor: Google; something else",
			true, answer(200, "Content-Type: text/html", "<html>sign in</html>")},
		{"a web page with the header", "found a web page", true, func(w http.ResponseWriter, r *http.Request) bool {
			w.Header().Set("Content-Type", "text/html")
			return answer(200, google, "<html>")(w, r)
		}},
		{"another server's 404", "found an answer (404 Not Found", true, answer(404, "", "no such page")},
		{"a redirect", "found a redirect (302 Found) to \"http://203.0.113.1/\"", true,
			answer(302, "Location: http://203.0.113.1/", "")},
		{"a refusal", `found status 403: "no"`, true, answer(403, google, "no")},
		{"a flood", "found an answer above 2097152 bytes", true, answer(200, google, strings.Repeat("x", maxBody+1))},
		{"always overloaded", `found status 503: "busy"`, false, answer(503, "", "busy")},
		{"silence", "tries: no answer within 50ms", false,
			func(_ http.ResponseWriter, r *http.Request) bool { <-r.Context().Done(); return true }},
		{"a connection cut within the answer", "gave up after 300ms", false,
			func(w http.ResponseWriter, _ *http.Request) bool {
				w.Header().Set("Content-Length", "100")
				w.Header().Set("Metadata-Flavor", "Google")
				fmt.Fprint(w, "kind: Cl")
				panic(http.ErrAbortHandler)
			}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			f := newFakeMetadata(t)
			f.fault = tc.fault
			wait := 300 * time.Millisecond
			if tc.quick {
				wait = time.Minute
			}
			started := time.Now()
			value, found, err := f.dial(wait).Attribute(t.Context(), "quorate")
			if err == nil || value != "" || found {
				t.Fatalf("got %q, %v, %v", value, found, err)
			}
			if !strings.Contains(err.Error(), tc.want) ||
				!strings.Contains(err.Error(), "ask the metadata server at 127.0.0.1:") ||
				!strings.Contains(err.Error(), "instance/attributes/quorate") {
				t.Errorf("got %v, want %q", err, tc.want)
			}
			if !errors.Is(err, ErrMetadata) {
				t.Errorf("%v is not ErrMetadata", err)
			}
			if took := time.Since(started); took > 5*time.Second {
				t.Errorf("it took %s", took)
			}
		})
	}
}

func TestServerThatIsAway(t *testing.T) {
	t.Parallel()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	l.Close()
	m := NewMetadata(MetadataConfig{Host: l.Addr().String(), Wait: 300 * time.Millisecond})
	_, err = m.Identity(t.Context())
	if !errors.Is(err, ErrMetadata) ||
		!strings.Contains(err.Error(),
			"ask the metadata server at "+l.Addr().String()+" for instance/id: gave up after 300ms") ||
		!strings.Contains(err.Error(), "connection refused") {
		t.Errorf("got %v", err)
	}
}

func TestQuestionEndsWithItsContext(t *testing.T) {
	t.Parallel()
	f := newFakeMetadata(t)
	f.fault = func(_ http.ResponseWriter, r *http.Request) bool { <-r.Context().Done(); return true }
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if _, _, err := f.dial(time.Minute).Attribute(ctx, "quorate"); err == nil ||
		!strings.Contains(err.Error(), "context deadline exceeded") {
		t.Errorf("got %v", err)
	}
}

func TestServerThatRecoversIsWaitedFor(t *testing.T) {
	t.Parallel()
	f := newFakeMetadata(t)
	var asked atomic.Int64
	f.fault = func(w http.ResponseWriter, _ *http.Request) bool {
		if asked.Add(1) > 3 {
			return false
		}
		w.WriteHeader(http.StatusServiceUnavailable)
		return true
	}
	if value, found, err := f.dial(time.Minute).Attribute(t.Context(), "quorate"); value == "" || !found || err != nil {
		t.Errorf("got %q, %v, %v", value, found, err)
	}
}

// The official client would follow the variable to whoever set it.
func TestEnvironmentCannotMoveTheServer(t *testing.T) {
	stranger := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter,
		*http.Request) {
		t.Error("the stranger was asked")
	}))
	t.Cleanup(stranger.Close)
	t.Setenv("GCE_METADATA_HOST", strings.TrimPrefix(stranger.URL, "http://"))
	t.Setenv("HTTP_PROXY", stranger.URL)
	t.Setenv("http_proxy", stranger.URL)
	m := newFakeMetadata(t).dial(time.Second)
	if _, err := m.Identity(t.Context()); err != nil {
		t.Error(err)
	}
	if zero := NewMetadata(MetadataConfig{}); zero.host != "169.254.169.254" || zero.wait != 30*time.Second {
		t.Errorf("the zero value asks %s for %s", zero.host, zero.wait)
	}
}

// An answer that says neither its length nor where it ends looks whole also where the connection broke in its middle.
func TestAnAnswerWithoutAnEndIsNotTaken(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct{ header, body, want string }{
		"no length":               {"Connection: close\r\n", "kind: Clu", ""},
		"a length":                {"Content-Length: 9\r\n", "kind: Clu", "kind: Clu"},
		"a length, ends early":    {"Content-Length: 14\r\n", "kind: Clu", ""},
		"chunks":                  {"Transfer-Encoding: chunked\r\n", "9\r\nkind: Clu\r\n0\r\n\r\n", "kind: Clu"},
		"chunks without the last": {"Transfer-Encoding: chunked\r\n", "9\r\nkind: Clu\r\n", ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFakeMetadata(t)
			f.setFault(func(w http.ResponseWriter, _ *http.Request) bool {
				c, b, err := w.(http.Hijacker).Hijack()
				if err != nil {
					t.Error(err)
					return true
				}
				fmt.Fprintf(b, "HTTP/1.1 200 OK\r\nMetadata-Flavor: Google\r\nContent-Type: "+
					"application/text\r\n%s\r\n%s",
					tc.header, tc.body)
				b.Flush()
				c.Close()
				return true
			})
			got, found, err := f.dial(300*time.Millisecond).Attribute(t.Context(), "quorate")
			if got != tc.want || found != (tc.want != "") || (err == nil) != found {
				t.Errorf("got %q, %t, %v: want %q", got, found, err, tc.want)
			}
		})
	}
}
