package certs

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"net"
	"os"
	"strings"
	"testing"
	"time"
)

// clock is the tests' time for a TLS side.
func clock() time.Time { return t0.Add(time.Minute) }

// serverTLS is a server as etcd and the apiserver are one: a leaf, and client certificates of one authority required.
func serverTLS(t *testing.T, b *Bundle, l Leaf, clients Authority) *tls.Config {
	t.Helper()
	pool := x509.NewCertPool()
	pool.AddCert(b.authorities[clients].cert)
	return &tls.Config{Certificates: []tls.Certificate{mustIssue(t, b, l, t0).tls()},
		ClientAuth: tls.RequireAndVerifyClientCert,
		ClientCAs:  pool, Time: clock}
}

func clientTLSOf(t *testing.T, b *Bundle, p pair, server Authority) *tls.Config {
	t.Helper()
	pool := x509.NewCertPool()
	pool.AddCert(b.authorities[server].cert)
	return &tls.Config{Certificates: []tls.Certificate{p.tls()}, RootCAs: pool, ServerName: "10.128.0.2", Time: clock}
}

// handshake connects the two over loopback and returns the server's and the client's error, and whom the server saw.
func handshake(server, client *tls.Config) (seen string, serverErr, clientErr error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", err, err
	}
	defer l.Close()
	b, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		return "", err, err
	}
	a, err := l.Accept()
	if err != nil {
		return "", err, err
	}
	defer a.Close()
	defer b.Close()
	s, c := tls.Server(a, server), tls.Client(b, client)
	done := make(chan error, 1)
	go func() {
		err := s.Handshake()
		if err == nil {
			_, err = s.Write([]byte("x"))
		} else {
			a.Close()
		}
		done <- err
	}()
	clientErr = c.Handshake()
	if clientErr == nil { // in TLS 1.3 a client learns only afterwards that it was refused
		_, clientErr = io.ReadFull(c, make([]byte, 1))
	}
	if clientErr != nil {
		b.Close()
	}
	serverErr = <-done
	if peers := s.ConnectionState().PeerCertificates; len(peers) > 0 {
		seen = peers[0].Subject.CommonName
	}
	return seen, serverErr, clientErr
}

func TestLeavesThatMustWorkTogetherDo(t *testing.T) {
	b := testBundle(t)
	for _, tc := range []struct {
		server  Leaf
		clients Authority
		client  Leaf
		trusts  Authority
	}{
		{EtcdServer, EtcdClient, APIServerEtcd, EtcdClient},
		{EtcdServer, EtcdClient, AgentEtcd, EtcdClient},
		{EtcdPeerLeaf, EtcdPeer, EtcdPeerLeaf, EtcdPeer},
		{APIServer, Kubernetes, ControllerManager, Kubernetes},
		{APIServer, Kubernetes, Kubelet, Kubernetes},
		{APIServer, FrontProxy, FrontProxyClient, Kubernetes},
		{KubeletServing, Kubernetes, APIServerKubelet, Kubernetes},
		{ControllerManagerServing, Kubernetes, Agent, Kubernetes},
		{SchedulerServing, Kubernetes, Agent, Kubernetes},
	} {
		p := mustIssue(t, b, tc.client, t0)
		seen, serverErr, clientErr := handshake(serverTLS(t, b, tc.server, tc.clients), clientTLSOf(t, b, p, tc.trusts))
		if serverErr != nil || clientErr != nil || seen != p.cert.Subject.CommonName {
			t.Errorf("%s to %s: server %v, client %v, seen %q", tc.client, tc.server, serverErr, clientErr, seen)
		}
	}
}

func TestLeavesOfAnotherRoleAreRefused(t *testing.T) {
	b := testBundle(t)
	for _, tc := range []struct {
		name    string
		server  Leaf
		clients Authority
		client  Leaf
		trusts  Authority
	}{
		{"the apiserver's etcd client on the peer port", EtcdPeerLeaf, EtcdPeer, APIServerEtcd, EtcdPeer},
		{"a peer on the client port", EtcdServer, EtcdClient, EtcdPeerLeaf, EtcdClient},
		{"a cluster client on etcd", EtcdServer, EtcdClient, ControllerManager, EtcdClient},
		{"an etcd client on the apiserver", APIServer, Kubernetes, AgentEtcd, Kubernetes},
		{"a cluster client as front proxy", APIServer, FrontProxy, ControllerManager, Kubernetes},
		{"the front proxy as cluster client", APIServer, Kubernetes, FrontProxyClient, Kubernetes},
		{"etcd's server leaf as a client", EtcdServer, EtcdClient, EtcdServer, EtcdClient},
		{"the apiserver's own leaf as a client", APIServer, Kubernetes, APIServer, Kubernetes},
		{"a client's leaf as a server", Agent, Kubernetes, Scheduler, Kubernetes},
	} {
		_, serverErr, clientErr := handshake(serverTLS(t, b, tc.server, tc.clients),
			clientTLSOf(t, b, mustIssue(t, b, tc.client, t0), tc.trusts))
		if serverErr == nil || clientErr == nil {
			t.Errorf("%s: accepted; server %v, client %v", tc.name, serverErr, clientErr)
		}
	}
}

