package etcdmember

import (
	"context"
	"fmt"
	"net/url"
	"slices"
	"sync"

	"go.etcd.io/etcd/api/v3/version"
)

// sameVersion: the learner's etcd is of the cluster's minor version. etcd itself refuses one that is older (it does not
// start), and would let a newer one become a voter: that would begin an upgrade with the one member that has no past.
func (v besideView) sameVersion(m RingMember) bool { return sameMinor(m.Version, v.ClusterVersion) }

// sameMinor: both are known, and of one minor version. Of two that nobody knows, nothing is the same.
func sameMinor(a, b string) bool {
	aMajor, aMinor, ok := minorOf(a)
	bMajor, bMinor, bOK := minorOf(b)
	return ok && bOK && aMajor == bMajor && aMinor == bMinor
}

func (v besideView) otherVersion(m RingMember) Plan {
	says, cluster := "runs etcd "+m.Version, "the cluster's version is "+v.ClusterVersion
	if m.Version == "" {
		says = "does not say which etcd it runs"
	}
	if v.ClusterVersion == "" {
		cluster = "the cluster's version is not decided yet"
	}
	return wait("learner-other-version", fmt.Sprintf("%s %s, and %s.", title(m), says, cluster),
		"It is promoted once it runs the version of the others: make its VM again with their image, or upgrade those "+
			"with their disks.")
}

// askLearners finds the versions of the learners that are heard of, and the cluster's. Where they are the same, neither
// is asked for again for as long as the learner is heard of: what comes back may be another program.
func (b *beside) askLearners(ctx context.Context, r *Ring) {
	var ask []*RingMember
	for i := range r.Members {
		m := &r.Members[i]
		switch {
		case !m.RecentActive || !m.StreamsActive:
			delete(b.versions, m.ID)
		case m.Learner && !sameMinor(b.versions[m.ID], b.version):
			ask = append(ask, m)
		}
	}
	if len(ask) > 0 {
		b.askVersions(ctx, r.own(), ask)
	}
	for i := range r.Members {
		r.Members[i].Version = b.versions[r.Members[i].ID]
	}
	r.ClusterVersion = b.version
}

// askVersions asks the leader's own member for the cluster's version and the learners for theirs, all at once: one that
// hangs takes no time from the others.
func (b *beside) askVersions(ctx context.Context, own Member, learners []*RingMember) {
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

// own is the leader's entry.
func (r Ring) own() Member {
	i := slices.IndexFunc(r.Members, func(m RingMember) bool { return m.ID == r.Leader })
	if i < 0 {
		return Member{}
	}
	return r.Members[i].Member
}

// memberVersions asks a member's peer port for its version and the one that it knows as the cluster's; both are empty
// where it does not answer, or does not know.
func (m *Membership) memberVersions(ctx context.Context, e Member) (none version.Versions) {
	if len(e.PeerURLs) == 0 {
		return none
	}
	u, err := url.Parse(e.PeerURLs[0])
	if err != nil {
		return none
	}
	address, ok := lookupHosts(m.cfg.HostsFile, u.Hostname())
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
	if v.Cluster == undecided {
		v.Cluster = ""
	}
	return v
}
