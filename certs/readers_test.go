package certs

import (
	"crypto"
	"crypto/tls"
	"os"
	"strings"
	"testing"

	"go.etcd.io/etcd/client/pkg/v3/transport"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/util/cert"
	"k8s.io/client-go/util/keyutil"
)

// The files are read here by the code that etcd and the Kubernetes components read them with.

func TestEtcdReadsItsFiles(t *testing.T) {
	r := testRequest(t, testBundle(t))
	mustEnsure(t, r)
	f := r.Files
	server := transport.TLSInfo{CertFile: f.Leaf(EtcdServer), KeyFile: f.Leaf(EtcdServer),
		TrustedCAFile: f.CA(EtcdClient), ClientCertAuth: true}
	peer := transport.TLSInfo{CertFile: f.Leaf(EtcdPeerLeaf), KeyFile: f.Leaf(EtcdPeerLeaf),
		TrustedCAFile: f.CA(EtcdPeer), ClientCertAuth: true}
	client := transport.TLSInfo{CertFile: f.Leaf(APIServerEtcd), KeyFile: f.Leaf(APIServerEtcd),
		TrustedCAFile: f.CA(EtcdClient)}
	for _, tc := range []struct {
		name           string
		server, client transport.TLSInfo
		refused        bool
	}{
		{"client to server", server, client, false},
		{"peer to peer", peer, peer, false},
		{"client to peer", peer, client, true},
		{"peer to server", server, peer, true},
	} {
		sc, err := tc.server.ServerConfig()
		if err != nil {
			t.Fatalf("%s: server: %v", tc.name, err)
		}
		cc, err := tc.client.ClientConfig()
		if err != nil {
			t.Fatalf("%s: client: %v", tc.name, err)
		}
		cc.ServerName, cc.Time, sc.Time = testIdentity().DNSName("prod"), clock, clock
		_, serverErr, clientErr := handshake(sc, cc)
		if refused := serverErr != nil || clientErr != nil; refused != tc.refused {
			t.Errorf("%s: server %v, client %v", tc.name, serverErr, clientErr)
		}
	}
}

func TestKubernetesReadsItsFiles(t *testing.T) {
	r := testRequest(t, rotated(t, testBundle(t), t0))
	mustEnsure(t, r)
	read := func(path string) []byte {
		data, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		return data
	}
	signing, err := keyutil.ParsePrivateKeyPEM(read(r.Files.ServiceAccountKey()))
	if err != nil {
		t.Fatal(err)
	}
	verifying, err := keyutil.ParsePublicKeysPEM(read(r.Files.ServiceAccountPublicKeys()))
	if err != nil || len(verifying) != 2 {
		t.Fatalf("%d keys, %v", len(verifying), err)
	}
	if k := signing.(interface{ Public() crypto.PublicKey }); !samePublicKey(verifying[0], k.Public()) {
		t.Error("the first verifying key is not the signing key's")
	}
	if cs, err := cert.CertsFromFile(r.Files.CA(Kubernetes)); err != nil || len(cs) != 2 {
		t.Errorf("client CA: %d, %v", len(cs), err)
	}
	// The controller-manager takes exactly one certificate to sign with.
	if cs, err := cert.CertsFromFile(r.Files.CASigner(Kubernetes)); err != nil || len(cs) != 1 {
		t.Errorf("signer: %d, %v", len(cs), err)
	}
	if _, err := tls.LoadX509KeyPair(r.Files.CASigner(Kubernetes), r.Files.CASignerKey(Kubernetes)); err != nil {
		t.Errorf("signer's pair: %v", err)
	}
	for _, l := range Kubeconfigs() {
		config, err := clientcmd.BuildConfigFromFlags("", r.Files.Kubeconfig(l))
		if err != nil {
			t.Fatal(err)
		}
		client, err := rest.TLSConfigFor(config)
		if err != nil {
			t.Errorf("%s: %v", l, err)
			continue
		}
		server := serverTLS(t, r.Bundle, APIServer, Kubernetes)
		client.ServerName, client.Time = strings.Split(strings.TrimPrefix(config.Host, "https://"), ":")[0], clock
		if seen, serverErr, clientErr := handshake(server, client); serverErr != nil || clientErr != nil ||
			seen != loadLeaf(t, r.Files, l).Subject.CommonName {
			t.Errorf("%s: server %v, client %v, seen %q", l, serverErr, clientErr, seen)
		}
	}
}
