package main

import (
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/quorate/quorate/internal/localgce"
)

// newFault makes Google's own services fail.
func newFault() *cobra.Command {
	return group(&cobra.Command{Use: "fault", Short: "Make the metadata server, the name server, the Compute API or a shown folder fail, or be well again"},
		newMetadataFault(), newNameServerFault(), newComputeFault(), newBindFault())
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
		Use: "metadata {NAME|all} {none|slow|away|html}", Short: "How the metadata server answers, from now on and at its next boots", Args: exactly(cobra.ExactArgs(2)),
		RunE: func(cmd *cobra.Command, args []string) error {
			c, err := client(cmd)
			if err == nil {
				f := localgce.Fault{Who: all(args[0]), Kind: kind(args[1])}
				if f.Kind == "slow" {
					f.Delay = delay
				}
				err = c.SetFault(cmd.Context(), localgce.Metadata, f)
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

func newNameServerFault() *cobra.Command {
	return &cobra.Command{
		Use: "names {NAME|all} {none|silent}", Short: "How the name server answers, from now on and at the next boots: silent, or as ever that there is none",
		Args: exactly(cobra.ExactArgs(2)),
		RunE: func(cmd *cobra.Command, args []string) error {
			c, err := client(cmd)
			if err == nil {
				err = c.SetNameServerFault(cmd.Context(), all(args[0]), kind(args[1]))
			}
			if err == nil {
				fmt.Fprintf(cmd.OutOrStdout(), "name server of %s: %s\n", args[0], args[1])
			}
			return err
		},
	}
}

func newComputeFault() *cobra.Command {
	var f localgce.Fault
	var stoppedFor time.Duration
	cmd := &cobra.Command{
		Use:   "compute {none|forbidden|notfound|unavailable|empty|stale|missing|unlisted|absent|terminated|stopped}",
		Short: "How the Compute API answers", Args: exactly(cobra.ExactArgs(1)),
		Long: "How the Compute API answers: 403, 404 or 503 to every request; lists without items; as of now, whatever\n" +
			"comes. The VMs of --vm are missing with their disks; unlisted, and still found by name; absent, while their\n" +
			"disks are listed; terminated or stopped, while they run. none without --caller heals all.",
		RunE: func(cmd *cobra.Command, args []string) error {
			f.Kind = kind(args[0])
			if stoppedFor != 0 {
				f.LastStop = time.Now().Add(-stoppedFor)
			}
			c, err := client(cmd)
			if err == nil {
				err = c.SetFault(cmd.Context(), localgce.Compute, f)
			}
			if err == nil {
				fmt.Fprintf(cmd.OutOrStdout(), "Compute API: %s\n", args[0])
			}
			return err
		},
	}
	cmd.Flags().StringVar(&f.Who, "caller", "", "only as this VM hears it")
	cmd.Flags().StringSliceVar(&f.VMs, "vm", nil, "a VM that it is about")
	cmd.Flags().DurationVar(&stoppedFor, "stopped-for", 0,
		"how long those that are terminated or stopped have been so; from now on where not given")
	cmd.Flags().BoolVar(&f.Detached, "detached", false, "the disks of those that are absent are attached to nobody")
	return cmd
}

func newBindFault() *cobra.Command {
	return &cobra.Command{
		Use: "bind {NAME|all} PATH {none|unreadable|hang|empty|readonly}", Short: "How a folder that VMs are shown answers, such as the record's, from now on and at the next boots",
		Args: exactly(cobra.ExactArgs(3)),
		RunE: func(cmd *cobra.Command, args []string) error {
			c, err := client(cmd)
			if err == nil {
				err = c.SetBindFault(cmd.Context(), all(args[0]), args[1], kind(args[2]))
			}
			if err == nil {
				fmt.Fprintf(cmd.OutOrStdout(), "%s of %s: %s\n", args[1], args[0], args[2])
			}
			return err
		},
	}
}

// all spells "all" as the empty name.
func all(arg string) string {
	if arg == "all" {
		return ""
	}
	return arg
}
