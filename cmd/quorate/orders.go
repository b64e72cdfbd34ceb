package main

import (
	"fmt"
	"io"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"github.com/quorate/quorate/cmd/quorate/command"
	"github.com/quorate/quorate/cmd/quorate/terminal"
	"github.com/quorate/quorate/etcdmember/order"
	"github.com/quorate/quorate/etcdmember/table"
)

func newOrders() *cobra.Command {
	var f orderFlags
	var all bool
	cmd := command.Group(&cobra.Command{Use: "orders", Short: "List the orders that were given; give or withdraw one",
		Long: `List the orders that were given, and how each stands. What an operator wants reaches the agents through the
record. An order is written once and never changed. The newest order on a subject wins, and every agent reads it
within 10 s. "quorate pause", "quorate resume" and "quorate override" are orders too.`},
		newOrdersGive(), newOrdersWithdraw())
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		store, err := f.Open()
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
		return terminal.PrintAs(cmd.OutOrStdout(), f.output, list, func(w io.Writer) {
			showOrders(w, store.String(), list)
			fmt.Fprint(w, foldedText(folded))
		})
	}
	f.add(cmd)
	cmd.Flags().BoolVar(&all, "all", false, "old orders too (json and yaml always have them)")
	return cmd
}

func showOrders(w io.Writer, where string, list []listedOrder) {
	if len(list) == 0 {
		fmt.Fprintf(w, "No order was ever given in %s.\n", where)
		return
	}
	var rows []terminal.Row
	for _, o := range list {
		r := terminal.Row{Cells: []string{strconv.FormatUint(o.Number, 10), terminal.When(o.Time), o.By, o.What,
			order.StateText(table.OrderStatus{State: o.State, By: o.StateBy})}}
		if o.Reason != "" {
			r.Below = "Reason: " + o.Reason
		}
		if o.Done != nil {
			r.Below += fmt.Sprintf("\nDone at %s by %s: %s", terminal.When(o.Done.Time), o.Done.By, o.Done.What)
		}
		rows = append(rows, r)
	}
	terminal.PrintTable(w, []string{"ORDER", "GIVEN", "BY", "WHAT", "STATE"}, rows)
}
