package main

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/quorate/quorate/agent"
	"github.com/quorate/quorate/cmd/quorate/command"
	"github.com/quorate/quorate/cmd/quorate/fault"
	"github.com/quorate/quorate/cmd/quorate/master"
	"github.com/quorate/quorate/cmd/quorate/terminal"
)

// startAnywayRisk is what start-anyway risks: what the record would have said cannot be known.
const startAnywayRisk = "The record cannot be read, so nobody knows what it says of this replica. If its VM was " +
	"recreated meanwhile, if its member was " +
	"removed, if a restore has ended this epoch, or if this disk is a copy or an older state of another, then " +
	"starting etcd now can serve a history that " +
	"has ended, and writes that it acknowledges can be lost. Go on only if you know that none of this happened, and " +
	"the record cannot be made readable."

func newEtcdStartAnyway() *cobra.Command {
	var run string
	var yes bool
	cmd := &cobra.Command{Use: "start-anyway", Short: "Start etcd although the record cannot be read",
		Args: command.NoArguments,
		Long: `Start etcd on this master although the record cannot be read. It says what that risks, and asks. It
counts for this boot of this VM only. It is refused where it would change nothing, which is on any row but
unread-record.

` + terminal.Wrapped(startAnywayRisk),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := fault.RequireRoot("etcd start-anyway"); err != nil {
				return err
			}
			ctx, cancel := context.WithTimeout(cmd.Context(), statusTimeout)
			err := agent.MayStartAnyway(ctx, agent.SocketPath(run))
			cancel()
			if err != nil {
				return explainNoAnswer(err, run, time.Now())
			}
			if err := terminal.Confirm(cmd, startAnywayRisk, "Start etcd on this master?", yes); err != nil {
				return err
			}
			ctx, cancel = context.WithTimeout(cmd.Context(), statusTimeout)
			defer cancel()
			if err := agent.SayStartAnyway(ctx, agent.SocketPath(run)); err != nil {
				return err
			}
			fmt.Fprintln(cmd.OutOrStdout(), "The agent starts etcd within some seconds; 'quorate status' says how it "+
				"goes. It counts until the next boot.")
			return nil
		}}
	terminal.AddYes(cmd, &yes)
	master.AddRunDir(cmd, &run)
	return cmd
}
