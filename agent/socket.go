package agent

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"

	"github.com/quorate/quorate/agent/status"
	"github.com/quorate/quorate/internal/local"
)

// ErrNoAgent is returned by ReadStatus where no agent answers.
var ErrNoAgent = errors.New("no agent answers on this machine")

// ReadStatus asks the agent on this machine.
func ReadStatus(ctx context.Context, socket string) (status.Status, error) {
	var s status.Status
	err := ask(ctx, socket, http.MethodGet, "/status", &s)
	return s, err
}

// Alive asks the agent whether what it consists of still answers; it is the watchdog's check. It says nothing of the
// cluster: a quorum that is lost is no reason to kill an agent.
func Alive(ctx context.Context, socket string) error {
	var ok bool
	if err := ask(ctx, socket, http.MethodGet, "/alive", &ok); err != nil {
		return err
	}
	if !ok {
		return errors.New("the agent says that it is not well")
	}
	return nil
}

// ErrRefused is in the error of an agent that answers, and does not do what it was asked for.
var ErrRefused = errors.New("the agent on this machine refuses")

// ask asks the agent on this machine, and decodes its answer unless answer is nil.
func ask(ctx context.Context, socket, method, path string, answer any) error {
	var silent *url.Error
	var refusal *local.Refusal
	switch err := local.Call(ctx, socket, method, path, answer); {
	case errors.As(err, &silent):
		return fmt.Errorf("%w (%s): %w", ErrNoAgent, socket, err)
	case errors.As(err, &refusal) && refusal.Status == http.StatusConflict:
		return fmt.Errorf("%w: %w", ErrRefused, err)
	case errors.As(err, &refusal):
		return fmt.Errorf("ask the agent: it answered %d %s", refusal.Status, http.StatusText(refusal.Status))
	case err != nil:
		return fmt.Errorf("decode the agent's answer: %w", err)
	}
	return nil
}

// serve answers on the unix socket until the returned function is called. Only root may ask.
func (a *Agent) serve(socket string) (stop func(), err error) {
	stop, err = local.Serve(socket, a.answers())
	if err != nil {
		return nil, fmt.Errorf("listen for status: %w", err)
	}
	return stop, nil
}

// answers are what can be asked of the agent. Only start-anyway changes anything.
func (a *Agent) answers() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /status", func(w http.ResponseWriter, r *http.Request) {
		answer(w, a.status(r.Context()), nil)
	})
	mux.Handle("GET /metrics", status.Metrics(a.report))
	mux.HandleFunc("GET /alive", func(w http.ResponseWriter, _ *http.Request) { answer(w, a.alive(), nil) })
	mux.HandleFunc("GET /start-anyway", func(w http.ResponseWriter, _ *http.Request) {
		_, err := a.startAnyway.may()
		answer(w, true, err)
	})
	mux.HandleFunc("POST /start-anyway", func(w http.ResponseWriter, _ *http.Request) {
		answer(w, true, a.startAnyway.give())
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
