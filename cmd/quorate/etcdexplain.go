package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"

	"github.com/quorate/quorate/agent"
	"github.com/quorate/quorate/etcdmember"
	"github.com/quorate/quorate/internal/gce"
)

// lookTimeout bounds a look by this command itself: metadata, the record, the other members, the programs' versions.
const lookTimeout = 30 * time.Second

func newEtcdExplain() *cobra.Command {
	var output, run string
	cmd := &cobra.Command{Use: "explain", Short: "Say what is observed, which row of the membership's table holds, " +
		"and what would be done next",
		Args: noArguments,
		Long: `Say what is observed, which row of the membership's table holds, what would be done next, and what that waits for; on the
master whose etcd leads, also what the leader's rows say. Nothing is done by it. Where an agent runs, it tells what the agent saw at
its last look, some seconds ago. Where none runs, it looks by itself, and reads only.`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := requireRoot("etcd explain"); err != nil {
				return err
			}
			e, err := explanation(cmd.Context(), cmd.ErrOrStderr(), run)
			if err != nil {
				return err
			}
			return printAs(cmd.OutOrStdout(), output, e, func(w io.Writer) { showExplanation(w, e, time.Now()) })
		}}
	addOutput(cmd, &output)
	addRunDir(cmd, &run)
	return cmd
}

// explanation asks the agent, or looks where there is none. One that runs and does not answer is left alone: it has the
// directory open.
func explanation(ctx context.Context, stderr io.Writer, run string) (etcdmember.Explanation, error) {
	asking, cancel := context.WithTimeout(ctx, statusTimeout)
	defer cancel()
	e, err := agent.ReadExplanation(asking, agent.SocketPath(run))
	if err == nil || !errors.Is(err, agent.ErrNoAgent) {
		return e, err
	}
	release, lockErr := beTheOnlyAgent(run)
	if lockErr != nil {
		return e, fmt.Errorf("%w; it does not answer yet: ask again in a moment", lockErr)
	}
	release() // an agent that starts meanwhile is not held up
	metadata := gce.NewMetadata(gce.MetadataConfig{Log: slog.New(slog.DiscardHandler)})
	self, err := os.Executable()
	if err != nil {
		return e, err
	}
	looking, cancelLook := context.WithTimeout(ctx, lookTimeout)
	defer cancelLook()
	return agent.Explain(looking, agent.Config{
		Log: slog.New(slog.NewTextHandler(stderr, &slog.HandlerOptions{Level: slog.LevelWarn})), Metadata: metadata,
		Open: cloudOpener(metadata), Baked: bakedFile, RunDir: filepath.Clean(run), LogDir: logDir,
		HostsFile: hostsFile, Self: self,
	})
}

// showExplanation prints an explanation for a person.
func showExplanation(w io.Writer, e etcdmember.Explanation, now time.Time) {
	who := fmt.Sprintf("%s, as its agent saw it %s ago:", e.Replica, age(now, e.At))
	if !e.ByAgent {
		who = fmt.Sprintf("%s, as this command sees it; no agent runs here, and nothing is done:", e.Replica)
	}
	printText(w, "", who)
	var classes []row
	for _, c := range []struct {
		what string
		etcdmember.ClassInWords
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
		fmt.Fprintf(w, "\nBeside the leader, %s ago:\n", age(now, e.Leader.At))
		showPlan(w, e.Leader.Plan, e.Leader.Plan.Waits)
		var rows []row
		for _, p := range e.Leader.Rows {
			rows = append(rows, row{cells: []string{p.Row.String(), string(p.Act), orNone(p.Member), p.About},
				below: p.Reason})
		}
		printTable(w, []string{"ROW", "ACT", "MEMBER", "ABOUT"}, rows)
	}
}

// showPlan prints the row that holds and its one step.
func showPlan(w io.Writer, p etcdmember.PlanInWords, waits *etcdmember.Blocked) {
	title := "ROW " + p.Row.String()
	if p.About != "" && p.About != p.Row.String() {
		title += ": " + p.About
	}
	printText(w, "", title)
	step := "Step: " + string(p.Act)
	if p.Step > 0 {
		step += fmt.Sprintf(" (number %d)", p.Step)
	}
	if p.Member != "" {
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
