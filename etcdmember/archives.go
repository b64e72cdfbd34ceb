package etcdmember

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/quorate/quorate/internal/record"
)

const (
	// archivePrefix and archiveTime make an archive's name of the time when it was put away, in UTC and by this VM's
	// clock.
	archivePrefix = "etcd-"
	archiveTime   = "20060102T150405.000"
	// purgingSuffix ends the name of one that is being deleted: part of it may be gone, so nobody reads it any more.
	purgingSuffix = ".purging"
)

// Archive is one archived directory and how far its log reaches.
type Archive struct {
	Name string
	// Time is when it was archived, as its name says; zero: the name is a person's.
	Time time.Time
	// ClusterID and MemberID are of its log; 0: that could not be read.
	ClusterID, MemberID record.MemberID
	// Term and LastIndex are of its last entry; 0: it has none.
	Term, LastIndex uint64
	// OpenErr is why it cannot be used; nil: its WAL and database are valid.
	OpenErr error
	// ReadErr is why it could not be looked at, which says nothing of what it holds.
	ReadErr error
}

// empty: its log was read and holds no entry, as that of a learner that never got the state.
func (a Archive) empty() bool { return a.MemberID != 0 && a.LastIndex == 0 }

func archiveName(at time.Time) string { return archivePrefix + at.UTC().Format(archiveTime) }

// archivedAt is the time in an archive's name.
func archivedAt(name string) (time.Time, bool) {
	rest, ok := strings.CutPrefix(name, archivePrefix)
	t, err := time.Parse(archiveTime, rest)
	return t, ok && err == nil
}

// readArchives reads the archived directories. Each is read once, nothing writes to an archive, but for one that could
// not be looked at.
func (m *Membership) readArchives() (out []Archive) {
	m.shelf.Lock()
	defer m.shelf.Unlock()
	names, _ := m.archiveNames(func(name string) bool { return !strings.HasSuffix(name, purgingSuffix) })
	if m.archives == nil {
		m.archives = map[string]Archive{}
	}
	for _, name := range names {
		a, ok := m.archives[name]
		if !ok {
			d, err := readDir(filepath.Join(m.archivesDir(), name))
			if err == nil && !d.Exists {
				continue
			}
			a = Archive{Name: name, ClusterID: d.ClusterID, MemberID: d.MemberID, Term: d.LastTerm,
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
