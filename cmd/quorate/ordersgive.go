package main

import (
	"github.com/spf13/cobra"

	"github.com/quorate/quorate/cmd/quorate/command"
	"github.com/quorate/quorate/cmd/quorate/terminal"
	"github.com/quorate/quorate/etcdmember/order"
)

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
