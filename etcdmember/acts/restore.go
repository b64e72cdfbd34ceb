package acts

import (
	"context"
	"fmt"

	"github.com/quorate/quorate/etcdmember/table"
	"github.com/quorate/quorate/internal/record"
)

// PolicyName begins the name of the writer of an order that no person gave.
const PolicyName = "policy of "

// orderRestore writes the order that a policy wants. Another agent may write one at the same moment: the newest counts,
// and all see the same one. Whether a write that failed took effect, the next observation sees: there is an order then,
// and no policy acts.
func (a *Actor) orderRestore(ctx context.Context, p table.Plan) error {
	return a.at(StepOrder, func() error {
		o, err := a.Record.CreateOrder(ctx, record.Order{
			Kind: record.OrderRestore, By: PolicyName + a.Me.MemberName(), Reason: p.Reason, Restore: p.Order,
			Time: a.Now()})
		if err == nil {
			a.Log.Info("ordered a restore", "order", o.Number, "replica", p.Order.Replica.String(), "reason", p.Reason)
		}
		return err
	})
}

// accept checks whether the order can be carried out here, and says so in the record. Before that nobody stops for it:
// a restore that finds the disk too small, or its snapshot damaged, after the epoch was closed has ended the old
// history and cannot begin the next.
func (a *Actor) accept(ctx context.Context, f table.Facts, p table.Plan) error {
	a.Choosing.Lock()
	defer a.Choosing.Unlock()
	if err := a.Disk.CheckSource(ctx, f, p.Source); err != nil {
		return err
	}
	if err := a.stillOrdered(ctx, p.OrderNumber); err != nil {
		return err
	}
	return a.at(StepAccept, func() error {
		_, _, err := a.Record.AcceptOrder(ctx, p.OrderNumber, record.Accepted{By: a.Me.MemberName(), Time: a.Now()})
		return err
	})
}

// stillOrdered reads the orders once more: a snapshot of gigabytes takes minutes to read. One that was taken back, or
// followed by another, must not begin to stop everybody now: the newer one may turn out to be unfit, and nobody would
// restore.
func (a *Actor) stillOrdered(ctx context.Context, number uint64) error {
	v, err := a.Record.View(ctx)
	if err != nil {
		return err
	}
	if o := table.HistoryOf(table.Facts{Now: a.Now(), Record: v}).Orders.Restore; o == nil || o.Number != number {
		return fmt.Errorf("restore order %d was taken back or followed by another meanwhile", number)
	}
	return nil
}

// settle lets the record say whether the order to restore is carried out. Whichever of the two verdicts was there first
// counts, and the next observation reads it back: nobody closes the epoch, or starts again, before that.
func (a *Actor) settle(ctx context.Context, p table.Plan) error {
	v := record.Verdict{Closing: p.Closing, Withdrawn: !p.Closing, By: a.Me.MemberName(), Time: a.Now()}
	return a.at(StepSettle, func() error {
		got, _, err := a.Record.SettleOrder(ctx, p.OrderNumber, v)
		if err == nil {
			a.Log.Info("settled an order to restore", "order", p.OrderNumber, "closing", got.Closing)
		}
		return err
	})
}

// closeEpoch ends the epoch: the record is never of no epoch again, and the next claim must name a source.
func (a *Actor) closeEpoch(ctx context.Context, p table.Plan) error {
	return a.at(StepClose, func() error {
		_, _, err := a.Record.CreateClosed(ctx, p.Epoch, record.Closed{By: a.Me.MemberName(), Order: p.OrderNumber,
			Time: a.Now()})
		return err
	})
}

// restore builds the directory of the claimed epoch, step 4 of a restore. The one that it is built from is only read,
// and gives way once the new one is whole: until then whatever fails leaves everything where it was.
func (a *Actor) restore(ctx context.Context, f table.Facts, p table.Plan) error {
	token := tokenOf(f, p.Epoch)
	if err := a.at(StepRestoreMake, func() error { return a.Disk.MakeRestored(ctx, f, p, token) }); err != nil {
		return err
	}
	if f.Directory.Exists {
		if err := a.archive(); err != nil {
			return err
		}
	}
	if err := a.takeIncarnation(ctx, f, p); err != nil {
		return err
	}
	if err := a.setAgent(StepRestoreOnDisk, func(d *table.AgentFile) {
		d.Phase, d.Epoch, d.Token, d.MemberID = table.PhaseSeeding, p.Epoch, token, 0
	}); err != nil {
		return err
	}
	if err := a.at(StepRestoreMarker, func() error { return a.Disk.MarkRestored(token) }); err != nil {
		return err
	}
	if err := a.at(StepRestoreRename, a.Disk.PlaceRestored); err != nil {
		return fmt.Errorf("put the restored directory in place: %w", err)
	}
	a.Log.Info("restored", "epoch", p.Epoch, "from", string(p.Source.Kind), "order", p.OrderNumber)
	return nil
}
