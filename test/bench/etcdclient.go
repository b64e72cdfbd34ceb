package main

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"os"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"
	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"

	"github.com/quorate/quorate/certs"
	"github.com/quorate/quorate/internal/localgce"
)

const (
	// dialPause is between two tries to connect: it is the error of what is measured, and gRPC's own grows to seconds.
	dialPause = 10 * time.Millisecond
	// callLimit bounds one call of the measuring side.
	callLimit = time.Second
)

// clientTLS is what an agent's client of etcd uses; the files are the VM's, seen from the host. They are read once:
// with the VM they are gone.
func clientTLS(f certs.Files) (*tls.Config, error) {
	pair, err := tls.LoadX509KeyPair(f.Leaf(certs.AgentEtcd), f.Leaf(certs.AgentEtcd))
	if err != nil {
		return nil, fmt.Errorf("read the client certificate: %w", err)
	}
	ca, err := os.ReadFile(f.CA(certs.EtcdClient))
	if err != nil {
		return nil, fmt.Errorf("read etcd's authority: %w", err)
	}
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(ca)
	return &tls.Config{Certificates: []tls.Certificate{pair}, RootCAs: pool}, nil
}

// dialMember connects to one member at its address, and to no other.
func dialMember(vm localgce.VMStatus, c *tls.Config) (*clientv3.Client, error) {
	pause := backoff.Config{BaseDelay: dialPause, Multiplier: 1, MaxDelay: dialPause}
	return clientv3.New(clientv3.Config{
		Endpoints: []string{"https://" + net.JoinHostPort(vm.Address, "2379")}, TLS: c, Logger: zap.NewNop(),
		DialOptions: []grpc.DialOption{grpc.WithConnectParams(
			grpc.ConnectParams{MinConnectTimeout: 200 * time.Millisecond, Backoff: pause})},
	})
}

// members are the clients of a world's members, by VM.
type members struct {
	vms     []localgce.VMStatus
	clients []*clientv3.Client
}

func dialAll(vms []localgce.VMStatus, c *tls.Config) (m members, err error) {
	m.vms = vms
	for _, vm := range vms {
		client, err := dialMember(vm, c)
		if err != nil {
			return m, errors.Join(err, m.close())
		}
		m.clients = append(m.clients, client)
	}
	return m, nil
}

func (m members) close() error {
	var errs []error
	for _, c := range m.clients {
		errs = append(errs, c.Close())
	}
	return errors.Join(errs...)
}

// leader is the index of the VM whose member leads.
func (m members) leader(ctx context.Context) (int, error) {
	for i, c := range m.clients {
		call, cancel := context.WithTimeout(ctx, callLimit)
		s, err := c.Status(call, c.Endpoints()[0])
		cancel()
		if err == nil && s.Leader == s.Header.GetMemberId() {
			return i, nil
		}
	}
	return 0, errors.New("no member leads")
}

// awaitServing waits until the member reads through quorum at its own port, as a voter.
func awaitServing(ctx context.Context, c *clientv3.Client) (time.Time, error) {
	for {
		call, cancel := context.WithTimeout(ctx, callLimit)
		_, err := c.Get(call, "bench")
		cancel()
		if err == nil {
			return time.Now(), nil
		}
		if err := sleep(ctx, dialPause); err != nil {
			return time.Time{}, fmt.Errorf("wait for a linearizable read at %s: %w", c.Endpoints()[0], err)
		}
	}
}

// awaitPromoted asks another member until the one at the peer URL's port is a voter again. former is the id that it had
// before.
func awaitPromoted(ctx context.Context, c *clientv3.Client, url string, former uint64) (time.Time, error) {
	for {
		call, cancel := context.WithTimeout(ctx, callLimit)
		list, err := c.MemberList(call)
		cancel()
		if err == nil {
			for _, m := range list.Members {
				if m.GetPeerURLs()[0] == url && m.GetID() != former && !m.GetIsLearner() {
					return time.Now(), nil
				}
			}
		}
		if err := sleep(ctx, dialPause); err != nil {
			return time.Time{}, fmt.Errorf("wait for the promotion of %s: %w", url, err)
		}
	}
}
