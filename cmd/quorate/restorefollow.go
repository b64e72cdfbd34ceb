package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/quorate/quorate/etcdmember/table"
	"github.com/quorate/quorate/internal/record"
	"github.com/quorate/quorate/internal/record/bucket"
)

// followPeriod is the time between two looks at how far a restore has come.
const followPeriod = 2 * time.Second

// follow shows how far the restore has come until the next epoch is formed, and has VMs stopped that it waits for,
// unless stops is nil.
func (f *restoreFlags) follow(ctx context.Context, out io.Writer, store *bucket.Store, ends uint64,
	stops *vmStops) error {
	if f.noWait {
		printText(out, "", "The agents read the order within 10s. Run the command again to see how far it has come.")
		return nil
	}
	before, told := "", time.Time{}
	for {
		v, err := store.View(ctx)
		text, detail, formed := "", "", false
		if err == nil {
			text, detail, formed = progress(v, ends, time.Now())
		} else {
			text = "The record cannot be read: " + err.Error()
		}
		if text == "" {
			return errNoOrder
		}
		if text != before || detail != "" && time.Since(told) >= detailPeriod {
			printText(out, "", strings.TrimSpace(text+" "+detail))
			before, told = text, time.Now()
		}
		if err == nil && stops != nil {
			stops.look(ctx, out, waitsFor(v, ends, time.Now()), time.Now())
		}
		if formed {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("no longer following: %w; the order stays, and running the command again goes on "+
				"following it", context.Cause(ctx))
		case <-time.After(followPeriod):
		}
	}
}

// detailPeriod is the time between two lines of who is waited for: the ages in it change all the time.
const detailPeriod = 30 * time.Second

// errNoOrder says that what was followed is no longer ordered.
var errNoOrder = errors.New("no order to restore is in force any more: it was withdrawn before anything ended")

// progress says where the end of an epoch and the beginning of the next stand; nothing where no order wants them any
// more. detail is what changes while the text does not.
func progress(v record.View, ends uint64, now time.Time) (text, detail string, formed bool) {
	w, next := split(v, ends, now)
	o, ordered := w.orderInForce()
	switch {
	case next.Outcome != nil:
		return fmt.Sprintf("Epoch %d is formed: etcd cluster %s. The other replicas join it by themselves.",
			next.Number, next.Outcome.Formed.ClusterID), "", true
	case next.Claim != nil:
		return fmt.Sprintf("%s makes the directory of epoch %d.", next.Claim.Seeder.Place, next.Number), "", false
	case !ordered:
		return w.beingWithdrawn(), "", false
	case w.epoch.Closed != nil:
		return fmt.Sprintf("Epoch %d has ended. %s claims the next.", ends, o.Restore.Replica), "", false
	case o.Verdict != nil && o.Verdict.Closing:
		return fmt.Sprintf("Order %d: %s ends the epoch. It cannot be withdrawn any more.", o.Number,
			o.Restore.Replica), "", false
	case o.Accepted == nil:
		return fmt.Sprintf("Order %d: %s looks first whether it can carry it out; nobody stops before that. If this "+
			"stays, its agent does not run or its status says why.", o.Number, o.Restore.Replica), "", false
	}
	if names := w.notStoppedNames(o.Restore.Replica); len(names) > 0 {
		return fmt.Sprintf("Order %d: %s waits until each of these has said that it has stopped, or is proven silent: "+
				"%s.", o.Number, o.Restore.Replica, strings.Join(names, ", ")),
			w.heartbeats(o), false
	}
	return fmt.Sprintf("Order %d: everybody says that they have stopped. %s ends the epoch.", o.Number,
		o.Restore.Replica), "", false
}

// beingWithdrawn says that the order that was followed is being taken back; empty: none is.
func (w wreck) beingWithdrawn() string {
	states := table.OrderStates(w.Orders, w.now)
	for _, o := range w.Orders {
		if s := states[o.Number]; o.Restore != nil && o.Restore.Ends == w.epoch.Number &&
			s.State == table.OrderBeingWithdrawn {
			return fmt.Sprintf("Order %d is being withdrawn by order %d: the agents settle whether it was in time.",
				o.Number, s.By)
		}
	}
	return ""
}

// heartbeats says when each of those that are waited for last wrote a mark, and who knows what is awaited: the lists
// of VMs and disks, which are witnesses too, are not in the record.
func (w wreck) heartbeats(o record.Order) string {
	var texts []string
	for _, i := range w.notStopped(o.Restore.Replica) {
		if !w.isNewest(i) {
			continue
		}
		text := "none in the record"
		if i.Started != nil {
			if m, ok := w.Marks[i.Started.MemberID]; ok && m.Epoch == w.epoch.Number {
				text = age(w.now, cmp.Or(m.Written, m.Beat, m.Time)) + " ago"
			}
		}
		if w.vmStopped(i) {
			text += " (its VM is stopped)"
		}
		texts = append(texts, fmt.Sprintf("%s %s", i.Place, text))
	}
	if len(texts) > 0 {
		texts = []string{"Last heartbeats, by the store's clock: " + strings.Join(texts, ", ") + "."}
	}
	return strings.Join(append(texts, fmt.Sprintf("'quorate status' on %s names the witness that is awaited, and for "+
		"how long.", o.Restore.Replica)), " ")
}

// vmStopped: `quorate restore --stop-vms` has noted that it stopped the instance for an order that ends the epoch.
func (w wreck) vmStopped(i record.Incarnation) bool {
	_, stopped := table.OrdersOf(w.Orders, w.epoch.Number, w.now).VMStopped(i, w.epoch.Number)
	return stopped
}

// waiting is whom an accepted order to restore waits for.
type waiting struct {
	order uint64
	// instances may still serve; stopped are the ids of those of which the record has that they were stopped for a
	// restore of the epoch.
	instances []record.Incarnation
	stopped   []string
}

// waitsFor are the instances for whose silence an accepted order to restore waits; none before it is accepted and
// once the epoch is being ended.
func waitsFor(v record.View, ends uint64, now time.Time) (out waiting) {
	w, next := split(v, ends, now)
	o, ordered := w.orderInForce()
	if !ordered || o.Accepted == nil || o.Verdict != nil || w.epoch.Closed != nil || next.Number != 0 {
		return out
	}
	out = waiting{order: o.Number, instances: w.notStopped(o.Restore.Replica)}
	for _, i := range out.instances {
		if w.vmStopped(i) {
			out.stopped = append(out.stopped, i.InstanceID)
		}
	}
	return out
}

// split is the record as the end of an epoch is followed in it: that epoch, and the formed or else the claimed one
// after it.
func split(v record.View, ends uint64, now time.Time) (w wreck, next record.Epoch) {
	w = wreck{View: v, now: now}
	for _, e := range v.Epochs {
		formed := e.Formed() != nil
		switch {
		case e.Number == ends:
			w.epoch = e
		case e.Number > ends && next.Outcome == nil && (formed || e.Outcome == nil && e.Claim != nil):
			next = e
		}
	}
	return w, next
}
