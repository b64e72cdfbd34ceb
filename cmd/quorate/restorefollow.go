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

// follow shows how far the restore has come until the next epoch is formed.
func (f *restoreFlags) follow(ctx context.Context, out io.Writer, store *record.Store, ends uint64) error {
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
	w := wreck{View: v, now: now}
	var claim *record.Epoch
	for i, e := range v.Epochs {
		switch {
		case e.Number == ends:
			w.epoch = e
		case e.Number > ends && e.Outcome != nil && e.Outcome.Formed != nil:
			return fmt.Sprintf("Epoch %d is formed: etcd cluster %s. The other replicas join it by themselves.", e.Number, e.Outcome.Formed.ClusterID), true
		case e.Number > ends && e.Outcome == nil:
			claim = &v.Epochs[i]
		}
	}
	o, ordered := w.orderInForce()
	switch {
	case claim != nil && claim.Claim != nil:
		return fmt.Sprintf("%s makes the directory of epoch %d.", claim.Claim.Seeder.Place, claim.Number), false
	case !ordered:
		return "", false
	case w.epoch.Closed != nil:
		return fmt.Sprintf("Epoch %d has ended. %s claims the next.", ends, o.Restore.Replica), false
	}
	if o.Accepted == nil && w.epoch.Closed == nil {
		return fmt.Sprintf("Order %d: %s looks first whether it can carry it out; nobody stops before that. If this stays, its agent does not run or its status says why.", o.Number, o.Restore.Replica), false
	}
	if loud := w.loud(o.Restore.Replica); len(loud) > 0 {
		return fmt.Sprintf("Order %d: %s waits until these have stopped, or their VMs are gone or TERMINATED: %s.", o.Number, o.Restore.Replica, strings.Join(loud, ", ")), false
	}
	return fmt.Sprintf("Order %d: everybody says that they have stopped. %s ends the epoch.", o.Number, o.Restore.Replica), false
}
