package main

import (
	"context"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"

	"github.com/quorate/quorate/cmd/quorate/cluster"
	"github.com/quorate/quorate/cmd/quorate/command"
	"github.com/quorate/quorate/cmd/quorate/restoring"
	"github.com/quorate/quorate/cmd/quorate/terminal"
	"github.com/quorate/quorate/etcdmember/order"
	"github.com/quorate/quorate/internal/gce"
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
	r, err := restoring.Read(ctx, store, time.Now())
	if err != nil {
		return err
	}
	stops, err := f.stops(ctx, store, r)
	if err != nil {
		return err
	}
	if r, err = restoring.UntilSilent(ctx, out, store, r, f.Wish, f.noWait); err != nil {
		return err
	}
	if o, ok := r.ToFollow(); ok && f.From == "" {
		return f.goOn(cmd, store, r, o, stops)
	}
	c, err := r.Choose(f.Wish)
	if err != nil {
		return err
	}
	if err := restoring.VerifySource(ctx, out, store, c.Order.From); err != nil {
		return err
	}
	restoring.ShowChoice(out, r, c, f.stopVMs)
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
	stops *restoring.Stops) error {
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
	stops *restoring.Stops) error {
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

// follow shows how far the restore has come, unless nobody waits for that.
func (f *restoreFlags) follow(ctx context.Context, out io.Writer, store *bucket.Store, ends uint64,
	stops *restoring.Stops) error {
	if f.noWait {
		terminal.PrintText(out, "",
			"The agents read the order within 10s. Run the command again to see how far it has come.")
		return nil
	}
	return restoring.Follow(ctx, out, store, ends, stops)
}

// stops opens the Compute API where the flag asks for it, and checks whether it answers, so that nothing is ordered in
// vain; nil: it does not ask.
func (f *restoreFlags) stops(ctx context.Context, store *bucket.Store, r order.Restore) (*restoring.Stops, error) {
	if !f.stopVMs {
		return nil, nil
	}
	c, err := f.Load()
	if err != nil {
		return nil, err
	}
	compute, err := gce.NewCompute(gce.ComputeConfig{
		Project: r.Record.Inception.ProjectNumber, Cluster: c.Name, Region: r.Record.Inception.Region,
		Endpoint: c.Compute.Endpoint, Client: gce.UserClient()})
	if err == nil {
		_, _, err = compute.VMs(ctx)
	}
	if err != nil {
		return nil, fmt.Errorf("--stop-vms: %w; nothing was written", err)
	}
	return restoring.NewStops(compute, store), nil
}
