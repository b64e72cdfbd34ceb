package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/user"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/quorate/quorate/etcdmember/table"
	"github.com/quorate/quorate/internal/record"
	"github.com/quorate/quorate/internal/record/bucket"
)

// orderFlags are what every command that gives an order takes.
type orderFlags struct {
	clusterFlags
	output string
}

func (f *orderFlags) add(cmd *cobra.Command) {
	f.clusterFlags.add(cmd)
	addOutput(cmd, &f.output)
}

// book is the record as an order is checked against it.
type book struct {
	record.View
	states map[uint64]table.OrderStatus
	now    time.Time
}

func newBook(v record.View, now time.Time) book {
	return book{View: v, states: table.OrderStates(v.Orders, now), now: now}
}

// with is the book once another order is written.
func (b book) with(o record.Order) book {
	b.Orders = append(slices.Clone(b.Orders), o)
	b.states = table.OrderStates(b.Orders, b.now)
	return b
}

// next is a draft with the number that it would have.
func (b book) next(o record.Order) record.Order {
	o.Number = 1
	if n := len(b.Orders); n > 0 {
		o.Number = b.Orders[n-1].Number + 1
	}
	return o
}

// nobodyStays: every replica was ordered to leave.
func (b book) nobodyStays() bool {
	for p := range b.Replicas {
		if _, left := b.inForce(leaves(p)); !left {
			return false
		}
	}
	return true
}

// inForce finds the order that is in force, or done, and of which is says that it is wanted.
func (b book) inForce(is func(record.Order) bool) (o record.Order, found bool) {
	for _, o := range slices.Backward(b.Orders) {
		if s := b.states[o.Number].State; is(o) && (s == table.OrderInForce || s == table.OrderDone) {
			return o, true
		}
	}
	return o, false
}

func kindIs(k record.OrderKind) func(record.Order) bool {
	return func(o record.Order) bool { return o.Kind == k }
}

// draft is an order that has been checked and is about to be written.
type draft struct {
	order record.Order
	// already says why nothing has to be written, as a sentence; empty: it must be.
	already string
	// means says what the agents do about it, back is the command that takes it back, in which %d is the order's
	// number, and then what follows. Without back nothing takes it back.
	means, back, then string
	// settles is the order to restore whose verdict is written first, as withdrawn; 0: there is none. completes, as a
	// sentence, says that nothing but that verdict was missing.
	settles   uint64
	completes string
	// confirm is asked after means, unless it is empty.
	confirm string
	yes     bool
}

// give reads the record, has the order checked against it, and writes it. Where the check fails nothing is written.
func give(cmd *cobra.Command, f *orderFlags, check func(book) (draft, error)) error {
	store, err := f.open()
	if err != nil {
		return err
	}
	v, err := store.View(cmd.Context())
	if err != nil {
		return err
	}
	switch {
	case v.LostInception():
		return recordError("%s: %s; nothing was written", store, inceptionLost)
	case v.Inception == nil:
		return recordError("%s: no cluster has begun here, so there is nobody to give an order to; nothing was written",
			store)
	}
	b := newBook(v, time.Now())
	d, err := check(b)
	if err != nil {
		return err
	}
	out := cmd.OutOrStdout()
	if d.already != "" {
		return printAs(out, f.output, map[string]any{"written": false, "why": d.already},
			textOf("%s Nothing was written.\n", d.already))
	}
	if d.confirm != "" {
		if err := confirm(cmd, d.means, d.confirm, d.yes); err != nil {
			return err
		}
	}
	d.order.By = givenBy()
	settled := b
	if d.settles != 0 {
		if settled, err = b.settle(cmd.Context(), store, d); err != nil {
			return err
		}
	}
	if d.completes != "" {
		return printAs(out, f.output, map[string]any{"written": true, "why": d.completes},
			func(w io.Writer) { printText(w, "", d.completes) })
	}
	written, err := store.CreateOrder(cmd.Context(), d.order)
	switch {
	case err != nil && d.settles != 0:
		return fmt.Errorf("%w\norder %d is withdrawn by its verdict all the same; run the command again, so that the "+
			"orders show who withdrew it", err, d.settles)
	case err != nil:
		return fmt.Errorf("%w\nwhether the order was written is not known: look with '%s' before giving it again", err,
			f.again("quorate orders"))
	}
	after := settled.with(written)
	if err := printAs(out, f.output, listed(written, after),
		func(w io.Writer) { sayGiven(w, f, d, written, b, after) }); err != nil {
		return fmt.Errorf("order %d was written, and only what was to be said of it is lost ('%s' shows it): %w",
			written.Number, f.again("quorate orders"), err)
	}
	return nil
}

// settle writes that an order to restore is withdrawn, and reads back which of the two verdicts it has. The book that
// it returns has it.
func (b book) settle(ctx context.Context, store *bucket.Store, d draft) (book, error) {
	v, _, err := store.SettleOrder(ctx, d.settles, record.Verdict{Withdrawn: true, By: givenBy()})
	switch {
	case err != nil:
		return b, fmt.Errorf("%w\nwhether order %d was withdrawn is not known: run the command again", err, d.settles)
	case v.Closing:
		return b, tooLate(d.settles, v.By, v.Time)
	}
	b.Orders = slices.Clone(b.Orders)
	for n := range b.Orders {
		if b.Orders[n].Number == d.settles {
			b.Orders[n].Verdict = &v
		}
	}
	return b, nil
}

// followedWithin is how soon the agents follow: each lists the record that often.
const followedWithin = 10 * time.Second

// sayGiven says what was ordered, what follows, and how it is taken back.
func sayGiven(w io.Writer, f *orderFlags, d draft, o record.Order, before, after book) {
	fmt.Fprintf(w, "Order %d, given by %s: %s.\n", o.Number, o.By, orderText(o))
	means := d.means
	if d.confirm != "" {
		means = "" // it was told before the order was written
	}
	printText(w, "", fmt.Sprintf("The agents read it within %s. %s", followedWithin, means))
	for _, other := range before.Orders {
		if now := after.states[other.Number]; now != before.states[other.Number] {
			fmt.Fprintf(w, "Order %d (%s) is %s now.\n", other.Number, orderText(other), stateText(now))
		}
	}
	if d.back != "" { // a command is in one line, which can be copied
		fmt.Fprintln(w, "To take it back: "+f.again(
			strings.ReplaceAll(d.back, "%d", strconv.FormatUint(o.Number, 10)))+d.then)
	}
}

// withdrawIt is how most orders are taken back.
const withdrawIt = "quorate orders withdraw %d"

// givenBy names the person in front of this machine, for the audit: the operating system's word, not a proof.
func givenBy() string {
	who, where := "unknown", "unknown"
	if u, err := user.Current(); err == nil {
		who = u.Username
	}
	if h, err := os.Hostname(); err == nil {
		where = h
	}
	return who + "@" + where
}

// refused is an order that does not fit what the record holds: a mistake on the command line, of which nothing was
// written.
func refused(format string, args ...any) error {
	return &usageError{fmt.Errorf("%w; nothing was written", fmt.Errorf(format, args...))}
}
