package main

import (
	"context"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"

	"github.com/quorate/quorate/agent"
	"github.com/quorate/quorate/etcdmember/table"
	"github.com/quorate/quorate/internal/replica"
)

func newEtcdExplain() *cobra.Command {
	var output, run string
	cmd := &cobra.Command{Use: "explain", Short: "Say what is observed, which row of the membership's table holds, " +
		"and what would be done next",
		Args: noArguments,
		Long: `Say what is observed, which row of the membership's table holds, what would be done next, and what that
waits for. On the master whose etcd leads it also says what the leader loop's rows say. It changes nothing: it
prints what the agent on this machine observed last, some seconds ago. Exit code 9: no agent answers.`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := requireRoot("etcd explain"); err != nil {
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
			return printAs(cmd.OutOrStdout(), output, e, func(w io.Writer) { showExplanation(w, *e, time.Now()) })
		}}
	addOutput(cmd, &output)
	addRunDir(cmd, &run)
	return cmd
}

// showExplanation prints an explanation for a person.
func showExplanation(w io.Writer, e table.Explanation, now time.Time) {
	printText(w, "", fmt.Sprintf("%s, as its agent observed it %s ago:", e.Replica, age(now, e.At)))
	var classes []row
	for _, c := range []struct {
		what string
		table.ClassInWords
	}{{"disk", e.Disk}, {"its epoch", e.DiskEpoch}, {"record", e.Record}, {"others", e.Remote}} {
		classes = append(classes, row{cells: []string{c.what, c.Class}, below: c.Means})
	}
	printTable(w, []string{"OBSERVED", "CLASS"}, classes)
	if len(e.Found) > 0 {
		fmt.Fprintln(w)
	}
	for _, f := range e.Found {
		printText(w, "", f)
	}
	fmt.Fprintln(w)
	showPlan(w, e.Plan, e.Waits)
	if e.Leader != nil {
		fmt.Fprintf(w, "\nOn the leader, %s ago:\n", age(now, e.Leader.At))
		showPlan(w, e.Leader.Plan, e.Leader.Plan.Waits)
		var rows []row
		for _, p := range e.Leader.Rows {
			rows = append(rows, row{cells: []string{p.Row.Name(), actText(p.Act), orNone(p.Member), p.About},
				below: p.Reason})
		}
		printTable(w, []string{"ROW", "ACT", "MEMBER", "ABOUT"}, rows)
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
func showPlan(w io.Writer, p table.PlanInWords, waits *replica.Wait) {
	title := "ROW " + p.Row.Name()
	if p.About != "" {
		title += ": " + p.About
	}
	printText(w, "", title)
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
	printText(w, "  ", step)
	if p.Reason != "" && (waits == nil || waits.Reason != p.Reason) {
		printText(w, "  ", "Because: "+p.Reason)
	}
	if waits != nil {
		printText(w, "  ", fmt.Sprintf("Waits: %s. %s", waits.Name, waits.Reason))
		printText(w, "  ", "Next: "+waits.Next)
	}
}
