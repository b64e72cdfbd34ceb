// Package restoring carries a restore through from outside: it reads what there is to restore from, waits until nobody
// serves the old history, says what is chosen and what will be lost, and follows the order until the next epoch is
// formed.
//
//	Read ─► UntilSilent ─► VerifySource ─► ShowChoice ─► (the command asks, and writes the order) ─► Follow, Stops
//
// Guarantees: nothing is written before the order but what is said on the terminal. A VM is stopped only where an order
// is accepted and order.Stops says so, and that it was stopped is noted only once the operation has ended without an
// error. What cannot be done is said once, and tried again.
//
// It does not choose: package order does. It does not ask the operator, and does not write the order.
package restoring

import (
	"context"
	"fmt"
	"io"
	"time"

	"github.com/quorate/quorate/cmd/quorate/fault"
	"github.com/quorate/quorate/cmd/quorate/recordtext"
	"github.com/quorate/quorate/etcdmember/order"
	"github.com/quorate/quorate/internal/record"
)

// Record is what a restore reads; bucket.Store implements it. String names it for people. ReadSnapshot reads a snapshot
// whole, checks it against its hash, and copies it to w.
type Record interface {
	fmt.Stringer
	View(ctx context.Context) (record.View, error)
	Snapshots(ctx context.Context) ([]record.Snapshot, error)
	ReadSnapshot(ctx context.Context, name string, w io.Writer) (record.Snapshot, error)
}

// Read reads the record and refuses one that is lost or in which nothing was ever formed.
func Read(ctx context.Context, from Record, now time.Time) (order.Restore, error) {
	v, err := from.View(ctx)
	if err != nil {
		return order.Restore{}, err
	}
	r := order.RestoreOf(v, now)
	switch lost := v.Damages(); {
	case v.LostInception():
		return r, fault.Record("%s: %s; nothing was written", from, recordtext.InceptionLost)
	case v.Inception == nil:
		return r, fault.Record("%s: no cluster has begun here, or its record is lost; nothing was written", from)
	case len(lost) > 0 && lost[0].Stops:
		return r, fault.Record("%s: %s: bring that back first (quorate record rebuild); nothing was written", from,
			lost[0])
	case r.Ends.Number == 0:
		return r, fault.Record("%s: no epoch was ever formed, so there is nothing to restore; nothing was written",
			from)
	}
	r.Snapshots, err = from.Snapshots(ctx)
	return r, err
}

// VerifySource reads a snapshot whole, and checks what it holds against what was saved. A directory is checked by its
// own replica, before anything ends.
func VerifySource(ctx context.Context, out io.Writer, from Record, s record.Source) error {
	if s.Kind != record.SourceSnapshot {
		return nil
	}
	if _, err := from.ReadSnapshot(ctx, s.Snapshot, io.Discard); err != nil {
		return fmt.Errorf("verify snapshot %s: %w; nothing was written", s.Snapshot, err)
	}
	fmt.Fprintf(out, "Snapshot %s was read whole, and its hash is right.\n", s.Snapshot)
	return nil
}
