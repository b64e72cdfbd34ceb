package member

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"time"

	"go.etcd.io/etcd/api/v3/etcdserverpb"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"
	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"
	"google.golang.org/grpc/connectivity"

	"github.com/quorate/quorate/etcdmember/table"
	"github.com/quorate/quorate/internal/record"
)

// Dial connects to one member and no other: clientv3 waits for a connection to be ready before it sends, so that one
// dead endpoint among several blocks a call for minutes. The member is named by its DNS name, which its certificate
// must hold, and reached at the address: gRPC takes the expected name from the endpoint, whatever the TLS configuration
// says. Every call on the result needs a deadline.
func Dial(dnsName string, address netip.Addr, tlsConfig *tls.Config) (*clientv3.Client, error) {
	target := netip.AddrPortFrom(address, ClientPort).String()
	return newClient(dnsName, tlsConfig, func(ctx context.Context, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "tcp", target)
	})
}

// errConnectionEnded: the one connection of DialOver has.
var errConnectionEnded = errors.New("the connection has ended")

// DialOver is Dial with a connection to the member that is there already, and no other: once it has ended, so has the
// client. It stays the caller's to close, after the client.
func DialOver(conn net.Conn, dnsName string, tlsConfig *tls.Config) (*clientv3.Client, error) {
	only := make(chan net.Conn, 1)
	only <- conn
	return newClient(dnsName, tlsConfig, func(context.Context, string) (net.Conn, error) {
		select {
		case c := <-only:
			return c, nil
		default:
			return nil, errConnectionEnded
		}
	})
}

func newClient(dnsName string, tlsConfig *tls.Config, connect func(context.Context, string) (net.Conn, error)) (
	*clientv3.Client, error) {
	c, err := clientv3.New(clientv3.Config{
		Endpoints: []string{ClientURL(dnsName)}, TLS: tlsConfig, DialTimeout: time.Second, Logger: zap.NewNop(),
		DialOptions: []grpc.DialOption{
			grpc.WithContextDialer(connect),
			// A connection that fails is tried again soon: boot is a sequence of peers that come up.
			grpc.WithConnectParams(grpc.ConnectParams{MinConnectTimeout: time.Second, Backoff: backoff.Config{
				BaseDelay: 50 * time.Millisecond, Multiplier: 1.6, Jitter: 0.2, MaxDelay: time.Second}}),
		},
	})
	if err != nil {
		return nil, fmt.Errorf("make a client for %s: %w", dnsName, err)
	}
	// clientv3 makes another connection for each question to an endpoint, such as Status; here there is only one.
	c.Maintenance = clientv3.NewMaintenanceFromMaintenanceClient(clientv3.RetryMaintenanceClient(c,
		c.ActiveConnection()), c)
	return c, nil
}

// Serves reports whether the member behind a client agrees with it on TLS and gRPC before ctx is done. A member that
// waits for a leader accepts connections, and says nothing.
func Serves(ctx context.Context, c *clientv3.Client) bool {
	conn := c.ActiveConnection()
	conn.Connect()
	for {
		switch s := conn.GetState(); {
		case s == connectivity.Ready:
			return true
		case s == connectivity.TransientFailure || s == connectivity.Shutdown || !conn.WaitForStateChange(ctx, s):
			return false
		}
	}
}

// List reads the member list through quorum: the answer is the cluster's, not the endpoint's. A member that knows of
// no leader says so at once.
func List(ctx context.Context, c *clientv3.Client) (clusterID record.MemberID, list []table.Member, err error) {
	resp, err := c.MemberList(clientv3.WithRequireLeader(ctx))
	if err != nil {
		return 0, nil, fmt.Errorf("list members: %w", err)
	}
	return record.MemberID(resp.Header.GetClusterId()), entries(resp.Members), nil
}

func entries(ms []*etcdserverpb.Member) []table.Member {
	out := make([]table.Member, len(ms))
	for i, m := range ms {
		out[i] = table.Member{ID: record.MemberID(m.GetID()), Name: m.GetName(), PeerURLs: m.GetPeerURLs(),
			Learner: m.GetIsLearner()}
	}
	return out
}
