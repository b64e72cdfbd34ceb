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

	"github.com/quorate/quorate/cmd/quorate/command"
	"github.com/quorate/quorate/cmd/quorate/terminal"
)

// execute runs a command. All that it prints passes a terminal.VisibleWriter, its error too.
func execute(root *cobra.Command, args []string, stdout, stderr io.Writer) int {
	// SIGTERM ends the agent in order; a second one is ignored while it does: the unit's TimeoutStopSec is the limit.
	ctx, stop := signal.NotifyContext(context.Background(), endings()...)
	defer stop()
	out, errs := &terminal.VisibleWriter{To: stdout}, &terminal.VisibleWriter{To: stderr}
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
		if terminal.PrintAs(errs, command.WantedOutput(cmd, args), reportOf(err),
			func(io.Writer) { complain(errs, err) }) != nil {
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

// loggedError is an error that the agent's log has already, so that it is not printed again, on a stream that may hang.
type loggedError struct{ error }

// Unwrap keeps the exit code.
func (e loggedError) Unwrap() error { return e.error }

// logged says that the agent's log has an error already.
func logged(err error) error { return loggedError{err} }
