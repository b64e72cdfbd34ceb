package order

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/quorate/quorate/etcdmember/table"
	"github.com/quorate/quorate/internal/record"
)

// CheckWithdraw checks that an order is taken back, by its number.
func (l Log) CheckWithdraw(text string) (Draft, error) {
	if len(l.Orders) == 0 {
		return Draft{}, Refuse("order %q: no order was ever given", text)
	}
	n, err := strconv.ParseUint(text, 10, 64)
	i := slices.IndexFunc(l.Orders, func(o record.Order) bool { return o.Number == n })
	if err != nil || i < 0 {
		return Draft{}, Refuse("order %q: there is no such order; 'quorate orders' lists those up to %d", text,
			l.Orders[len(l.Orders)-1].Number)
	}
	o := l.Orders[i]
	switch s := l.states[n]; {
	case s.State == table.OrderDone && o.Kind != record.OrderLeave:
		return Draft{}, Refuse("order %d (%s) is done: what was done by it stays done, so it cannot be withdrawn", n,
			Text(o))
	case o.Kind == record.OrderRestore:
		return l.withdrawRestore(o)
	case s.State == table.OrderWithdrawn:
		return Draft{}, Refuse("order %d (%s) was withdrawn by order %d already", n, Text(o), s.By)
	case s.State == table.OrderTooLate:
		return Draft{}, Refuse("order %d (%s) came too late, and withdraws nothing", n, Text(o))
	}
	d := Draft{Order: record.Order{Kind: record.OrderWithdraw, Withdraws: n},
		Means: "From then on it counts as never given.", Back: withdrawIt}
	switch o.Kind {
	case record.OrderLeave:
		d.Means = fmt.Sprintf("Then %s joins again by itself.", o.Place)
	case record.OrderWithdraw: // what it withdrew is in force again
		return l.withdrawWithdrawal(d, o)
	}
	return d, nil
}

// withdrawWithdrawal checks the withdrawal of a withdrawal: what that one withdrew is in force again.
func (l Log) withdrawWithdrawal(d Draft, o record.Order) (Draft, error) {
	n := slices.IndexFunc(l.Orders, func(x record.Order) bool { return x.Number == o.Withdraws })
	if n >= 0 && l.Orders[n].Verdict != nil {
		return Draft{}, Refuse("order %d withdraws order %d, whose verdict is final; 'quorate restore' orders "+
			"another restore", o.Number, o.Withdraws)
	}
	after := l.With(l.next(d.Order))
	if !l.nobodyStays() && after.nobodyStays() {
		return Draft{}, Refuse("order %d (%s): without it every replica that the record knows would be ordered to "+
			"leave, so add one first", o.Number, Text(o))
	}
	for _, x := range l.Orders {
		if now := after.states[x.Number].State; x.Kind == record.OrderRestore && now != l.states[x.Number].State &&
			(now == table.OrderWithdrawn || now == table.OrderBeingWithdrawn) {
			d.Settles = x.Number
		}
	}
	return d, nil
}

// withdrawRestore checks the withdrawal of an order to restore. Its verdict is written before the withdrawal, which
// is for the audit: a withdrawal alone withdraws nothing once the order is accepted. So an interrupted command has
// withdrawn the order or done nothing.
func (l Log) withdrawRestore(o record.Order) (Draft, error) {
	if since, by, carried := l.carriedOut(o); carried {
		return Draft{}, TooLate(o.Number, by, since)
	}
	s, settled := l.states[o.Number], o.Verdict != nil
	switch {
	case settled && s.By != 0:
		return Draft{}, Refuse("order %d (%s) was withdrawn by order %d already", o.Number, Text(o), s.By)
	case s.By != 0 && s.State != table.OrderSuperseded: // the withdrawal was written, its verdict was not
		return Draft{Settles: o.Number, Completes: fmt.Sprintf("Order %d withdrew order %d, and had no verdict yet; "+
			"it has one now. %s", s.By, o.Number, l.startsAgain(o))}, nil
	}
	return Draft{Order: record.Order{Kind: record.OrderWithdraw, Withdraws: o.Number}, Settles: o.Number,
		Means: l.startsAgain(o) +
			" That is final: to restore after all, give another order with 'quorate restore'."}, nil
}

// carriedOut says since when, and by whom, an order to restore is being carried out: by its verdict, or because the
// epoch has ended.
func (l Log) carriedOut(o record.Order) (since time.Time, by string, carried bool) {
	if v := o.Verdict; v != nil {
		return v.Time, v.By, v.Closing
	}
	if o.Restore == nil {
		return time.Time{}, "", false
	}
	if e := l.Epoch(o.Restore.Ends); e != nil && e.Closed != nil {
		return e.Closed.Time, e.Closed.By, true
	}
	return time.Time{}, "", false
}

// TooLate refuses to withdraw an order to restore that is being carried out.
func TooLate(n uint64, by string, since time.Time) error {
	return Refuse("too late: order %d is being carried out since %s, by %s, and cannot be withdrawn any more; the "+
		"way on is 'quorate restore'", n, when(since), by)
}

// startsAgain says what follows where an order to restore is taken back.
func (l Log) startsAgain(o record.Order) string {
	const nobody = "Nobody stops for it any more."
	r := RestoreOf(l.View, l.now)
	if o.Restore == nil || o.Restore.Ends != r.Ends.Number || r.Ends.Closed != nil { // closed by another order
		return nobody
	}
	for _, x := range slices.Backward(l.Orders) {
		if x.Number != o.Number && x.Restore != nil && x.Restore.Ends == o.Restore.Ends &&
			l.states[x.Number].State != table.OrderWithdrawn {
			return fmt.Sprintf("%s But order %d ends epoch %d, too: to go on without a restore, withdraw that as "+
				"well.", nobody, x.Number, r.Ends.Number)
		}
	}
	var stopped []string
	for _, c := range r.Candidates() {
		if _, left := l.inForce(leaves(c.Place)); !left && c.Stopped != nil {
			stopped = append(stopped, c.Place.String())
		}
	}
	if len(stopped) == 0 {
		return nobody + " No member has stopped for it."
	}
	return fmt.Sprintf("%s Members that have stopped start again by themselves: %s.", nobody,
		strings.Join(stopped, ", "))
}
