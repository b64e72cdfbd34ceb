// Package local is what the processes of one machine have in common: the unix sockets on which they talk (Serve, Call).
//
// It knows nothing of what is said. It does not retry: the caller says by its context how long it waits.
package local

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net"
	"net/http"
	"os"
	"strings"
	"time"
)

// Serve answers on a unix socket until the returned function is called. It replaces what a process before it has left
// there. Only this process's user may ask.
func Serve(socket string, h http.Handler) (stop func(), err error) {
	if err := os.Remove(socket); err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, err
	}
	l, err := net.Listen("unix", socket)
	if err != nil {
		return nil, err
	}
	if err := os.Chmod(socket, 0o600); err != nil {
		l.Close()
		return nil, err
	}
	server := &http.Server{Handler: h, ReadHeaderTimeout: time.Second}
	done := make(chan struct{})
	go func() { defer close(done); server.Serve(l) }()
	return func() { server.Close(); <-done }, nil
}

// Refusal is the error of a process that answers, and does not do what it was asked for.
type Refusal struct {
	// Status is the answer's HTTP status, Why its text.
	Status int
	Why    string
}

func (r *Refusal) Error() string { return r.Why }

// Call asks on a unix socket, and decodes the JSON of the answer unless answer is nil. Where nobody answers the error
// is a *url.Error, where the answer is no success a *Refusal, and else the decoder's.
func Call(ctx context.Context, socket, method, path string, answer any) error {
	client := &http.Client{Transport: &http.Transport{
		DisableKeepAlives: true,
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			return (&net.Dialer{}).DialContext(ctx, "unix", socket)
		},
	}}
	req, err := http.NewRequestWithContext(ctx, method, "http://local"+path, nil)
	if err != nil {
		return err
	}
	resp, err := client.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if resp.StatusCode/100 != 2 {
		why, _ := io.ReadAll(io.LimitReader(resp.Body, 4096)) // only makes the message better
		return &Refusal{resp.StatusCode, strings.TrimSpace(string(why))}
	}
	if answer == nil {
		return nil
	}
	return json.NewDecoder(resp.Body).Decode(answer)
}
