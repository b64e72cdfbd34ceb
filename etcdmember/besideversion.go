package etcdmember

import (
	"context"
	"net/url"
	"sync"

	"go.etcd.io/etcd/api/v3/version"

	"github.com/quorate/quorate/etcdmember/hosts"
	"github.com/quorate/quorate/etcdmember/table"
)

// askLearners finds the versions of the learners that are heard of, and the cluster's. Where they are the same, neither
// is asked for again for as long as the learner is heard of: what comes back may be another program.
func (b *beside) askLearners(ctx context.Context, r *table.Ring) {
	var ask []*table.RingMember
	for i := range r.Members {
		m := &r.Members[i]
		switch {
		case !m.RecentActive || !m.StreamsActive:
			delete(b.versions, m.ID)
		case m.Learner && !table.SameMinor(b.versions[m.ID], b.version):
			ask = append(ask, m)
		}
	}
	if len(ask) > 0 {
		b.askVersions(ctx, r.Own(), ask)
	}
	for i := range r.Members {
		r.Members[i].Version = b.versions[r.Members[i].ID]
	}
	r.ClusterVersion = b.version
}

// askVersions asks the leader's own member for the cluster's version and the learners for theirs, all at once: one that
// hangs takes no time from the others.
func (b *beside) askVersions(ctx context.Context, own table.Member, learners []*table.RingMember) {
	ctx, cancel := context.WithTimeout(ctx, peerTimeout)
	defer cancel()
	says := make([]string, len(learners))
	var wg sync.WaitGroup
	wg.Go(func() { b.version = b.memberVersions(ctx, own).Cluster })
	for i, m := range learners {
		wg.Go(func() { says[i] = b.memberVersions(ctx, m.Member).Server })
	}
	wg.Wait()
	for i, m := range learners {
		b.versions[m.ID] = says[i]
	}
}

// memberVersions asks a member's peer port for its version and the one that it knows as the cluster's; both are empty
// where it does not answer, or does not know.
func (m *Membership) memberVersions(ctx context.Context, e table.Member) (none version.Versions) {
	if len(e.PeerURLs) == 0 {
		return none
	}
	u, err := url.Parse(e.PeerURLs[0])
	if err != nil {
		return none
	}
	address, ok := hosts.Lookup(m.cfg.HostsFile, u.Hostname())
	if !ok {
		return none
	}
	client, err := m.peerClient(address)
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
