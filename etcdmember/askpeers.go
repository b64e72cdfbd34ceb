package etcdmember

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"sync"

	"go.etcd.io/etcd/api/v3/version"
	"go.etcd.io/etcd/client/pkg/v3/transport"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/quorate/quorate/certs"
	"github.com/quorate/quorate/etcdmember/hosts"
	"github.com/quorate/quorate/etcdmember/member"
	"github.com/quorate/quorate/etcdmember/table"
	"github.com/quorate/quorate/internal/record"
)

// askPeers asks the peer ports of those that answered for what a client's call does not say: the cluster's version,
// and, where this disk holds a member, what that has acknowledged, or, where no quorum answers, whether it was removed.
// A running member asks nothing: etcd tells it all.
func (k *asker) askPeers(ctx context.Context, f *table.Facts) {
	if f.Directory.Running || k.config() == nil {
		return
	}
	hasRun := f.Directory.Exists && f.Agent.Phase == table.PhaseStarted && f.Agent.MemberID != 0
	quorum := table.AnswersQuorum(*f)
	removed := hasRun && !quorum
	f.PeersAsked = true
	k.peerPatience = max(k.peerPatience, peerTimeout)
	ctx, cancel := context.WithTimeout(ctx, k.peerPatience)
	defer cancel()
	var wg sync.WaitGroup
	for i := range f.Answers {
		a := &f.Answers[i]
		if a.Reach == table.ReachNothing || a.InstanceID == k.me.InstanceID {
			continue
		}
		if hasRun && quorum {
			of := *a // the other question writes into the answer meanwhile
			wg.Go(func() { a.Acknowledged = k.findAcknowledged(ctx, of, f.Agent.MemberID) })
		}
		wg.Go(func() {
			client, err := k.peerClient(a.Address)
			if err != nil {
				return
			}
			base := table.PeerURL(a.DNSName(k.cluster))
			if v, err := peerVersion(ctx, client, base); err == nil {
				a.Version, a.ClusterVersion = v.Server, v.Cluster
			}
			if removed {
				a.Removed = k.wasRemoved(ctx, client, base, *f)
			}
		})
	}
	wg.Wait()
	if k.peerPatience = min(2*k.peerPatience, mostPeerTimeout); f.PeersAnswered() {
		k.peerPatience = peerTimeout
	}
}

// peerClient speaks to one peer port with this replica's own peer leaf.
func (k *asker) peerClient(address netip.Addr) (*http.Client, error) {
	files := k.files
	info := transport.TLSInfo{CertFile: files.Leaf(certs.EtcdPeerLeaf), KeyFile: files.Leaf(certs.EtcdPeerLeaf),
		TrustedCAFile: files.CA(certs.EtcdPeer)}
	tlsConfig, err := info.ClientConfig()
	if err != nil {
		return nil, fmt.Errorf("speak to the peers: %w", err)
	}
	target := netip.AddrPortFrom(address, table.PeerPort).String()
	return &http.Client{Transport: &http.Transport{
		TLSClientConfig: tlsConfig, DisableKeepAlives: true,
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			return (&net.Dialer{}).DialContext(ctx, "tcp", target)
		},
	}}, nil
}

// peerVersion is a peer's own version and its cluster's.
func peerVersion(ctx context.Context, client *http.Client, base string) (v version.Versions, err error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, base+"/version", nil)
	if err != nil {
		return v, err
	}
	resp, err := client.Do(req)
	if err != nil {
		return v, fmt.Errorf("ask a peer's version: %w", err)
	}
	defer resp.Body.Close()
	if err := json.NewDecoder(io.LimitReader(resp.Body, 4<<10)).Decode(&v); err != nil {
		return v, fmt.Errorf("decode a peer's version: %w", err)
	}
	return v, nil
}

// wasRemoved asks a peer as the own member would when it begins a stream: for an id that was removed it answers 410
// before anything else is examined (rafthttp/http.go, streamHandler). The stream is never begun, because the question
// names nobody whom it is for.
func (k *asker) wasRemoved(ctx context.Context, client *http.Client, base string, f table.Facts) bool {
	h := table.HistoryOf(f)
	if h.Formed == nil || f.Agent.Epoch != h.Formed.Number {
		return false
	}
	id := f.Agent.MemberID
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, base+"/raft/stream/message/"+etcdID(id), nil)
	if err != nil {
		return false
	}
	for name, v := range map[string]string{
		"X-Server-From": etcdID(id), "X-Server-Version": version.Version,
		"X-Min-Cluster-Version": version.MinClusterVersion,
		"X-Etcd-Cluster-ID":     etcdID(h.Formed.Outcome.Formed.ClusterID), "X-Raft-To": "0",
	} {
		req.Header.Set(name, v)
	}
	resp, err := client.Do(req)
	if err != nil {
		return false
	}
	resp.Body.Close()
	return resp.StatusCode == http.StatusGone
}

// etcdID is an id as etcd's peers spell it, without leading zeros.
func etcdID(id record.MemberID) string { return fmt.Sprintf("%x", uint64(id)) }

// versionsOf asks a member's peer port for its version and the one that it knows as the cluster's; both are empty
// where it does not answer, or does not know.
func (k *asker) versionsOf(ctx context.Context, e table.Member) (none version.Versions) {
	if len(e.PeerURLs) == 0 {
		return none
	}
	u, err := url.Parse(e.PeerURLs[0])
	if err != nil {
		return none
	}
	address, ok := hosts.Lookup(k.hosts, u.Hostname())
	if !ok {
		return none
	}
	client, err := k.peerClient(address)
	if err != nil {
		return none
	}
	v, err := peerVersion(ctx, client, e.PeerURLs[0])
	if err != nil {
		return none
	}
	if v.Cluster == table.Undecided {
		v.Cluster = ""
	}
	return v
}

// onMember calls with a client of one member.
func (k *asker) onMember(e table.Member, call func(c *clientv3.Client, endpoint string) error) error {
	if len(e.PeerURLs) == 0 {
		return fmt.Errorf("member %s has no peer URL", e.ID)
	}
	u, err := url.Parse(e.PeerURLs[0])
	if err != nil {
		return fmt.Errorf("member %s: %w", e.ID, err)
	}
	address, ok := hosts.Lookup(k.hosts, u.Hostname())
	if !ok {
		return fmt.Errorf("%s is not in %s", u.Hostname(), k.hosts)
	}
	c, err := member.Dial(u.Hostname(), address, k.config())
	if err != nil {
		return err
	}
	defer c.Close()
	return call(c, member.ClientURL(u.Hostname()))
}
