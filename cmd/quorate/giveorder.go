package main

import (
	"context"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/quorate/quorate/cmd/quorate/cluster"
	"github.com/quorate/quorate/cmd/quorate/command"
	"github.com/quorate/quorate/cmd/quorate/fault"
	"github.com/quorate/quorate/cmd/quorate/recordtext"
	"github.com/quorate/quorate/cmd/quorate/terminal"
	"github.com/quorate/quorate/etcdmember/order"
	"github.com/quorate/quorate/internal/record"
	"github.com/quorate/quorate/internal/record/bucket"
)

// orderFlags are what every command that gives an order takes.
type orderFlags struct {
	cluster.Flags
	output string
	// yes answers the question of an order that is asked for.
	yes bool
}

func (f *orderFlags) add(cmd *cobra.Command) {
	f.Flags.Add(cmd)
	command.AddOutput(cmd, &f.output)
}

// give reads the record, has the order checked against it, and writes it, after asking where the draft wants
// that. Where the check fails nothing is written.
func give(cmd *cobra.Command, f *orderFlags, check func(order.Log) (order.Draft, error)) error {
	store, err := f.Open()
	if err != nil {
		return err
	}
	v, err := store.View(cmd.Context())
	if err != nil {
		return err
	}
	switch {
	case v.LostInception():
		return fault.Record("%s: %s; nothing was written", store, recordtext.InceptionLost)
	case v.Inception == nil:
		return fault.Record("%s: no cluster has begun here, so there is nobody to give an order to; nothing was written",
			store)
	}
	log := order.NewLog(v, time.Now())
	d, err := check(log)
	if err != nil {
		return err
	}
	out := cmd.OutOrStdout()
	if d.Already != "" {
		return terminal.PrintAs(out, f.output, map[string]any{"written": false, "why": d.Already},
			terminal.TextOf("%s Nothing was written.\n", d.Already))
	}
	if d.Confirm != "" {
		if err := terminal.Confirm(cmd, d.Means, d.Confirm, f.yes); err != nil {
			return err
		}
	}
	d.Order.By = cluster.GivenBy()
	settled := log
	if d.Settles != 0 {
		if settled, err = settle(cmd.Context(), store, log, d.Settles); err != nil {
			return err
		}
	}
	if d.Completes != "" {
		return terminal.PrintAs(out, f.output, map[string]any{"written": true, "why": d.Completes},
			func(w io.Writer) { terminal.PrintText(w, "", d.Completes) })
	}
	written, err := store.CreateOrder(cmd.Context(), d.Order)
	switch {
	case err != nil && d.Settles != 0:
		return fmt.Errorf("%w\norder %d is withdrawn by its verdict all the same; run the command again, so that the "+
			"orders show who withdrew it", err, d.Settles)
	case err != nil:
		return fmt.Errorf("%w\nwhether the order was written is not known: check with '%s' before giving it again", err,
			f.Again("quorate orders"))
	}
	after := settled.With(written)
	if err := terminal.PrintAs(out, f.output, recordtext.Listed(written, after),
		func(w io.Writer) { sayGiven(w, f, d, written, log, after) }); err != nil {
		return fmt.Errorf("order %d was written, and only what was to be said of it is lost ('%s' shows it): %w",
			written.Number, f.Again("quorate orders"), err)
	}
	return nil
}

// settle writes that an order to restore is withdrawn, and reads back which of the two verdicts it has. The log that it
// returns has it.
func settle(ctx context.Context, store *bucket.Store, l order.Log, number uint64) (order.Log, error) {
	v, _, err := store.SettleOrder(ctx, number, record.Verdict{Withdrawn: true, By: cluster.GivenBy()})
	switch {
	case err != nil:
		return l, fmt.Errorf("%w\nwhether order %d was withdrawn is not known: run the command again", err, number)
	case v.Closing:
		return l, order.TooLate(number, v.By, v.Time)
	}
	return l.WithVerdict(number, v), nil
}

// followedWithin is how soon the agents follow: each lists the record that often.
const followedWithin = 10 * time.Second

// sayGiven says what was ordered, what follows, and how it is taken back.
func sayGiven(w io.Writer, f *orderFlags, d order.Draft, o record.Order, before, after order.Log) {
	fmt.Fprintf(w, "Order %d, given by %s: %s.\n", o.Number, o.By, order.Text(o))
	means := d.Means
	if d.Confirm != "" {
		means = "" // it was printed before the order was written
	}
	terminal.PrintText(w, "", fmt.Sprintf("The agents read it within %s. %s", followedWithin, means))
	for _, other := range before.Orders {
		if now := after.State(other.Number); now != before.State(other.Number) {
			fmt.Fprintf(w, "Order %d (%s) is %s now.\n", other.Number, order.Text(other), order.StateText(now))
		}
	}
	if d.Back != "" { // a command is in one line, which can be copied
		fmt.Fprintln(w, "To take it back: "+f.Again(
			strings.ReplaceAll(d.Back, "%d", strconv.FormatUint(o.Number, 10)))+d.Then)
	}
}
