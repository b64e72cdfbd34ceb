// Package metadata is the metadata server of one VM.
package metadata

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/quorate/quorate/internal/localgce/instance"
)

// Server answers as GCE's at 169.254.169.254 does, for one VM: listings, recursive and JSON answers, ETag,
// wait_for_change, tokens. It is an http.Handler and needs no Project, so tests can serve it anywhere
// (GCE_METADATA_HOST). Safe for concurrent use.
type Server struct {
	mu      sync.Mutex
	tree    map[string]any
	changed chan struct{} // closed and replaced at each change
}

// New serves the instance.
func New(i instance.VM) *Server {
	return &Server{tree: treeOf(i), changed: make(chan struct{})}
}

// Set replaces what is served and wakes those who wait for a change of what they asked for.
func (m *Server) Set(i instance.VM) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.tree = treeOf(i)
	close(m.changed)
	m.changed = make(chan struct{})
}

func (m *Server) snapshot() (map[string]any, <-chan struct{}) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.tree, m.changed
}

// ServeHTTP implements http.Handler.
func (m *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Server", "Metadata Server for VM")
	w.Header().Set("Metadata-Flavor", "Google")
	w.Header().Set("X-Frame-Options", "0")
	switch r.URL.Path {
	case "/":
		fmt.Fprint(w, "computeMetadata/\n")
		return
	case "/computeMetadata/":
		fmt.Fprint(w, "v1/\n")
		return
	}
	if r.Header.Get("Metadata-Flavor") != "Google" || r.Header.Get("X-Forwarded-For") != "" {
		refuse(w, http.StatusForbidden, "Missing required header \"Metadata-Flavor\": \"Google\", or the request was "+
			"forwarded")
		return
	}
	if r.Method != http.MethodGet && r.Method != http.MethodHead {
		refuse(w, http.StatusMethodNotAllowed, "method not allowed")
		return
	}
	path, ok := strings.CutPrefix(r.URL.Path, "/computeMetadata/v1")
	if !ok || path != "" && path[0] != '/' {
		refuse(w, http.StatusNotFound, "not found")
		return
	}
	m.answer(w, r, strings.TrimPrefix(path, "/"))
}

func (m *Server) answer(w http.ResponseWriter, r *http.Request, path string) {
	key, query := strings.TrimSuffix(path, "/"), r.URL.Query()
	recursive := query.Get("recursive") == "true"
	node, ok := m.await(r, key)
	if !ok {
		refuse(w, http.StatusNotFound, "not found: "+key)
		return
	}
	if isFolder(node) && !recursive && !strings.HasSuffix(r.URL.Path, "/") {
		w.Header().Set("Location", "http://"+r.Host+r.URL.Path+"/")
		w.WriteHeader(http.StatusMovedPermanently)
		return
	}
	body, kind := render(node, recursive, query.Get("alt"))
	w.Header().Set("Content-Type", kind)
	w.Header().Set("ETag", etag(node))
	fmt.Fprint(w, body)
}

// await finds the node, after a change of it where the request asks for that.
func (m *Server) await(r *http.Request, key string) (any, bool) {
	query := r.URL.Query()
	tree, changed := m.snapshot()
	node, ok := lookup(tree, key)
	if !ok || query.Get("wait_for_change") != "true" {
		return node, ok
	}
	last := query.Get("last_etag")
	if last == "" {
		last = etag(node)
	}
	var timeout <-chan time.Time // never, where not asked for
	if s, err := strconv.Atoi(query.Get("timeout_sec")); err == nil && s >= 0 {
		timeout = time.After(time.Duration(s) * time.Second)
	}
	for ok && etag(node) == last {
		select {
		case <-changed:
			tree, changed = m.snapshot()
			node, ok = lookup(tree, key)
		case <-timeout:
			return node, ok
		case <-r.Context().Done():
			return node, ok
		}
	}
	return node, ok
}

// render is a node's body and media type.
func render(node any, recursive bool, alt string) (string, string) {
	const plain, object = "application/text", "application/json"
	switch {
	case isFolder(node) && recursive && alt == "text":
		return flat(node, ""), plain
	case isFolder(node) && !recursive && alt != "json":
		return listing(node), plain
	case isFolder(node) || alt == "json":
		out, err := json.Marshal(jsonValue(node))
		if err != nil {
			return err.Error(), plain
		}
		return string(out), object
	}
	if _, ok := node.(accessToken); ok {
		return text(node), object
	}
	return text(node), plain
}

// etag is a hash of the node's content; a token's is constant.
func etag(node any) string {
	if _, ok := node.(accessToken); ok {
		node = ""
	}
	out, err := json.Marshal(jsonValue(node))
	if err != nil {
		return "0"
	}
	sum := sha256.Sum256(out)
	return hex.EncodeToString(sum[:8])
}

func refuse(w http.ResponseWriter, code int, why string) {
	w.Header().Set("Content-Type", "text/html; charset=UTF-8")
	w.WriteHeader(code)
	fmt.Fprintf(w, "<!DOCTYPE html>\n<html lang=en><title>Error %d</title><p><b>%d.</b> %s</html>\n", code, code, why)
}
