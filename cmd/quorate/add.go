package main

import (
	"github.com/spf13/cobra"

	"github.com/quorate/quorate/fleet/plan"
)

func newAdd() *cobra.Command {
	var f fleetFlags
	var w plan.Wish
	cmd := &cobra.Command{Use: "add [NAME]", Short: "Add a master: a VM with a data disk, which joins the cluster",
		Args: atMost("NAME"),
		Long: `Add a master: a VM with a data disk, made as the document's section gce says. It waits until the master is a
member and ready; of three and more it votes then. Without NAME a name is drawn.

One that was begun before and has not joined is gone on with, also where a data disk is all there is of it: 'quorate
remove NAME --delete-disk' deletes that. A master that is not ready counts as begun until its VM is an hour old; after
that another one is added. --zone makes one elsewhere, as where a zone has no VM of the type.` + checkText + planText,
		Example: `  quorate add --config cluster.yaml --zone us-central1-f`,
		RunE: func(cmd *cobra.Command, args []string) error {
			w.Kind, w.Name = plan.Add, first(args)
			return f.carryOut(cmd, w, f.asking(cmd))
		}}
	f.add(cmd)
	f.addSkipChecks(cmd)
	addAcceptOutage(cmd, &w.Interrupt)
	f.addZone(cmd, &w.Zone, "the zone; where it is not given, the one of the document's that has the fewest masters")
	return cmd
}
