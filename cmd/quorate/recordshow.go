package main

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"github.com/quorate/quorate/etcdmember/order"
	"github.com/quorate/quorate/etcdmember/table"
	"github.com/quorate/quorate/internal/record"
	"github.com/quorate/quorate/internal/replica"
)

func newRecordShow() *cobra.Command {
	var f clusterFlags
	var output string
	var all bool
	cmd := &cobra.Command{Use: "show", Short: "Show what the record holds", Args: noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			store, err := f.open()
			if err != nil {
				return err
			}
			v, err := store.View(cmd.Context())
			if err != nil {
				return err
			}
			return printAs(cmd.OutOrStdout(), output, shownOf(v),
				func(w io.Writer) { showRecord(w, store.String(), v, all, time.Now()) })
		}}
	f.add(cmd)
	addOutput(cmd, &output)
	cmd.Flags().BoolVar(&all, "all", false, "all incarnations and orders; without it, the current incarnations, "+
		"and no old orders (json and yaml always have all)")
	return cmd
}

// shownRecord is a record as JSON and YAML show it: record.View with keys that are stable.
type shownRecord struct {
	Inception *record.Inception `json:"inception"`
	Bundle    uint64            `json:"bundle"`
	Epochs    []record.Epoch    `json:"epochs"`
	Replicas  []shownPlace      `json:"replicas"`
	Orders    []shownOrder      `json:"orders"`
	Marks     []record.Mark     `json:"marks"`
	// Snapshots are the epochs that have one.
	Snapshots []uint64 `json:"snapshots"`
}

type shownPlace struct {
	replica.Place
	Incarnations []shownIncarnation `json:"incarnations"`
}

type shownIncarnation struct {
	record.Incarnation
	Started *record.Started `json:"started"`
}

type shownOrder struct {
	record.Order
	Done     *record.Done     `json:"done"`
	Accepted *record.Accepted `json:"accepted,omitempty"`
	Verdict  *record.Verdict  `json:"verdict,omitempty"`
	VMStops  []record.VMStop  `json:"vmStops,omitempty"`
}

func shownOrderOf(o record.Order) shownOrder {
	s := shownOrder{Order: o, Done: o.Done, Accepted: o.Accepted, Verdict: o.Verdict}
	for _, id := range slices.Sorted(maps.Keys(o.VMStops)) {
		s.VMStops = append(s.VMStops, o.VMStops[id])
	}
	return s
}

func shownOf(v record.View) shownRecord {
	s := shownRecord{Inception: v.Inception, Bundle: v.Bundle, Epochs: append([]record.Epoch{}, v.Epochs...),
		Replicas: []shownPlace{}, Orders: []shownOrder{}, Marks: []record.Mark{},
		Snapshots: append([]uint64{}, v.Snapshots...)}
	for _, p := range v.Places() {
		place := shownPlace{Place: p}
		for _, n := range v.Replicas[p] {
			place.Incarnations = append(place.Incarnations, shownIncarnation{n, n.Started})
		}
		s.Replicas = append(s.Replicas, place)
	}
	for _, o := range v.Orders {
		s.Orders = append(s.Orders, shownOrderOf(o))
	}
	for _, id := range slices.Sorted(maps.Keys(v.Marks)) {
		s.Marks = append(s.Marks, v.Marks[id])
	}
	return s
}

// showRecord prints a record for a person.
func showRecord(w io.Writer, where string, v record.View, all bool, now time.Time) {
	switch i := v.Inception; {
	case v.LostInception():
		printText(w, "", fmt.Sprintf("%s: %s. Until then no master forms or joins a cluster.", where, inceptionLost))
		fmt.Fprintln(w, bundleText(v.Bundle, len(v.Replicas)))
	case i == nil:
		printText(w, "", fmt.Sprintf("There is no inception in %s: this cluster has not begun, or this is the wrong "+
			"place. No master forms a cluster before 'quorate record init'.", where))
		return
	default:
		fmt.Fprintf(w, "cluster %s, since %s, region %s, project %s\n", i.Name, when(i.Time), i.Region, i.ProjectNumber)
		fmt.Fprintf(w, "uid %s, %s\n", i.UID, bundleText(v.Bundle, len(v.Replicas)))
	}
	var epochs, replicas, orders []row
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
	shown, folded := unfolded(v.Orders, log, all)
	for _, o := range shown {
		orders = append(orders, orderRow(o, log))
	}
	printTable(w, []string{"EPOCH", "STATE", "ETCD CLUSTER", "SEEDER", "FROM", "SINCE"}, epochs)
	printTable(w, []string{"REPLICA", "INCARNATION", "INSTANCE", "MEMBER", "EPOCH", "SINCE"}, replicas)
	printTable(w, []string{"ORDER", "WHAT", "BY", "SINCE", "STATE"}, orders)
	fmt.Fprint(w, foldedText(folded))
}

func bundleText(generation uint64, masters int) string {
	switch {
	case generation == 0 && masters > 0:
		return "no bundle: unless the first master is making it now, it is lost, and 'quorate bundle import' brings " +
			"it back from escrow"
	case generation == 0:
		return "no bundle yet: the first master makes it"
	}
	return fmt.Sprintf("bundle generation %d", generation)
}

func epochRow(e record.Epoch) row {
	cells := []string{strconv.FormatUint(e.Number, 10), "claimed", "-", "-", "-", "-"}
	r := row{cells: cells}
	if c := e.Claim; c != nil {
		cells[3], cells[4], cells[5] = c.Seeder.Place.String(), string(c.Source.Kind), when(c.Time)
	} else {
		r.below = "its claim is lost: see 'quorate record check'"
	}
	switch {
	case e.Outcome == nil:
	case e.Outcome.Formed != nil:
		cells[1], cells[2] = "formed", e.Outcome.Formed.ClusterID.String()
	case e.Outcome.Abandoned != nil:
		cells[1], r.below = "abandoned", e.Outcome.Abandoned.Why
	}
	if e.Closed != nil {
		cells[1] = "closed"
	}
	return r
}

func incarnationRow(p replica.Place, n record.Incarnation) row {
	member := "pending"
	if n.Started != nil {
		member = n.Started.MemberID.String()
	}
	return row{cells: []string{p.String(), strconv.FormatUint(n.Number, 10), n.InstanceID, member,
		strconv.FormatUint(n.Epoch, 10), when(n.Time)}}
}

func orderRow(o record.Order, l order.Log) row {
	state := order.StateText(l.State(o.Number))
	if o.Done != nil {
		if l.State(o.Number).State != table.OrderDone {
			state += ", but done"
		}
		state += " at " + when(o.Done.Time) + " by " + o.Done.By
	}
	return row{cells: []string{strconv.FormatUint(o.Number, 10), order.Text(o), o.By, when(o.Time), state},
		below: o.Reason}
}
