package etcdmember

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"sync"
	"time"

	"go.etcd.io/etcd/api/v3/version"
	"go.etcd.io/etcd/client/pkg/v3/transport"

	"github.com/quorate/quorate/internal/record"
)

// undecided is what a member says of its cluster's version before there is one.
const undecided = "not_decided"

// peerTimeout bounds one question to a peer's port. It answers from memory, also where there is no quorum. Where none
// has answered in time the next question has twice as long, up to mostPeerTimeout: a join waits for an answer, and etcd
// itself waits that long for one.
const (
	peerTimeout     = time.Second
	mostPeerTimeout = 8 * time.Second
)

// askPeers asks the peer ports of those that answered for what a client's call does not say: the cluster's version,
// and, where this disk holds a member, what that has acknowledged, or, where no quorum answers, whether it was removed.
// A running member asks nothing: etcd tells it all.
func (m *Membership) askPeers(ctx context.Context, f *Facts) {
	if f.Directory.Running || m.cfg.TLS == nil || m.cfg.TLS() == nil {
		return
	}
	hasRun := f.Directory.Exists && m.agent.Phase == PhaseStarted && m.agent.MemberID != 0
	quorum := answersQuorum(*f)
	removed := hasRun && !quorum
	f.PeersAsked = true
	m.peerPatience = max(m.peerPatience, peerTimeout)
	ctx, cancel := context.WithTimeout(ctx, m.peerPatience)
	defer cancel()
	var wg sync.WaitGroup
	for i := range f.Answers {
		a := &f.Answers[i]
		if a.Reach == ReachNothing || a.InstanceID == m.cfg.Me.InstanceID {
			continue
		}
		if hasRun && quorum {
			of := *a // the other question writes into the answer meanwhile
			wg.Go(func() { a.Acknowledged = m.findAcknowledged(ctx, of) })
		}
		wg.Go(func() {
			client, err := m.peerClient(a.Address)
			if err != nil {
				return
			}
			base := PeerURL(a.DNSName(m.cfg.Cluster.Name))
			if v, err := peerVersion(ctx, client, base); err == nil {
				a.Version, a.ClusterVersion = v.Server, v.Cluster
			}
			if removed {
				a.Removed = m.wasRemoved(ctx, client, base, *f)
			}
		})
	}
	wg.Wait()
	if m.peerPatience = min(2*m.peerPatience, mostPeerTimeout); f.peersAnswered() {
		m.peerPatience = peerTimeout
	}
}

// peersAnswered: one that was asked on its peer port has answered there.
func (f *Facts) peersAnswered() bool {
	return slices.ContainsFunc(f.Answers, func(a Answer) bool { return a.ClusterVersion != "" })
}

// peerClient speaks to one peer port with this replica's own peer leaf.
func (m *Membership) peerClient(address netip.Addr) (*http.Client, error) {
	files := m.cfg.Files
	info := transport.TLSInfo{CertFile: files.Leaf(peerLeaf), KeyFile: files.Leaf(peerLeaf),
		TrustedCAFile: files.CA(peerCA)}
	tlsConfig, err := info.ClientConfig()
	if err != nil {
		return nil, fmt.Errorf("speak to the peers: %w", err)
	}
	target := netip.AddrPortFrom(address, PeerPort).String()
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
// before it looks at anything else (rafthttp/http.go, streamHandler). The stream is never begun, because the question
// names nobody whom it is for.
func (m *Membership) wasRemoved(ctx context.Context, client *http.Client, base string, f Facts) bool {
	h := historyOf(f)
	if h.formed == nil || m.agent.Epoch != h.formed.Number {
		return false
	}
	id := m.agent.MemberID
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, base+"/raft/stream/message/"+etcdID(id), nil)
	if err != nil {
		return false
	}
	for k, v := range map[string]string{
		"X-Server-From": etcdID(id), "X-Server-Version": version.Version,
		"X-Min-Cluster-Version": version.MinClusterVersion,
		"X-Etcd-Cluster-ID":     etcdID(h.formed.Outcome.Formed.ClusterID), "X-Raft-To": "0",
	} {
		req.Header.Set(k, v)
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

// findVersions finds the cluster's version, which is undecided for a moment after a seed, and the lowest of its
// members.
func (f *Facts) findVersions() {
	for _, a := range f.Answers {
		if older(f.ClusterVersion, a.ClusterVersion) || f.ClusterVersion == "" && a.ClusterVersion != undecided {
			f.ClusterVersion = a.ClusterVersion
		}
		if a.Version != "" && (f.MemberVersion == "" || older(a.Version, f.MemberVersion)) {
			f.MemberVersion = a.Version
		}
	}
}

// versionFault says why etcd here must not run with the cluster's version; empty: it may. A directory may go on with
// the next minor version: that is how members are upgraded, one after the other. A member that joins brings none: it
// would be a copy to another version, in the middle of an upgrade.
func versionFault(f Facts, formed bool) string {
	joins := formed && !f.Directory.Exists && !f.Directory.Running
	runs := f.ClusterVersion
	if older(runs, f.MemberVersion) || runs == "" {
		runs = f.MemberVersion // the cluster's version follows its members a few seconds later
	}
	switch {
	case older(f.EtcdVersion, f.ClusterVersion):
		return fmt.Sprintf("etcd here is %s and the cluster's version is %s: this image is too old", f.EtcdVersion,
			f.ClusterVersion)
	case joins && older(f.EtcdVersion, runs):
		return fmt.Sprintf("etcd here is %s and the cluster's members run %s: this image is too old to join",
			f.EtcdVersion, runs)
	case joins && older(runs, f.EtcdVersion):
		return fmt.Sprintf("etcd here is %s and the cluster's version is %s: an empty replica joins with the version "+
			"of the others; upgrade those with their disks first, or use their image",
			f.EtcdVersion, runs)
	}
	return ""
}
