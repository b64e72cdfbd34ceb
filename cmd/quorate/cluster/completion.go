package cluster

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/quorate/quorate/cmd/quorate/terminal"
	"github.com/quorate/quorate/etcdmember/order"
	"github.com/quorate/quorate/etcdmember/table"
	"github.com/quorate/quorate/internal/record/bucket"
)

// ReplicaNames are the replicas of the record: by name, or with the zone where two have one name.
func (f *Flags) ReplicaNames(ctx context.Context) (out []string, err error) {
	store, err := f.Open()
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

// OrdersToWithdraw are the orders that are in force.
func (f *Flags) OrdersToWithdraw(ctx context.Context) (out []string, err error) {
	store, err := f.Open()
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

// Snapshots are the snapshots of a store, the newest first.
func Snapshots(ctx context.Context, open func() (*bucket.Store, error)) (out []string, err error) {
	store, err := open()
	if err != nil {
		return nil, err
	}
	list, err := store.Snapshots(ctx)
	for _, s := range slices.Backward(list) {
		out = append(out, s.Name+"\t"+terminal.Mebibytes(s.Size))
	}
	return out, err
}

// Sources are what a restore can be made of, as --from takes them.
func (f *Flags) Sources(ctx context.Context) (out []string, err error) {
	replicas, err := f.ReplicaNames(ctx)
	if err != nil {
		return nil, err
	}
	snapshots, err := Snapshots(ctx, f.Open)
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
