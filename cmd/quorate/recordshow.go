package main

import (
	"fmt"
	"io"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"github.com/quorate/quorate/cmd/quorate/cluster"
	"github.com/quorate/quorate/cmd/quorate/command"
	"github.com/quorate/quorate/cmd/quorate/recordtext"
	"github.com/quorate/quorate/cmd/quorate/terminal"
	"github.com/quorate/quorate/etcdmember/order"
	"github.com/quorate/quorate/etcdmember/table"
	"github.com/quorate/quorate/internal/record"
	"github.com/quorate/quorate/internal/replica"
)

func newRecordShow() *cobra.Command {
	var f cluster.Flags
	var output string
	var all bool
	cmd := &cobra.Command{Use: "show", Short: "Show what the record holds", Args: command.NoArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			store, err := f.Open()
			if err != nil {
				return err
			}
			v, err := store.View(cmd.Context())
			if err != nil {
				return err
			}
			return terminal.PrintAs(cmd.OutOrStdout(), output, recordtext.Of(v),
				func(w io.Writer) { showRecord(w, store.String(), v, all, time.Now()) })
		}}
	f.Add(cmd)
	command.AddOutput(cmd, &output)
	cmd.Flags().BoolVar(&all, "all", false, "all incarnations and orders; without it, the current incarnations, "+
		"and no old orders (json and yaml always have all)")
	return cmd
}

// showRecord prints a record for a person.
func showRecord(w io.Writer, where string, v record.View, all bool, now time.Time) {
	switch i := v.Inception; {
	case v.LostInception():
		terminal.PrintText(w, "", fmt.Sprintf("%s: %s. Until then no master forms or joins a cluster.", where,
			recordtext.InceptionLost))
		fmt.Fprintln(w, recordtext.BundleText(v.Bundle, len(v.Replicas)))
	case i == nil:
		terminal.PrintText(w, "",
			fmt.Sprintf("There is no inception in %s: this cluster has not begun, or this is the wrong "+
				"place. No master forms a cluster before 'quorate record init'.", where))
		return
	default:
		fmt.Fprintf(w, "cluster %s, since %s, region %s, project %s\n", i.Name, terminal.When(i.Time), i.Region,
			i.ProjectNumber)
		fmt.Fprintf(w, "uid %s, %s\n", i.UID, recordtext.BundleText(v.Bundle, len(v.Replicas)))
	}
	var epochs, replicas, orders []terminal.Row
	for _, e := range v.Epochs {
		epochs = append(epochs, epochRow(e))
	}
	for _, p := range v.Places() {
		incarnations := v.Replicas[p]
		if !all {
			incarnations = v.Current(p)
		}
		for _, n := range incarnations {
			replicas = append(replicas, incarnationRow(p, n))
		}
	}
	log := order.NewLog(v, now)
	shown, folded := recordtext.Unfolded(v.Orders, log, all)
	for _, o := range shown {
		orders = append(orders, orderRow(o, log))
	}
	terminal.PrintTableBelow(w, []string{"EPOCH", "STATE", "ETCD CLUSTER", "SEEDER", "FROM", "SINCE"}, epochs)
	terminal.PrintTableBelow(w, []string{"REPLICA", "INCARNATION", "INSTANCE", "MEMBER", "EPOCH", "SINCE"}, replicas)
	terminal.PrintTableBelow(w, []string{"ORDER", "WHAT", "BY", "SINCE", "STATE"}, orders)
	fmt.Fprint(w, recordtext.FoldedText(folded))
}

func epochRow(e record.Epoch) terminal.Row {
	cells := []string{strconv.FormatUint(e.Number, 10), "claimed", "-", "-", "-", "-"}
	r := terminal.Row{Cells: cells}
	if c := e.Claim; c != nil {
		cells[3], cells[4], cells[5] = c.Seeder.Place.String(), string(c.Source.Kind), terminal.When(c.Time)
	} else {
		r.Below = "its claim is lost: see 'quorate record check'"
	}
	switch {
	case e.Outcome == nil:
	case e.Outcome.Formed != nil:
		cells[1], cells[2] = "formed", e.Outcome.Formed.ClusterID.String()
	case e.Outcome.Abandoned != nil:
		cells[1], r.Below = "abandoned", e.Outcome.Abandoned.Why
	}
	if e.Closed != nil {
		cells[1] = "closed"
	}
	return r
}

func incarnationRow(p replica.Place, n record.Incarnation) terminal.Row {
	member := "pending"
	if n.Started != nil {
		member = n.Started.MemberID.String()
	}
	return terminal.Row{Cells: []string{p.String(), strconv.FormatUint(n.Number, 10), n.InstanceID, member,
		strconv.FormatUint(n.Epoch, 10), terminal.When(n.Time)}}
}

func orderRow(o record.Order, l order.Log) terminal.Row {
	state := order.StateText(l.State(o.Number))
	if o.Done != nil {
		if l.State(o.Number).State != table.OrderDone {
			state += ", but done"
		}
		state += " at " + terminal.When(o.Done.Time) + " by " + o.Done.By
	}
	return terminal.Row{Cells: []string{strconv.FormatUint(o.Number, 10), order.Text(o), o.By, terminal.When(o.Time),
		state}, Below: o.Reason}
}
