package main

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/quorate/quorate/internal/record"
	"github.com/quorate/quorate/internal/record/bucket"
)

// restoreFlags are what an operator says of a restore.
type restoreFlags struct {
	clusterFlags
	from, on                                string
	exact, yes, noWait, endsLiving, stopVMs bool
	// silent are the instances that count as silent on the operator's word.
	silent []string
}

func newRestore() *cobra.Command {
	var f restoreFlags
	cmd := &cobra.Command{Use: "restore", Short: "Begin a new history from a surviving disk or a snapshot, after " +
		"quorum is lost for good", Args: noArguments,
		Long: `Begin a new history from a surviving disk or a snapshot, after quorum is lost for good.

It waits until no member has gone on for a minute. It shows what is there to restore from, what will be lost, and who
could still serve the old history; it asks; and it writes the order that the agents carry out: the old epoch ends, the
replica that the order names forms the next one, and the others join it empty. Nothing is deleted: each replica archives
its directory. It can be run again at any time: where an order is in force it goes on showing how far that has come.

The epoch ends once every other instance has said that it has stopped, or is proven silent. Those that cannot be
reached are stopped with --stop-vms; of one that the Compute API cannot stop either, --silent says that it runs nothing
any more.
'quorate orders withdraw' takes the order back until the epoch begins to end.

Keep every disk until it is done. A disk that survived holds more than any snapshot.`,
		Example: `  quorate restore --config cluster.yaml
  quorate restore --config cluster.yaml --from directory=us-central1-a.master-a
  quorate restore --config cluster.yaml --from snapshot --on master-a
  quorate restore --config cluster.yaml --stop-vms
  quorate restore --config cluster.yaml --silent 4711`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			for _, flag := range []string{"from", "on"} {
				if f.emptied(flag) {
					return refused("--%s is empty: name what is meant, or leave it out", flag)
				}
			}
			return f.run(cmd)
		}}
	f.add(cmd)
	cmd.Flags().StringVar(&f.from, "from", "", "snapshot, snapshot=NAME or directory=REPLICA; the "+
		"best there is where it is not given")
	cmd.Flags().StringVar(&f.on, "on", "", "the replica that restores a snapshot; it may be one that is made again "+
		"with an empty disk")
	cmd.Flags().BoolVar(&f.exact, "exact", false, "use this very directory, also where another replica stops with a "+
		"longer log")
	cmd.Flags().BoolVar(&f.endsLiving, "end-living-cluster", false,
		"end the epoch although its members have served within the last minute")
	cmd.Flags().BoolVar(&f.stopVMs, "stop-vms", false, "stop, through the Compute API, the VMs that keep the restore "+
		"waiting; needs the permission compute.instances.stop")
	cmd.Flags().StringArrayVar(&f.silent, "silent", nil, "the id of an instance that runs nothing any more, on your "+
		"word; may be given more than once. "+
		"If it still runs, what it acknowledges is lost")
	cmd.Flags().BoolVar(&f.noWait, "no-wait", false, "do not wait for a cluster that served within the last minute, "+
		"and return once the order is written")
	addYes(cmd, &f.yes)
	return cmd
}

func (f *restoreFlags) run(cmd *cobra.Command) error {
	ctx, out := cmd.Context(), cmd.OutOrStdout()
	if err := f.check(); err != nil {
		return err
	}
	store, err := f.open()
	if err != nil {
		return err
	}
	w, err := readWreck(ctx, store, time.Now())
	if err != nil {
		return err
	}
	stops, err := f.stops(ctx, store, w)
	if err != nil {
		return err
	}
	if w, err = f.untilSilent(ctx, out, store, w); err != nil {
		return err
	}
	if o, ok := w.orderInForce(); ok && f.from == "" {
		return f.goOn(cmd, store, w, o, stops)
	}
	c, err := w.choose(f)
	if err != nil {
		return err
	}
	risk, err := w.silentRisk(f.silent, c.order.Replica)
	if err != nil {
		return err
	}
	c.order.Silent = f.silent
	if err := verifySource(ctx, out, store, c.order.From); err != nil {
		return err
	}
	w.show(out, c, f.stopVMs)
	question := fmt.Sprintf("End epoch %d of cluster %s and begin another?", w.epoch.Number, w.Inception.Name)
	if err := confirmWord(cmd, risk, question, w.Inception.Name, f.yes); err != nil {
		return err
	}
	return f.order(ctx, out, store, c.order, stops)
}

