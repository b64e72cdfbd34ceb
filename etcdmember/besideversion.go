package etcdmember

import (
	"context"
	"sync"

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
	wg.Go(func() { b.version = b.m.asks.versionsOf(ctx, own).Cluster })
	for i, m := range learners {
		wg.Go(func() { says[i] = b.m.asks.versionsOf(ctx, m.Member).Server })
	}
	wg.Wait()
	for i, m := range learners {
		b.versions[m.ID] = says[i]
	}
}
