package etcdmember

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/quorate/quorate/etcdmember/datadir"
	"github.com/quorate/quorate/etcdmember/table"
)

// readArchives reads the archived directories. Each is read once, nothing writes to an archive, but for one that could
// not be looked at.
func (m *Membership) readArchives() (out []table.Archive) {
	m.shelf.Lock()
	defer m.shelf.Unlock()
	names, _ := m.archiveNames(func(name string) bool { return !strings.HasSuffix(name, datadir.PurgingSuffix) })
	if m.archives == nil {
		m.archives = map[string]table.Archive{}
	}
	for _, name := range names {
		a, ok := m.archives[name]
		if !ok {
			d, err := datadir.Read(filepath.Join(m.cfg.dir().Archives(), name))
			if err == nil && !d.Exists {
				continue
			}
			a = table.Archive{Name: name, ClusterID: d.ClusterID, MemberID: d.MemberID, Term: d.LastTerm,
				LastIndex: d.LastIndex, OpenErr: d.OpenErr, ReadErr: err}
			a.Time, _ = datadir.ArchivedAt(name)
			if err == nil {
				m.archives[name] = a
			}
		}
		out = append(out, a)
	}
	return out
}

// archiveNames lists the archive's folder; no folder: nothing was ever archived.
func (m *Membership) archiveNames(which func(name string) bool) (names []string, err error) {
	entries, err := os.ReadDir(m.cfg.dir().Archives())
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("look into the archive: %w", err)
	}
	for _, e := range entries {
		if which(e.Name()) {
			names = append(names, e.Name())
		}
	}
	return names, nil
}