// ofANewOrder names the flags that say something of an order that is to be written.
func (f *restoreFlags) ofANewOrder() string {
	var given []string
	if f.on != "" {
		given = append(given, "--on")
	}
	if f.exact {
		given = append(given, "--exact")
	}
	if f.endsLiving {
		given = append(given, "--end-living-cluster")
	}
	return strings.Join(given, ", ")
}

// check refuses what cannot be meant, whatever the record holds.
func (f *restoreFlags) check() error {
	kind, name, named := strings.Cut(f.from, "=")
	switch {
	case !slices.Contains([]string{"", "snapshot", "directory"}, kind) || named && name == "":
		return refused("--from %q: want snapshot, snapshot=NAME or directory=REPLICA", f.from)
	case kind == "directory" && !named:
		return refused("--from directory: which replica's? directory=REPLICA")
	case kind == "directory" && f.on != "":
		return refused("--on: a directory is restored by the replica whose it is")
	case kind == "snapshot" && f.exact:
		return refused("--exact: it is about the directories of the others; a snapshot is used as it is")
	case f.stopVMs && f.noWait:
		return refused("--stop-vms with --no-wait: VMs are stopped only once the order is accepted, which has to be " +
			"waited for")
	}
	return nil
}

// wreck is a record as a restore looks at it: its newest formed epoch, and what is left of it.
type wreck struct {
	record.View
	epoch     record.Epoch
	snapshots []record.Snapshot
	now       time.Time
}

// readWreck reads the record and refuses one that is lost or in which nothing was ever formed.
func readWreck(ctx context.Context, store *bucket.Store, now time.Time) (wreck, error) {
	v, err := store.View(ctx)
	if err != nil {
		return wreck{}, err
	}
	switch {
	case v.LostInception():
		return wreck{}, recordError("%s: %s; nothing was written", store, inceptionLost)
	case v.Inception == nil:
		return wreck{}, recordError("%s: no cluster has begun here, or its record is lost; nothing was written", store)
	}
	if lost := v.Damages(); len(lost) > 0 && lost[0].Stops {
		return wreck{}, recordError("%s: %s: bring that back first (quorate record rebuild); nothing was written",
			store, lost[0])
	}
	w := wreckOf(v, now)
	if w.epoch.Number == 0 {
		return wreck{}, recordError("%s: no epoch was ever formed, so there is nothing to restore; nothing was written",
			store)
	}
	w.snapshots, err = store.Snapshots(ctx)
	return w, err
}

// wreckOf is a record without its snapshots. The epoch is the zero value where none was ever formed.
func wreckOf(v record.View, now time.Time) wreck {
	w := wreck{View: v, now: now}
	if e := v.NewestFormed(); e != nil {
		w.epoch = *e
	}
	return w
}

// orderInForce is the newest order to restore that ends the newest formed epoch.
func (w wreck) orderInForce() (record.Order, bool) {
	o, ok := newBook(w.View, w.now).inForce(kindIs(record.OrderRestore))
	return o, ok && o.Done == nil && o.Restore != nil && o.Restore.Ends == w.epoch.Number
}

// furthestMark is how far the epoch's quorum is known to have come.
func (w wreck) furthestMark() (furthest record.Mark, ok bool) {
	for _, m := range w.Marks {
		if m.Epoch == w.epoch.Number && (!ok || m.Applied > furthest.Applied) {
			furthest, ok = m, true
		}
	}
	return furthest, ok
}

// verifySource reads a snapshot whole, and checks what it holds against what was saved. A directory is checked by its
// own replica, before anything ends.
func verifySource(ctx context.Context, out io.Writer, store *bucket.Store, s record.Source) error {
	if s.Kind != record.SourceSnapshot {
		return nil
	}
	if _, err := store.ReadSnapshot(ctx, s.Snapshot, io.Discard); err != nil {
		return fmt.Errorf("verify snapshot %s: %w; nothing was written", s.Snapshot, err)
	}
	fmt.Fprintf(out, "Snapshot %s was read whole, and its hash is right.\n", s.Snapshot)
	return nil
}
