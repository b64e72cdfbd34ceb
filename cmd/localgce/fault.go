package main

import (
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/quorate/quorate/internal/localgce"
)

// newFault makes Google's own services fail.
func newFault() *cobra.Command {
	return group(&cobra.Command{Use: "fault", Short: "Make the metadata server or the Compute API fail, or be well again"}, newMetadataFault(), newComputeFault())
}

// kind spells "none" as the zero value.
func kind(arg string) string {
	if arg == "none" {
		return ""
	}
	return arg
}

func newMetadataFault() *cobra.Command {
	var delay time.Duration
	cmd := &cobra.Command{
		Use: "metadata NAME {none|slow|away|html}", Short: "How a VM's metadata server answers, from now on and at its next boots", Args: exactly(cobra.ExactArgs(2)),
		RunE: func(cmd *cobra.Command, args []string) error {
			c, err := client(cmd)
			if err == nil {
				err = c.SetMetadataFault(cmd.Context(), args[0], localgce.MetadataFault{Kind: kind(args[1]), Delay: delay})
			}
			if err == nil {
				fmt.Fprintf(cmd.OutOrStdout(), "metadata server of %s: %s\n", args[0], args[1])
			}
			return err
		},
	}
	cmd.Flags().DurationVar(&delay, "delay", 10*time.Second, "how long a slow answer takes")
	return cmd
}

func newComputeFault() *cobra.Command {
	return &cobra.Command{
		Use: "compute {none|forbidden|empty|stale|unavailable}", Short: "How the Compute API answers", Args: exactly(cobra.ExactArgs(1)),
		RunE: func(cmd *cobra.Command, args []string) error {
			c, err := client(cmd)
			if err == nil {
				err = c.SetComputeFault(cmd.Context(), localgce.ComputeFault{Kind: kind(args[0])})
			}
			if err == nil {
				fmt.Fprintf(cmd.OutOrStdout(), "Compute API: %s\n", args[0])
			}
			return err
		},
	}
}
