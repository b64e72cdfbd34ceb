package main

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/quorate/quorate/etcdmember/order"
	"github.com/quorate/quorate/etcdmember/table"
	"github.com/quorate/quorate/internal/record/bucket"
)

// completionTimeout bounds what the record is asked for while somebody has pressed Tab.
const completionTimeout = 3 * time.Second

// completing completes a command's first argument with what list says, and nothing else. It is silent where list fails:
// whoever runs the command is told why.
func completing(list func(ctx context.Context) ([]string, error)) cobra.CompletionFunc {
	return func(cmd *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
		const only = cobra.ShellCompDirectiveNoFileComp | cobra.ShellCompDirectiveKeepOrder
		if len(args) > 0 {
			return nil, only
		}
		ctx, cancel := context.WithTimeout(cmd.Context(), completionTimeout)
		defer cancel()
		found, err := list(ctx)
		if err != nil {
			return nil, only
		}
		// What stands behind a tab is shown next to the word. Both come from the record, see visible.
		var out []string
		for _, c := range found {
			word, about, _ := strings.Cut(c, "\t")
			if visible(word) == word {
				out = append(out, word+"\t"+visible(about))
			}
		}
		return out, only
	}
}

// completeFlag completes the value of a flag.
func completeFlag(cmd *cobra.Command, flag string, list func(ctx context.Context) ([]string, error)) {
	complete := completing(list)
	cobra.CheckErr(cmd.RegisterFlagCompletionFunc(flag,
		func(cmd *cobra.Command, _ []string, typed string) ([]string, cobra.ShellCompDirective) {
			return complete(cmd, nil, typed)
		}))
}

// fixed completes with the same words at any time.
func fixed(list ...string) func(context.Context) ([]string, error) {
	return func(context.Context) ([]string, error) { return slices.Clone(list), nil }
}

// replicaNames are the replicas of the record: by name, or with the zone where two have one name.
func (f *clusterFlags) replicaNames(ctx context.Context) (out []string, err error) {
	store, err := f.open()
	if err != nil {
		return nil, err
	}
	v, err := store.View(ctx)
	if err != nil {
		return nil, err
	}
	zones := map[string][]string{}
	for _, p := range v.Places() {
		zones[p.Name] = append(zones[p.Name], p.Zone)
	}
	for _, p := range v.Places() {
		if len(zones[p.Name]) > 1 {
			out = append(out, p.String())
			continue
		}
		out = append(out, p.Name+"\tin "+p.Zone)
	}
	return out, nil
}

// ordersToWithdraw are the orders that are in force.
func (f *clusterFlags) ordersToWithdraw(ctx context.Context) (out []string, err error) {
	store, err := f.open()
	if err != nil {
		return nil, err
	}
	v, err := store.View(ctx)
	if err != nil {
		return nil, err
	}
	log := order.NewLog(v, time.Now())
	for _, o := range slices.Backward(v.Orders) {
		if log.State(o.Number).State == table.OrderInForce {
			out = append(out, fmt.Sprintf("%s\t%s, by %s", strconv.FormatUint(o.Number, 10), order.Text(o), o.By))
		}
	}
	return out, nil
}

// snapshotNames are the snapshots of a store, the newest first.
func snapshotNames(ctx context.Context, open func() (*bucket.Store, error)) (out []string, err error) {
	store, err := open()
	if err != nil {
		return nil, err
	}
	list, err := store.Snapshots(ctx)
	for _, s := range slices.Backward(list) {
		out = append(out, s.Name+"\t"+mebibytes(s.Size))
	}
	return out, err
}

// sources are what a restore can be made of, as --from takes them.
func (f *clusterFlags) sources(ctx context.Context) (out []string, err error) {
	replicas, err := f.replicaNames(ctx)
	if err != nil {
		return nil, err
	}
	snapshots, err := snapshotNames(ctx, f.open)
	if err != nil {
		return nil, err
	}
	for _, r := range replicas {
		out = append(out, "directory="+r)
	}
	out = append(out, "snapshot\tthe newest")
	for _, s := range snapshots {
		out = append(out, "snapshot="+s)
	}
	return out, nil
}
