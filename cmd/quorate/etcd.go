package main

import (
	"context"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"

	"github.com/quorate/quorate/agent"
	"github.com/quorate/quorate/cmd/quorate/command"
	"github.com/quorate/quorate/cmd/quorate/fault"
	"github.com/quorate/quorate/cmd/quorate/master"
	"github.com/quorate/quorate/cmd/quorate/terminal"
	"github.com/quorate/quorate/etcdmember/explain"
	"github.com/quorate/quorate/etcdmember/table"
	"github.com/quorate/quorate/internal/replica"
)

func newEtcd() *cobra.Command {
	return command.Group(&cobra.Command{Use: "etcd",
		Short: "Explain this master's etcd membership, or start it where the " +
			"record cannot be read",
		Long: `On a master, as root: explain what the membership's table says of it, or start its etcd where the
record cannot be read. Only a person on this very VM can order that.`}, newEtcdExplain(), newEtcdStartAnyway())
}

func newEtcdExplain() *cobra.Command {
	var output, run string
	cmd := &cobra.Command{Use: "explain", Short: "Say what is observed, which row of the membership's table holds, " +
		"and what would be done next",
		Args: command.NoArguments,
		Long: `Say what is observed, which row of the membership's table holds, what would be done next, and what that
waits for. On the master whose etcd leads it also says what the leader loop's rows say. It changes nothing: it
prints what the agent on this machine observed last, some seconds ago. Exit code 9: no agent answers.`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := fault.RequireRoot("etcd explain"); err != nil {
				return err
			}
			ctx, cancel := context.WithTimeout(cmd.Context(), statusTimeout)
			defer cancel()
			s, err := agent.ReadStatus(ctx, agent.SocketPath(run))
			if err != nil {
				return explainNoAnswer(err, run, time.Now())
			}
			e := s.Etcd.Explanation
			if e == nil {
				return fmt.Errorf("%w: it is in phase %s and has not observed anything yet", agent.ErrRefused,
					s.Replica.Phase)
			}
			return terminal.PrintAs(cmd.OutOrStdout(), output, e,
				func(w io.Writer) { showExplanation(w, *e, time.Now()) })
		}}
	command.AddOutput(cmd, &output)
	master.AddRunDir(cmd, &run)
	return cmd
}

// showExplanation prints an explanation for a person.
func showExplanation(w io.Writer, e explain.Explanation, now time.Time) {
	terminal.PrintText(w, "", fmt.Sprintf("%s, as its agent observed it %s ago:", e.Replica, terminal.Age(now, e.At)))
	var classes []terminal.Row
	for _, c := range []struct {
		what string
		explain.ClassInWords
	}{{"disk", e.Disk}, {"its epoch", e.DiskEpoch}, {"record", e.Record}, {"others", e.Remote}} {
		classes = append(classes, terminal.Row{Cells: []string{c.what, c.Class}, Below: c.Means})
	}
	terminal.PrintTableBelow(w, []string{"OBSERVED", "CLASS"}, classes)
	if len(e.Found) > 0 {
		fmt.Fprintln(w)
	}
	for _, f := range e.Found {
		terminal.PrintText(w, "", f)
	}
	fmt.Fprintln(w)
	showPlan(w, e.Plan, e.Waits)
	if e.Leader != nil {
		fmt.Fprintf(w, "\nOn the leader, %s ago:\n", terminal.Age(now, e.Leader.At))
		showPlan(w, e.Leader.Plan, e.Leader.Plan.Waits)
		var rows []terminal.Row
		for _, p := range e.Leader.Rows {
			rows = append(rows, terminal.Row{Cells: []string{p.Row.Name(), actText(p.Act), terminal.OrNone(p.Member),
				p.About}, Below: p.Reason})
		}
		terminal.PrintTableBelow(w, []string{"ROW", "ACT", "MEMBER", "ABOUT"}, rows)
	}
}

// actText is an act for a person. JSON has the table's own name of it.
func actText(a table.Act) string {
	if a == table.ActKeep {
		return "running"
	}
	return string(a)
}

// showPlan prints the row that holds and its one step.
func showPlan(w io.Writer, p explain.PlanInWords, waits *replica.Wait) {
	title := "ROW " + p.Row.Name()
	if p.About != "" {
		title += ": " + p.About
	}
	terminal.PrintText(w, "", title)
	step := "Step: " + actText(p.Act)
	if p.Step > 0 {
		step += fmt.Sprintf(" (number %d)", p.Step)
	}
	switch {
	case p.Act == table.ActKeep:
		step = "Step: none, the member is running"
	case p.Member != "":
		step += ", member " + p.Member
	}
	terminal.PrintText(w, "  ", step)
	if p.Reason != "" && (waits == nil || waits.Reason != p.Reason) {
		terminal.PrintText(w, "  ", "Because: "+p.Reason)
	}
	if waits != nil {
		terminal.PrintText(w, "  ", fmt.Sprintf("Waits: %s. %s", waits.Name, waits.Reason))
		terminal.PrintText(w, "  ", "Next: "+waits.Next)
	}
}

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
