package member

import (
	"context"
	"crypto/tls"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"strings"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/quorate/quorate/certs"
)

// as is a client's TLS for a member.
func (c Config) as(clients *tls.Config, protocols ...string) *tls.Config {
	clients = clients.Clone()
	clients.ServerName, clients.NextProtos = c.DNSName, protocols
	return clients
}

func TestHTTPHasAPortOfItsOwn(t *testing.T) {
	cfg, clients, stop := serving(t)
	defer stop()
	ask := func(c *tls.Config, address netip.Addr, port int, path string) (string, error) {
		client := http.Client{Timeout: 5 * time.Second, Transport: &http.Transport{TLSClientConfig: c,
			DisableKeepAlives: true}}
		r, err := client.Get("https://" + netip.AddrPortFrom(address, uint16(port)).String() + path)
		if err != nil {
			return "", err
		}
		defer r.Body.Close()
		b, err := io.ReadAll(r.Body)
		return string(b), err
	}
	if text, err := ask(cfg.as(clients), cfg.Local, httpPort, "/health"); err != nil ||
		!strings.Contains(text, `"health":"true"`) {
		t.Errorf("the port for HTTP says %q, %v", text, err)
	}
	stranger := &tls.Config{RootCAs: clients.RootCAs, ServerName: cfg.DNSName}
	if text, err := ask(cfg.as(clients), cfg.Address, httpPort, "/health"); err == nil {
		t.Errorf("HTTP is served beyond loopback: %q", text)
	}
	if text, err := ask(stranger, cfg.Local, httpPort, "/health"); err == nil {
		t.Errorf("HTTP is served to one without a certificate: %q", text)
	}
	for _, address := range []netip.Addr{cfg.Local, cfg.Address} {
		for _, path := range []string{"/health", "/metrics", "/version"} {
			if text, err := ask(cfg.as(clients), address, ClientPort, path); err != nil || text != "this port speaks gRPC\n" {
				t.Errorf("the port for gRPC at %s says of %s %.99q, %v", address, path, text, err)
			}
		}
		if text, err := ask(stranger, address, ClientPort, formerPath); err == nil {
			t.Errorf("the port for gRPC at %s tells %q to one without a certificate", address, text)
		}
		if _, err := dial(t, cfg, address, clients).Put(t.Context(), "key", "value"); err != nil {
			t.Error(err)
		}
	}
}

// A gRPC server waits for who has connected and says nothing, and for watches. A member that stops does not, and a
// watch goes on once it is back.
func TestAStopWaitsForNoClient(t *testing.T) {
	cfg, clients, stop := serving(t)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var watches []clientv3.WatchChan
	for _, address := range []netip.Addr{cfg.Local, cfg.Address} {
		for _, protocols := range [][]string{nil, {}, {"h2"}} {
			conn, err := net.Dial("tcp", netip.AddrPortFrom(address, ClientPort).String())
			if err != nil {
				t.Fatal(err)
			}
			defer conn.Close()
			if protocols == nil {
				continue // not even a handshake
			}
			if err := tls.Client(conn, cfg.as(clients, protocols...)).Handshake(); err != nil {
				t.Fatal(err)
			}
		}
		watch := dial(t, cfg, address, clients).Watch(clientv3.WithRequireLeader(ctx), "key",
			clientv3.WithCreatedNotify())
		<-watch
		watches = append(watches, watch)
	}
	begin := time.Now()
	stop()
	if took := time.Since(begin); took > 3*time.Second {
		t.Errorf("the stop took %s", took)
	} else {
		t.Logf("the stop took %s", took)
	}

	cfg.New = false
	defer serve(t, cfg)()
	if _, err := dial(t, cfg, cfg.Local, clients).Put(ctx, "key", "value"); err != nil {
		t.Fatal(err)
	}
	for i, watch := range watches {
		select {
		case got := <-watch:
			if got.Err() != nil || len(got.Events) != 1 {
				t.Errorf("watch %d: %+v", i, got)
			}
		case <-time.After(30 * time.Second):
			t.Errorf("watch %d does not go on", i)
		}
	}
}

func TestAClosedConnectionIsForgotten(t *testing.T) {
	cfg, files := newTestMember(t)
	p, err := newClientPort(cfg, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	clients, err := certs.EtcdTLS(files)
	if err != nil {
		t.Fatal(err)
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	for what, client := range map[string]func(net.Conn) error{
		"one that goes without a word": func(c net.Conn) error { return c.Close() },
		"one without a certificate": func(c net.Conn) error {
			return tls.Client(c, &tls.Config{RootCAs: clients.RootCAs, ServerName: cfg.DNSName}).Handshake()
		},
		"one that speaks gRPC": func(c net.Conn) error { return tls.Client(c, cfg.as(clients, "h2")).Handshake() },
	} {
		go func() {
			if conn, err := net.Dial("tcp", listener.Addr().String()); err == nil && client(conn) == nil {
				conn.Read(make([]byte, 1)) // until the other end is closed
			}
		}()
		there, err := listener.Accept()
		if err != nil {
			t.Fatal(err)
		}
		conn, _, err := p.ServerHandshake(there)
		if (err == nil) != (what == "one that speaks gRPC") {
			t.Errorf("%s: %v", what, err)
		}
		if err == nil {
			conn.Close()
		}
		if len(p.conns) != 0 {
			t.Errorf("%s is still known", what)
		}
	}
	p.close()
	if _, _, err := p.ServerHandshake(nil); err != errPortClosed {
		t.Errorf("a connection after the end: %v", err)
	}
}
