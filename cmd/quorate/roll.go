package main

import (
	"github.com/spf13/cobra"

	"github.com/quorate/quorate/cmd/quorate/command"
	"github.com/quorate/quorate/fleet/plan"
)

func newRoll() *cobra.Command {
	var f fleetFlags
	var w plan.Wish
	cmd := &cobra.Command{Use: "roll", Short: "Make the VMs of all masters as the document says, one at a time",
		Args: command.NoArguments,
		Long: `Make the VMs of all masters anew that are not as the document says, one at a time, etcd's leader last: each under
its name and with its data disk, so that its member stays. The next one comes once all are well again; where one is not,
the command stops.

It goes by the section gce: image, machine type, boot disk, service account, subnetwork, tags and labels; and by the
rest of the document, which a master has as its instance attribute quorate-cluster. --dry-run says of each master which
field differs, what was found and what is wanted. A label that the document does not name may stay, and so may another
attribute until the VM is made anew. A data disk is kept as it is, and another network is refused.

The image is --image, or gce.image of the document: a family is the newest image of it. Give the document the same
image, so that masters that are added later have it too.` + planText,
		Example: `  quorate roll --config cluster.yaml --dry-run
  quorate roll --config cluster.yaml --image quorate-20261120`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			w.Kind = plan.Roll
			return f.carryOut(cmd, w, f.asking(cmd))
		}}
	f.add(cmd)
	cmd.Flags().StringVar(&w.Image, "image", "", "the image, in one of the forms of gce.image")
	addAcceptOutage(cmd, &w.Interrupt)
	return cmd
}
