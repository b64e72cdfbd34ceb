package order

import (
	"testing"

	"github.com/quorate/quorate/etcdmember/table"
	"github.com/quorate/quorate/internal/record"
)

// Commands and agents go by the same order to restore, also while it is being withdrawn: until its verdict the epoch
// may be closed at any moment.
func TestTheOrderInForceIsTheOneThatTheAgentsFollow(t *testing.T) {
	restore := func(n, ends uint64, is record.Order) record.Order {
		is.Number, is.Kind = n, record.OrderRestore
		is.Restore = &record.RestoreOrder{Ends: ends, Replica: placeA, Silent: []string{"102", "103"}}
		return is
	}
	withdraw := func(n, what uint64) record.Order {
		return record.Order{Number: n, Kind: record.OrderWithdraw, Withdraws: what}
	}
	accepted := record.Order{Accepted: &record.Accepted{}}
	for _, tc := range []struct {
		name      string
		orders    []record.Order
		number    uint64 // 0: none is in force
		by        uint64
		stage     Stage
		toFollow  bool // by a command that names no source
		afterward func(e *record.Epoch)
	}{
		{name: "none", stage: StageNone},
		{name: "given", orders: []record.Order{restore(1, 1, record.Order{})}, number: 1, stage: StageOrdered,
			toFollow: true},
		{name: "accepted, with the word of a person for two others", orders: []record.Order{restore(1, 1, accepted)},
			number: 1, stage: StageWaiting, toFollow: true},
		{name: "withdrawn before it was accepted", orders: []record.Order{restore(1, 1, record.Order{}),
			withdraw(2, 1)}, stage: StageNone},
		{name: "accepted, and being withdrawn", orders: []record.Order{restore(1, 1, accepted), withdraw(2, 1)},
			number: 1, by: 2, stage: StageWithdrawing},
		{name: "being withdrawn too late", orders: []record.Order{restore(1, 1, accepted), withdraw(2, 1)},
			number: 1, by: 2, stage: StageEnded, afterward: func(e *record.Epoch) { e.Closed = &record.Closed{} }},
		{name: "withdrawn by its verdict", orders: []record.Order{restore(1, 1, record.Order{
			Accepted: accepted.Accepted, Verdict: &record.Verdict{Withdrawn: true}})}, stage: StageNone},
		{name: "being withdrawn, and a newer one", orders: []record.Order{restore(1, 1, accepted), withdraw(2, 1),
			restore(3, 1, record.Order{})}, number: 3, stage: StageOrdered, toFollow: true},
		{name: "two that are being withdrawn", orders: []record.Order{restore(1, 1, accepted), restore(2, 1, accepted),
			withdraw(3, 1), withdraw(4, 2)}, number: 2, by: 4, stage: StageWithdrawing},
		{name: "a newer one of somebody who read an older record", orders: []record.Order{restore(1, 1, accepted),
			restore(2, 7, record.Order{})}, number: 1, stage: StageWaiting, toFollow: true},
		{name: "done", orders: []record.Order{restore(1, 1, record.Order{Done: &record.Done{}})}, stage: StageNone},
	} {
		r := lostQuorum()
		r.Record.Orders = tc.orders
		if tc.afterward != nil {
			tc.afterward(&r.Ends)
		}
		r.Record.Epochs = []record.Epoch{r.Ends}
		o, by, ok := r.InForce()
		if ok != (tc.number != 0) || o.Number != tc.number || by != tc.by {
			t.Errorf("%s: order %d is in force, withdrawn by %d; want %d, %d", tc.name, o.Number, by, tc.number, tc.by)
		}
		followed := table.OrdersOf(r.Record.Orders, 1, now).Restore
		if ok != (followed != nil) || ok && followed.Number != o.Number {
			t.Errorf("%s: order %d is in force, and the agents follow %+v", tc.name, o.Number, followed)
		}
		if _, p := Follow(r.Record, 1, now); p.Stage != tc.stage || p.Order.Number != tc.number ||
			tc.stage == StageWithdrawing && p.By != tc.by {
			t.Errorf("%s: %+v, want stage %s", tc.name, p, tc.stage)
		}
		if _, toFollow := r.ToFollow(); toFollow != tc.toFollow {
			t.Errorf("%s: it is to be followed: %t", tc.name, toFollow)
		}
		// What a person has said in an order counts as long as that is in force.
		if waits := len(r.NotStopped(placeA)); (waits == 0) != (tc.number != 0) {
			t.Errorf("%s: it waits for %d others", tc.name, waits)
		}
	}
}
