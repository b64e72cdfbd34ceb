package member

import (
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"sync"

	"go.etcd.io/etcd/client/pkg/v3/transport"
	"go.etcd.io/etcd/server/v3/embed"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
)

// clientPort shakes hands with etcd's clients, for gRPC's server, and knows their connections.
//
// Without this a stop would wait: gRPC waits up to 120 s for a client that has connected and said nothing, and etcd
// gives each of its two addresses 7 s for watches, which never end. So a stop closes all client connections first.
// Clients go on at another member, or at this one once it is back.
type clientPort struct {
	credentials.TransportCredentials // what only a client calls
	tls                              *tls.Config
	log                              *slog.Logger

	mu     sync.Mutex
	conns  map[*clientConn]struct{}
	closed bool
}

// errPortClosed is for those who connect while the member stops.
var errPortClosed = errors.New("the member stops")

// newClientPort reads the certificates once, so that a missing one is an error of the start. Each handshake reads the
// leaf anew; the clients' CAs are those of the start.
func newClientPort(c Config, log *slog.Logger) (*clientPort, error) {
	info := c.clientTLS()
	conf, err := info.ServerConfig()
	if err != nil {
		return nil, fmt.Errorf("read the certificates of etcd's client port: %w", err)
	}
	return &clientPort{TransportCredentials: credentials.NewTLS(conf), tls: conf, log: log,
		conns: map[*clientConn]struct{}{}}, nil
}

// configure makes etcd's gRPC servers take their handshakes from p and answer for raft's status.
func (p *clientPort) configure(e *embed.Config) {
	e.GRPCAdditionalServerOptions = []grpc.ServerOption{grpc.Creds(p), grpc.ConnectionTimeout(clientHandshakeTimeout)}
	e.ServiceRegister = registerRaftStatus
}

// ServerHandshake is of credentials.TransportCredentials. gRPC gives each connection its deadline before.
func (p *clientPort) ServerHandshake(raw net.Conn) (net.Conn, credentials.AuthInfo, error) {
	c := &clientConn{Conn: raw, port: p}
	if !p.add(c) {
		return nil, nil, errPortClosed
	}
	conn := tls.Server(c, p.tls)
	if err := conn.Handshake(); err != nil {
		conn.Close()
		if !errors.Is(err, io.EOF) && !errors.Is(err, net.ErrClosed) {
			p.log.Warn("rejected connection on client endpoint", "remote", raw.RemoteAddr().String(), "err", err.Error())
		}
		return nil, nil, err
	}
	state := conn.ConnectionState()
	if state.NegotiatedProtocol != "h2" {
		answerFormer(conn)
		conn.Close()
		return nil, nil, io.EOF // for gRPC, one that has gone again
	}
	return conn, credentials.TLSInfo{State: state,
		CommonAuthInfo: credentials.CommonAuthInfo{SecurityLevel: credentials.PrivacyAndIntegrity}}, nil
}

// add remembers a connection, or reports that there are to be no more.
func (p *clientPort) add(c *clientConn) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.closed {
		p.conns[c] = struct{}{}
	}
	return !p.closed
}

// close ends all connections, whatever they do, and lets no new one in.
func (p *clientPort) close() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.closed = true
	for c := range p.conns {
		c.Conn.Close()
	}
}

// clientConn is a connection that its port forgets when it is closed.
type clientConn struct {
	net.Conn
	port *clientPort
}

func (c *clientConn) Close() error {
	c.port.mu.Lock()
	delete(c.port.conns, c)
	c.port.mu.Unlock()
	return c.Conn.Close()
}

// clientTLS is what clients are shown, and who of them is let in.
func (c Config) clientTLS() transport.TLSInfo {
	return transport.TLSInfo{CertFile: c.ServerLeaf, KeyFile: c.ServerLeaf, TrustedCAFile: c.ClientCA,
		ClientCertAuth: true, MinVersion: tls.VersionTLS12}
}
