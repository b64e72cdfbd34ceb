package order

import (
	"slices"
	"time"

	"github.com/quorate/quorate/etcdmember/table"
	"github.com/quorate/quorate/internal/record"
)

// Log is the record with the orders that were given, and how each stands: what another order is checked against.
type Log struct {
	record.View
	states map[uint64]table.OrderStatus
	now    time.Time
}

// NewLog is the log of a record at a time.
func NewLog(v record.View, now time.Time) Log {
	return Log{View: v, states: table.OrderStates(v.Orders, now), now: now}
}

// State is how an order stands.
func (l Log) State(number uint64) table.OrderStatus { return l.states[number] }

// With is the log once another order is written.
func (l Log) With(o record.Order) Log {
	l.Orders = append(slices.Clone(l.Orders), o)
	l.states = table.OrderStates(l.Orders, l.now)
	return l
}

// WithVerdict is the log once an order to restore has a verdict.
func (l Log) WithVerdict(number uint64, v record.Verdict) Log {
	l.Orders = slices.Clone(l.Orders)
	for n := range l.Orders {
		if l.Orders[n].Number == number {
			l.Orders[n].Verdict = &v
		}
	}
	l.states = table.OrderStates(l.Orders, l.now)
	return l
}

// next is an order with the number that it would have.
func (l Log) next(o record.Order) record.Order {
	o.Number = 1
	if n := len(l.Orders); n > 0 {
		o.Number = l.Orders[n-1].Number + 1
	}
	return o
}

// nobodyStays: every replica was ordered to leave.
func (l Log) nobodyStays() bool {
	for p := range l.Replicas {
		if _, left := l.inForce(leaves(p)); !left {
			return false
		}
	}
	return true
}

// inForce finds the order that is in force, or done, and of which is says that it is wanted.
func (l Log) inForce(is func(record.Order) bool) (o record.Order, found bool) {
	for _, o := range slices.Backward(l.Orders) {
		if s := l.states[o.Number].State; is(o) && (s == table.OrderInForce || s == table.OrderDone) {
			return o, true
		}
	}
	return o, false
}

func kindIs(k record.OrderKind) func(record.Order) bool {
	return func(o record.Order) bool { return o.Kind == k }
}
