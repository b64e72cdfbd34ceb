package member

import (
	"context"
	"encoding/hex"
	"fmt"
	"hash/fnv"
	"net/url"
	"time"

	"github.com/quorate/quorate/etcdmember/table"
	"github.com/quorate/quorate/internal/backoff"
)

// News is the same for two statuses that differ in nothing that an agent has to act on at once: who leads, who the
// members are and whom the leader hears of, the alarms, and how the member itself is.
func News(s table.MemberStatus) string {
	h := fnv.New64a()
	fmt.Fprintln(h, s.MemberID, s.Leader, s.Learner, s.Ready, s.Removed, s.Alarms, s.Members)
	for _, e := range s.Members {
		p, known := s.Progress[e.ID]
		fmt.Fprintln(h, known, p.RecentActive)
	}
	return hex.EncodeToString(h.Sum(nil))
}

// AwaitNews is ReadStatus which the child answers once the status has other News, or after the patience.
func AwaitNews(ctx context.Context, socket, news string, patience time.Duration) (table.MemberStatus, error) {
	query := url.Values{"unlike": {news}, "within": {patience.String()}}
	return readStatus(ctx, socket, "/status?"+query.Encode(), patience)
}

// awaitNews looks until the news is unlike what the query names, for as long as it lets it. A query that names none, or
// that nobody here has made, waits for nothing.
func awaitNews(ctx context.Context, query url.Values, look func() table.MemberStatus) table.MemberStatus {
	within, _ := time.ParseDuration(query.Get("within"))
	end := time.Now().Add(within)
	for {
		s := look()
		left := time.Until(end)
		if left <= 0 || News(s) != query.Get("unlike") || backoff.Sleep(ctx, min(left, lookPeriod)) != nil {
			return s
		}
	}
}
