package main

import (
	"context"
	"fmt"
	"os/exec"
	"slices"
	"syscall"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/sync/errgroup"

	"github.com/quorate/quorate/internal/localgce"
)

// newVM holds what can be done to VMs.
func newVM() *cobra.Command {
	return group(&cobra.Command{Use: "vm", Short: "List, create, start, kill, freeze, recreate, delete VMs, lose their hosts, " +
		"and run commands in them"}, newVMList(),
		newVMAction("start", "Power VMs on", "is started", (*localgce.Client).StartVM),
		newVMAction("kill", "Cut the power of VMs", "is off", (*localgce.Client).KillVM),
		newVMAction("stop", "Stop VMs in order, as GCE does: SIGTERM, 90 s", "is off", (*localgce.Client).StopVM),
		newVMAction("freeze", "Stall VMs wholly, as when their host hangs", "is frozen", (*localgce.Client).FreezeVM),
		newVMAction("thaw", "Let frozen VMs go on", "goes on", (*localgce.Client).ThawVM),
		newMaintenance(), newCreate(), newRecreate(), newHostError(), newDelete(), newExec(), newLogs())
}

func newVMList() *cobra.Command {
	cmd := &cobra.Command{
		Use: "list", Short: "List the VMs", Args: exactly(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			asJSON, err := wantsJSON(cmd)
			if err != nil {
				return err
			}
			c, err := client(cmd)
			if err != nil {
				return err
			}
			s, err := c.Status(cmd.Context())
			if err != nil {
				return err
			}
			if asJSON {
				return printJSON(cmd.OutOrStdout(), s.VMs)
			}
			return printVMs(cmd.OutOrStdout(), s.VMs)
		},
	}
	addOutput(cmd)
	return cmd
}

// newVMAction does one thing to each of the named VMs, to all at once.
func newVMAction(verb, short, done string, act func(*localgce.Client, context.Context, string) error) *cobra.Command {
	return &cobra.Command{
		Use: verb + " NAME...", Short: short, Args: exactly(cobra.MinimumNArgs(1)),
		RunE: func(cmd *cobra.Command, names []string) error {
			return eachVM(cmd, names, done, act)
		},
	}
}

func eachVM(cmd *cobra.Command, names []string, done string, act func(*localgce.Client, context.Context, string) error) error {
	c, err := client(cmd)
	if err != nil {
		return err
	}
	var group errgroup.Group
	for _, name := range names {
		group.Go(func() error {
			started := time.Now()
			if err := act(c, cmd.Context(), name); err != nil {
				return err
			}
			fmt.Fprintf(cmd.OutOrStdout(), "%s %s (%.2f s)\n", name, done, time.Since(started).Seconds())
			return nil
		})
	}
	return group.Wait()
}

func newMaintenance() *cobra.Command {
	return &cobra.Command{
		Use: "maintenance NAME EVENT", Short: "Announce a host maintenance in metadata: NONE, MIGRATE_ON_HOST_MAINTENANCE, TERMINATE_ON_HOST_MAINTENANCE",
		Args: exactly(cobra.ExactArgs(2)),
		RunE: func(cmd *cobra.Command, args []string) error {
			c, err := client(cmd)
			if err == nil {
				err = c.SetMaintenance(cmd.Context(), args[0], args[1])
			}
			if err == nil {
				fmt.Fprintf(cmd.OutOrStdout(), "maintenance-event of %s: %s\n", args[0], args[1])
			}
			return err
		},
	}
}

// newExec becomes the command, inside the VM: its input, its output and its exit code are the command's. What stands behind the VM's
// name is the command's, flags too.
func newExec() *cobra.Command {
	cmd := &cobra.Command{
		Use: "exec [flags] NAME [--] COMMAND [ARG...]", Short: "Run a command in a VM, as root", DisableFlagsInUseLine: true,
		Args: func(cmd *cobra.Command, args []string) error {
			return exactly(cobra.MinimumNArgs(2))(cmd, withoutDashes(args))
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			if args[1] == "--help" || args[1] == "-h" { // of this command: no VM has a program of that name
				return cmd.Help()
			}
			args = withoutDashes(args)
			c, err := client(cmd)
			if err != nil {
				return err
			}
			v, err := c.VM(cmd.Context(), args[0])
			if err != nil {
				return err
			}
			if v.InitPID == 0 {
				return &localgce.StateError{Name: v.Name, Is: v.Status, Wanted: "RUNNING"}
			}
			enter := localgce.EnterArgs(v.InitPID, args[1:]...)
			program, err := exec.LookPath(enter[0])
			if err != nil {
				return fmt.Errorf("run a command in %s: %w", v.Name, err)
			}
			return fmt.Errorf("run a command in %s: %w", v.Name, syscall.Exec(program, enter, localgce.EnterEnv()))
		},
	}
	cmd.Flags().SetInterspersed(false)
	return cmd
}

// withoutDashes drops the -- that people put between a VM's name and the command.
func withoutDashes(args []string) []string {
	if len(args) > 1 && args[1] == "--" {
		return slices.Delete(slices.Clone(args), 1, 2)
	}
	return args
}
