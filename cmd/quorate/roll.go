package main

import (
	"github.com/spf13/cobra"

	"github.com/quorate/quorate/cmd/quorate/command"
	"github.com/quorate/quorate/fleet/plan"
)

func newRoll() *cobra.Command {
	var f fleetFlags
	var w plan.Wish
	cmd := &cobra.Command{Use: "roll", Short: "Make the VMs of all masters anew of another image, one at a time",
		Args: command.NoArguments,
		Long: `Make the VMs of all masters anew that are not made of an image, one at a time, etcd's leader last: each under
its name and with its data disk, so that its member stays. The next one comes once all are well again; where one is not,
the command stops.

The image is --image, or gce.image of the document: a family is the newest image of it. Give the document the same
image, so that masters that are added later have it too.` + planText,
		Example: `  quorate roll --config cluster.yaml --image quorate-20261120`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			w.Kind = plan.Roll
			return f.carryOut(cmd, w, f.asking(cmd))
		}}
	f.add(cmd)
	cmd.Flags().StringVar(&w.Image, "image", "", "the image, in one of the forms of gce.image")
	addAcceptOutage(cmd, &w.Interrupt)
	return cmd
}
