package kubelet

import (
	"context"
	"net"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"
)

// An answer of any kind shows that the kubelet lives; a connection without one shows that it hangs; and no connection
// shows nothing.
func TestHealthPort(t *testing.T) {
	answers := httptest.NewServer(http.NotFoundHandler())
	defer answers.Close()
	elsewhere := httptest.NewServer(http.RedirectHandler("http://127.0.0.1:1/", http.StatusFound))
	defer elsewhere.Close()
	silent, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer silent.Close()
	gone, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	gone.Close()
	for name, tc := range map[string]struct {
		address          net.Addr
		connected, fails bool
	}{
		"it answers":     {answers.Listener.Addr(), true, false},
		"it redirects":   {elsewhere.Listener.Addr(), true, false},
		"it is silent":   {silent.Addr(), true, true},
		"nobody listens": {gone.Addr(), false, true},
	} {
		port := tc.address.(*net.TCPAddr).Port
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		connected, err := HealthPort{Port: port}.Ask(ctx)
		cancel()
		if connected != tc.connected || (err != nil) != tc.fails {
			t.Errorf("%s: connected %t, %v", name, connected, err)
		}
		if got, want := listening(port), name != "nobody listens"; got != want {
			t.Errorf("%s: listening is %t", name, got)
		}
	}
}
