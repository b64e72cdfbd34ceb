package main

import (
	"fmt"
	"io"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"github.com/quorate/quorate/cmd/quorate/command"
	"github.com/quorate/quorate/cmd/quorate/recordtext"
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
		shown, folded := recordtext.Unfolded(v.Orders, log, all || f.output != "")
		list := []recordtext.ListedOrder{}
		for _, o := range shown {
			list = append(list, recordtext.Listed(o, log))
		}
		return terminal.PrintAs(cmd.OutOrStdout(), f.output, list, func(w io.Writer) {
			showOrders(w, store.String(), list)
			fmt.Fprint(w, recordtext.FoldedText(folded))
		})
	}
	f.add(cmd)
	cmd.Flags().BoolVar(&all, "all", false, "old orders too (json and yaml always have them)")
	return cmd
}

func showOrders(w io.Writer, where string, list []recordtext.ListedOrder) {
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

func newOrdersGive() *cobra.Command {
	return command.Group(&cobra.Command{Use: "give", Short: "Give an order"}, newGiveReplicas(), newGiveLeave())
}

func newGiveReplicas() *cobra.Command {
	var f orderFlags
	cmd := &cobra.Command{Use: "replicas N", Short: "Say how many replicas the cluster is to have",
		Long: `Say how many replicas the cluster is to have; it wins over the document's field replicas. It makes and deletes no VM: it decides
whether a second replica stays a warm learner (1 and 2) or is promoted with the third (3 to 7).`,
		Args: command.Exactly("N"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return give(cmd, &f, func(l order.Log) (order.Draft, error) { return l.CheckReplicas(args[0]) })
		}}
	f.add(cmd)
	return cmd
}

func newGiveLeave() *cobra.Command {
	var f orderFlags
	var reason string
	cmd := &cobra.Command{Use: "leave REPLICA", Short: "Take a replica out of the cluster",
		Long: `Take a replica out of the cluster, named as ZONE.NAME, or by its name where that is clear. Its etcd member hands over and is
removed once the others are a quorum without it, its apiserver stops, and its etcd directory is archived. It stays out, also when
its VM is recreated, until the order is withdrawn; then it joins again by itself. It asks before the order is given.`,
		Args: command.Exactly("REPLICA"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return give(cmd, &f, func(l order.Log) (order.Draft, error) { return l.CheckLeave(args[0], reason) })
		}}
	f.add(cmd)
	cmd.ValidArgsFunction = command.Completing(f.ReplicaNames)
	terminal.AddYes(cmd, &f.yes)
	cmd.Flags().StringVar(&reason, "reason", "", "why, for those who read the orders later")
	return cmd
}

func newOrdersWithdraw() *cobra.Command {
	var f orderFlags
	cmd := &cobra.Command{Use: "withdraw N", Short: "Take an order back: it counts as never given",
		Long: `Take an order back, by its number: it counts as never given. A replica that left by it joins again by
itself. A withdrawal is an order too, and can be withdrawn.

An order to restore is taken back by its verdict, which is final: either the restorer ends the epoch, or the order is
withdrawn, and members that have stopped for it start again by themselves. If the command is interrupted, run it again:
it completes what is missing.`,
		Args: command.Exactly("N"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return give(cmd, &f, func(l order.Log) (order.Draft, error) { return l.CheckWithdraw(args[0]) })
		}}
	f.add(cmd)
	cmd.ValidArgsFunction = command.Completing(f.OrdersToWithdraw)
	return cmd
}
