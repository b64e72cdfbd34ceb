package main

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/quorate/quorate/internal/record"
	"github.com/quorate/quorate/internal/record/bucket"
	"github.com/quorate/quorate/internal/replica"
)

// silentRisk checks the instances of --silent against the record, and says what it means where one of them still
// runs; empty: none is named.
func (w wreck) silentRisk(ids []string, restorer replica.Place) (string, error) {
	var names []string
	for _, id := range ids {
		i, known := w.instance(id)
		switch {
		case !known:
			return "", refused("--silent %q: the record knows no such instance in epoch %d; not proven to have "+
				"stopped: %s",
				id, w.epoch.Number, orNone(strings.Join(w.notStoppedInstances(restorer), ", ")))
		case i.Place == restorer && w.isNewest(i):
			return "", refused("--silent %s: this is the instance of %s, which restores: it says itself that it has "+
				"stopped, so leave it out", id, restorer)
		}
		names = append(names, instanceText(i))
	}
	if len(names) == 0 {
		return "", nil
	}
	return fmt.Sprintf("On your word, these count as silent: %s. If it still runs, what it acknowledges from now on "+
		"is lost, and its clients see two histories.",
		strings.Join(names, ", ")), nil
}

// instance is the newest incarnation of the epoch that an instance took.
func (w wreck) instance(id string) (found record.Incarnation, known bool) {
	for _, p := range w.Places() {
		for _, i := range w.Replicas[p] {
			if i.InstanceID == id && i.Epoch == w.epoch.Number {
				found, known = i, true
			}
		}
	}
	return found, known
}

// notStoppedInstances names each of those that have not stopped.
func (w wreck) notStoppedInstances(restorer replica.Place) (out []string) {
	for _, i := range w.notStopped(restorer) {
		out = append(out, instanceText(i))
	}
	return out
}

// goOn follows the order that is in force. With --silent it first writes a newer one of the same source, which says
// so: the word of an order is never changed.
func (f *restoreFlags) goOn(cmd *cobra.Command, store *bucket.Store, w wreck, o record.Order, stops *vmStops) error {
	out := cmd.OutOrStdout()
	if flags := f.ofANewOrder(); flags != "" {
		return refused("%s: order %d is in force, and without --from it is only followed: say --from, too, for a "+
			"newer order, or leave it out", flags, o.Number)
	}
	said := w.saidSilent()
	more := slices.DeleteFunc(slices.Clone(f.silent), func(id string) bool { return slices.Contains(said, id) })
	if len(more) == 0 {
		printText(out, "", fmt.Sprintf("Order %d is in force, given by %s at %s: %s. A newer order, with --from, "+
			"would take its place.", o.Number, o.By, when(o.Time), orderText(o)))
		return f.follow(cmd.Context(), out, store, w.epoch.Number, stops)
	}
	if w.epoch.Closed != nil || o.Verdict != nil && o.Verdict.Closing {
		return refused("--silent: order %d is being carried out, and waits for nobody any more: leave it out", o.Number)
	}
	risk, err := w.silentRisk(more, o.Restore.Replica)
	if err != nil {
		return err
	}
	question := fmt.Sprintf("Give the order to restore cluster %s again, with that?", w.Inception.Name)
	if err := confirmWord(cmd, risk, question, w.Inception.Name, f.yes); err != nil {
		return err
	}
	again := *o.Restore
	again.Silent = slices.Concat(again.Silent, more)
	return f.order(cmd.Context(), out, store, again, stops)
}

// order writes an order to restore and follows it.
func (f *restoreFlags) order(ctx context.Context, out io.Writer, store *bucket.Store, r record.RestoreOrder,
	stops *vmStops) error {
	o, err := store.CreateOrder(ctx, record.Order{Kind: record.OrderRestore, By: givenBy(), Restore: &r})
	if err != nil {
		return fmt.Errorf("%w\nwhether the order was written is not known: run the command again, it looks first", err)
	}
	fmt.Fprintf(out, "Order %d: %s.\n", o.Number, orderText(o))
	return f.follow(ctx, out, store, r.Ends, stops)
}
