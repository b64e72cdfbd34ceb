package bucket

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/fsouza/fake-gcs-server/fakestorage"
)

// fault is what happens to one request on its way to the bucket.
type fault int

const (
	none      fault = iota
	refused         // 503, and it has no effect
	lost            // it takes effect, the connection breaks instead of an answer
	lied            // it takes effect, the answer is 503
	delayed         // it takes effect late
	late            // it takes effect at once, the answer comes late
	silent          // it takes effect, no answer comes
	throttled       // 429, and it has no effect
	forbidden       // 403
	torn            // the answer breaks off in the middle of its body
	cut             // the connection breaks, and it has no effect
	hung            // no answer comes, and it has no effect
	stuck           // the answer stops in the middle of its body
	altered         // one bit of the answer's body is another
)

// testBucket is a bucket on a real GCS-speaking server, with faults in front.
type testBucket struct {
	server *fakestorage.Server
	front  *httptest.Server
	url    string

	mu     sync.Mutex
	counts map[string]int
	plan   func(doing string, n int) fault // doing: upload, read or list; n counts from 0
}

// newBucket starts a server with the bucket "b" and the given objects.
func newBucket(t *testing.T, objects ...fakestorage.Object) *testBucket {
	t.Helper()
	server, err := fakestorage.NewServerWithOptions(fakestorage.Options{NoListener: true, InitialObjects: objects})
	if err != nil {
		t.Fatal(err)
	}
	server.CreateBucketWithOpts(fakestorage.CreateBucketOpts{Name: "b"})
	b := &testBucket{server: server, counts: map[string]int{}, plan: func(string, int) fault { return none }}
	b.front = httptest.NewServer(b)
	t.Cleanup(b.front.Close)
	b.url = "gs://b/some/prefix?endpoint=" + url.QueryEscape(b.front.URL)
	return b
}

// always answers each request of one sort with one fault, the first times only if times > 0.
func (b *testBucket) always(doing string, f fault, times int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.plan = func(d string, n int) fault {
		if d == doing && (times == 0 || n < times) {
			return f
		}
		return none
	}
}

func (b *testBucket) count(doing string) int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.counts[doing]
}

// next is the fault for the next request of a sort.
func (b *testBucket) next(r *http.Request) (doing string, f fault) {
	doing = "read"
	switch {
	case strings.HasPrefix(r.URL.Path, "/upload/"):
		doing = "upload"
	case strings.HasSuffix(r.URL.Path, "/o"):
		doing = "list"
	case !strings.Contains(r.URL.Path, "/o/"):
		doing = "rules"
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	n := b.counts[doing]
	b.counts[doing]++
	return doing, b.plan(doing, n)
}

// withUniformAccess adds to a bucket's own words what the server does not know of.
func withUniformAccess(body *bytes.Buffer) {
	var bucket map[string]any
	if json.Unmarshal(body.Bytes(), &bucket) != nil {
		return
	}
	bucket["iamConfiguration"] = map[string]any{"uniformBucketLevelAccess": map[string]any{"enabled": true}}
	body.Reset()
	_ = json.NewEncoder(body).Encode(bucket) // what was decoded can be encoded
}

// slowness is how late a delayed or late request is: well within one try.
const slowness = 30 * time.Millisecond

// ServeHTTP implements http.Handler.
func (b *testBucket) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	doing, f := b.next(r)
	switch f {
	case refused:
		http.Error(w, "injected", http.StatusServiceUnavailable)
		return
	case throttled:
		http.Error(w, "injected", http.StatusTooManyRequests)
		return
	case forbidden:
		http.Error(w, "injected", http.StatusForbidden)
		return
	case cut:
		panic(http.ErrAbortHandler)
	case hung:
		io.Copy(io.Discard, r.Body) // the server sees that the client goes away once it has read all
		<-r.Context().Done()
		return
	case delayed:
		time.Sleep(slowness)
	}
	answer := httptest.NewRecorder()
	b.server.HTTPHandler().ServeHTTP(answer, r)
	if doing == "rules" {
		withUniformAccess(answer.Body)
	}
	switch f {
	case lost:
		panic(http.ErrAbortHandler) // net/http cuts the connection
	case lied:
		http.Error(w, "injected", http.StatusServiceUnavailable)
		return
	case late:
		time.Sleep(slowness)
	case silent:
		<-r.Context().Done()
		return
	}
	for name, values := range answer.Header() {
		w.Header()[name] = values
	}
	w.WriteHeader(answer.Code)
	content := answer.Body.Bytes()
	switch f {
	case torn, stuck:
		w.Write(content[:len(content)/2])
		w.(http.Flusher).Flush()
		if f == stuck {
			<-r.Context().Done()
		}
		panic(http.ErrAbortHandler)
	case altered:
		content[len(content)/2] ^= 1
	}
	w.Write(content)
}
