package certs

import (
	"crypto/tls"
	"errors"
	"os"
	"testing"
)

// A connection resumes the session of the one before, to the same member, until the leaf is renewed or the server has
// begun anew. Whoever is shown is the same with a session.
func TestConnectionsResumeSessions(t *testing.T) {
	b := testBundle(t)
	r := testRequest(t, b)
	s := NewEtcdSessions(r.Files)
	if _, err := s.TLS(); !errors.Is(err, os.ErrNotExist) {
		t.Fatalf("before there is a leaf: %v", err)
	}
	mustEnsure(t, r)
	server := serverTLS(t, b, EtcdServer, EtcdClient)
	resumed := false
	verify := func(s tls.ConnectionState) error { resumed = s.DidResume; return nil }
	server.VerifyConnection = verify
	connect := func(what, name string, want bool) {
		t.Helper()
		kept, err := s.TLS()
		if err != nil {
			t.Fatal(err)
		}
		config := kept.Clone() // as gRPC does
		config.Time, config.ServerName = clock, name
		seen, serverErr, clientErr := handshake(server, config)
		if serverErr != nil || clientErr != nil || seen != "quorate-agent-etcd-client" {
			t.Fatalf("%s: server %v, client %v, seen %q", what, serverErr, clientErr, seen)
		}
		if resumed != want {
			t.Errorf("%s: resumed: %t, want %t", what, resumed, want)
		}
	}
	connect("the first", "127.0.0.1", false)
	connect("the second", "127.0.0.1", true)
	connect("to another name", "10.128.0.2", false)
	if err := os.Remove(r.Files.Leaf(AgentEtcd)); err != nil {
		t.Fatal(err)
	}
	if _, err := s.TLS(); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the leaf is gone: %v", err)
	}
	mustEnsure(t, r)
	connect("with another leaf", "127.0.0.1", false)
	connect("with another leaf again", "127.0.0.1", true)
	server = serverTLS(t, b, EtcdServer, EtcdClient)
	server.VerifyConnection = verify
	connect("to a server that was started again", "127.0.0.1", false)
	connect("to it again", "127.0.0.1", true)
	// The next generation knows other CAs: whom it trusts is read anew, while the leaf stays.
	leaf, err := os.Stat(r.Files.Leaf(AgentEtcd))
	if err != nil {
		t.Fatal(err)
	}
	r.Former = []*Bundle{b}
	r.Bundle, _ = inTwo(t, b, t0)
	mustEnsure(t, r)
	if now, err := os.Stat(r.Files.Leaf(AgentEtcd)); err != nil || !same(leaf, now) {
		t.Fatalf("the leaf was issued anew: %v", err)
	}
	connect("with another trust bundle", "127.0.0.1", false)
}
