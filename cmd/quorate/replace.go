package main

import (
	"github.com/spf13/cobra"

	"github.com/quorate/quorate/cmd/quorate/command"
	"github.com/quorate/quorate/cmd/quorate/fault"
	"github.com/quorate/quorate/fleet/plan"
)

func newReplace() *cobra.Command {
	var f fleetFlags
	var w plan.Wish
	cmd := &cobra.Command{Use: "replace NAME", Short: "Replace a master by a new one, or make its VM anew",
		Args: command.Exactly("NAME"),
		Long: `Replace a master: a new one is added in its zone, and once that is ready the former is removed.

With --in-place its VM is deleted and made anew under its name, with its data disk; it stays a member meanwhile. With
--new-disk it gets an empty data disk, and its former disk is kept: for a disk that is damaged.` + planText,
		Example: `  quorate replace prod-1-master-x7k2 --config cluster.yaml
  quorate replace prod-1-master-x7k2 --config cluster.yaml --new-disk`,
		RunE: func(cmd *cobra.Command, args []string) error {
			w.Kind, w.Name, w.InPlace = plan.Replace, args[0], w.InPlace || w.NewDisk
			switch {
			case w.InPlace && w.DropDisk:
				return fault.Usage("--delete-disk: in its place a master keeps its disk, and with " +
					"--new-disk the former one is kept; leave it out")
			case !w.InPlace && w.Again:
				return fault.Usage("--again is for --in-place and --new-disk alone")
			}
			return f.carryOut(cmd, w, f.asking(cmd))
		}}
	f.add(cmd)
	cmd.Flags().BoolVar(&w.InPlace, "in-place", false, "make its VM anew under its name, with its data disk")
	cmd.Flags().BoolVar(&w.NewDisk, "new-disk", false, "make its VM anew under its name, with an empty data disk")
	cmd.Flags().BoolVar(&w.Again, "again", false, "make it anew although that was done within "+
		"the last hour, or has not come to its end")
	addDeleteDisk(cmd, &w.DropDisk)
	addAcceptOutage(cmd, &w.Interrupt)
	cmd.ValidArgsFunction = command.Completing(f.ReplicaNames)
	return cmd
}

// addAcceptOutage adds the flag without which the only master is not made anew, and the address of a load balancer on
// demand does not move.
func addAcceptOutage(cmd *cobra.Command, accept *bool) {
	cmd.Flags().BoolVar(accept, "accept-outage", false, "go on where nobody is served for a time: the only master is "+
		"away, or the endpoint's address moves (gce.loadBalancer.onDemand)")
}
