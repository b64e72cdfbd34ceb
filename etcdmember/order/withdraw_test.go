package order

import (
	"strings"
	"testing"
	"time"

	"github.com/quorate/quorate/internal/record"
	"github.com/quorate/quorate/internal/replica"
)

func TestAnOrderToRestoreIsTakenBackByItsVerdict(t *testing.T) {
	restore := func(o record.Order) record.Order {
		o.Number, o.Kind, o.Restore = 1, record.OrderRestore, &record.RestoreOrder{Ends: 1, Replica: placeA}
		return o
	}
	withdraw := func(n, what uint64) record.Order {
		return record.Order{Number: n, Kind: record.OrderWithdraw, Withdraws: what}
	}
	accepted := &record.Accepted{By: "a"}
	closing := &record.Verdict{Closing: true, By: "us-central1-a.master-a.101", Time: now.Add(-time.Minute)}
	withdrawn := &record.Verdict{Withdrawn: true, By: "x"}
	for _, tc := range []struct {
		name   string
		orders []record.Order
		number string
		say    func(*Restore)
		// settles is the order whose verdict is written; means what is said, or why it is refused.
		settles uint64
		means   string
	}{
		{"nobody has stopped", []record.Order{restore(record.Order{})}, "1", nil, 1,
			"Nobody stops for it any more. No member has stopped for it. That is final"},
		{"two have stopped", []record.Order{restore(record.Order{Accepted: accepted})}, "1",
			func(r *Restore) { r.stop(placeB, 3, 1015, 0); r.stop(placeC, 3, 1015, 0) }, 1,
			"Members that have stopped start again by themselves: us-central1-b.master-b, us-central1-c.master-c."},
		{"another epoch's", []record.Order{restore(record.Order{})}, "1", func(r *Restore) { r.Ends.Number = 2 }, 1,
			"Nobody stops for it any more. That is final"},
		{"it is being carried out", []record.Order{restore(record.Order{Accepted: accepted, Verdict: closing})}, "1",
			nil, 0,
			"too late: order 1 is being carried out since 2026-11-21 11:59:00 UTC, by us-central1-a.master-a.101, and " +
				"cannot be withdrawn any more; the way on is 'quorate restore'; nothing was written"},
		{"the epoch is closed, by a version without " +
			"verdicts", []record.Order{restore(record.Order{Accepted: accepted})}, "1",
			func(r *Restore) { r.Ends.Closed = &record.Closed{By: "a", Time: now} }, 0,
			"too late: order 1 is being carried out since 2026-11-21 12:00:00 UTC, by a,"},
		{"its verdict was written, the withdrawal was not", []record.Order{restore(record.Order{Accepted: accepted,
			Verdict: withdrawn})}, "1", nil, 1, "Nobody stops for it"},
		{"the withdrawal was written, its verdict was not", []record.Order{restore(record.Order{Accepted: accepted}),
			withdraw(2, 1)}, "1", nil, 1,
			"Order 2 withdrew order 1, and had no verdict yet; it has one now. Nobody stops for it any more."},
		{"and nobody has accepted it", []record.Order{restore(record.Order{}), withdraw(2, 1)}, "1", nil, 1,
			"it has one now"},
		{"both were written", []record.Order{restore(record.Order{Verdict: withdrawn}), withdraw(2, 1)}, "1", nil, 0,
			"was withdrawn by order 2 already; nothing was written"},
		{"a newer order is in force", []record.Order{restore(record.Order{Accepted: accepted}),
			{Number: 2, Kind: record.OrderRestore, Restore: &record.RestoreOrder{Ends: 1}}}, "1", nil, 1,
			"Nobody stops for it any more. But order 2 ends epoch 1, too: to go on without a restore, withdraw that " +
				"as well. That is final"},
		{"a withdrawal whose order has a verdict", []record.Order{restore(record.Order{Verdict: withdrawn}),
			withdraw(2, 1)}, "2", nil, 0,
			"order 2 withdraws order 1, whose verdict is final; 'quorate restore' orders another restore; nothing was"},
		{"one that came too late", []record.Order{restore(record.Order{Accepted: accepted, Verdict: closing}),
			withdraw(2, 1)}, "2", nil, 0, "came too late, and withdraws nothing"},
		{"a withdrawal whose order has none", []record.Order{restore(record.Order{}), withdraw(2, 1)}, "2", nil, 0,
			"counts as never given"},
		{"a withdrawal without which another is in force", []record.Order{restore(record.Order{}), withdraw(2, 1),
			withdraw(3, 2)}, "3", nil, 1, "counts as never given"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			r := lostQuorum()
			if tc.say != nil {
				tc.say(&r)
			}
			r.Record.Epochs, r.Record.Orders = []record.Epoch{r.Ends}, tc.orders
			d, err := NewLog(r.Record, now).CheckWithdraw(tc.number)
			said := d.Means + d.Completes
			if err != nil {
				said = err.Error()
			}
			if !strings.Contains(said, tc.means) || d.Settles != tc.settles {
				t.Errorf("%q, settles %d; want %q, %d", said, d.Settles, tc.means, tc.settles)
			}
		})
	}
}

// A withdrawal of a withdrawal brings a leave back: it must leave a replica, as a leave must.
func TestTheLastReplicaIsNotOrderedToLeaveByAWithdrawal(t *testing.T) {
	leave := func(n uint64, p replica.Place) record.Order {
		return record.Order{Number: n, Kind: record.OrderLeave, Place: &p}
	}
	withdraw := func(n, what uint64) record.Order {
		return record.Order{Number: n, Kind: record.OrderWithdraw, Withdraws: what}
	}
	for _, tc := range []struct {
		name   string
		orders []record.Order
		number string
		want   string // why it is refused; empty: it is not
	}{
		{"the only one that stays does so by the withdrawal", []record.Order{leave(1, placeA), leave(2, placeB),
			withdraw(3, 1), leave(4, placeC)}, "3",
			"order 3 (withdraw 1): without it every replica that the record knows would be ordered to leave, so add " +
				"one first; nothing was written"},
		{"through two withdrawals more", []record.Order{leave(1, placeA), leave(2, placeB), withdraw(3, 1),
			withdraw(4, 3), withdraw(5, 4), leave(6, placeC)}, "5",
			"order 5 (withdraw 4): without it every replica"},
		{"another stays", []record.Order{leave(1, placeA), leave(2, placeB), withdraw(3, 1)}, "3", ""},
		{"the leave has a newer one after it, which is in force", []record.Order{leave(1, placeA), withdraw(2, 1),
			leave(3, placeA), leave(4, placeB)}, "2", ""},
		{"the leave of the others is what is withdrawn", []record.Order{leave(1, placeA), leave(2, placeB),
			withdraw(3, 1), leave(4, placeC)}, "4", ""},
		{"it is about something else", []record.Order{{Number: 1, Kind: record.OrderPause}, withdraw(2, 1),
			leave(3, placeA), leave(4, placeB)}, "2", ""},
	} {
		r := lostQuorum()
		r.Record.Orders = tc.orders
		_, err := NewLog(r.Record, now).CheckWithdraw(tc.number)
		if (err == nil) != (tc.want == "") || err != nil && !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%s: %v, want %q", tc.name, err, tc.want)
		}
	}
}
