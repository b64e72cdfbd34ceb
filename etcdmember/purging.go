package etcdmember

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"github.com/quorate/quorate/etcdmember/acts"
	"github.com/quorate/quorate/etcdmember/datadir"
	"github.com/quorate/quorate/etcdmember/table"
)

// ArchivesHeld is what the archive of this replica's data disk holds.
type ArchivesHeld struct {
	// Count and Bytes are of all directories in it, those that are being deleted too.
	Count int
	Bytes int64
	// Kept is why no more is purged; empty: only what always stays is left.
	Kept string
}

// PurgeArchives deletes the archives that DecidePurge says may go, one after the other, each by what was read right
// before it, and ends what a purge before it has left half done. It is for a replica whose boot is done, while Keep
// runs. It ends early with ctx, between two files.
func (m *Membership) PurgeArchives(ctx context.Context) (ArchivesHeld, error) {
	return m.purger.purge(ctx)
}

// purger deletes the archives that may go. It is used by one goroutine, which is not the loop's.
type purger struct {
	cfg      Config
	files    *files
	archives *datadir.Archives
	disk     *diskState // whether it is mounted, and no more
	own      *ownMember
	reported *lastReported
	// choosing keeps an archive from being accepted as the source of a restore and purged at once.
	choosing sync.Locker
}

func (p *purger) purge(ctx context.Context) (ArchivesHeld, error) {
	if d := p.disk.mounted(); d.Wanted != "" && !d.Mounted {
		return ArchivesHeld{}, nil // what lies in the folder beneath the mount point is nobody's
	}
	err := p.finishPurges(ctx)
	kept := ""
	for err == nil {
		var purged bool
		if purged, err = p.purgeOne(ctx); !purged {
			break
		}
	}
	if errors.Is(err, table.ErrKept) {
		kept, err = err.Error(), nil
	}
	held := ArchivesHeld{Kept: kept}
	var sizeErr error
	held.Count, held.Bytes, sizeErr = p.archives.Size()
	return held, errors.Join(err, sizeErr)
}

// purgeOne observes, decides and deletes one archive. While it decides no order to restore is accepted here: that would
// name an archive that goes.
func (p *purger) purgeOne(ctx context.Context) (purged bool, err error) {
	p.choosing.Lock()
	next, err := p.nextPurge(ctx)
	if next == nil || err != nil {
		p.choosing.Unlock()
		return false, err
	}
	from := p.archives.Path(next.Archive.Name)
	size, err := datadir.SizeOf(from)
	if err == nil {
		err = p.cfg.at(acts.StepPurgeMark, func() error { return p.files.rename(from, from+datadir.PurgingSuffix) })
	}
	p.choosing.Unlock()
	if err != nil {
		return false, fmt.Errorf("purge %s: %w", from, err)
	}
	p.cfg.Log.Info("purging an archive", "name", next.Archive.Name, "bytes", size, "member",
		next.Archive.MemberID.String(),
		"reason", next.Reason)
	return true, p.finishPurges(ctx)
}

// nextPurge reads what the decision needs; the record only where there is more than the last archive.
func (p *purger) nextPurge(ctx context.Context) (*table.Purge, error) {
	f := table.PurgeFacts{Now: time.Now()}
	var err error
	if f.Archives, err = p.archives.Dated(); err != nil || len(f.Archives) < 2 {
		return nil, err
	}
	if len(f.Due()) == 0 {
		return nil, nil
	}
	last := p.reported.explained()
	f.Observed, f.ObservedAt = last.Observation, last.At
	if f.Member, err = p.own.Status(ctx); err != nil {
		return nil, fmt.Errorf("%w: %w", table.ErrKept, err)
	}
	if f.Snapshots, err = p.cfg.Record.Snapshots(ctx); err != nil {
		return nil, fmt.Errorf("%w: %w", table.ErrKept, err)
	}
	// after the snapshots: an order that names an archive is in it
	if f.Record, err = p.cfg.Record.View(ctx); err != nil {
		return nil, fmt.Errorf("%w: %w", table.ErrKept, err)
	}
	return table.DecidePurge(f)
}

// finishPurges deletes what carries the name of a purge, whatever is left of it.
func (p *purger) finishPurges(ctx context.Context) error {
	paths, err := p.archives.Purging()
	for _, path := range paths {
		if err == nil {
			err = p.removeTree(ctx, path)
		}
	}
	return err
}

// removeTree deletes a folder file by file, each a step, so that a stop of the agent waits for one file at most.
func (p *purger) removeTree(ctx context.Context, root string) error {
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
			err = p.cfg.at(acts.StepPurgeRemove, func() error { return p.files.remove(path) })
		}
	}
	if err != nil {
		return fmt.Errorf("delete a purged archive: %w", err)
	}
	p.cfg.Log.Info("purged an archive", "path", root)
	return nil
}
