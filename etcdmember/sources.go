package etcdmember

import (
	"context"

	"github.com/quorate/quorate/etcdmember/table"
	"github.com/quorate/quorate/internal/record"
)

// observeSources looks for what a restore can be made of: the snapshots in the record, and the archives on this disk.
// Both take long, so it does only where a restore is ordered or claimed, or where a policy could order one.
func (m *Membership) observeSources(ctx context.Context, f *table.Facts) {
	if f.RecordErr != nil || f.Directory.Running {
		return
	}
	h := table.HistoryOf(*f)
	inSight := h.RestoreInSight()
	if inSight {
		f.Directory.Archives = m.archives.Read()
	}
	if inSight || h.Formed != nil && f.Agent.Phase != table.PhaseStarted && h.Wanted() == 1 {
		f.Snapshots, f.SnapshotsErr = m.cfg.Record.Snapshots(ctx)
	}
	// The newest is the one of the highest revision, which is the history's own: a time is by the clock of the VM that
	// saved it.
	var newest record.Snapshot
	for _, s := range f.Snapshots {
		if h.Formed != nil && s.Epoch == h.Formed.Number && s.Revision >= newest.Revision {
			newest = s
			f.Policy.Snapshot = &table.SnapshotRef{Name: s.Name, Epoch: s.Epoch, Revision: s.Revision, Time: s.Time}
		}
	}
}
