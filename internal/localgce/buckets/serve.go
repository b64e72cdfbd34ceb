package buckets

import (
	"bytes"
	"errors"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/quorate/quorate/internal/localgce/answer"
	"github.com/quorate/quorate/internal/localgce/fault"
	"github.com/quorate/quorate/internal/localgce/instance"
)

// Serve serves them to this machine until stop, and says what record.url is: for what an operator
// does before a project is up, and for tests that need none.
func Serve(folder string) (recordURL string, stop func(), err error) {
	b, err := Open(folder, nil)
	if err != nil {
		return "", nil, err
	}
	server := httptest.NewServer(b)
	return "gs://" + instance.BucketName + "?endpoint=" + server.URL, server.Close, nil
}

// Client reaches the buckets without a network.
func (b *Server) Client() *http.Client { return &http.Client{Transport: direct{b}} }

// direct is a server in its client's own process.
type direct struct{ http.Handler }

// RoundTrip implements http.RoundTripper.
func (d direct) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	if r.Body == nil {
		r.Body = http.NoBody
	}
	w := httptest.NewRecorder()
	d.ServeHTTP(w, r)
	return w.Result(), nil
}

// ServeHTTP implements http.Handler.
func (b *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	reads := r.Method == http.MethodGet || r.Method == http.MethodHead
	switch {
	case reads && b.refuses(w, r, nil):
		return
	case b.serveSettings(w, r):
		return
	case reads && strings.Contains(r.URL.Path, "/o/"):
		b.read(w, r)
		return
	case reads && fault.Of(r).Kind == "empty" && strings.HasSuffix(r.URL.Path, "/o"):
		answer.JSON(w, map[string]any{"kind": "storage#objects"})
		return
	}
	body, err := io.ReadAll(r.Body) // before the lock: who stalls in the middle of an upload holds up nobody else
	if err != nil {
		answer.Error(w, http.StatusBadRequest, "invalid", "The request broke off: "+err.Error())
		return
	}
	r.Body = io.NopCloser(bytes.NewReader(body))
	if !reads && b.refuses(w, r, body) {
		return
	}
	if !reads {
		time.Sleep(time.Microsecond) // or two changes could have one generation, where the clock is a test's
	}
	a := b.listOrChange(r, reads)
	maps.Copy(w.Header(), a.Header())
	w.WriteHeader(a.Code)
	_, _ = w.Write(a.Body.Bytes()) // the client has gone
}

// read answers with one object. Once the answer begins it has all that it needs, and a slow reader holds up no writer.
func (b *Server) read(w http.ResponseWriter, r *http.Request) {
	b.mu.RLock()
	if b.changed(r.URL.Path) {
		b.mu.RUnlock()
		b.mu.Lock()
		if b.refresh() != nil {
			b.server = nil
		}
		b.mu.Unlock()
		b.mu.RLock()
	}
	begun := &beginning{ResponseWriter: w, begun: sync.OnceFunc(b.mu.RUnlock)}
	defer begun.begun()
	if b.server == nil {
		answer.Error(begun, http.StatusServiceUnavailable, "backendError", "The folder of the buckets cannot be read.")
		return
	}
	b.server.HTTPHandler().ServeHTTP(begun, r)
}

// changed says whether somebody else has changed the file of an object. b.mu is held for reading.
func (b *Server) changed(path string) bool {
	_, name, _ := strings.Cut(path, "/b/")
	name = strings.Replace(name, "/o/", "/", 1)
	info, err := os.Lstat(filepath.Join(b.folder, name))
	if err != nil {
		return b.served[name] != 0
	}
	return b.served[name] != info.ModTime().UnixMicro()
}

// beginning says when an answer begins.
type beginning struct {
	http.ResponseWriter
	begun func()
}

// WriteHeader implements http.ResponseWriter.
func (b *beginning) WriteHeader(code int) {
	b.begun()
	b.ResponseWriter.WriteHeader(code)
}

// Write implements http.ResponseWriter.
func (b *beginning) Write(p []byte) (int, error) {
	b.begun()
	return b.ResponseWriter.Write(p)
}

// listOrChange answers from what is in the folder now, and brings the folder in line. A change that cannot be written
// was none.
func (b *Server) listOrChange(r *http.Request, reads bool) *httptest.ResponseRecorder {
	b.mu.Lock()
	defer b.mu.Unlock()
	a := httptest.NewRecorder()
	err := b.refresh()
	if err == nil {
		b.server.HTTPHandler().ServeHTTP(a, r)
	}
	if err == nil && !reads {
		err = b.keep()
	}
	if err != nil {
		b.server = nil
		err = errors.Join(err, b.refresh())
		a = httptest.NewRecorder()
		answer.Error(a, http.StatusServiceUnavailable, "backendError", err.Error())
	}
	return a
}
