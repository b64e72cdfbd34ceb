package ringtest

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/quorate/quorate/etcdmember/etcdtest"
	"github.com/quorate/quorate/etcdmember/table"
	"github.com/quorate/quorate/internal/record"
)

// Row 43 on real members: a learner whose agent confirmed it, and which never started, is removed by the leader's
// agent; one that was confirmed just now is given its time.
func TestALearnerThatNeverStartedIsRemoved(t *testing.T) {
	if !etcdtest.InOwnNetwork(t) {
		return
	}
	r := newRing(t, pa, pb, pc)
	r.begin(pa, pb, pc)
	c := r.client(pa)
	added := map[time.Duration]record.MemberID{0: 0, 3 * time.Minute: 0}
	number := uint64(1)
	for ago := range added {
		p := pc
		p.Name = fmt.Sprintf("dead%d", number)
		var id record.MemberID
		// etcd calls a cluster unhealthy until all have been connected for a while
		r.await("a learner is added", func() error {
			resp, err := c.MemberAddAsLearner(t.Context(), []string{table.PeerURL(p.DNSName(testCluster))})
			if err == nil {
				id = record.MemberID(resp.Member.ID)
			}
			return err
		})
		added[ago] = id
		r.record.Change(func(v *record.View) {
			v.Replicas[p] = []record.Incarnation{{Place: p, Number: 1, InstanceID: fmt.Sprint(900 + number), Epoch: 1,
				MemberID: id,
				Started:  &record.Started{Epoch: 1, MemberID: id, Time: time.Now().Add(-ago)}}}
		})
		number++
	}
	r.await("the one that had its time is removed", func() error {
		list, err := c.MemberList(t.Context())
		if err != nil {
			return err
		}
		there := map[record.MemberID]bool{}
		for _, m := range list.Members {
			there[record.MemberID(m.ID)] = true
		}
		if !there[added[0]] {
			t.Fatal("the one that was confirmed just now is gone")
		}
		if there[added[3*time.Minute]] {
			return errors.New("it is listed")
		}
		return nil
	})
	if err := r.put(c, "after", "x"); err != nil {
		t.Error(err)
	}
}
