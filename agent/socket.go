package agent

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"strings"
	"time"
)

// ErrRefused is in the error of an agent that answers, and does not do what it was asked for.
var ErrRefused = errors.New("the agent on this machine refuses")

// ask asks the agent on this machine, and decodes its answer unless answer is nil.
func ask(ctx context.Context, socket, method, path string, answer any) error {
	client := &http.Client{Transport: &http.Transport{
		DisableKeepAlives: true,
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			var d net.Dialer
			return d.DialContext(ctx, "unix", socket)
		},
	}}
	req, err := http.NewRequestWithContext(ctx, method, "http://agent"+path, nil)
	if err != nil {
		return err
	}
	resp, err := client.Do(req)
	if err != nil {
		return fmt.Errorf("%w (%s): %w", ErrNoAgent, socket, err)
	}
	defer resp.Body.Close()
	switch {
	case resp.StatusCode == http.StatusConflict:
		why, _ := io.ReadAll(io.LimitReader(resp.Body, 4096)) // only makes the message better
		return fmt.Errorf("%w: %s", ErrRefused, strings.TrimSpace(string(why)))
	case resp.StatusCode != http.StatusOK:
		return fmt.Errorf("ask the agent: it answered %s", resp.Status)
	case answer == nil:
		return nil
	}
	if err := json.NewDecoder(resp.Body).Decode(answer); err != nil {
		return fmt.Errorf("decode the agent's answer: %w", err)
	}
	return nil
}

// serve answers on the unix socket until the returned function is called. Only root may ask: the folder is the agent's.
func (a *Agent) serve(socket string) (stop func(), err error) {
	if err := os.Remove(socket); err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, fmt.Errorf("listen for status: %w", err)
	}
	l, err := net.Listen("unix", socket)
	if err != nil {
		return nil, fmt.Errorf("listen for status: %w", err)
	}
	if err := os.Chmod(socket, 0o600); err != nil {
		l.Close()
		return nil, fmt.Errorf("listen for status: %w", err)
	}
	server := &http.Server{Handler: a.answers(), ReadHeaderTimeout: time.Second}
	done := make(chan struct{})
	go func() { defer close(done); server.Serve(l) }()
	return func() { server.Close(); <-done }, nil
}

// answers are what can be asked of the agent. Only start-anyway changes anything.
func (a *Agent) answers() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /status", func(w http.ResponseWriter, r *http.Request) {
		answer(w, a.status(r.Context()),
			nil)
	})
	mux.Handle("GET /metrics", a.metrics())
	mux.HandleFunc("GET /alive", func(w http.ResponseWriter, _ *http.Request) { answer(w, a.alive(), nil) })
	mux.HandleFunc("GET /explain", func(w http.ResponseWriter, _ *http.Request) {
		e, err := a.explain()
		answer(w, e, err)
	})
	mux.HandleFunc("GET /start-anyway", func(w http.ResponseWriter, _ *http.Request) {
		_, err := a.mayStartAnyway()
		answer(w, true, err)
	})
	mux.HandleFunc("POST /start-anyway", func(w http.ResponseWriter, _ *http.Request) {
		answer(w, true,
			a.startAnyway())
	})
	return mux
}

// answer writes an answer, or why there is none.
func answer(w http.ResponseWriter, v any, err error) {
	if err != nil {
		http.Error(w, err.Error(), http.StatusConflict)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	json.NewEncoder(w).Encode(v)
}
