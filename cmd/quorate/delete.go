package main

import (
	"github.com/spf13/cobra"

	"github.com/quorate/quorate/cmd/quorate/command"
	"github.com/quorate/quorate/cmd/quorate/terminal"
	"github.com/quorate/quorate/fleet/plan"
)

func newDelete() *cobra.Command {
	var f fleetFlags
	cmd := &cobra.Command{Use: "delete", Short: "Delete a cluster: the VMs and data disks of all its masters",
		Args: command.NoArguments,
		Long: `Delete a cluster: the VMs of all its masters, and every data disk that has its label, with etcd's data. The
record stays, and with it the snapshots and the sealed CA keys. Of the load balancer, the firewall rules and the
internal address that the document names, it deletes what 'quorate create' has made. It asks for the cluster's
name.` + planText,
		Example: `  quorate delete --config cluster.yaml`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return f.carryOut(cmd, plan.Wish{Kind: plan.Delete}, func(plan.Plan) error {
				c, err := f.Load()
				if err != nil {
					return err
				}
				return terminal.ConfirmWord(cmd, "", "All data of cluster "+c.Name+" that is in no snapshot is lost.",
					c.Name, f.yes)
			})
		}}
	f.add(cmd)
	return cmd
}
