package main

import (
	"fmt"
	"maps"
	"slices"

	"github.com/quorate/quorate/etcdmember/order"
	"github.com/quorate/quorate/etcdmember/table"
	"github.com/quorate/quorate/internal/record"
	"github.com/quorate/quorate/internal/replica"
)

// shownRecord is a record as JSON and YAML show it: record.View with keys that are stable.
type shownRecord struct {
	Inception *record.Inception `json:"inception"`
	Bundle    uint64            `json:"bundle"`
	Epochs    []record.Epoch    `json:"epochs"`
	Replicas  []shownPlace      `json:"replicas"`
	Orders    []shownOrder      `json:"orders"`
	Marks     []record.Mark     `json:"marks"`
	// Snapshots are the epochs that have one.
	Snapshots []uint64 `json:"snapshots"`
}

type shownPlace struct {
	replica.Place
	Incarnations []shownIncarnation `json:"incarnations"`
}

type shownIncarnation struct {
	record.Incarnation
	Started *record.Started `json:"started"`
}

type shownOrder struct {
	record.Order
	Done     *record.Done     `json:"done"`
	Accepted *record.Accepted `json:"accepted,omitempty"`
	Verdict  *record.Verdict  `json:"verdict,omitempty"`
	VMStops  []record.VMStop  `json:"vmStops,omitempty"`
}

func shownOrderOf(o record.Order) shownOrder {
	s := shownOrder{Order: o, Done: o.Done, Accepted: o.Accepted, Verdict: o.Verdict}
	for _, id := range slices.Sorted(maps.Keys(o.VMStops)) {
		s.VMStops = append(s.VMStops, o.VMStops[id])
	}
	return s
}

// shownOf is a record as it is shown.
func shownOf(v record.View) shownRecord {
	s := shownRecord{Inception: v.Inception, Bundle: v.Bundle, Epochs: append([]record.Epoch{}, v.Epochs...),
		Replicas: []shownPlace{}, Orders: []shownOrder{}, Marks: []record.Mark{},
		Snapshots: append([]uint64{}, v.Snapshots...)}
	for _, p := range v.Places() {
		place := shownPlace{Place: p}
		for _, n := range v.Replicas[p] {
			place.Incarnations = append(place.Incarnations, shownIncarnation{n, n.Started})
		}
		s.Replicas = append(s.Replicas, place)
	}
	for _, o := range v.Orders {
		s.Orders = append(s.Orders, shownOrderOf(o))
	}
	for _, id := range slices.Sorted(maps.Keys(v.Marks)) {
		s.Marks = append(s.Marks, v.Marks[id])
	}
	return s
}

// recentOrders are shown whatever became of them.
const recentOrders = 10

// unfolded are the orders that a person is shown: the newest, those that are not settled, or all. It says how many are
// not.
func unfolded(given []record.Order, l order.Log, all bool) (shown []record.Order, folded int) {
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

// foldedText says what is not shown; empty: all is.
func foldedText(folded int) string {
	switch folded {
	case 0:
		return ""
	case 1:
		return "\nOne older order is settled; --all shows it.\n"
	}
	return fmt.Sprintf("\n%d older orders are settled; --all shows them.\n", folded)
}

// listedOrder is an order as JSON and YAML show it.
type listedOrder struct {
	shownOrder
	// What is the order as it was given, State how it stands, and StateBy the order that withdrew or superseded it.
	What    string           `json:"what"`
	State   table.OrderState `json:"state"`
	StateBy uint64           `json:"stateBy,omitempty"`
}

// listed is an order, and how it stands.
func listed(o record.Order, l order.Log) listedOrder {
	s := l.State(o.Number)
	return listedOrder{shownOrderOf(o), order.Text(o), s.State, s.By}
}
