package etcdmember

import (
	"context"
	"sync"

	"github.com/quorate/quorate/etcdmember/leader"
	"github.com/quorate/quorate/etcdmember/table"
	"github.com/quorate/quorate/internal/record"
)

// learnerVersions are the versions of the learners that are heard of, and the cluster's as it was when a learner was
// last asked for its own. Where they are the same, neither is asked for again for as long as the learner is heard of:
// what comes back may be another program.
type learnerVersions struct {
	asks    *asker
	of      map[record.MemberID]string
	cluster string
}

// observe finds those of the ring's members that are not known, and gives them to the ring.
func (l *learnerVersions) observe(ctx context.Context, r *leader.Ring) {
	var ask []*leader.RingMember
	for i := range r.Members {
		m := &r.Members[i]
		switch {
		case !m.RecentActive || !m.StreamsActive:
			delete(l.of, m.ID)
		case m.Learner && !table.SameMinor(l.of[m.ID], l.cluster):
			ask = append(ask, m)
		}
	}
	if len(ask) > 0 {
		l.ask(ctx, r.Own(), ask)
	}
	for i := range r.Members {
		r.Members[i].Version = l.of[r.Members[i].ID]
	}
	r.ClusterVersion = l.cluster
}

// ask asks the leader's own member for the cluster's version and the learners for theirs, all at once: one that hangs
// takes no time from the others.
func (l *learnerVersions) ask(ctx context.Context, own table.Member, learners []*leader.RingMember) {
	ctx, cancel := context.WithTimeout(ctx, peerTimeout)
	defer cancel()
	says := make([]string, len(learners))
	var wg sync.WaitGroup
	wg.Go(func() { l.cluster = l.asks.versionsOf(ctx, own).Cluster })
	for i, m := range learners {
		wg.Go(func() { says[i] = l.asks.versionsOf(ctx, m.Member).Server })
	}
	wg.Wait()
	for i, m := range learners {
		l.of[m.ID] = says[i]
	}
}
