package etcdmember

import (
	"context"
	"os"
	"path/filepath"

	"github.com/quorate/quorate/internal/record"
)

// observeSources looks for what a restore can be made of: the snapshots in the record, and the archives on this disk. Both take long, so it does
// only where a restore is ordered or claimed, or where a policy could order one.
func (m *Membership) observeSources(ctx context.Context, f *Facts) {
	if f.RecordErr != nil || f.Directory.Running {
		return
	}
	h := historyOf(*f)
	ordered := h.orders.restore != nil && h.formed != nil && h.orders.restore.Restore.Ends == h.formed.Number
	claimed := h.newest != nil && h.newest.Outcome == nil && h.newest.Claim != nil && h.newest.Claim.Source.Kind != record.SourceEmpty
	if ordered || claimed {
		f.Directory.Archives = m.readArchives()
	}
	if ordered || claimed || h.formed != nil && f.Agent.Phase != PhaseStarted && h.wanted() == 1 {
		f.Snapshots, f.SnapshotsErr = m.cfg.Record.Snapshots(ctx)
	}
	// The newest is the one of the highest revision, which is the history's own: a time is by the clock of the VM that saved it.
	var newest record.Snapshot
	for _, s := range f.Snapshots {
		if h.formed != nil && s.Epoch == h.formed.Number && s.Revision >= newest.Revision {
			newest = s
			f.Policy.Snapshot = &SnapshotRef{Name: s.Name, Epoch: s.Epoch, Revision: s.Revision, Time: s.Time}
		}
	}
}

// readArchives reads the archived directories. Each is read once: nothing writes to an archive.
func (m *Membership) readArchives() (out []Archive) {
	entries, err := os.ReadDir(m.archivesDir())
	if err != nil {
		return nil
	}
	if m.archives == nil {
		m.archives = map[string]Archive{}
	}
	for _, e := range entries {
		a, ok := m.archives[e.Name()]
		if !ok {
			d, err := readDir(filepath.Join(m.archivesDir(), e.Name()))
			if err != nil || !d.Exists {
				continue
			}
			a = Archive{Name: e.Name(), MemberID: d.MemberID, Term: d.LastTerm, LastIndex: d.LastIndex, OpenErr: d.OpenErr}
			m.archives[e.Name()] = a
		}
		out = append(out, a)
	}
	return out
}
