package test

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"os"
	"strconv"
	"testing"
	"time"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"
	"google.golang.org/grpc/connectivity"

	"github.com/quorate/quorate/etcdmember/member"
)

// etcdStore is a client of the members themselves, at one endpoint at a time: clientv3 waits until a connection is
// ready before it sends, so that among several one dead endpoint would block a call. It goes on to the next endpoint
// after a failure and, to meet every member, after twenty operations.
type etcdStore struct {
	addresses func() []string // the endpoints' IP addresses, also of those that are off
	tls       *tls.Config

	next   int // which endpoint is used next
	client *clientv3.Client
	left   int // operations until the endpoint is changed
}

// operationsAnEndpoint is how many operations a client sends to one endpoint before it goes on.
const operationsAnEndpoint = 20

func (s *etcdStore) close() {
	if s.client != nil {
		_ = s.client.Close()
		s.client = nil
	}
}

// dial connects to one address, and returns when the connection is ready.
func dial(ctx context.Context, address string, conf *tls.Config) (*clientv3.Client, error) {
	c, err := clientv3.New(clientv3.Config{
		Endpoints: []string{"https://" + net.JoinHostPort(address, strconv.Itoa(member.ClientPort))}, TLS: conf,
		Logger: zap.NewNop(),
	})
	if err != nil {
		return nil, err
	}
	connection := c.ActiveConnection()
	connection.Connect()
	for state := connection.GetState(); state != connectivity.Ready; state = connection.GetState() {
		if state == connectivity.TransientFailure || !connection.WaitForStateChange(ctx, state) {
			return nil, errors.Join(fmt.Errorf("connect to %s: %s", address, state), c.Close())
		}
	}
	return c, nil
}

// connect makes sure that there is a connection, so that what is not sent is known not to have been.
func (s *etcdStore) connect(ctx context.Context) error {
	if s.client != nil && s.left > 0 && s.client.ActiveConnection().GetState() == connectivity.Ready {
		s.left--
		return nil
	}
	s.close()
	addresses := s.addresses()
	address := addresses[s.next%len(addresses)]
	s.next++
	c, err := dial(ctx, address, s.tls)
	if err != nil {
		return err
	}
	s.client, s.left = c, operationsAnEndpoint
	return nil
}

// carry sends one operation. Whatever ends without an answer ends the connection as well.
func (s *etcdStore) carry(ctx context.Context, o operation) (operation, bool) {
	ctx, cancel := context.WithTimeout(ctx, operationTimeout)
	defer cancel()
	if err := s.connect(ctx); err != nil {
		return o, false
	}
	resp, err := s.client.Txn(clientv3.WithRequireLeader(ctx)).If(o.conditions()...).Then(o.wanted()...).Else(
		clientv3.OpGet(o.key)).Commit()
	if err != nil {
		s.close()
		o.outcome = unknown
		return o, !neverDone(err)
	}
	o.outcome = done
	if o.kind != opRead && resp.Succeeded {
		return o, true
	}
	if o.kind == opSwap {
		o.outcome = refused
	}
	if kvs := resp.Responses[0].GetResponseRange().GetKvs(); len(kvs) > 0 {
		o.found = string(kvs[0].Value)
	}
	return o, true
}

// neverDone are the answers that a member gives before it reads a request.
func neverDone(err error) bool {
	return errors.Is(err, rpctypes.ErrNoLeader) ||
		rpctypes.ErrorDesc(err) == rpctypes.ErrorDesc(rpctypes.ErrGRPCNotSupportedForLearner)
}

// conditions are what an operation wants to find.
func (o operation) conditions() []clientv3.Cmp {
	switch {
	case o.kind != opSwap:
		return nil
	case o.old == "":
		return []clientv3.Cmp{clientv3.Compare(clientv3.CreateRevision(o.key), "=", 0)}
	}
	return []clientv3.Cmp{clientv3.Compare(clientv3.Value(o.key), "=", o.old)}
}

// wanted is what an operation does. A write also leaves a key of its own, which nobody writes again: an acknowledged
// one must be there at the end, however often its key was overwritten.
func (o operation) wanted() []clientv3.Op {
	if o.kind == opRead {
		return []clientv3.Op{clientv3.OpGet(o.key)}
	}
	return []clientv3.Op{clientv3.OpPut(o.key, o.value), clientv3.OpPut(o.value, "")}
}

// etcdTLS are the agent's certificates for etcd, from a replica's disk. They are kept, since that VM may be gone later.
func (c *cluster) etcdTLS(t *testing.T) *tls.Config {
	t.Helper()
	if c.clientTLS != nil {
		return c.clientTLS
	}
	await(t, "certificates for etcd", func() error {
		folder := fmt.Sprintf("/proc/%d/root/var/lib/quorate/pki/", c.vm(c.vms[0]).InitPID)
		pair, err := tls.LoadX509KeyPair(folder+"agent-etcd.pem", folder+"agent-etcd.pem")
		if err != nil {
			return err
		}
		authority, err := os.ReadFile(folder + "etcd-client-ca.crt")
		if err != nil {
			return err
		}
		roots := x509.NewCertPool()
		roots.AppendCertsFromPEM(authority)
		c.clientTLS = &tls.Config{Certificates: []tls.Certificate{pair}, RootCAs: roots, MinVersion: tls.VersionTLS12}
		return nil
	})
	return c.clientTLS
}

// addresses are those of all VMs, also of the ones that are off.
func (c *cluster) addresses() (list []string) {
	for _, v := range c.Status().VMs {
		list = append(list, v.Address)
	}
	return list
}

// startWriters begins the load on the members themselves.
func (c *cluster) startWriters(t *testing.T) *clients {
	t.Helper()
	conf := c.etcdTLS(t)
	l := startClients(context.Background(), fmt.Sprintf("load-%d", time.Now().UnixNano()), func(client int) store {
		return &etcdStore{addresses: c.addresses, tls: conf, next: client}
	})
	t.Cleanup(l.stop) // also where the test ends before it is checked
	return l
}
