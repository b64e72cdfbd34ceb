package main

import (
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/quorate/quorate/addons/examples"
	"github.com/quorate/quorate/cmd/quorate/cluster"
	"github.com/quorate/quorate/cmd/quorate/fault"
	"github.com/quorate/quorate/internal/replica"
)

func newAddonsExamples() *cobra.Command {
	var f cluster.Flags
	cmd := &cobra.Command{
		Use: "examples [NAME...]", Short: "Print the add-ons that quorate brings, for a folder of your own",
		Long: `Print the manifests of the add-ons that quorate brings, filled with the network of a Cluster document:
all, or those that are named. A document takes them as they are with addons.examples. Who wants them otherwise prints
them into a folder, changes them there, and names the folder with addons.folder.

Names: ` + strings.Join(replica.AddonExamples, ", "),
		RunE: func(cmd *cobra.Command, names []string) error {
			for _, name := range names {
				if !slices.Contains(replica.AddonExamples, name) {
					return fault.Usage("found %q; allowed: %s", name,
						strings.Join(replica.AddonExamples, ", "))
				}
			}
			c, err := f.Load()
			if err != nil {
				return err
			}
			c.Addons = replica.Addons{Examples: names}
			if len(names) == 0 {
				c.Addons.Examples = replica.AddonExamples
			}
			c.SetDefaults()
			if err := c.Validate(); err != nil { // the document may have no room for them
				return fault.Config("%w", err)
			}
			_, err = cmd.OutOrStdout().Write(examples.Set(c))
			return err
		},
	}
	f.Add(cmd)
	cmd.ValidArgs = replica.AddonExamples
	return cmd
}
