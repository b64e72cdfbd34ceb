package ringtest

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"testing"
	"time"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"

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
	r := newRing(t, pa, pb, pc)
	r.begin(pa, pb, pc)
	r.snapshot()
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
	case <-time.After(etcdtest.Patience):
		t.Fatal("the leader never came to the removal")
	}
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
	back := r.ids(first, second, leaves)
	goOn()
	r.await("the old leader's removal has failed", func() error {
		if n := r.agents[first].took(table.ActRemoveMember, "failed"); n != 1 {
			return fmt.Errorf("%d have", n)
		}
		return nil
	})
	r.stays("nobody else is removed", first, 2, func() error { return r.voters(first, second, leaves) })
	// The time for the old leader's call may have run out while it was held. This one has all of it.
	ctx, cancel := context.WithTimeout(t.Context(), etcdtest.Patience)
	defer cancel()
	_, err := r.client(first).MemberRemove(ctx, uint64(before[leaves]))
	if !errors.Is(err, rpctypes.ErrMemberNotFound) {
		t.Errorf("a removal of the former member: %v", err)
	}
	after := r.ids(first, second, leaves)
	if !maps.Equal(after, back) || after[first] != before[first] || after[second] != before[second] {
		t.Errorf("members %v, before the old leader went on %v, before the order %v", after, back, before)
	}
	var removed uint64 // etcd may have refused others before
	for _, p := range []replica.Place{first, second, leaves} {
		removed += r.agents[p].took(table.ActRemoveMember, "done")
	}
	if n := r.agents[first].took(table.ActRemoveMember, "done"); n != 0 || removed != 1 {
		t.Errorf("%d members were removed, %d of them by %s", removed, n, first)
	}
}

// ids are the member ids of the places.
func (r *ring) ids(places ...replica.Place) map[replica.Place]record.MemberID {
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
