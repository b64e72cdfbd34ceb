// quorate boots and repairs the masters of a Kubernetes cluster on Google Compute Engine. On a master, systemd runs
// `quorate agent`; everywhere else it is the operator's tool. A command a file; this one holds what all share: signals,
// the commands, and the one place where an error becomes lines for a person and a code for a script.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"syscall"

	"github.com/spf13/cobra"
)

func main() { os.Exit(run(os.Args[1:], os.Stdout, os.Stderr)) }

// run is main without the exit.
func run(args []string, stdout, stderr io.Writer) int {
	return execute(newRoot(), args, stdout, stderr)
}

// execute runs a command. All that it prints passes a visibleWriter, its error too.
func execute(root *cobra.Command, args []string, stdout, stderr io.Writer) int {
	// SIGTERM ends the agent in order; a second one is ignored while it does: the unit's TimeoutStopSec is the limit.
	ctx, stop := signal.NotifyContext(context.Background(), endings()...)
	defer stop()
	out, errs := &visibleWriter{to: stdout}, &visibleWriter{to: stderr}
	defer out.Close()
	defer errs.Close()
	root.SetArgs(args)
	root.SetOut(out)
	root.SetErr(errs)
	cmd, err := root.ExecuteContextC(ctx)
	if err == nil {
		return exitOK
	}
	var verdict *verdictError // printed, with all that there is to say
	if !errors.As(err, &loggedError{}) && !errors.As(err, &verdict) {
		if printAs(errs, wantedOutput(cmd, args), reportOf(err), func(io.Writer) { complain(errs, err) }) != nil {
			complain(errs, err)
		}
	}
	return exitCode(err)
}

// endings are the signals that end a command in order. That of a terminal which closes is one, except under nohup(1).
func endings() []os.Signal {
	if signal.Ignored(syscall.SIGHUP) {
		return []os.Signal{os.Interrupt, syscall.SIGTERM}
	}
	return []os.Signal{os.Interrupt, syscall.SIGTERM, syscall.SIGHUP}
}

// complain prints an error, each line of it with the program's name.
func complain(to io.Writer, err error) {
	for line := range strings.Lines(strings.TrimSpace(err.Error())) {
		fmt.Fprintln(to, "quorate: "+strings.TrimRight(line, "\n"))
	}
}

func newRoot() *cobra.Command {
	root := group(&cobra.Command{
		Use:   "quorate",
		Short: "Boots, joins and repairs the masters of a Kubernetes cluster on Google Compute Engine",
		Long: `quorate boots, joins and repairs the masters of a Kubernetes cluster on Google Compute Engine.

On a master, systemd runs "quorate agent" at boot, and "quorate status" says how it is. A failed master is repaired by
recreating its VM. The other commands are run from anywhere that reaches the cluster's record.`,
		SilenceUsage: true, SilenceErrors: true,
		Version: versionText(),
	}, newAgent(), newStatus(), newHealth(), newEvents(), newWhy(), newSupport(), newEtcd(), newConfig(), newRecord(),
		newOrders(), newGCE(), newPause(), newResume(), newOverride(), newBundle(), newKubeconfig(), newToken(),
		newSnapshot(), newAddons(), newVersion(imageFile), newRunEtcd(), newMakeDirectory(), newRestore(), newMan(),
		newCreate(), newAdd(), newRemove(), newReplace(), newRoll(), newList(), newDelete())
	root.SetVersionTemplate("quorate {{.Version}}\n")
	root.SetHelpCommand(newHelp())
	root.SetFlagErrorFunc(flagFault)
	reflowHelp(root)
	arrange(root)
	return root
}

// reflowHelp breaks the help texts of a command and of those below it for a screen.
func reflowHelp(cmd *cobra.Command) {
	cmd.Long = reflowed(cmd.Long)
	for _, c := range cmd.Commands() {
		reflowHelp(c)
	}
}

// newHelp is cobra's help command, but that a command which does not exist is a mistake and not an answer.
func newHelp() *cobra.Command {
	return &cobra.Command{
		Use: "help [COMMAND...]", Short: "Say what a command does", Hidden: true,
		RunE: func(cmd *cobra.Command, args []string) error {
			about, rest, err := cmd.Root().Find(args)
			if err != nil || len(rest) > 0 {
				return &usageError{fmt.Errorf("there is no command %q (see quorate --help)", strings.Join(args, " "))}
			}
			about.InitDefaultHelpFlag()
			return about.Help()
		},
	}
}
