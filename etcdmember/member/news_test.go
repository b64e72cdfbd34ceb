package member

import (
	"testing"

	"github.com/quorate/quorate/etcdmember/table"
	"github.com/quorate/quorate/internal/record"
)

// Each change that an agent acts on at once is news; what grows all the time is none.
func TestWhatIsNews(t *testing.T) {
	status := func() table.MemberStatus {
		return table.MemberStatus{MemberID: 0xa, Leader: 0xa, Ready: true,
			Members: []table.Member{{ID: 0xa, Name: "a"}, {ID: 0xb, Name: "b", PeerURLs: []string{"https://b:2380"}}},
			Progress: map[record.MemberID]table.PeerProgress{0xa: {RecentActive: true},
				0xb: {RecentActive: true, Match: 7}}}
	}
	for name, c := range map[string]struct {
		change func(*table.MemberStatus)
		news   bool
	}{
		"nothing": {func(*table.MemberStatus) {}, false},
		"entries": {func(s *table.MemberStatus) {
			s.Committed, s.Applied, s.Revision, s.Database.Bytes = 1, 1, 1, 1
			s.Progress[0xb] = table.PeerProgress{RecentActive: true, Match: 8}
		}, false},
		"another leader": {func(s *table.MemberStatus) { s.Leader = 0xb }, true},
		"no leader":      {func(s *table.MemberStatus) { s.Leader = 0 }, true},
		"an alarm": {func(s *table.MemberStatus) {
			s.Alarms = []table.Alarm{{MemberID: 0xb, Kind: "NOSPACE"}}
		}, true},
		"it is removed":      {func(s *table.MemberStatus) { s.Removed = true }, true},
		"one is gone":        {func(s *table.MemberStatus) { s.Members = s.Members[:1] }, true},
		"one moved":          {func(s *table.MemberStatus) { s.Members[1].PeerURLs[0] = "https://c:2380" }, true},
		"one is a learner":   {func(s *table.MemberStatus) { s.Members[1].Learner = true }, true},
		"one has no name":    {func(s *table.MemberStatus) { s.Members[1].Name = "" }, true},
		"one is silent":      {func(s *table.MemberStatus) { s.Progress[0xb] = table.PeerProgress{Match: 7} }, true},
		"one is not tracked": {func(s *table.MemberStatus) { delete(s.Progress, 0xb) }, true},
	} {
		s := status()
		c.change(&s)
		if got := News(s) != News(status()); got != c.news {
			t.Errorf("%s: news: %t, want %t", name, got, c.news)
		}
	}
}
