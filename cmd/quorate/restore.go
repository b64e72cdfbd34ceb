package main

import (
	"context"
	"fmt"
	"io"
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

// restoreFlags are what an operator says of a restore.
type restoreFlags struct {
	cluster.Flags
	order.Wish
	yes, noWait, stopVMs bool
}

func newRestore() *cobra.Command {
	var f restoreFlags
	cmd := &cobra.Command{Use: "restore", Short: "Begin a new history from a surviving disk or a snapshot, after " +
		"quorum is lost for good", Args: command.NoArguments,
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
				if f.Emptied(flag) {
					return order.Refuse("--%s is empty: name what is meant, or leave it out", flag)
				}
			}
			return f.run(cmd)
		}}
	f.Add(cmd)
	cmd.Flags().StringVar(&f.From, "from", "", "snapshot, snapshot=NAME or directory=REPLICA; the "+
		"best there is where it is not given")
	cmd.Flags().StringVar(&f.On, "on", "", "the replica that restores a snapshot; it may be one that was recreated "+
		"with an empty disk")
	cmd.Flags().BoolVar(&f.Exact, "exact", false, "use this very directory, also where another replica stops with a "+
		"longer log")
	cmd.Flags().BoolVar(&f.EndsLiving, "end-living-cluster", false,
		"end the epoch although its members have served within the last minute")
	cmd.Flags().BoolVar(&f.stopVMs, "stop-vms", false, "stop, through the Compute API, the VMs that keep the restore "+
		"waiting; needs the permission compute.instances.stop")
	cmd.Flags().StringArrayVar(&f.Silent, "silent", nil, "the id of an instance that runs nothing any more, on your "+
		"responsibility; may be given more than once. "+
		"If it still runs, what it acknowledges is lost")
	cmd.Flags().BoolVar(&f.noWait, "no-wait", false, "fail if members served within the last minute, instead of waiting; "+
		"else return once the order is written")
	terminal.AddYes(cmd, &f.yes)
	command.CompleteFlag(cmd, "from", f.Sources)
	command.CompleteFlag(cmd, "on", f.ReplicaNames)
	return cmd
}

func (f *restoreFlags) run(cmd *cobra.Command) error {
	ctx, out := cmd.Context(), cmd.OutOrStdout()
	if err := f.check(); err != nil {
		return err
	}
	store, err := f.Open()
	if err != nil {
		return err
	}
	r, err := readRestore(ctx, store, time.Now())
	if err != nil {
		return err
	}
	stops, err := f.stops(ctx, store, r)
	if err != nil {
		return err
	}
	if r, err = f.untilSilent(ctx, out, store, r); err != nil {
		return err
	}
	if o, ok := r.ToFollow(); ok && f.From == "" {
		return f.goOn(cmd, store, r, o, stops)
	}
	c, err := r.Choose(f.Wish)
	if err != nil {
		return err
	}
	if err := verifySource(ctx, out, store, c.Order.From); err != nil {
		return err
	}
	showChoice(out, r, c, f.stopVMs)
	question := fmt.Sprintf("End epoch %d of cluster %s and begin another?", r.Ends.Number, r.Record.Inception.Name)
	return f.order(cmd, store, r, c, question, stops)
}

// check refuses what cannot be meant, whatever the record holds.
func (f *restoreFlags) check() error {
	if err := f.Wish.Check(); err != nil {
		return err
	}
	if f.stopVMs && f.noWait {
		return order.Refuse("--stop-vms with --no-wait: VMs are stopped only once the order is accepted, which " +
			"has to be waited for")
	}
	return nil
}

// goOn follows the order that is in force. With --silent it first writes a newer one of the same source, which says
// so.
func (f *restoreFlags) goOn(cmd *cobra.Command, store *bucket.Store, r order.Restore, o record.Order,
	stops *vmStops) error {
	c, again, err := r.GiveAgain(o, f.Wish)
	switch {
	case err != nil:
		return err
	case again:
		question := fmt.Sprintf("Give the order to restore cluster %s again, with that?", r.Record.Inception.Name)
		return f.order(cmd, store, r, c, question, stops)
	}
	terminal.PrintText(cmd.OutOrStdout(), "",
		fmt.Sprintf("Order %d is in force, given by %s at %s: %s. A newer order, with "+
			"--from, would take its place.", o.Number, o.By, terminal.When(o.Time), order.Text(o)))
	return f.follow(cmd.Context(), cmd.OutOrStdout(), store, r.Ends.Number, stops)
}

// order asks, writes an order to restore and follows it.
func (f *restoreFlags) order(cmd *cobra.Command, store *bucket.Store, r order.Restore, c order.Choice, question string,
	stops *vmStops) error {
	ctx, out := cmd.Context(), cmd.OutOrStdout()
	if err := terminal.ConfirmWord(cmd, c.Risk, question, r.Record.Inception.Name, f.yes); err != nil {
		return err
	}
	o, err := store.CreateOrder(ctx, record.Order{Kind: record.OrderRestore, By: cluster.GivenBy(), Restore: &c.Order})
	if err != nil {
		return fmt.Errorf("%w\nwhether the order was written is not known: run the command again, it checks first", err)
	}
	fmt.Fprintf(out, "Order %d: %s.\n", o.Number, order.Text(o))
	return f.follow(ctx, out, store, c.Order.Ends, stops)
}

// readRestore reads the record and refuses one that is lost or in which nothing was ever formed.
func readRestore(ctx context.Context, store *bucket.Store, now time.Time) (order.Restore, error) {
	v, err := store.View(ctx)
	if err != nil {
		return order.Restore{}, err
	}
	r := order.RestoreOf(v, now)
	switch lost := v.Damages(); {
	case v.LostInception():
		return r, fault.Record("%s: %s; nothing was written", store, recordtext.InceptionLost)
	case v.Inception == nil:
		return r, fault.Record("%s: no cluster has begun here, or its record is lost; nothing was written", store)
	case len(lost) > 0 && lost[0].Stops:
		return r, fault.Record("%s: %s: bring that back first (quorate record rebuild); nothing was written", store,
			lost[0])
	case r.Ends.Number == 0:
		return r, fault.Record("%s: no epoch was ever formed, so there is nothing to restore; nothing was written",
			store)
	}
	r.Snapshots, err = store.Snapshots(ctx)
	return r, err
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
