package supervisor

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

// Checks that the tests give to probes.

// stoppedCheck fails while the process is stopped by a signal.
func stoppedCheck(pid func() int) func(context.Context) error {
	return func(context.Context) error {
		stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid()))
		if err == nil && strings.Contains(string(stat), ") T ") {
			return errors.New("it is stopped")
		}
		return nil
	}
}

// notedCheck passes once the file holds the words.
func notedCheck(file, words string) func(context.Context) error {
	return func(context.Context) error {
		data, _ := os.ReadFile(file)
		if !strings.Contains(string(data), words) {
			return fmt.Errorf("%q is not noted yet", words)
		}
		return nil
	}
}

// times are when a check was asked.
type times struct {
	mu  sync.Mutex
	all []time.Time
}

func (ts *times) of(check func(context.Context) error) func(context.Context) error {
	return func(ctx context.Context) error {
		ts.mu.Lock()
		ts.all = append(ts.all, time.Now())
		ts.mu.Unlock()
		return check(ctx)
	}
}

func (ts *times) list() []time.Time {
	ts.mu.Lock()
	defer ts.mu.Unlock()
	return slices.Clone(ts.all)
}

// getFrom is HTTPGet of an address that is known only when it is asked.
func getFrom(client *http.Client, url func() string) func(context.Context) error {
	return func(ctx context.Context) error { return HTTPGet(client, url(), nil)(ctx) }
}

func TestHTTPGetTellsTheStatusAndTheBeginOfTheBody(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/readyz":
			w.WriteHeader(http.StatusInternalServerError)
			fmt.Fprint(w, "[+]ping ok\n[-]etcd failed: reason withheld\n"+strings.Repeat("x", 10_000))
		case "/slow":
			<-r.Context().Done()
		case "/elsewhere":
			w.WriteHeader(http.StatusNotModified)
		case "/cut":
			w.Header().Set("Content-Length", "100")
			fmt.Fprint(w, "ok")
		}
	}))
	defer server.Close()
	if err := HTTPGet(server.Client(), server.URL+"/livez", nil)(t.Context()); err != nil {
		t.Error(err)
	}
	err := HTTPGet(server.Client(), server.URL+"/readyz", nil)(t.Context())
	expectError(t, "a refusal", err, server.URL+"/readyz: 500 Internal Server Error: [+]ping ok [-]etcd failed: "+
		"reason withheld")
	if len(err.Error()) > 400 {
		t.Errorf("the error has %d characters", len(err.Error()))
	}
	err = Probe{Check: HTTPGet(server.Client(), server.URL+"/slow", nil), Timeout: 20 * time.Millisecond}.ask(t.Context())
	expectError(t, "no answer", err, server.URL+"/slow: no answer in 20ms")
	expectError(t, "not an answer of its own", HTTPGet(server.Client(), server.URL+"/elsewhere", nil)(t.Context()),
		"304 Not Modified")
	expectError(t, "half an answer", HTTPGet(server.Client(), server.URL+"/cut", nil)(t.Context()),
		"read the answer: unexpected EOF")
	expectError(t, "nobody there", HTTPGet(server.Client(), "http://127.0.0.1:1/x", nil)(t.Context()), "connection refused")
	expectError(t, "no address", HTTPGet(server.Client(), "::", nil)(t.Context()), "::")
}

func TestHTTPGetUsesItsConnectionAgain(t *testing.T) {
	addresses := map[string]bool{}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		addresses[r.RemoteAddr] = true // requests come one after the other
		http.Error(w, strings.Repeat("x", 20_000), http.StatusServiceUnavailable)
	}))
	defer server.Close()
	for range 5 {
		expectError(t, "unready", HTTPGet(server.Client(), server.URL, nil)(t.Context()), "503")
	}
	if len(addresses) != 1 {
		t.Errorf("5 checks took %d connections", len(addresses))
	}
}
