package datadir

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"github.com/quorate/quorate/etcdmember/table"
)

// Archives are the directories that were put away on a data disk. They may be read from several goroutines.
type Archives struct {
	// Dir is the folder that holds them.
	Dir string

	mu   sync.Mutex
	read map[string]table.Archive // by name: an archive never changes
}

// Path is where the archive with a name is.
func (a *Archives) Path(name string) string { return filepath.Join(a.Dir, name) }

// Read reads all that are not being deleted. Each is read once, nothing writes to an archive, but for one that could
// not be read.
func (a *Archives) Read() (out []table.Archive) {
	a.mu.Lock()
	defer a.mu.Unlock()
	names, _ := a.names(func(name string) bool { return !strings.HasSuffix(name, PurgingSuffix) })
	if a.read == nil {
		a.read = map[string]table.Archive{}
	}
	for _, name := range names {
		found, ok := a.read[name]
		if !ok {
			d, err := Read(a.Path(name))
			if err == nil && !d.Exists {
				continue
			}
			found = table.Archive{Name: name, ClusterID: d.ClusterID, MemberID: d.MemberID, Term: d.LastTerm,
				LastIndex: d.LastIndex, OpenErr: d.OpenErr, ReadErr: err}
			found.Time, _ = ArchivedAt(name)
			if err == nil {
				a.read[name] = found
			}
		}
		out = append(out, found)
	}
	return out
}

// Dated are the archives whose names are ours. One that a person has put there or renamed is a person's, and a folder
// without a member's files is none. They are read only where there is more than one.
func (a *Archives) Dated() ([]table.Archive, error) {
	names, err := a.names(func(name string) bool { _, ok := ArchivedAt(name); return ok })
	if err != nil || len(names) < 2 {
		return nil, err
	}
	return slices.DeleteFunc(a.Read(), func(r table.Archive) bool { return r.Time.IsZero() }), nil
}

// Purging are the paths of those that are being deleted, whatever is left of each.
func (a *Archives) Purging() (paths []string, err error) {
	names, err := a.names(func(name string) bool { return strings.HasSuffix(name, PurgingSuffix) })
	for _, name := range names {
		paths = append(paths, a.Path(name))
	}
	return paths, err
}

// Size counts all directories in the folder, those that are being deleted too, and their bytes.
func (a *Archives) Size() (count int, bytes int64, err error) {
	names, err := a.names(func(string) bool { return true })
	if err != nil || len(names) == 0 {
		return 0, 0, err
	}
	bytes, err = SizeOf(a.Dir)
	return len(names), bytes, err
}

// names lists the folder; no folder: nothing was ever archived.
func (a *Archives) names(which func(name string) bool) (names []string, err error) {
	entries, err := os.ReadDir(a.Dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read the archive: %w", err)
	}
	for _, e := range entries {
		if which(e.Name()) {
			names = append(names, e.Name())
		}
	}
	return names, nil
}

// SizeOf is the size of all files below a folder.
func SizeOf(root string) (size int64, err error) {
	err = filepath.WalkDir(root, func(_ string, d fs.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			return err
		}
		info, err := d.Info()
		if err == nil {
			size += info.Size()
		}
		return err
	})
	return size, err
}
