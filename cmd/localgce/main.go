// localgce is a Google Compute Engine project on one machine: VMs with metadata servers, data disks, a network that can
// be cut and a load balancer, for quorate's demo and tests. A command a file; the work is in internal/localgce.
// `localgce up` leaves a process behind that is the project; all other commands talk to it through a socket in the
// state folder.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"strings"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/quorate/quorate/internal/localgce"
)

func main() {
	localgce.RunInitIfAsked() // this program is also pid 1 of its VMs
	os.Exit(run(os.Args[1:]))
}

// The exit codes, for scripts that branch on them.
const (
	exitOK        = 0
	exitFailure   = 1 // anything without a code of its own
	exitUsage     = 2
	exitUp        = 3 // `up`: the project is up already
	exitDown      = 4 // no project is up
	exitPreflight = 7 // this machine lacks something
	exitNotRoot   = 8
)

func run(args []string) int {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	root := newRoot()
	root.SetArgs(args)
	err := root.ExecuteContext(ctx)
	if err == nil {
		return exitOK
	}
	fmt.Fprintln(os.Stderr, "localgce: "+strings.TrimSpace(err.Error()))
	return exitCode(err)
}

func exitCode(err error) int {
	var missing *localgce.PreflightError
	var usage *usageError
	var order *localgce.OrderError
	var remote *remoteError
	switch {
	case errors.As(err, &remote):
		return remote.Code
	case errors.As(err, &usage), errors.As(err, &order):
		return exitUsage
	case errors.Is(err, localgce.ErrUp):
		return exitUp
	case errors.Is(err, localgce.ErrDown):
		return exitDown
	case errors.Is(err, localgce.ErrNotRoot):
		return exitNotRoot
	case errors.As(err, &missing):
		return exitPreflight
	}
	return exitFailure
}

// usageError is a mistake on the command line.
type usageError struct{ err error }

func (e *usageError) Error() string { return e.err.Error() }
func (e *usageError) Unwrap() error { return e.err }

func newRoot() *cobra.Command {
	root := group(&cobra.Command{
		Use:   "localgce",
		Short: "A Google Compute Engine project on one machine",
		Long: `localgce is a Google Compute Engine project on one machine, for quorate's demo and tests: VMs with metadata servers and
data disks, a network that can be cut, and a load balancer. It needs root.

A VM is a set of namespaces, not a booted kernel. "localgce up" leaves the project running, "localgce down" removes every
trace of it from the machine; logs and disks stay in the state folder.`,
		SilenceUsage: true, SilenceErrors: true,
	}, newUp(), newServe(), newDown(), newStatus(), newVM(), newNet(), newDo())
	root.CompletionOptions.HiddenDefaultCmd = true
	root.SetHelpCommand(newHelp())
	root.PersistentFlags().String("state", "_demo", "the folder with the project's disks, logs and socket")
	root.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error {
		return &usageError{fmt.Errorf("%w (see %s --help)", err, cmd.CommandPath())}
	})
	return root
}

// newHelp is cobra's help command, but that a command which does not exist is a mistake and not an answer.
func newHelp() *cobra.Command {
	return &cobra.Command{
		Use: "help [COMMAND...]", Short: "Say what a command does",
		RunE: func(cmd *cobra.Command, args []string) error {
			about, rest, err := cmd.Root().Find(args)
			if err != nil || len(rest) > 0 {
				return &usageError{fmt.Errorf("there is no command %q (see localgce --help)", strings.Join(args, " "))}
			}
			about.InitDefaultHelpFlag()
			return about.Help()
		},
	}
}

// group holds commands. By itself it prints its help; a word that is none of its commands is a mistake.
func group(cmd *cobra.Command, commands ...*cobra.Command) *cobra.Command {
	cmd.Args = exactly(cobra.NoArgs)
	cmd.RunE = func(cmd *cobra.Command, _ []string) error { return cmd.Help() }
	cmd.AddCommand(commands...)
	return cmd
}

// state is the state folder of a command.
func state(cmd *cobra.Command) string {
	dir, _ := cmd.Flags().GetString("state") // defined on the root
	return dir
}

// client speaks to the project of a command's state folder.
func client(cmd *cobra.Command) (*localgce.Client, error) { return localgce.NewClient(state(cmd)) }

// exactly is cobra's check of the number of arguments, as an error of usage.
func exactly(args cobra.PositionalArgs) cobra.PositionalArgs {
	return func(cmd *cobra.Command, given []string) error {
		if err := args(cmd, given); err != nil {
			return &usageError{fmt.Errorf("%w (usage: %s)", err, cmd.UseLine())}
		}
		return nil
	}
}
