package localgce_test

import (
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"
)

// TestConnectionsStayWhereTheyAre holds an open connection through what befalls its VM.
func TestConnectionsStayWhereTheyAre(t *testing.T) {
	w := start(t, config(t.TempDir(), 20, "a", "b"))
	w.awaitReady("a", "b")
	backends := func(want string, open bool) {
		t.Helper()
		w.await("balanced over "+want, func() bool {
			s := w.Status()
			return strings.Join(s.Backends, " ") == want && s.FailOpen == open
		})
	}
	w.must("b", "touch /run/not-ready")
	backends("a", false)
	held := keptOpen(t, "https://10.243.20.100/name")
	for _, step := range []struct {
		what   string
		change func()
	}{
		{"at first", func() {}},
		{"b comes in", func() { w.must("b", "rm /run/not-ready"); backends("a b", false) }},
		{"a fails its check", func() { w.must("a", "touch /run/not-ready"); backends("b", false) }},
		{"none passes", func() { w.must("b", "touch /run/not-ready"); backends("a b", true) }},
	} {
		step.change()
		if name, err := held(); name != "a" {
			t.Errorf("%s: the connection leads to %q: %v", step.what, name, err)
		}
	}
	w.do(w.KillVM(t.Context(), "a"))
	if _, err := held(); !os.IsTimeout(err) {
		t.Errorf("the VM is off, and its clients do not wait for their time-out, but hear: %v", err)
	}
}

// keptOpen asks again and again on one connection, and for no other one.
func keptOpen(t *testing.T, url string) (ask func() (string, error)) {
	once := func(ctx context.Context, kind, address string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, kind, address)
	}
	transport := &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true},
		DialContext: func(ctx context.Context, kind, address string) (net.Conn, error) {
			dial := once
			once = func(context.Context, string, string) (net.Conn, error) {
				return nil, errors.New("the connection is broken")
			}
			return dial(ctx, kind, address)
		}}
	t.Cleanup(transport.CloseIdleConnections)
	client := http.Client{Timeout: time.Second, Transport: transport}
	return func() (string, error) {
		resp, err := client.Get(url)
		if err != nil {
			return "", err
		}
		defer resp.Body.Close()
		body, err := io.ReadAll(resp.Body)
		return string(body), err
	}
}
