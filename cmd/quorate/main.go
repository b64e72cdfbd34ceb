// quorate boots and repairs the masters of a Kubernetes cluster on Google Compute Engine. On a master, systemd runs
// `quorate agent`; everywhere else it is the operator's tool. A command a file; this one holds what all share: signals,
// the exit code, and the one place where an error becomes a line for a person.
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
)

func main() { os.Exit(run(os.Args[1:])) }

// run is main without the exit, so that the command-line tests run it in their own process.
func run(args []string) int {
	// SIGTERM ends the agent in order; a second one is ignored while it does: the unit's TimeoutStopSec is the limit.
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	root := newRoot()
	root.SetArgs(args)
	err := root.ExecuteContext(ctx)
	if err == nil {
		return exitOK
	}
	if code := exitCode(err); code != exitQuiet {
		fmt.Fprintln(os.Stderr, "quorate: "+strings.TrimSpace(err.Error()))
		return code
	}
	return exitFailure
}

func newRoot() *cobra.Command {
	root := &cobra.Command{
		Use:   "quorate",
		Short: "Boots, joins and repairs the masters of a Kubernetes cluster on Google Compute Engine",
		Long: `quorate boots, joins and repairs the masters of a Kubernetes cluster on Google Compute Engine.

On a master, systemd runs "quorate agent" at boot. A failed master is repaired by recreating its VM.`,
		SilenceUsage: true, SilenceErrors: true,
		Version: version(),
	}
	root.SetVersionTemplate("quorate {{.Version}}\n")
	root.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error {
		return &usageError{fmt.Errorf("%w (see %s --help)", err, cmd.CommandPath())}
	})
	root.AddCommand(newAgent(), newRunEtcd(), newStatus(), newConfig(), newRecord(), newKubeconfig())
	return root
}

// The exit codes, for scripts that branch on them. They are part of the interface: docs/runbook.md lists them.
const (
	exitOK         = 0
	exitFailure    = 1 // anything without a code of its own
	exitUsage      = 2
	exitConfig     = 3 // the Cluster document is missing or wrong
	exitMetadata   = 4 // the metadata server cannot be asked
	exitRecord     = 5 // the record cannot be read, or has no inception
	exitSeal       = 6 // the seal key does not open the bundle
	exitPreflight  = 7 // this machine lacks something: a program, a port, room on the disk, a mount
	exitNotRoot    = 8
	exitNoAgent    = 9  // `status`: no agent answers
	exitRemoved    = 10 // `run-etcd`: the cluster has removed this member
	exitSuperseded = 11 // a newer VM has this place
	exitQuiet      = -1 // the command has printed what there is to say
)

// usageError is a mistake on the command line.
type usageError struct{ err error }

func (e *usageError) Error() string { return e.err.Error() }
func (e *usageError) Unwrap() error { return e.err }

// notRootError says that a command needs root.
type notRootError struct{ what string }

func (e *notRootError) Error() string { return e.what + " needs root: run it with sudo" }

// exitCode finds the code of an error; errors.go lists the sentinels of the packages.
func exitCode(err error) int {
	var usage *usageError
	var notRoot *notRootError
	switch {
	case errors.As(err, &usage):
		return exitUsage
	case errors.As(err, &notRoot):
		return exitNotRoot
	case isConfigError(err):
		return exitConfig
	}
	for _, c := range exitCauses {
		if errors.Is(err, c.cause) {
			return c.code
		}
	}
	if strings.HasPrefix(err.Error(), "unknown command") || strings.HasPrefix(err.Error(), "accepts ") {
		return exitUsage // cobra has no type for these
	}
	return exitFailure
}

func requireRoot(what string) error {
	if os.Geteuid() != 0 {
		return &notRootError{what}
	}
	return nil
}
