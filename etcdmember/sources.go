package etcdmember

import (
	"context"

	"github.com/quorate/quorate/internal/record"
)

// restoreInSight: one is ordered of the newest formed epoch, or an epoch is claimed for one.
func (h history) restoreInSight() bool {
	return h.orders.restore != nil || h.newest != nil && h.newest.Outcome == nil && h.newest.Claim != nil &&
		h.newest.Claim.Source.Kind != record.SourceEmpty
}

// observeSources looks for what a restore can be made of: the snapshots in the record, and the archives on this disk.
// Both take long, so it does only where a restore is ordered or claimed, or where a policy could order one.
func (m *Membership) observeSources(ctx context.Context, f *Facts) {
	if f.RecordErr != nil || f.Directory.Running {
		return
	}
	h := historyOf(*f)
	inSight := h.restoreInSight()
	if inSight {
		f.Directory.Archives = m.readArchives()
	}
	if inSight || h.formed != nil && f.Agent.Phase != PhaseStarted && h.wanted() == 1 {
		f.Snapshots, f.SnapshotsErr = m.cfg.Record.Snapshots(ctx)
	}
	// The newest is the one of the highest revision, which is the history's own: a time is by the clock of the VM that
	// saved it.
	var newest record.Snapshot
	for _, s := range f.Snapshots {
		if h.formed != nil && s.Epoch == h.formed.Number && s.Revision >= newest.Revision {
			newest = s
			f.Policy.Snapshot = &SnapshotRef{Name: s.Name, Epoch: s.Epoch, Revision: s.Revision, Time: s.Time}
		}
	}
}
