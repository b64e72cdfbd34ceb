package acts

import (
	"context"
	"fmt"

	"github.com/quorate/quorate/etcdmember/table"
	"github.com/quorate/quorate/internal/record"
)

// form seeds the epoch of our claim, or goes on with a directory that carries its token: both end with `formed`. Until
// that has been read back nothing may be acknowledged to anybody, because another may still find the epoch abandoned.
func (a *Actor) form(ctx context.Context, f table.Facts, p table.Plan) error {
	if !a.Member.Running() {
		if p.Act == table.ActSeed {
			if err := a.takeIncarnation(ctx, f, p); err != nil {
				return err
			}
			token := tokenOf(f, p.Epoch)
			if err := a.setAgent(StepSeedOnDisk, func(d *table.AgentFile) {
				d.Phase, d.Epoch, d.Token, d.MemberID = table.PhaseSeeding, p.Epoch, token, 0
			}); err != nil {
				return err
			}
		}
		how := Start{New: p.Act == table.ActSeed, Token: a.Agent.File.Token}
		if err := a.at(StepSeedStart, func() error { return a.Member.Start(ctx, how) }); err != nil {
			return err
		}
	}
	clusterID, memberID, err := a.Member.Served(ctx)
	if err != nil {
		return err
	}
	if err := a.at(StepSeedMarker, func() error { return a.Disk.MarkWhole(a.Agent.File.Token) }); err != nil {
		return err
	}
	if err := a.confirmIncarnation(ctx, a.Agent.File.Incarnation, p.Epoch, memberID); err != nil {
		return err
	}
	if err := a.createFormed(ctx, p.Epoch, clusterID, memberID); err != nil {
		return err
	}
	return a.setAgent(StepSeedDone, func(d *table.AgentFile) { d.Phase, d.MemberID = table.PhaseStarted, memberID })
}

// createFormed creates the outcome `formed` and accepts it only as it is read back.
func (a *Actor) createFormed(ctx context.Context, epoch uint64, clusterID, memberID record.MemberID) error {
	formed := record.Formed{ClusterID: clusterID, MemberID: memberID}
	var got record.Outcome
	err := a.at(StepFormed, func() (err error) {
		got, _, err = a.Record.CreateOutcome(ctx, epoch, record.Outcome{Formed: &formed, Time: a.Now()})
		return err
	})
	if err != nil {
		return err
	}
	if got.Formed == nil || *got.Formed != formed {
		return fmt.Errorf("epoch %d was not formed by this member: the record holds another outcome", epoch)
	}
	a.Log.Info("formed an epoch", "epoch", epoch, "cluster", clusterID.String(), "member", memberID.String())
	return nil
}
