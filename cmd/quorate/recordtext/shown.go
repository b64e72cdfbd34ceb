// Package recordtext shows what a record holds: as JSON and YAML, whose keys are stable, and in words for a person.
package recordtext

import (
	"fmt"
	"maps"
	"slices"

	"github.com/quorate/quorate/etcdmember/order"
	"github.com/quorate/quorate/etcdmember/table"
	"github.com/quorate/quorate/internal/record"
	"github.com/quorate/quorate/internal/replica"
)

// Record is a record as JSON and YAML show it: record.View with keys that are stable.
type Record struct {
	Inception *record.Inception `json:"inception"`
	Bundle    uint64            `json:"bundle"`
	Epochs    []record.Epoch    `json:"epochs"`
	Replicas  []Place           `json:"replicas"`
	Orders    []Order           `json:"orders"`
	Marks     []record.Mark     `json:"marks"`
	// Snapshots are the epochs that have one.
	Snapshots []uint64 `json:"snapshots"`
}

// Place is a place and its incarnations.
type Place struct {
	replica.Place
	Incarnations []Incarnation `json:"incarnations"`
}

// Incarnation is an incarnation, and whether it was confirmed.
type Incarnation struct {
	record.Incarnation
	Started *record.Started `json:"started"`
}

// Order is an order with what became of it.
type Order struct {
	record.Order
	Done     *record.Done     `json:"done"`
	Accepted *record.Accepted `json:"accepted,omitempty"`
	Verdict  *record.Verdict  `json:"verdict,omitempty"`
	VMStops  []record.VMStop  `json:"vmStops,omitempty"`
}

func orderOf(o record.Order) Order {
	s := Order{Order: o, Done: o.Done, Accepted: o.Accepted, Verdict: o.Verdict}
	for _, id := range slices.Sorted(maps.Keys(o.VMStops)) {
		s.VMStops = append(s.VMStops, o.VMStops[id])
	}
	return s
}

// Of is a record as it is shown.
func Of(v record.View) Record {
	s := Record{Inception: v.Inception, Bundle: v.Bundle, Epochs: append([]record.Epoch{}, v.Epochs...),
		Replicas: []Place{}, Orders: []Order{}, Marks: []record.Mark{},
		Snapshots: append([]uint64{}, v.Snapshots...)}
	for _, p := range v.Places() {
		place := Place{Place: p}
		for _, n := range v.Replicas[p] {
			place.Incarnations = append(place.Incarnations, Incarnation{n, n.Started})
		}
		s.Replicas = append(s.Replicas, place)
	}
	for _, o := range v.Orders {
		s.Orders = append(s.Orders, orderOf(o))
	}
	for _, id := range slices.Sorted(maps.Keys(v.Marks)) {
		s.Marks = append(s.Marks, v.Marks[id])
	}
	return s
}

// recentOrders are shown whatever became of them.
const recentOrders = 10

// Unfolded are the orders that a person is shown: the newest, those that are not settled, or all. It says how many are
// not.
func Unfolded(given []record.Order, l order.Log, all bool) (shown []record.Order, folded int) {
	for i, o := range given {
		switch l.State(o.Number).State {
		case table.OrderDone, table.OrderWithdrawn, table.OrderSuperseded, table.OrderTooLate:
			if !all && i < len(given)-recentOrders {
				folded++
				continue
			}
		}
		shown = append(shown, o)
	}
	return shown, folded
}

// FoldedText says what is not shown; empty: all is.
func FoldedText(folded int) string {
	switch folded {
	case 0:
		return ""
	case 1:
		return "\nOne older order is settled; --all shows it.\n"
	}
	return fmt.Sprintf("\n%d older orders are settled; --all shows them.\n", folded)
}

// ListedOrder is an order as JSON and YAML show it.
type ListedOrder struct {
	Order
	// What is the order as it was given, State how it stands, and StateBy the order that withdrew or superseded it.
	What    string           `json:"what"`
	State   table.OrderState `json:"state"`
	StateBy uint64           `json:"stateBy,omitempty"`
}

// Listed is an order, and how it stands.
func Listed(o record.Order, l order.Log) ListedOrder {
	s := l.State(o.Number)
	return ListedOrder{orderOf(o), order.Text(o), s.State, s.By}
}
