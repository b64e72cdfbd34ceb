package etcdmember

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"time"

	"github.com/quorate/quorate/etcdmember/acts"
	"github.com/quorate/quorate/etcdmember/datadir"
	"github.com/quorate/quorate/etcdmember/table"
)

// ArchiveShelf is what the archive of this replica's data disk holds.
type ArchiveShelf struct {
	// Count and Bytes are of all directories in it, those that are being deleted too.
	Count int
	Bytes int64
	// Kept is why no more is purged; empty: only what always stays is left.
	Kept string
}

// PurgeArchives deletes the archives that DecidePurge says may go, one after the other, each by what was read right
// before it, and ends what a purge before it has left half done. It is for a replica whose boot is done, beside Keep.
// It ends early with ctx, between two files.
func (m *Membership) PurgeArchives(ctx context.Context) (ArchiveShelf, error) {
	if d := m.diskFacts(); d.Wanted != "" && !d.Mounted {
		return ArchiveShelf{}, nil // what lies in the folder beneath the mount point is nobody's
	}
	err := m.finishPurges(ctx)
	kept := ""
	for err == nil {
		var purged bool
		if purged, err = m.purgeOne(ctx); !purged {
			break
		}
	}
	if errors.Is(err, table.ErrKept) {
		kept, err = err.Error(), nil
	}
	held := ArchiveShelf{Kept: kept}
	var sizeErr error
	held.Count, held.Bytes, sizeErr = m.archives.Size()
	return held, errors.Join(err, sizeErr)
}

// purgeOne looks, decides and deletes one archive. While it decides no order to restore is accepted here: that would
// name an archive that goes.
func (m *Membership) purgeOne(ctx context.Context) (purged bool, err error) {
	m.choosing.Lock()
	p, err := m.nextPurge(ctx)
	if p == nil || err != nil {
		m.choosing.Unlock()
		return false, err
	}
	from := m.archives.Path(p.Archive.Name)
	size, err := datadir.SizeOf(from)
	if err == nil {
		err = m.at(acts.StepPurgeMark, func() error { return m.disk.rename(from, from+datadir.PurgingSuffix) })
	}
	m.choosing.Unlock()
	if err != nil {
		return false, fmt.Errorf("purge %s: %w", from, err)
	}
	m.cfg.Log.Info("purging an archive", "name", p.Archive.Name, "bytes", size, "member", p.Archive.MemberID.String(),
		"reason", p.Reason)
	return true, m.finishPurges(ctx)
}

// nextPurge reads what the decision needs; the record only where there is more than the last archive.
func (m *Membership) nextPurge(ctx context.Context) (*table.Purge, error) {
	f := table.PurgeFacts{Now: time.Now()}
	var err error
	if f.Archives, err = m.archives.Dated(); err != nil || len(f.Archives) < 2 {
		return nil, err
	}
	if len(f.Due()) == 0 {
		return nil, nil
	}
	m.mu.Lock()
	f.Observed, f.ObservedAt = m.told.Observation, m.told.At
	m.mu.Unlock()
	if f.Member, err = m.Status(ctx); err != nil {
		return nil, fmt.Errorf("%w: %w", table.ErrKept, err)
	}
	if f.Snapshots, err = m.cfg.Record.Snapshots(ctx); err != nil {
		return nil, fmt.Errorf("%w: %w", table.ErrKept, err)
	}
	// after the snapshots: an order that names an archive is in it
	if f.Record, err = m.cfg.Record.View(ctx); err != nil {
		return nil, fmt.Errorf("%w: %w", table.ErrKept, err)
	}
	return table.DecidePurge(f)
}

// finishPurges deletes what carries the name of a purge, whatever is left of it.
func (m *Membership) finishPurges(ctx context.Context) error {
	paths, err := m.archives.Purging()
	for _, path := range paths {
		if err == nil {
			err = m.removeTree(ctx, path)
		}
	}
	return err
}

// removeTree deletes a folder file by file, each a step, so that a stop of the agent waits for one file at most.
func (m *Membership) removeTree(ctx context.Context, root string) error {
	var all []string
	err := filepath.WalkDir(root, func(path string, _ fs.DirEntry, err error) error {
		all = append(all, path)
		return err
	})
	for _, path := range slices.Backward(all) { // what is in a folder comes after it
		if err == nil {
			err = ctx.Err()
		}
		if err == nil {
			err = m.at(acts.StepPurgeRemove, func() error { return m.disk.remove(path) })
		}
	}
	if err != nil {
		return fmt.Errorf("delete a purged archive: %w", err)
	}
	m.cfg.Log.Info("purged an archive", "path", root)
	return nil
}
