package etcdmember

import (
	"context"
	"time"

	"github.com/quorate/quorate/etcdmember/table"
	"github.com/quorate/quorate/internal/record"
)

// noteDisk completes this boot's incarnation with the id of the data disk, where that was not known when the
// incarnation was taken: without it nobody can tell later that this disk was rolled back, or that it is gone. It is one
// write, made again at the next observation, and nothing waits for it.
func (m *Membership) noteDisk(ctx context.Context, f table.Facts) {
	newest := f.Record.Last(m.cfg.Me.Place)
	if f.RecordErr != nil || f.DiskID == "" || newest == nil {
		return
	}
	if newest.InstanceID != m.cfg.Me.InstanceID || newest.BootID != m.cfg.Me.BootID || newest.DiskID != "" {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	d := record.DataDisk{DiskID: f.DiskID, Time: time.Now()}
	got, _, err := m.cfg.Record.NoteDisk(ctx, m.cfg.Me.Place, newest.Number, d)
	if err != nil {
		m.cfg.Log.Warn("note the data disk's id", "err", err.Error())
		return
	}
	m.cfg.Log.Info("the data disk's id is in the record", "incarnation", newest.Number, "disk", got.DiskID)
}
