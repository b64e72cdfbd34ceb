package etcdmember

import (
	"context"
	"crypto/tls"
	"errors"
	"log/slog"
	"net"
	"net/netip"
	"sync"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/quorate/quorate/certs"
	"github.com/quorate/quorate/etcdmember/member"
	"github.com/quorate/quorate/etcdmember/table"
	"github.com/quorate/quorate/internal/replica"
)

// asker asks the members of this cluster, each for itself, in this replica's name.
type asker struct {
	log     *slog.Logger
	cluster string // its name
	me      replica.Identity
	files   certs.Files
	tls     func() *tls.Config // nil, or returning nil: there are no certificates yet
	hosts   string             // the hosts file
	lines   lines              // to those that were asked before
	// linePatience is how long a question by one of the lines may take.
	linePatience time.Duration
	// raft asks a member for what it knows of raft.
	raft func(ctx context.Context, a table.Answer) (member.RaftStatus, error)
	// peerPatience is how long the next question to the peers' ports may take.
	peerPatience time.Duration
}

func newAsker(cfg Config) *asker {
	a := &asker{log: cfg.Log, cluster: cfg.Cluster.Name, me: cfg.Me, files: cfg.Files, tls: cfg.TLS,
		hosts: cfg.HostsFile, linePatience: lineTimeout}
	a.raft = func(ctx context.Context, of table.Answer) (member.RaftStatus, error) {
		if cfg.Tests.Deaf {
			return member.RaftStatus{}, errors.New("deaf")
		}
		return member.AskRaft(ctx, of.DNSName(a.cluster), of.Address, a.config())
	}
	return a
}

// config is the configuration of a client; nil before there are certificates.
func (k *asker) config() *tls.Config {
	if k.tls == nil {
		return nil
	}
	return k.tls()
}

// target is one address to ask, and who should be there.
type target struct {
	replica.Place
	instanceID string
	address    netip.Addr
}

// ask asks all addresses at once, each by itself.
func (k *asker) ask(ctx context.Context, targets []target) []table.Answer {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	limit := time.AfterFunc(askTimeout, cancel)
	defer limit.Stop()
	var enough sync.Once
	tlsConfig := k.config()
	out := make([]table.Answer, len(targets))
	var wg sync.WaitGroup
	for i, t := range targets {
		wg.Go(func() {
			out[i] = k.askOne(ctx, t, tlsConfig)
			if out[i].Reach == table.ReachLinearizable {
				enough.Do(func() { limit.Reset(enoughGrace) })
			}
		})
	}
	wg.Wait()
	return out
}

func (k *asker) askOne(ctx context.Context, t target, tlsConfig *tls.Config) table.Answer {
	a := table.Answer{Place: t.Place, InstanceID: t.instanceID, Address: t.address}
	to := lineTo{t.address, t.DNSName(k.cluster)}
	if said, ok := k.askAgain(ctx, to, tlsConfig, a); ok {
		return said
	}
	// First a plain connection: gRPC would go on trying a port that refuses.
	var d net.Dialer
	conn, err := d.DialContext(ctx, "tcp", netip.AddrPortFrom(t.address, member.ClientPort).String())
	if err != nil {
		return a
	}
	a.Reach = table.ReachTCP
	if tlsConfig == nil {
		conn.Close()
		return a
	}
	l, err := openLine(conn, to, tlsConfig)
	if err != nil {
		return a
	}
	if serves(ctx, l.client) {
		l.ask(ctx, &a)
	}
	k.lines.keepOrClose(l, a)
	return a
}

// serves reports whether a member that accepts connections serves at all. Waiting the whole askTimeout for one that
// does not would make every step of a boot without quorum take that long.
func serves(ctx context.Context, c *clientv3.Client) bool {
	ctx, cancel := context.WithTimeout(ctx, handshakeTimeout)
	defer cancel()
	return member.Serves(ctx, c)
}
