package main

import (
	"cmp"
	"fmt"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/sync/errgroup"

	"github.com/quorate/quorate/internal/localgce"
)

// newDo carries out every verb that there is; those that people use often have commands of their own.
func newDo() *cobra.Command {
	return &cobra.Command{
		Use:   "do VERB [FIELD=VALUE...]",
		Short: "Do to VMs, disks, network and Google's services what fate or the cloud would",
		Args:  exactly(cobra.MinimumNArgs(1)),
		Long: "Do to VMs, disks, network and Google's services what fate or the cloud would. A field alone is true. " +
			"Verbs, with the\n" +
			"fields that they need, and in brackets those that they may have; then the fields:\n\n" + localgce.Verbs(),
		Example: `  localgce do disk/tear vm=master-a
  localgce do fault service=storage kind=unavailable vm=master-b
  localgce do vm/recreate vm=master-c wipe address=auto`,
		RunE: func(cmd *cobra.Command, args []string) error {
			c, err := client(cmd)
			if err != nil {
				return err
			}
			said, err := c.Do(cmd.Context(), args[0], args[1:]...)
			if err == nil {
				fmt.Fprintln(cmd.OutOrStdout(), cmp.Or(said, "done"))
			}
			return err
		},
	}
}

// newVMAction is a verb for several VMs at once.
func newVMAction(verb, short, done string) *cobra.Command {
	return &cobra.Command{
		Use: verb + " NAME...", Short: short, Args: exactly(cobra.MinimumNArgs(1)),
		RunE: func(cmd *cobra.Command, names []string) error { return doEach(cmd, names, "vm/"+verb, done) },
	}
}

func newRecreate() *cobra.Command {
	cmd := newVMAction("recreate", "Delete VMs and create them again: new instance ids, fresh boot disks",
		"is recreated")
	wipe := cmd.Flags().Bool("wipe", false, "a new empty data disk; without it, the old one is kept")
	cmd.RunE = func(cmd *cobra.Command, names []string) error {
		return doEach(cmd, names, "vm/recreate", "is recreated", fmt.Sprint("wipe=", *wipe))
	}
	return cmd
}

func doEach(cmd *cobra.Command, names []string, verb, done string, args ...string) error {
	c, err := client(cmd)
	if err != nil {
		return err
	}
	var group errgroup.Group
	for _, name := range names {
		group.Go(func() error {
			started := time.Now()
			if _, err := c.Do(cmd.Context(), verb, append([]string{"vm=" + name}, args...)...); err != nil {
				return err
			}
			fmt.Fprintf(cmd.OutOrStdout(), "%s %s (%.2f s)\n", name, done, time.Since(started).Seconds())
			return nil
		})
	}
	return group.Wait()
}

// newNet holds what people do to the network.
func newNet() *cobra.Command {
	cut := &cobra.Command{
		Use: "cut NAME", Short: "Take a VM off the network; its metadata server still answers it",
		Args: exactly(cobra.ExactArgs(1)),
		RunE: func(cmd *cobra.Command, args []string) error {
			return doNet(cmd, "net/cut", args[0]+" is cut off", "vm="+args[0])
		},
	}
	heal := &cobra.Command{
		Use: "heal [NAME]", Short: "Undo all cuts and partitions, or those of one VM",
		Args: exactly(cobra.MaximumNArgs(1)),
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 {
				return doNet(cmd, "net/heal", "the network is whole")
			}
			return doNet(cmd, "net/heal", "the network of "+args[0]+" is whole", "vm="+args[0])
		},
	}
	return group(&cobra.Command{Use: "net", Short: "Cut VMs off the network, and heal it"}, cut, heal)
}

func doNet(cmd *cobra.Command, verb, done string, args ...string) error {
	c, err := client(cmd)
	if err == nil {
		_, err = c.Do(cmd.Context(), verb, args...)
	}
	if err == nil {
		fmt.Fprintln(cmd.OutOrStdout(), done)
	}
	return err
}
