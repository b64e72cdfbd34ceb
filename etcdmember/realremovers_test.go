package etcdmember

import (
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/quorate/quorate/etcdmember/acts"
	"github.com/quorate/quorate/etcdmember/etcdtest"
	"github.com/quorate/quorate/etcdmember/table"
	"github.com/quorate/quorate/internal/record"
	"github.com/quorate/quorate/internal/replica"
)

// heldStep is a step before which the first agent that comes to it is held up. The others pass.
type heldStep struct {
	step    acts.Step
	once    sync.Once
	reached chan struct{}
	release chan struct{}
}

func (h *heldStep) here(s acts.Step, when acts.Moment) {
	if h == nil || s != h.step || when != acts.Before {
		return
	}
	first := false
	h.once.Do(func() { first = true; close(h.reached) })
	if first {
		<-h.release
	}
}

// Case 18, two removers: the leader has listed the members and is about to remove one, as ordered. The leadership
// moves, and the new leader removes it. The order is withdrawn and the replica is back as another member, with the same
// name and URLs, when the old leader goes on. It removes nobody: ids do not return.
func TestTwoRemoversRemoveOneMember(t *testing.T) {
	if !etcdtest.InOwnNetwork(t) {
		return
	}
	r := newRealRing(t, pa, pb, pc)
	r.begin(pa, pb, pc)
	r.snapshot()
	time.Sleep(6 * time.Second) // etcd removes nobody before the others have been connected for 5 s
	first := r.leader()
	others := slices.DeleteFunc([]replica.Place{pa, pb, pc}, func(p replica.Place) bool { return p == first })
	second, leaves := others[0], others[1]
	before := r.ids(first, second, leaves)
	hold := &heldStep{step: acts.StepRemove, reached: make(chan struct{}), release: make(chan struct{})}
	r.mu.Lock()
	r.hold = hold
	r.mu.Unlock()
	goOn := sync.OnceFunc(func() { close(hold.release) })
	t.Cleanup(goOn)

	r.order(record.Order{Kind: record.OrderLeave, Place: &leaves})
	select {
	case <-hold.reached:
	case <-time.After(time.Minute):
		t.Fatal("the leader never came to the removal")
	}
	held := time.Now()
	if _, err := r.client(first).MoveLeader(t.Context(), uint64(before[second])); err != nil {
		t.Fatal(err)
	}
	r.await("the new leader removes it", func() error { return r.voterCount(2, first, second) })
	r.order(record.Order{Kind: record.OrderWithdraw, Withdraws: 1})
	r.await("it is back as another member", func() error {
		if s, err := r.status(leaves); err != nil || s.MemberID == before[leaves] {
			return fmt.Errorf("%+v, %w", s, err)
		}
		return r.voters(first, second, leaves)
	})
	if took := time.Since(held); took > callTimeout {
		t.Logf("that took %s: the old leader's call has ended meanwhile", took)
	}
	goOn()
	r.await("the old leader's removal has failed", func() error {
		if n := r.agents[first].membership().taken(table.ActRemoveMember, "failed"); n != 1 {
			return fmt.Errorf("%d have", n)
		}
		return nil
	})
	time.Sleep(2 * time.Second) // what it would do next
	after := r.ids(first, second, leaves)
	if after[first] != before[first] || after[second] != before[second] || after[leaves] == before[leaves] {
		t.Errorf("members %v, before %v", after, before)
	}
	if err := r.voters(first, second, leaves); err != nil {
		t.Error(err)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if !slices.Equal(r.took, []string{second.Name}) {
		t.Errorf("a member was removed by %v, want by %s alone", r.took, second.Name)
	}
}

// ids are the member ids of the places.
func (r *realRing) ids(places ...replica.Place) map[replica.Place]record.MemberID {
	r.t.Helper()
	out := map[replica.Place]record.MemberID{}
	for _, p := range places {
		s, err := r.status(p)
		if err != nil {
			r.t.Fatal(err)
		}
		out[p] = s.MemberID
	}
	return out
}
