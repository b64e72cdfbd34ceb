package etcdmember

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/quorate/quorate/etcdmember/table"
)

const (
	// archivePrefix and archiveTime make an archive's name of the time when it was put away, in UTC and by this VM's
	// clock.
	archivePrefix = "etcd-"
	archiveTime   = "20060102T150405.000"
	// purgingSuffix ends the name of one that is being deleted: part of it may be gone, so nobody reads it any more.
	purgingSuffix = ".purging"
)

func archiveName(at time.Time) string { return archivePrefix + at.UTC().Format(archiveTime) }

// archivedAt is the time in an archive's name.
func archivedAt(name string) (time.Time, bool) {
	rest, ok := strings.CutPrefix(name, archivePrefix)
	t, err := time.Parse(archiveTime, rest)
	return t, ok && err == nil
}

// readArchives reads the archived directories. Each is read once, nothing writes to an archive, but for one that could
// not be looked at.
func (m *Membership) readArchives() (out []table.Archive) {
	m.shelf.Lock()
	defer m.shelf.Unlock()
	names, _ := m.archiveNames(func(name string) bool { return !strings.HasSuffix(name, purgingSuffix) })
	if m.archives == nil {
		m.archives = map[string]table.Archive{}
	}
	for _, name := range names {
		a, ok := m.archives[name]
		if !ok {
			d, err := readDir(filepath.Join(m.archivesDir(), name))
			if err == nil && !d.Exists {
				continue
			}
			a = table.Archive{Name: name, ClusterID: d.ClusterID, MemberID: d.MemberID, Term: d.LastTerm,
				LastIndex: d.LastIndex, OpenErr: d.OpenErr, ReadErr: err}
			a.Time, _ = archivedAt(name)
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
	entries, err := os.ReadDir(m.archivesDir())
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
