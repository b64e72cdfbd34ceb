package main

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/quorate/quorate/internal/localgce"
)

func newCreate() *cobra.Command {
	var disk string
	cmd := &cobra.Command{
		Use: "create NAME@ZONE[@ADDRESS]", Short: "Create a VM and start it", Args: exactly(cobra.ExactArgs(1)),
		RunE: func(cmd *cobra.Command, args []string) error {
			v, err := parseVM(args[0])
			if err != nil {
				return &usageError{err}
			}
			return eachVM(cmd, []string{v.Name}, "is created", func(c *localgce.Client, ctx context.Context, _ string) error {
				return c.CreateVM(ctx, v, disk)
			})
		},
	}
	cmd.Flags().StringVar(&disk, "disk", "", "the name of a disk in the zone that no vm has; a new empty one where not given")
	return cmd
}

func newDelete() *cobra.Command {
	var disk bool
	cmd := &cobra.Command{
		Use: "delete NAME...", Short: "Delete VMs; their data disks stay, and belong to nobody", Args: exactly(cobra.MinimumNArgs(1)),
		RunE: func(cmd *cobra.Command, names []string) error {
			return eachVM(cmd, names, "is deleted", func(c *localgce.Client, ctx context.Context, name string) error {
				return c.DeleteVM(ctx, name, disk)
			})
		},
	}
	cmd.Flags().BoolVar(&disk, "disk", false, "with the data disk")
	return cmd
}

func newHostError() *cobra.Command {
	var h localgce.HostError
	reach := true
	cmd := &cobra.Command{
		Use: "host-error NAME...", Short: "Start VMs on another host, as GCE does after a host error, while the former host lives",
		Args: exactly(cobra.MinimumNArgs(1)),
		Long: "Start VMs on another host, as GCE does after a host error, with the same instance id, name, address and disk\n" +
			"id and a new boot id. The former boot runs on as NAME.1, off the network, until it is killed or deleted.",
		RunE: func(cmd *cobra.Command, names []string) error {
			h.HideRecord = !reach
			lose := func(c *localgce.Client, ctx context.Context, name string) error { return c.HostError(ctx, name, h) }
			return eachVM(cmd, names, "is on another host", lose)
		},
	}
	cmd.Flags().StringVar(&h.Disk, "disk", "fenced",
		"fenced: the successor gets the disk, and what the former boot writes to it fails; copy: it gets a copy as of now")
	cmd.Flags().BoolVar(&reach, "reach-record", true,
		"the former boot still reaches the folders that are shown to it, such as the record")
	return cmd
}

func newRecreate() *cobra.Command {
	var r localgce.Recreation
	var address string
	cmd := &cobra.Command{
		Use: "recreate NAME...", Short: "Delete VMs and create them again: new instance ids, fresh boot disks", Args: exactly(cobra.MinimumNArgs(1)),
		RunE: func(cmd *cobra.Command, names []string) error {
			var err error
			if r.NewAddress = address == "auto"; !r.NewAddress {
				r.Address, err = localgce.ParseAddress(address)
			}
			if err == nil && r.Address.IsValid() && len(names) > 1 {
				err = fmt.Errorf("--address is for one vm, %d are named", len(names))
			}
			if err != nil {
				return &usageError{err}
			}
			return eachVM(cmd, names, "is recreated", func(c *localgce.Client, ctx context.Context, name string) error {
				return c.RecreateVM(ctx, name, r)
			})
		},
	}
	cmd.Flags().BoolVar(&r.Wipe, "wipe", false, "a new empty data disk; without it, the old one is kept")
	cmd.Flags().StringVar(&address, "address", "", "a new address; auto is the next free one")
	cmd.Flags().BoolVar(&r.LeaveRunning, "leave-old-running", false,
		"the former VM runs on as NAME.1 with its address and disk, unknown to the Compute API, until it is deleted; needs --address")
	return cmd
}
