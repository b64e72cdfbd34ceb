package main

import (
	"github.com/spf13/cobra"

	"github.com/quorate/quorate/cmd/quorate/command"
	"github.com/quorate/quorate/fleet/plan"
)

func newRemove() *cobra.Command {
	var f fleetFlags
	var w plan.Wish
	cmd := &cobra.Command{Use: "remove [NAME]", Short: "Remove a master: its member first, then its VM",
		Args: atMost("NAME"),
		Long: `Remove a master by its name, or any of a zone: rather one that is not well, and etcd's leader last. Its member
leaves by an order that etcd's leader carries out, while the others are a quorum without it. Then its VM is deleted.

Its data disk is kept, unless --delete-disk is given. A VM that is away, or gone, is removed without its help.

One that never joined may be no more than a data disk. It is named as a master is, and --delete-disk deletes it; --zone
with --delete-disk may mean it, too. With a disk that is kept the next 'quorate add' in its zone goes on.` +
			planText,
		Example: `  quorate remove prod-1-master-x7k2 --config cluster.yaml
  quorate remove --zone us-central1-b --config cluster.yaml`,
		RunE: func(cmd *cobra.Command, args []string) error {
			w.Kind, w.Name = plan.Remove, first(args)
			return f.carryOut(cmd, w, f.asking(cmd))
		}}
	f.add(cmd)
	f.addZone(cmd, &w.Zone, "the zone that it is in")
	addDeleteDisk(cmd, &w.DropDisk)
	addAcceptOutage(cmd, &w.Interrupt)
	cmd.ValidArgsFunction = command.Completing(f.ReplicaNames)
	return cmd
}

// addDeleteDisk adds the flag that has a data disk deleted.
func addDeleteDisk(cmd *cobra.Command, drop *bool) {
	cmd.Flags().BoolVar(drop, "delete-disk", false, "delete the data disk too; it is kept otherwise")
}
