package member

import (
	"context"
	"testing"
	"testing/synctest"

	"github.com/quorate/quorate/etcdmember/table"
	"github.com/quorate/quorate/internal/record"
)

// A voter that raft has just forgotten to have heard of is a successor a heartbeat later.
func TestASuccessorIsLookedForAgain(t *testing.T) {
	status := func(heard, alone bool) table.MemberStatus {
		s := table.MemberStatus{MemberID: 1, Leader: 1, Progress: map[record.MemberID]table.PeerProgress{
			1: {RecentActive: true}, 2: {RecentActive: heard}}}
		if alone {
			delete(s.Progress, 2)
		}
		return s
	}
	for name, c := range map[string]struct {
		forgotten int // looks
		ends      bool
		alone     bool
		want      record.MemberID
		looks     int
	}{
		"heard of":                {0, false, false, 2, 1},
		"forgotten a moment ago":  {2, false, false, 2, 3},
		"never heard of":          {1000, false, false, 0, successorLooks},
		"alone":                   {0, false, true, 0, 1},
		"nobody waits any longer": {1000, true, false, 0, 1},
	} {
		synctest.Test(t, func(t *testing.T) {
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			if c.ends {
				cancel()
			}
			looks := 0
			best, alone := awaitSuccessor(ctx, func() table.MemberStatus {
				looks++
				return status(looks > c.forgotten, c.alone)
			})
			if best != c.want || alone != c.alone || looks != c.looks {
				t.Errorf("%s: %s, alone: %t, after %d looks", name, best, alone, looks)
			}
		})
	}
}