// The reason for two etcd CAs: with one for both, the first of the refusals above is not given.
func TestWithOneEtcdCATheAPIServersClientOpensThePeerPort(t *testing.T) {
	b := testBundle(t)
	server := serverTLS(t, b, EtcdPeerLeaf, EtcdClient)
	if _, serverErr, clientErr := handshake(server, clientTLSOf(t, b, mustIssue(t, b, APIServerEtcd, t0),
		EtcdPeer)); serverErr != nil || clientErr != nil {
		t.Errorf("server %v, client %v", serverErr, clientErr)
	}
}

func TestAgentsConfigsFollowTheFiles(t *testing.T) {
	b := testBundle(t)
	r := testRequest(t, b)
	mustEnsure(t, r)
	for _, tc := range []struct {
		make    func(Files) (*tls.Config, error)
		server  Leaf
		clients Authority
		client  Leaf
		cn      string
	}{
		{EtcdTLS, EtcdServer, EtcdClient, AgentEtcd, "quorate-agent-etcd-client"},
		{APIServerTLS, APIServer, Kubernetes, Agent, "quorate:agent"},
	} {
		config, err := tc.make(r.Files)
		if err != nil {
			t.Fatal(err)
		}
		config.Time, config.ServerName = clock, "127.0.0.1"
		server := serverTLS(t, b, tc.server, tc.clients)
		var serial string
		server.VerifyConnection = func(s tls.ConnectionState) error {
			serial = s.PeerCertificates[0].SerialNumber.String()
			return nil
		}
		for range 2 {
			seen, serverErr, clientErr := handshake(server, config)
			if serverErr != nil || clientErr != nil || seen != tc.cn {
				t.Fatalf("%s: server %v, client %v, seen %q", tc.client, serverErr, clientErr, seen)
			}
			if want := loadLeaf(t, r.Files, tc.client).SerialNumber.String(); serial != want {
				t.Errorf("%s: shown serial %s, the file has %s", tc.client, serial, want)
			}
			if err := os.Remove(r.Files.Leaf(tc.client)); err != nil { // renewed: the same config shows the new one
				t.Fatal(err)
			}
			mustEnsure(t, r)
		}
		if err := os.WriteFile(r.Files.Leaf(tc.client), nil, 0o600); err != nil {
			t.Fatal(err)
		}
		if _, _, err := handshake(server, config); err == nil || !strings.Contains(err.Error(), string(tc.client)) {
			t.Errorf("damaged leaf: %v", err)
		}
	}
	if _, err := EtcdTLS(Files{Dir: t.TempDir()}); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("empty folder: %v", err)
	}
}

func TestBootstrapClientIsAMasterForAMinute(t *testing.T) {
	b := testBundle(t)
	c, err := BootstrapClient(b, t0)
	if err != nil {
		t.Fatal(err)
	}
	if c.Leaf.Subject.String() != "CN=quorate:bootstrap,O=system:masters" ||
		!c.Leaf.NotAfter.Equal(t0.Add(time.Minute)) {
		t.Errorf("%s until %s", c.Leaf.Subject, c.Leaf.NotAfter)
	}
	pool := x509.NewCertPool()
	pool.AddCert(b.authorities[Kubernetes].cert)
	server := serverTLS(t, b, APIServer, Kubernetes)
	client := &tls.Config{Certificates: []tls.Certificate{c}, RootCAs: pool, ServerName: "127.0.0.1", Time: clock}
	server.Time = func() time.Time { return t0.Add(30 * time.Second) }
	if _, serverErr, clientErr := handshake(server, client); serverErr != nil || clientErr != nil {
		t.Errorf("in its minute: server %v, client %v", serverErr, clientErr)
	}
	server.Time = func() time.Time { return t0.Add(61 * time.Second) }
	if _, serverErr, _ := handshake(server, client); serverErr == nil {
		t.Error("accepted after its minute")
	}
}
