package ringtest

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/quorate/quorate/etcdmember/datadir"
	"github.com/quorate/quorate/etcdmember/etcdtest"
	"github.com/quorate/quorate/internal/record"
)

// A member's database is damaged twice, and it is replaced each time. Once a snapshot is a day younger than its last
// incarnation the first archive is purged, and the second stays. What an observation of a real member says is enough
// for the purge.
func TestAReplacedMemberPurgesAllArchivesButTheLast(t *testing.T) {
	if !etcdtest.InOwnNetwork(t) {
		return
	}
	r := newRing(t, pa, pb, pc)
	r.begin(pa, pb, pc)
	p := r.follower()
	a := r.agents[p]
	archives := filepath.Join(filepath.Dir(a.etcdDir()), "archive")
	for range 2 {
		before := r.ids(p)[p]
		a.end()
		if err := os.Truncate(datadir.DatabaseFile(a.etcdDir()), 8192); err != nil {
			t.Fatal(err)
		}
		a.begin()
		r.await("it is another member", func() error {
			if s, err := r.status(p); err != nil || s.MemberID == before {
				return fmt.Errorf("%+v, %w", s, err)
			}
			return r.voters(pa, pb, pc)
		})
	}
	all, err := os.ReadDir(archives)
	if err != nil || len(all) != 2 {
		t.Fatal(all, err)
	}
	ms := a.membership()
	at := time.Now().Add(23 * time.Hour)
	taken := record.Snapshot{Name: "1/9-x", Epoch: 1, Term: 1 << 20, Index: 1 << 40, Time: at, Written: at}
	store := func(s record.Snapshot) {
		r.record.Mu.Lock()
		defer r.record.Mu.Unlock()
		r.record.Stored = []record.Snapshot{s}
	}
	store(taken)
	if held, err := ms.PurgeArchives(t.Context()); err != nil || held.Count != 2 ||
		!strings.Contains(held.Kept, "no verified snapshot") {
		t.Errorf("with a snapshot of within a day: %+v, %v", held, err)
	}
	taken.Time, taken.Written = at.Add(2*time.Hour), at.Add(2*time.Hour)
	store(taken)
	r.await("it is purged", func() error {
		held, err := ms.PurgeArchives(t.Context())
		if err != nil || held.Count != 1 || held.Kept != "" {
			return fmt.Errorf("%+v, %w", held, err)
		}
		return nil
	})
	left, err := os.ReadDir(archives)
	if err != nil || len(left) != 1 || left[0].Name() != all[1].Name() {
		t.Errorf("left %v of %v, %v", left, all, err)
	}
	if err := r.voters(pa, pb, pc); err != nil {
		t.Error(err)
	}
}
