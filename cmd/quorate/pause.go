package main

import (
	"github.com/spf13/cobra"

	"github.com/quorate/quorate/cmd/quorate/command"
	"github.com/quorate/quorate/etcdmember/order"
)

func newPause() *cobra.Command {
	var f orderFlags
	var until, reason string
	cmd := &cobra.Command{Use: "pause", Short: "Hold back all changes of the etcd membership",
		Args: command.NoArguments,
		Long: `Hold back all changes of the etcd membership: nobody joins, is promoted, removed or replaced until "quorate resume", or until
the time that --until gives. What runs goes on, members start and restart, and orders to leave and to restore are still followed.`,
		Example: `  quorate pause --until 2h --reason "network maintenance"
  quorate pause --until 2026-12-01T06:00:00Z`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if f.Emptied("until") {
				return order.Refuse("--until is empty: a time or how long is needed; for a pause until 'quorate " +
					"resume' " +
					"leave it out")
			}
			return give(cmd, &f, func(l order.Log) (order.Draft, error) { return l.CheckPause(until, reason) })
		}}
	f.add(cmd)
	cmd.Flags().StringVar(&until, "until", "", "when it ends by itself: a time such as 2026-12-01T06:00:00Z, or how "+
		"long, such as 2h30m")
	cmd.Flags().StringVar(&reason, "reason", "", "why, for those who read the orders later")
	return cmd
}

func newResume() *cobra.Command {
	var f orderFlags
	var reason string
	cmd := &cobra.Command{Use: "resume", Short: "End a pause", Args: command.NoArguments,
		Long: `End a pause: what it held back goes on.`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return give(cmd, &f, func(l order.Log) (order.Draft, error) { return l.CheckResume(reason) })
		}}
	f.add(cmd)
	cmd.Flags().StringVar(&reason, "reason", "", "why, for those who read the orders later")
	return cmd
}
