package etcdmember

import (
	"context"
	"fmt"
	"time"

	"github.com/quorate/quorate/etcdmember/acts"
	"github.com/quorate/quorate/etcdmember/table"
	"github.com/quorate/quorate/internal/record"
)

// clearOvertaken gives back the room of a restore that another replica has made instead: a join needs it.
func (m *Membership) clearOvertaken(f table.Facts) {
	h := table.HistoryOf(f)
	if m.opened && !f.Directory.Running && f.RecordErr == nil && table.Fault(f, h) == "" && h.Formed != nil &&
		!h.RestoreInSight() {
		m.ownDisk.dropScratch()
	}
}

// completeRestores is the end of a restore, once the new epoch's member serves: the room of the making is given back,
// and the record says that the restore orders of epochs before it are done with. The replica that formed the epoch says
// so, again until it is written.
func (m *Membership) completeRestores(ctx context.Context, f table.Facts) {
	h := table.HistoryOf(f)
	if f.RecordErr != nil || h.Formed == nil || h.Formed.Claim == nil ||
		h.Formed.Claim.Seeder.Place != m.cfg.Me.Place ||
		m.agent.File.Phase != table.PhaseStarted || m.agent.File.Epoch != h.Formed.Number || !f.Directory.Running {
		return
	}
	m.ownDisk.dropScratch()
	for _, o := range h.Orders.All {
		if o.Restore == nil || o.Done != nil || o.Restore.Ends >= h.Formed.Number {
			continue
		}
		what := fmt.Sprintf("epoch %d was formed by order %d instead", h.Formed.Number, h.Formed.Claim.Source.Order)
		if o.Number == h.Formed.Claim.Source.Order {
			what = fmt.Sprintf("epoch %d is formed", h.Formed.Number)
		}
		err := m.at(acts.StepCompleteOrder, func() error {
			_, _, err := m.cfg.Record.CompleteOrder(ctx, o.Number, record.Done{By: m.cfg.Me.MemberName(),
				Time: time.Now(), What: what})
			return err
		})
		if err != nil {
			m.cfg.Log.Warn("complete the order", "order", o.Number, "err", err.Error())
		}
	}
}
