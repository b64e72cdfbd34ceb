package main

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/quorate/quorate/etcdmember/table"
	"github.com/quorate/quorate/internal/record"
)

func newOrdersWithdraw() *cobra.Command {
	var f orderFlags
	cmd := &cobra.Command{Use: "withdraw N", Short: "Take an order back: it counts as never given",
		Long: `Take an order back, by its number: it counts as never given. A replica that left by it joins again by
itself. A withdrawal is an order too, and can be withdrawn.

An order to restore is taken back by its verdict, which is final: either the restorer ends the epoch, or the order is
withdrawn, and members that have stopped for it start again by themselves. If the command is interrupted, run it again:
it completes what is missing.`,
		Args: exactly("N"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return give(cmd, &f, func(b book) (draft, error) { return checkWithdraw(b, args[0]) })
		}}
	f.add(cmd)
	return cmd
}

func checkWithdraw(b book, text string) (draft, error) {
	if len(b.Orders) == 0 {
		return draft{}, refused("order %q: no order was ever given", text)
	}
	n, err := strconv.ParseUint(text, 10, 64)
	i := slices.IndexFunc(b.Orders, func(o record.Order) bool { return o.Number == n })
	if err != nil || i < 0 {
		return draft{}, refused("order %q: there is no such order; 'quorate orders' lists those up to %d", text,
			b.Orders[len(b.Orders)-1].Number)
	}
	o := b.Orders[i]
	switch s := b.states[n]; {
	case s.State == table.OrderDone && o.Kind != record.OrderLeave:
		return draft{}, refused("order %d (%s) is done: what was done by it stays done, so it cannot be withdrawn", n,
			orderText(o))
	case o.Kind == record.OrderRestore:
		return b.withdrawRestore(o)
	case s.State == table.OrderWithdrawn:
		return draft{}, refused("order %d (%s) was withdrawn by order %d already", n, orderText(o), s.By)
	case s.State == table.OrderTooLate:
		return draft{}, refused("order %d (%s) came too late, and withdraws nothing", n, orderText(o))
	}
	d := draft{order: record.Order{Kind: record.OrderWithdraw, Withdraws: n},
		means: "From then on it counts as never given.", back: withdrawIt}
	switch o.Kind {
	case record.OrderLeave:
		d.means = fmt.Sprintf("Then %s joins again by itself.", o.Place)
	case record.OrderWithdraw: // what it withdrew is in force again
		return b.withdrawWithdrawal(d, o)
	}
	return d, nil
}

// withdrawWithdrawal checks the withdrawal of a withdrawal: what that one withdrew is in force again.
func (b book) withdrawWithdrawal(d draft, o record.Order) (draft, error) {
	n := slices.IndexFunc(b.Orders, func(x record.Order) bool { return x.Number == o.Withdraws })
	if n >= 0 && b.Orders[n].Verdict != nil {
		return draft{}, refused("order %d withdraws order %d, whose verdict is final; 'quorate restore' orders "+
			"another restore", o.Number, o.Withdraws)
	}
	after := b.with(b.next(d.order))
	if !b.nobodyStays() && after.nobodyStays() {
		return draft{}, refused("order %d (%s): without it every replica that the record knows would be ordered to "+
			"leave, so add one first", o.Number, orderText(o))
	}
	for _, x := range b.Orders {
		if now := after.states[x.Number].State; x.Kind == record.OrderRestore && now != b.states[x.Number].State &&
			(now == table.OrderWithdrawn || now == table.OrderBeingWithdrawn) {
			d.settles = x.Number
		}
	}
	return d, nil
}

// withdrawRestore checks the withdrawal of an order to restore. Its verdict is written before the withdrawal, which
// is for the audit: a withdrawal alone withdraws nothing once the order is accepted. So an interrupted command has
// withdrawn the order or done nothing.
func (b book) withdrawRestore(o record.Order) (draft, error) {
	if since, by, carried := b.carriedOut(o); carried {
		return draft{}, tooLate(o.Number, by, since)
	}
	s, settled := b.states[o.Number], o.Verdict != nil
	switch {
	case settled && s.By != 0:
		return draft{}, refused("order %d (%s) was withdrawn by order %d already", o.Number, orderText(o), s.By)
	case s.By != 0 && s.State != table.OrderSuperseded: // the withdrawal was written, its verdict was not
		return draft{settles: o.Number, completes: fmt.Sprintf("Order %d withdrew order %d, and had no verdict yet; "+
			"it has one now. %s", s.By, o.Number, b.startsAgain(o))}, nil
	}
	return draft{order: record.Order{Kind: record.OrderWithdraw, Withdraws: o.Number}, settles: o.Number,
		means: b.startsAgain(o) +
			" That is final: to restore after all, give another order with 'quorate restore'."}, nil
}

// carriedOut says since when, and by whom, an order to restore is being carried out: by its verdict, or because the
// epoch has ended.
func (b book) carriedOut(o record.Order) (since time.Time, by string, carried bool) {
	if v := o.Verdict; v != nil {
		return v.Time, v.By, v.Closing
	}
	if o.Restore == nil {
		return time.Time{}, "", false
	}
	if e := b.Epoch(o.Restore.Ends); e != nil && e.Closed != nil {
		return e.Closed.Time, e.Closed.By, true
	}
	return time.Time{}, "", false
}

func tooLate(n uint64, by string, since time.Time) error {
	return refused("too late: order %d is being carried out since %s, by %s, and cannot be withdrawn any more; the "+
		"way on is 'quorate restore'", n, when(since), by)
}

// startsAgain says what follows where an order to restore is taken back.
func (b book) startsAgain(o record.Order) string {
	const nobody = "Nobody stops for it any more."
	w := wreckOf(b.View, b.now)
	if o.Restore == nil || o.Restore.Ends != w.epoch.Number || w.epoch.Closed != nil { // closed by another order
		return nobody
	}
	for _, x := range slices.Backward(b.Orders) {
		if x.Number != o.Number && x.Restore != nil && x.Restore.Ends == o.Restore.Ends &&
			b.states[x.Number].State != table.OrderWithdrawn {
			return fmt.Sprintf("%s But order %d ends epoch %d, too: to go on without a restore, withdraw that as "+
				"well.", nobody, x.Number, w.epoch.Number)
		}
	}
	var stopped []string
	for _, r := range w.remains() {
		if _, left := b.inForce(leaves(r.place)); !left && r.stopped != nil {
			stopped = append(stopped, r.place.String())
		}
	}
	if len(stopped) == 0 {
		return nobody + " No member has stopped for it."
	}
	return fmt.Sprintf("%s Members that have stopped start again by themselves: %s.", nobody,
		strings.Join(stopped, ", "))
}
