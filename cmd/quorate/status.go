package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/spf13/cobra"

	"github.com/quorate/quorate/agent"
	"github.com/quorate/quorate/cmd/quorate/cluster"
	"github.com/quorate/quorate/cmd/quorate/command"
	"github.com/quorate/quorate/cmd/quorate/fault"
	"github.com/quorate/quorate/cmd/quorate/master"
	"github.com/quorate/quorate/cmd/quorate/observer"
	"github.com/quorate/quorate/cmd/quorate/statustext"
	"github.com/quorate/quorate/cmd/quorate/terminal"
	"github.com/quorate/quorate/cmd/quorate/tone"
)

// statusTimeout is longer than the agent's own for what it has to ask.
const statusTimeout = 5 * time.Second

func newStatus() *cobra.Command {
	var output, run string
	cmd := &cobra.Command{Use: "status", Short: "Say how this master is", Args: command.NoArguments,
		Long: `Say how this master is: how far its boot has come, what it waits for and what ends the wait, the etcd
members, the components and who leads. All of that comes from the agent on this machine. The last line says how the
cluster is, as "quorate health" does.

Exit code 0: this master is well. 1: degraded, it serves and something is to be done. 2: it does not serve. 9: no agent
answers. With -o json or yaml the field "verdict" says the same, and "notWell" why.`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			ctx, cancel := context.WithTimeout(cmd.Context(), statusTimeout)
			defer cancel()
			s, err := agent.ReadStatus(ctx, agent.SocketPath(run))
			if err != nil {
				return explainNoAnswer(err, run, time.Now())
			}
			shown := statustext.Judge(s, time.Now())
			if !s.Replica.Ready {
				shown.LastEnd = master.ReadLastEnd(run)
			}
			err = terminal.PrintAs(cmd.OutOrStdout(), output, shown,
				func(w io.Writer) { statustext.Show(w, shown, time.Now()) })
			if err == nil && output == "" {
				err = showCluster(cmd, run)
			}
			if err != nil {
				return err
			}
			return verdictOf(shown.Verdict)
		}}
	command.AddOutput(cmd, &output)
	master.AddRunDir(cmd, &run)
	return cmd
}

// clusterLineTimeout bounds what a status asks of others, after it has said what this machine knows.
const clusterLineTimeout = 3 * time.Second

// showCluster says how the cluster is, by what the replicas report, where this machine knows which one it belongs to.
// It does not ask the endpoint: on a master that is the master's own apiserver.
func showCluster(cmd *cobra.Command, run string) error {
	_, c, _, known, err := agent.Remembered(run, master.BakedFile)
	if !known || err != nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(cmd.Context(), clusterLineTimeout)
	defer cancel()
	o, err := observer.New(c, &cluster.Flags{})
	if err != nil {
		return nil
	}
	v := o.Read(ctx).Judge()
	text := v.Headline()
	if len(v.Findings) > 0 {
		text += " The first finding: " + v.Findings[0].Name + ". For all: quorate health"
	}
	return terminal.PrintAs(cmd.OutOrStdout(), "", nil, func(w io.Writer) {
		fmt.Fprintln(w)
		terminal.PaintText(w, tone.Of(v.State), text)
	})
}

// explainNoAnswer says why no agent answers, and what the last one said when it ended.
func explainNoAnswer(err error, run string, now time.Time) error {
	socket := agent.SocketPath(run)
	switch {
	case !errors.Is(err, agent.ErrNoAgent):
		return err
	case errors.Is(err, os.ErrPermission):
		return fault.NotRoot("status")
	case errors.Is(err, context.DeadlineExceeded):
		err = fmt.Errorf("%w: nothing came from %s within %s", agent.ErrNoAgent, socket, statusTimeout)
	default:
		err = fmt.Errorf("%w: nothing listens at %s (on a master: systemctl status %s)", agent.ErrNoAgent, socket,
			master.AgentUnit)
		if _, absent := os.Stat(run); errors.Is(absent, os.ErrNotExist) {
			err = fmt.Errorf("%w\nno agent has run here since this machine booted; how the cluster is, from any machine: "+
				"quorate health", err)
		}
	}
	if end := master.ReadLastEnd(run); end != nil {
		err = fmt.Errorf("%w\nthe last agent ended %s ago with exit code %d: %s", err, terminal.Age(now, end.Time),
			end.Code, end.Error)
	}
	return err
}
