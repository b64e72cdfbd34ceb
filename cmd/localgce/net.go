package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/quorate/quorate/internal/localgce"
)

// newNet holds what can be done to the network.
func newNet() *cobra.Command {
	return group(&cobra.Command{Use: "net", Short: "Cut VMs off, partition them, limit and reset, heal"}, newCut(), newPartition(), newLimit(), newReset(), newHeal())
}

func newCut() *cobra.Command {
	return &cobra.Command{
		Use: "cut NAME", Short: "Take a VM off the network; its metadata server still answers it", Args: exactly(cobra.ExactArgs(1)),
		RunE: func(cmd *cobra.Command, args []string) error {
			c, err := client(cmd)
			if err == nil {
				err = c.Cut(cmd.Context(), args[0])
			}
			if err == nil {
				fmt.Fprintf(cmd.OutOrStdout(), "%s is cut off\n", args[0])
			}
			return err
		},
	}
}

func newPartition() *cobra.Command {
	var oneWay bool
	cmd := &cobra.Command{
		Use: "partition A B", Short: "Drop what two VMs send to each other", Args: exactly(cobra.ExactArgs(2)),
		RunE: func(cmd *cobra.Command, args []string) error {
			c, err := client(cmd)
			if err == nil {
				err = c.Partition(cmd.Context(), args[0], args[1], oneWay)
			}
			if err == nil {
				fmt.Fprintf(cmd.OutOrStdout(), "%s does not reach %s\n", args[0], args[1])
			}
			if err == nil && !oneWay {
				fmt.Fprintf(cmd.OutOrStdout(), "%s does not reach %s\n", args[1], args[0])
			}
			return err
		},
	}
	cmd.Flags().BoolVar(&oneWay, "one-way", false, "drop only what A sends to B")
	return cmd
}

func newLimit() *cobra.Command {
	var bandwidth string
	var l localgce.Link
	cmd := &cobra.Command{
		Use: "limit NAME", Short: "Limit a VM's link in each direction; without flags, no more", Args: exactly(cobra.ExactArgs(1)),
		RunE: func(cmd *cobra.Command, args []string) (err error) {
			if bandwidth != "" {
				if l.Bandwidth, err = parseSize("--bandwidth", bandwidth); err != nil {
					return &usageError{err}
				}
			}
			c, err := client(cmd)
			if err == nil {
				err = c.SetLink(cmd.Context(), args[0], l)
			}
			if err == nil {
				fmt.Fprintf(cmd.OutOrStdout(), "the link of %s: bandwidth %s, delay %s\n", args[0], bandwidth, l.Delay)
			}
			return err
		},
	}
	cmd.Flags().StringVar(&bandwidth, "bandwidth", "", "bytes a second, such as 50MiB")
	cmd.Flags().DurationVar(&l.Delay, "delay", 0, "how much later each packet arrives (needs netem in the kernel)")
	return cmd
}

func newReset() *cobra.Command {
	return &cobra.Command{
		Use: "reset A B", Short: "Break the TCP connections between two VMs; new ones work", Args: exactly(cobra.ExactArgs(2)),
		RunE: func(cmd *cobra.Command, args []string) error {
			c, err := client(cmd)
			if err != nil {
				return err
			}
			n, err := c.ResetConnections(cmd.Context(), args[0], args[1])
			if err == nil {
				fmt.Fprintf(cmd.OutOrStdout(), "%d connections between %s and %s are broken\n", n, args[0], args[1])
			}
			return err
		},
	}
}

func newHeal() *cobra.Command {
	return &cobra.Command{
		Use: "heal [NAME]", Short: "Undo all cuts and partitions, or those of one VM", Args: exactly(cobra.MaximumNArgs(1)),
		RunE: func(cmd *cobra.Command, args []string) error {
			name, what := "", "the network"
			if len(args) == 1 {
				name, what = args[0], "the network of "+args[0]
			}
			c, err := client(cmd)
			if err == nil {
				err = c.Heal(cmd.Context(), name)
			}
			if err == nil {
				fmt.Fprintf(cmd.OutOrStdout(), "%s is whole\n", what)
			}
			return err
		},
	}
}
