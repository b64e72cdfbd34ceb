package ringtest

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/quorate/quorate/etcdmember/etcdtest"
	"github.com/quorate/quorate/etcdmember/member"
	"github.com/quorate/quorate/etcdmember/table"
	"github.com/quorate/quorate/internal/realtest"
	"github.com/quorate/quorate/internal/record"
	"github.com/quorate/quorate/internal/replica"
)

// Row 43 on real members: a learner whose agent confirmed it, and which never started, is removed by the leader's
// agent; one that was confirmed just now is given its time.
func TestALearnerThatNeverStartedIsRemoved(t *testing.T) {
	realtest.OnlyInCases(t)
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

// A learner may answer nothing that etcd does not know. It leads nobody, which is all that is asked.
func TestALearnerIsAskedForRaftsStatus(t *testing.T) {
	if !etcdtest.InOwnNetwork(t) {
		return
	}
	r := newRing(t, pa, pb)
	r.agents[pa].begin()
	r.agents[pb].begin()
	var learner table.MemberStatus
	for _, p := range []replica.Place{pa, pb} {
		r.await(p.String()+" serves, and one is a learner", func() error {
			s, err := r.status(p)
			if err == nil && (!s.Ready || len(s.Members) != 2) {
				err = fmt.Errorf("%+v", s)
			}
			if s.Learner {
				learner = s
			}
			return err
		})
	}
	for _, p := range []replica.Place{pa, pb} {
		a, state := r.agents[p], "StateLeader"
		if s, err := r.status(p); err != nil || s.MemberID == learner.MemberID {
			state = ""
		}
		s, err := member.AskRaft(t.Context(), a.me.DNSName(testCluster), a.me.Address(), a.tls)
		if err != nil || s.State != state || len(s.Progress) != 0 != (state != "") {
			t.Errorf("%s says %+v, %v", p, s, err)
		}
	}
	if learner.MemberID == 0 {
		t.Error("none is a learner")
	}
}
