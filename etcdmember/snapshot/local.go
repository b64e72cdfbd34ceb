package snapshot

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/quorate/quorate/internal/durable"
	"github.com/quorate/quorate/internal/local"
	"github.com/quorate/quorate/internal/record"
)

// The folder of snapshots on the data disk: the newest one, uncompressed, and what is on its way.
const (
	snapshotsDir = "snapshots"
	tempSnapshot = ".saving.db"
	lockSnapshot = ".lock"
)

// Dir is where a replica keeps its local copy, below the data directory.
func Dir(dataDir string) string { return filepath.Join(dataDir, snapshotsDir) }

// ErrSaving says that another process on this machine saves a snapshot.
var ErrSaving = errors.New("a snapshot is being saved on this machine already")

// lockSnapshots makes the folder and keeps others out until release: the duty and a person would need twice the room.
func lockSnapshots(dir string) (release func(), err error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("make the folder for snapshots: %w", err)
	}
	release, err = local.Lock(filepath.Join(dir, lockSnapshot))
	switch {
	case errors.Is(err, local.ErrLocked):
		return nil, ErrSaving
	case err != nil:
		return nil, fmt.Errorf("lock the folder for snapshots: %w", err)
	}
	return release, nil
}

// spare is what a saving leaves free on the data disk, whatever it needs: etcd's log grows meanwhile, and a full disk
// stops it.
const spare = 512 << 20

// noRoom marks an error with syscall.ENOSPC, which does not show in its text: the error says how much is missing.
type noRoom struct{ error }

// Unwrap returns the mark.
func (noRoom) Unwrap() error { return syscall.ENOSPC }

// makeRoom clears away what a saving that died has left and, where that is not enough, the local copy; then there is
// room for a database and something to spare, or it says how much is missing.
func (job Job) makeRoom(size int64) error {
	if err := removeLocal(job.Dir, func(name string) bool { return name == tempSnapshot }); err != nil {
		return err
	}
	need := size + spare
	free, _, err := local.Room(job.Dir)
	if err == nil && free < need {
		if err := removeLocal(job.Dir, func(name string) bool { return strings.HasSuffix(name, ".db") }); err != nil {
			return err
		}
		free, _, err = local.Room(job.Dir)
	}
	if err != nil {
		return err
	}
	if free < need {
		return noRoom{fmt.Errorf("%s has %d MiB free: a database of %d MiB is verified there before it counts, and "+
			"%d MiB stay free for etcd",
			job.Dir, free>>20, size>>20, int64(spare)>>20)}
	}
	return nil
}

// removeLocal removes files of the folder by their names.
func removeLocal(dir string, which func(name string) bool) error {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return fmt.Errorf("clear the folder for snapshots: %w", err)
	}
	for _, e := range entries {
		if which(e.Name()) {
			if err := os.Remove(filepath.Join(dir, e.Name())); err != nil && !errors.Is(err, os.ErrNotExist) {
				return fmt.Errorf("clear the folder for snapshots: %w", err)
			}
		}
	}
	return nil
}

// keepLocal makes the file the local copy, in place of the former one, where there is room for the next
// saving and for a defragmentation.
func (job Job) keepLocal(temp string, s record.Snapshot) (string, error) {
	name := strings.ReplaceAll(s.Name, "/", "-") + ".db"
	if err := removeLocal(job.Dir, func(n string) bool {
		return strings.HasSuffix(n, ".db") &&
			n != tempSnapshot
	}); err != nil {
		return "", err
	}
	free, _, err := local.Room(job.Dir)
	if err != nil || free < 2*s.Size+spare {
		return "", err
	}
	path := filepath.Join(job.Dir, name)
	return path, durable.Rename(temp, path)
}
