package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/quorate/quorate/internal/record"
)

// followPeriod is the time between two looks at how far a restore has come.
const followPeriod = 2 * time.Second

// follow shows how far the restore has come until the next epoch is formed, and has VMs stopped that it waits for, unless stops is nil.
func (f *restoreFlags) follow(ctx context.Context, out io.Writer, store *record.Store, ends uint64, stops *vmStops) error {
	if f.noWait {
		printText(out, "", "The agents read the order within 10s. Run the command again to see how far it has come.")
		return nil
	}
	before := ""
	for {
		v, err := store.View(ctx)
		text, formed := "", false
		if err == nil {
			text, formed = progress(v, ends, time.Now())
		} else {
			text = "The record cannot be read: " + err.Error()
		}
		if text == "" {
			return errNoOrder
		}
		if text != before {
			printText(out, "", text)
			before = text
		}
		if err == nil && stops != nil {
			stops.look(ctx, out, waitsFor(v, ends, time.Now()), time.Now())
		}
		if formed {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("no longer following: %w; the order stays, and running the command again goes on following it", context.Cause(ctx))
		case <-time.After(followPeriod):
		}
	}
}

// errNoOrder says that what was followed is no longer ordered.
var errNoOrder = errors.New("no order to restore is in force any more: it was withdrawn before anything ended")

// progress says where the end of an epoch and the beginning of the next stand; nothing where no order wants them any more.
func progress(v record.View, ends uint64, now time.Time) (text string, formed bool) {
	w, next := split(v, ends, now)
	o, ordered := w.orderInForce()
	switch {
	case next.Outcome != nil:
		return fmt.Sprintf("Epoch %d is formed: etcd cluster %s. The other replicas join it by themselves.", next.Number, next.Outcome.Formed.ClusterID), true
	case next.Claim != nil:
		return fmt.Sprintf("%s makes the directory of epoch %d.", next.Claim.Seeder.Place, next.Number), false
	case !ordered:
		return "", false
	case w.epoch.Closed != nil:
		return fmt.Sprintf("Epoch %d has ended. %s claims the next.", ends, o.Restore.Replica), false
	case o.Accepted == nil:
		return fmt.Sprintf("Order %d: %s looks first whether it can carry it out; nobody stops before that. If this stays, its agent does not run or its status says why.", o.Number, o.Restore.Replica), false
	}
	if loud := w.loudNames(o.Restore.Replica); len(loud) > 0 {
		return fmt.Sprintf("Order %d: %s waits until these have stopped, or their VMs are gone or TERMINATED: %s.", o.Number, o.Restore.Replica, strings.Join(loud, ", ")), false
	}
	return fmt.Sprintf("Order %d: everybody says that they have stopped. %s ends the epoch.", o.Number, o.Restore.Replica), false
}

// waitsFor are the instances for whose silence an accepted order to restore waits; none before it is accepted and after the epoch's end.
func waitsFor(v record.View, ends uint64, now time.Time) []record.Incarnation {
	w, next := split(v, ends, now)
	if o, ordered := w.orderInForce(); ordered && o.Accepted != nil && w.epoch.Closed == nil && next.Number == 0 {
		return w.loud(o.Restore.Replica)
	}
	return nil
}

// split is the record as the end of an epoch is followed in it: that epoch, and the formed or else the claimed one after it.
func split(v record.View, ends uint64, now time.Time) (w wreck, next record.Epoch) {
	w = wreck{View: v, now: now}
	for _, e := range v.Epochs {
		formed := e.Outcome != nil && e.Outcome.Formed != nil
		switch {
		case e.Number == ends:
			w.epoch = e
		case e.Number > ends && next.Outcome == nil && (formed || e.Outcome == nil && e.Claim != nil):
			next = e
		}
	}
	return w, next
}
