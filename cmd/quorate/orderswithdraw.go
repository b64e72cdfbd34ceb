package main

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/quorate/quorate/etcdmember"
	"github.com/quorate/quorate/internal/record"
)

func newOrdersWithdraw() *cobra.Command {
	var f orderFlags
	cmd := &cobra.Command{Use: "withdraw N", Short: "Take an order back: it counts as never given",
		Long: `Take an order back, by its number: it counts as never given. A replica that left by it joins again by itself. What else was done by
an order stays done: members that a restore has stopped never start again. A withdrawal is an order too, and can be withdrawn.`,
		Args: exactly("N"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return give(cmd, &f, func(b book) (draft, error) { return checkWithdraw(b, args[0]) })
		}}
	f.add(cmd)
	cmd.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error {
		if text, ok := negativeNumber(err); ok {
			return refused("order %q: there is no such order; 'quorate orders' lists those that there are", text)
		}
		return flagFault(cmd, err)
	})
	return cmd
}

func checkWithdraw(b book, text string) (draft, error) {
	if len(b.Orders) == 0 {
		return draft{}, refused("order %q: no order was ever given", text)
	}
	n, err := strconv.ParseUint(text, 10, 64)
	i := slices.IndexFunc(b.Orders, func(o record.Order) bool { return o.Number == n })
	if err != nil || i < 0 {
		return draft{}, refused("order %q: there is no such order; 'quorate orders' lists those up to %d", text, b.Orders[len(b.Orders)-1].Number)
	}
	o := b.Orders[i]
	switch s := b.states[n]; {
	case s.State == etcdmember.OrderWithdrawn:
		return draft{}, refused("order %d (%s) was withdrawn by order %d already", n, orderText(o), s.By)
	case s.State == etcdmember.OrderDone && o.Kind != record.OrderLeave:
		return draft{}, refused("order %d (%s) is done: what was done by it stays done, so it cannot be withdrawn", n, orderText(o))
	}
	d := draft{order: record.Order{Kind: record.OrderWithdraw, Withdraws: n}, means: "From then on it counts as never given.", back: withdrawIt}
	switch o.Kind {
	case record.OrderRestore:
		left, enough := b.leftBy(o)
		if d.means += " " + left; !enough {
			d.redo = "quorate restore --from SOURCE"
		}
	case record.OrderLeave:
		d.means = fmt.Sprintf("Then %s joins again by itself.", o.Place)
	case record.OrderWithdraw: // what it withdrew is in force again
		if !b.nobodyStays() && b.with(b.next(d.order)).nobodyStays() {
			return draft{}, refused("order %d (%s): without it every replica that the record knows would be ordered to leave, so add one first", n, orderText(o))
		}
	}
	return d, nil
}

// leftBy says what is left of the epoch that a restore was to end, where the order is taken back, and whether that is enough to go on without another.
func (b book) leftBy(o record.Order) (left string, enough bool) {
	w := wreck{View: b.View, now: b.now, epoch: newestFormed(b.View)}
	if o.Restore == nil || o.Restore.Ends != w.epoch.Number {
		return "", true
	}
	if w.epoch.Closed != nil {
		return fmt.Sprintf("But epoch %d has ended, and nothing brings it back: no etcd starts before there is another order.", w.epoch.Number), false
	}
	var stopped []string
	all := 0
	for _, r := range w.remains() {
		if _, left := b.inForce(leaves(r.place)); left {
			continue
		}
		all++
		if r.stopped != nil {
			stopped = append(stopped, r.place.String())
		}
	}
	switch {
	case len(stopped) == 0:
		return "No member has stopped for it.", true
	case all-len(stopped) > all/2:
		return fmt.Sprintf("These have stopped, and join again by themselves as long as the others are a quorum: %s.", strings.Join(stopped, ", ")), true
	}
	return fmt.Sprintf("But %d of %d members have stopped (%s), and one that has stopped never starts again: the others are no quorum, and without an order "+
		"nothing can be written for ever.", len(stopped), all, strings.Join(stopped, ", ")), false
}
