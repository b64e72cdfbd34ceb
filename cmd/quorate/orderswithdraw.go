package main

import (
	"github.com/spf13/cobra"

	"github.com/quorate/quorate/cmd/quorate/command"
	"github.com/quorate/quorate/etcdmember/order"
)

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
