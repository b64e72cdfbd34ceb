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
// A gRPC server that stops waits for whoever has connected and not yet spoken, up to 120 s, and etcd has it wait 7 s at
// each of its two addresses for watches to end, which they never do. So a member that stops first cuts its clients
// off, as it would if gRPC shared the port with HTTP. They go on at another member, or at this one once it is back.
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

// newClientPort reads the certificates once, so that a missing one is an error of the start. Each handshake reads them
// anew.
func newClientPort(c Config, log *slog.Logger) (*clientPort, error) {
	info := c.clientTLS()
	conf, err := info.ServerConfig()
	if err != nil {
		return nil, fmt.Errorf("read the certificates of etcd's client port: %w", err)
	}
	return &clientPort{TransportCredentials: credentials.NewTLS(conf), tls: conf, log: log,
		conns: map[*clientConn]struct{}{}}, nil
}

// serve has etcd's gRPC servers take their connections from here, and answer for raft's status.
func (p *clientPort) serve(e *embed.Config) {
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
