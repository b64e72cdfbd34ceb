package table

import (
	"fmt"
	"time"

	"github.com/quorate/quorate/internal/record"
)

// OrderState is how an order stands, for people. A leave that is done still keeps its replica out until it is
// withdrawn.
type OrderState string

// The states of an order.
const (
	OrderInForce    OrderState = "in force"
	OrderDone       OrderState = "done"
	OrderWithdrawn  OrderState = "withdrawn"
	OrderSuperseded OrderState = "superseded"
	// OrderBeingWithdrawn is an accepted order to restore with a withdrawal and without a verdict: the agents write
	// one.
	OrderBeingWithdrawn OrderState = "being withdrawn"
	// OrderTooLate is a withdrawal of an order to restore that is carried out, by its verdict.
	OrderTooLate OrderState = "too late"
)

// OrderStatus is the state of one order. By is the order that withdrew or superseded it; 0: none did.
type OrderStatus struct {
	State OrderState
	By    uint64
}

// OrderStates says of each order, by its number, how it stands: by the same rules by which the agents follow them. A
// pause whose time has passed is done. A verdict is final, whatever was ordered after it.
func OrderStates(given []record.Order, now time.Time) map[uint64]OrderStatus {
	out := make(map[uint64]OrderStatus, len(given))
	withdrawn, newest := map[uint64]uint64{}, map[string]uint64{}
	for _, o := range newestFirst(given) {
		by := withdrawn[o.Number]
		switch v := o.Verdict; {
		case v != nil && v.Withdrawn, by != 0 && !bound(o):
			out[o.Number] = OrderStatus{OrderWithdrawn, by}
			continue
		case by != 0 && v != nil:
			out[by] = OrderStatus{State: OrderTooLate}
		}
		if o.Kind == record.OrderWithdraw && o.Withdraws < o.Number && withdrawn[o.Withdraws] == 0 {
			withdrawn[o.Withdraws] = o.Number
		}
		subject := subjectOf(o)
		switch newer := newest[subject]; {
		case o.Done != nil, o.Kind == record.OrderPause && o.Until != nil && !now.Before(*o.Until):
			out[o.Number] = OrderStatus{State: OrderDone}
		case by != 0 && o.Verdict == nil:
			out[o.Number] = OrderStatus{OrderBeingWithdrawn, by}
		case newer != 0:
			out[o.Number] = OrderStatus{OrderSuperseded, newer}
		default:
			out[o.Number] = OrderStatus{State: OrderInForce}
		}
		if newest[subject] == 0 {
			newest[subject] = o.Number
		}
	}
	return out
}

// subjectOf is what an order is about: the newest order on a subject wins.
func subjectOf(o record.Order) string {
	switch {
	case o.Kind == record.OrderPause || o.Kind == record.OrderResume:
		return "pause"
	case o.Kind == record.OrderLeave && o.Place != nil:
		return "leave " + o.Place.String()
	case o.Kind == record.OrderOverride:
		return fmt.Sprintf("override %d %s", o.Row, o.MemberID)
	case o.Kind == record.OrderWithdraw:
		return fmt.Sprintf("withdraw %d", o.Withdraws)
	case o.Kind == record.OrderRestore && o.Restore != nil:
		return fmt.Sprintf("restore %d", o.Restore.Ends)
	}
	return string(o.Kind)
}

// PauseInForce is the pause that lasts, by the orders' states.
func PauseInForce(given []record.Order, states map[uint64]OrderStatus) (o record.Order, found bool) {
	for _, o := range given {
		if o.Kind == record.OrderPause && states[o.Number].State == OrderInForce {
			return o, true
		}
	}
	return o, false
}
