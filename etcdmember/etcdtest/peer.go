package etcdtest

import (
	"crypto/tls"
	"net"
	"net/http"
	"net/netip"
	"testing"

	"go.etcd.io/etcd/client/pkg/v3/transport"

	"github.com/quorate/quorate/certs"
	"github.com/quorate/quorate/etcdmember/table"
)

// ServePeer answers what the peer port of an address is asked, with a replica's own peer leaf.
func ServePeer(t *testing.T, files certs.Files, address netip.Addr, answer http.HandlerFunc) {
	t.Helper()
	info := transport.TLSInfo{CertFile: files.Leaf(certs.EtcdPeerLeaf), KeyFile: files.Leaf(certs.EtcdPeerLeaf),
		TrustedCAFile: files.CA(certs.EtcdPeer), ClientCertAuth: true}
	tlsConfig, err := info.ServerConfig()
	if err != nil {
		t.Fatal(err)
	}
	tlsConfig.NextProtos = nil
	peers, err := net.Listen("tcp", netip.AddrPortFrom(address, table.PeerPort).String())
	if err != nil {
		t.Fatal(err)
	}
	server := &http.Server{Handler: answer}
	go server.Serve(tls.NewListener(peers, tlsConfig))
	t.Cleanup(func() { server.Close() })
}
