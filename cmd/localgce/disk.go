package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/quorate/quorate/internal/localgce"
)

// newDisk holds what can befall data disks.
func newDisk() *cobra.Command {
	return group(&cobra.Command{Use: "disk", Short: "Fill, freeze, tear, corrupt, copy, roll back, swap and empty data disks"},
		newFill(), diskAction("free", "NAME", "End a fill", "has space again", func(c *localgce.Client, ctx context.Context, a []string) error { return c.FreeDisk(ctx, a[0]) }),
		newFreezeDisk(), diskAction("thaw", "NAME", "End a freeze", "takes writes again", func(c *localgce.Client, ctx context.Context, a []string) error { return c.ThawDisk(ctx, a[0]) }),
		newTear(),
		diskAction("snapshot", "NAME SNAPSHOT", "Keep a VM's disk as it is now", "is kept",
			func(c *localgce.Client, ctx context.Context, a []string) error {
				return c.SnapshotDisk(ctx, a[0], a[1])
			}),
		newRestore(),
		diskAction("delete-snapshot", "SNAPSHOT", "Delete a snapshot", "is deleted",
			func(c *localgce.Client, ctx context.Context, a []string) error { return c.DeleteSnapshot(ctx, a[0]) }),
		newClone(),
		diskAction("swap", "A B", "Exchange the disks of two VMs that are off", "is swapped",
			func(c *localgce.Client, ctx context.Context, a []string) error { return c.SwapDisks(ctx, a[0], a[1]) }),
		diskAction("empty", "NAME", "Make a new file system on the disk of a VM that is off; its id stays", "is empty",
			func(c *localgce.Client, ctx context.Context, a []string) error { return c.EmptyDisk(ctx, a[0]) }),
		diskAction("delete", "DISK ZONE", "Delete a disk that no VM has", "is deleted",
			func(c *localgce.Client, ctx context.Context, a []string) error { return c.DeleteDisk(ctx, a[0], a[1]) }),
		newCorrupt(), newTruncate())
}

// diskAction does one thing, with as many arguments as its usage names, and says so of the first.
func diskAction(verb, usage, short, done string, act func(*localgce.Client, context.Context, []string) error) *cobra.Command {
	wanted := 1
	for _, r := range usage {
		if r == ' ' {
			wanted++
		}
	}
	return &cobra.Command{
		Use: verb + " " + usage, Short: short, Args: exactly(cobra.ExactArgs(wanted)),
		RunE: func(cmd *cobra.Command, args []string) error {
			c, err := client(cmd)
			if err == nil {
				err = act(c, cmd.Context(), args)
			}
			if err == nil {
				fmt.Fprintf(cmd.OutOrStdout(), "the disk of %s %s\n", args[0], done)
			}
			return err
		},
	}
}

func newFill() *cobra.Command {
	var leave string
	cmd := diskAction("fill", "NAME", "Take all space of a VM's disk: writes end in ENOSPC, until free, also over reboots", "is full",
		func(c *localgce.Client, ctx context.Context, a []string) error {
			var bytes int64
			var err error
			if leave != "0" {
				bytes, err = parseSize("--leave", leave)
			}
			if err != nil {
				return &usageError{err}
			}
			return c.FillDisk(ctx, a[0], bytes)
		})
	cmd.Flags().StringVar(&leave, "leave", "0", "the space that stays free, such as 64MiB")
	return cmd
}

func newFreezeDisk() *cobra.Command {
	var limit time.Duration
	cmd := diskAction("freeze", "NAME", "Make all writes to a VM's disk wait (fsfreeze), until thaw or the limit", "is frozen",
		func(c *localgce.Client, ctx context.Context, a []string) error { return c.FreezeDisk(ctx, a[0], limit) })
	cmd.Flags().DurationVar(&limit, "for", time.Minute, "thaw by itself after so long; "+localgce.MaxStall.String()+" at most")
	return cmd
}

func newTear() *cobra.Command {
	var byCopy bool
	cmd := diskAction("tear", "NAME", "Cut a VM's power and lose what it had not synced", "is torn, and its vm is off",
		func(c *localgce.Client, ctx context.Context, a []string) error {
			if byCopy {
				return c.TearDiskByCopy(ctx, a[0])
			}
			return c.TearDisk(ctx, a[0])
		})
	cmd.Flags().BoolVar(&byCopy, "by-copy", false, "leave what was written at one instant, also in the middle of a sync; it needs up --reflink")
	return cmd
}

func newRestore() *cobra.Command {
	var sameID bool
	cmd := diskAction("restore", "NAME SNAPSHOT", "Give a VM that is off a disk made of a snapshot", "is as it was",
		func(c *localgce.Client, ctx context.Context, a []string) error {
			return c.RestoreDisk(ctx, a[0], a[1], sameID)
		})
	cmd.Flags().BoolVar(&sameID, "same-id", false, "roll the disk back in place; without it the disk is another, as on GCE")
	return cmd
}

func newClone() *cobra.Command {
	var to string
	cmd := diskAction("clone", "NAME", "Give another VM, which is off, a copy of a VM's disk in place of its own", "is cloned",
		func(c *localgce.Client, ctx context.Context, a []string) error {
			if to == "" {
				return &usageError{errors.New("--to is needed: the VM that gets the copy")}
			}
			return c.CloneDisk(ctx, a[0], to)
		})
	cmd.Flags().StringVar(&to, "to", "", "the VM that gets the copy")
	return cmd
}

func newCorrupt() *cobra.Command {
	var what localgce.Corruption
	cmd := &cobra.Command{
		Use: "corrupt NAME PATH", Short: "Flip bits in a file of a VM's disk, also while it is in use", Args: exactly(cobra.ExactArgs(2)),
		Long: "Flip bits in a file of a VM's disk, also while it is in use. PATH is relative to the disk's top folder and may be a pattern such as\n" +
			"'etcd/member/wal/*.wal': then the last file in order is meant.",
		RunE: func(cmd *cobra.Command, args []string) error {
			what.Path = args[1]
			c, err := client(cmd)
			if err != nil {
				return err
			}
			path, err := c.CorruptDisk(cmd.Context(), args[0], what)
			if err == nil {
				fmt.Fprintf(cmd.OutOrStdout(), "%s of %s is corrupt\n", path, args[0])
			}
			return err
		},
	}
	cmd.Flags().Int64Var(&what.Offset, "offset", 0, "where it begins, in bytes; below 0, from the file's end")
	cmd.Flags().IntVar(&what.Bits, "bits", 1, "how many bits are flipped in a row")
	return cmd
}

func newTruncate() *cobra.Command {
	var size int64
	cmd := &cobra.Command{
		Use: "truncate NAME PATH", Short: "Cut a file of a VM's disk short, also while it is in use; PATH as for corrupt", Args: exactly(cobra.ExactArgs(2)),
		RunE: func(cmd *cobra.Command, args []string) error {
			c, err := client(cmd)
			if err != nil {
				return err
			}
			path, err := c.TruncateDisk(cmd.Context(), args[0], args[1], size)
			if err == nil {
				fmt.Fprintf(cmd.OutOrStdout(), "%s of %s is cut short\n", path, args[0])
			}
			return err
		},
	}
	cmd.Flags().Int64Var(&size, "size", -1, "the size in bytes that is left; below 0, so many fewer than it has")
	return cmd
}
