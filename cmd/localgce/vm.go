package main

import (
	"fmt"
	"os/exec"
	"slices"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/quorate/quorate/internal/localgce"
)

// newVM holds what people do to VMs.
func newVM() *cobra.Command {
	return group(&cobra.Command{Use: "vm", Short: "List, start, kill and recreate VMs, and run commands in them"},
		newVMList(),
		newVMAction("start", "Power VMs on", "is started"), newVMAction("kill", "Cut the power of VMs", "is off"),
		newRecreate(),
		newExec(), newLogs())
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

// newExec becomes the command, inside the VM: its input, its output and its exit code are the command's. What stands
// behind the VM's name is the command's, flags too.
func newExec() *cobra.Command {
	cmd := &cobra.Command{
		Use: "exec [flags] NAME [--] COMMAND [ARG...]", Short: "Run a command in a VM, as root",
		DisableFlagsInUseLine: true,
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
