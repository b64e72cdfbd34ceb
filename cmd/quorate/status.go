package main

import (
	"context"
	"fmt"
	"io"
	"strconv"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/quorate/quorate/agent"
)

// statusTimeout is longer than the agent's own for what it has to ask.
const statusTimeout = 5 * time.Second

func newStatus() *cobra.Command {
	var output string
	cmd := &cobra.Command{Use: "status", Short: "Say how this master is", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := requireRoot("status"); err != nil {
				return err
			}
			ctx, cancel := context.WithTimeout(cmd.Context(), statusTimeout)
			defer cancel()
			s, err := agent.ReadStatus(ctx, agent.SocketPath(runDir))
			if err != nil {
				return err
			}
			return printAs(cmd.OutOrStdout(), output, s, func(w io.Writer) { showStatus(w, s, time.Now()) })
		}}
	addOutput(cmd, &output)
	return cmd
}

// showStatus prints a status for a person: what is wrong comes first.
func showStatus(w io.Writer, s agent.Status, now time.Time) {
	state := "not ready"
	if s.Replica.Ready {
		state = "ready"
	}
	fmt.Fprintf(w, "replica %s (instance %s): %s, %s for %s\n", s.Replica.Place, s.Replica.InstanceID, state, s.Replica.Phase, age(now, s.Replica.Since))
	fmt.Fprintf(w, "cluster %s: epoch %d, etcd cluster %s\n", s.Cluster.Name, s.Cluster.Epoch, orNone(s.Cluster.ID))
	for _, b := range s.Blocked {
		fmt.Fprintf(w, "blocked %s (row %s) for %s: %s\n  next: %s\n", b.Name, b.Row, age(now, b.Since), b.Reason, b.Next)
	}
	table(w, "\nMEMBER\tID\tROLE\tLEADER\tSTARTED\tLAG", len(s.Etcd.Members), func(t io.Writer, i int) {
		m := s.Etcd.Members[i]
		lag := "?"
		if m.Lag != nil {
			lag = strconv.FormatUint(*m.Lag, 10)
		}
		fmt.Fprintf(t, "%s\t%s\t%s\t%s\t%s\t%s\n", orNone(m.Name), m.ID, m.Role, yes(m.Leader), yes(m.Started), lag)
	})
	table(w, "\nCOMPONENT\tSTATE\tSINCE\tRESTARTS\tREASON", len(s.Components), func(t io.Writer, i int) {
		c := s.Components[i]
		fmt.Fprintf(t, "%s\t%s\t%s\t%d\t%s\n", c.Name, c.State, age(now, c.Since), c.Restarts, c.Reason)
	})
	table(w, "\nLEASE\tHOLDER\tRENEWED", len(s.Leases), func(t io.Writer, i int) {
		l := s.Leases[i]
		fmt.Fprintf(t, "%s\t%s\t%s ago\n", l.Name, orNone(l.Holder), age(now, l.Renewed))
	})
	if len(s.Certificates) > 0 {
		first := s.Certificates[0]
		for _, c := range s.Certificates {
			if c.NotAfter.Before(first.NotAfter) {
				first = c
			}
		}
		fmt.Fprintf(w, "\n%d certificates, the first to expire is %s on %s\n", len(s.Certificates), first.Name, first.NotAfter.Format(time.DateOnly))
	}
}

func table(w io.Writer, head string, rows int, row func(io.Writer, int)) {
	if rows == 0 {
		return
	}
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, head)
	for i := range rows {
		row(t, i)
	}
	t.Flush()
}

func age(now, then time.Time) string {
	d := max(0, now.Sub(then))
	if d < time.Minute {
		return d.Round(time.Second).String()
	}
	return d.Round(time.Minute).String()
}

func orNone(s string) string {
	if s == "" {
		return "-"
	}
	return s
}

func yes(b bool) string {
	if b {
		return "yes"
	}
	return "no"
}
