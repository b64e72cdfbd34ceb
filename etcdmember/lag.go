package etcdmember

import (
	"context"
	"net/url"
	"sync"
	"time"

	"github.com/quorate/quorate/internal/record"
)

// lagTimeout bounds the question for one member's lag: a person waits for the answer.
const lagTimeout = time.Second

// Lags asks each member how far its log reaches and returns how many entries it is behind the leader's. A member that
// does not answer is left out; without the leader's answer nobody's lag is known.
func (m *Membership) Lags(ctx context.Context, s MemberStatus) map[record.MemberID]uint64 {
	ctx, cancel := context.WithTimeout(ctx, lagTimeout)
	defer cancel()
	var mu sync.Mutex
	index := map[record.MemberID]uint64{}
	var wg sync.WaitGroup
	for _, e := range s.Members {
		if len(e.PeerURLs) == 0 {
			continue
		}
		wg.Go(func() {
			if i, ok := m.raftIndex(ctx, e); ok {
				mu.Lock()
				index[e.ID] = i
				mu.Unlock()
			}
		})
	}
	wg.Wait()
	leader, ok := index[s.Leader]
	if !ok {
		return nil
	}
	lags := map[record.MemberID]uint64{}
	for id, i := range index {
		lags[id] = max(leader, i) - i
	}
	return lags
}

func (m *Membership) raftIndex(ctx context.Context, e Member) (uint64, bool) {
	u, err := url.Parse(e.PeerURLs[0])
	if err != nil || m.cfg.TLS() == nil {
		return 0, false
	}
	address, ok := lookupHosts(m.cfg.HostsFile, u.Hostname())
	if !ok {
		return 0, false
	}
	c, err := dial(u.Hostname(), address, m.cfg.TLS())
	if err != nil {
		return 0, false
	}
	defer c.Close()
	st, err := c.Status(ctx, ClientURL(u.Hostname()))
	if err != nil {
		return 0, false
	}
	return st.RaftIndex, true
}
