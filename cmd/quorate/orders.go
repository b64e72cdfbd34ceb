package main

import (
	"fmt"
	"io"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"github.com/quorate/quorate/etcdmember/order"
	"github.com/quorate/quorate/etcdmember/table"
	"github.com/quorate/quorate/internal/record"
)

func newOrders() *cobra.Command {
	var f orderFlags
	var all bool
	cmd := group(&cobra.Command{Use: "orders", Short: "List the orders that were given; give or withdraw one",
		Long: `List the orders that were given, and how each stands. What an operator wants reaches the agents through the
record. An order is written once and never changed. The newest order on a subject wins, and every agent reads it
within 10 s. "quorate pause", "quorate resume" and "quorate override" are orders too.`},
		newOrdersGive(), newOrdersWithdraw())
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		store, err := f.open()
		if err != nil {
			return err
		}
		v, err := store.View(cmd.Context())
		if err != nil {
			return err
		}
		log := order.NewLog(v, time.Now())
		shown, folded := unfolded(v.Orders, log, all || f.output != "")
		list := []listedOrder{}
		for _, o := range shown {
			list = append(list, listed(o, log))
		}
		return printAs(cmd.OutOrStdout(), f.output, list, func(w io.Writer) {
			showOrders(w, store.String(), list)
			fmt.Fprint(w, foldedText(folded))
		})
	}
	f.add(cmd)
	cmd.Flags().BoolVar(&all, "all", false, "old orders too (json and yaml always have them)")
	return cmd
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

func listed(o record.Order, l order.Log) listedOrder {
	s := l.State(o.Number)
	return listedOrder{shownOrderOf(o), order.Text(o), s.State, s.By}
}

func showOrders(w io.Writer, where string, list []listedOrder) {
	if len(list) == 0 {
		fmt.Fprintf(w, "No order was ever given in %s.\n", where)
		return
	}
	var rows []row
	for _, o := range list {
		r := row{cells: []string{strconv.FormatUint(o.Number, 10), when(o.Time), o.By, o.What,
			order.StateText(table.OrderStatus{State: o.State, By: o.StateBy})}}
		if o.Reason != "" {
			r.below = "Reason: " + o.Reason
		}
		if o.Done != nil {
			r.below += fmt.Sprintf("\nDone at %s by %s: %s", when(o.Done.Time), o.Done.By, o.Done.What)
		}
		rows = append(rows, r)
	}
	printTable(w, []string{"ORDER", "GIVEN", "BY", "WHAT", "STATE"}, rows)
}
