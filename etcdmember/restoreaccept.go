package etcdmember

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"github.com/quorate/quorate/etcdmember/datadir"
	"github.com/quorate/quorate/etcdmember/table"
	"github.com/quorate/quorate/internal/record"
)

// accept looks whether the order can be carried out here, and says so in the record. Before that nobody stops for it: a
// restore that finds the disk too small, or its snapshot damaged, after the epoch was closed has ended the old history
// and cannot begin the next.
func (m *Membership) accept(ctx context.Context, f table.Facts, p table.Plan) error {
	begin := time.Now()
	err := m.tryAccept(ctx, f, p)
	m.tries.Unfit = table.Unfit{}
	if err != nil {
		m.tries.Unfit = table.Unfit{Order: p.OrderNumber, Why: err.Error(), Until: time.Now()}
		if f.Directory.Running && table.AnswersQuorum(f) { // without one a restore is what everybody waits for
			m.tries.Unfit.Until = time.Now().Add(min(acceptRest*time.Since(begin), mostAcceptRest))
		}
	}
	return err
}

// Beside a quorum a try that failed rests for acceptRest times as long as it took, and for mostAcceptRest at most. That
// a snapshot is damaged is found out by reading all of it: without a rest the replica would do nothing else, and with
// it the rows beside the leader, which wait for that.
const (
	acceptRest     = 10
	mostAcceptRest = 5 * time.Minute
)

func (m *Membership) tryAccept(ctx context.Context, f table.Facts, p table.Plan) error {
	m.choosing.Lock()
	defer m.choosing.Unlock()
	if err := m.trySource(ctx, f, p.Source); err != nil {
		return err
	}
	if err := m.stillOrdered(ctx, p.OrderNumber); err != nil {
		return err
	}
	return m.at(StepAccept, func() error {
		_, _, err := m.cfg.Record.AcceptOrder(ctx, p.OrderNumber, record.Accepted{By: m.cfg.Me.MemberName(),
			Time: time.Now()})
		return err
	})
}

// stillOrdered looks at the orders once more: a snapshot of gigabytes takes minutes to read. One that was taken back,
// or followed by another, must not begin to stop everybody now: the newer one may turn out to be unfit, and nobody
// would restore.
func (m *Membership) stillOrdered(ctx context.Context, number uint64) error {
	v, err := m.cfg.Record.View(ctx)
	if err != nil {
		return err
	}
	if o := table.HistoryOf(table.Facts{Now: time.Now(), Record: v}).Orders.Restore; o == nil || o.Number != number {
		return fmt.Errorf("restore order %d was taken back or followed by another meanwhile", number)
	}
	return nil
}

// trySource looks for room first, which costs nothing. A snapshot is then read whole; so is the database of a directory
// that nobody has open, whose log the observation has read; and the directory of a running member is as good as that
// member is.
func (m *Membership) trySource(ctx context.Context, f table.Facts, s record.Source) error {
	m.dropScratch() // what an attempt that was broken off has left takes room
	if s.Kind == record.SourceSnapshot {
		if err := m.roomForSnapshot(ctx, m.cfg.Cluster.Etcd.DataDir, s.Snapshot); err != nil {
			return err
		}
		_, err := m.cfg.Record.ReadSnapshot(ctx, s.Snapshot, io.Discard)
		return err
	}
	dir, err := m.findDirectory(f, s)
	if err != nil {
		return err
	}
	if err := m.roomForDirectory(m.cfg.Cluster.Etcd.DataDir, dir); err != nil || f.Directory.Running &&
		dir == m.etcdDir() {
		return err
	}
	if err := datadir.CheckPages(ctx, datadir.DatabaseFile(dir)); err != nil {
		return fmt.Errorf("read the database of %s: %w", dir, err)
	}
	return nil
}

// findDirectory finds the directory of the member that an order names: the one in place, or an archive.
func (m *Membership) findDirectory(f table.Facts, s record.Source) (string, error) {
	if f.Directory.Exists && f.Directory.MemberID == s.MemberID {
		return m.etcdDir(), nil
	}
	var unread error
	for _, a := range m.readArchives() {
		switch {
		case a.ReadErr != nil:
			unread = errors.Join(unread, fmt.Errorf("archive %s: %w", a.Name, a.ReadErr))
		case a.MemberID == s.MemberID && a.OpenErr == nil:
			return filepath.Join(m.archivesDir(), a.Name), nil
		}
	}
	if unread != nil {
		return "", fmt.Errorf("look for the directory of member %s on this disk: %w", s.MemberID, unread)
	}
	return "", fmt.Errorf("no directory of member %s is on this disk: %w", s.MemberID, os.ErrNotExist)
}

// roomForSnapshot refuses a snapshot that is not there or too large for the disk: its database and the new directory.
func (m *Membership) roomForSnapshot(ctx context.Context, dir, name string) error {
	list, err := m.cfg.Record.Snapshots(ctx)
	if err != nil {
		return err
	}
	for _, s := range list {
		if s.Name == name {
			return checkRoom(dir, 2*s.Size, "a restore from snapshot "+name)
		}
	}
	return fmt.Errorf("snapshot %s is not in the record: %w", name, os.ErrNotExist)
}

// roomForDirectory refuses a directory that is too large for the disk: the copy and its database; then that and the new
// one.
func (m *Membership) roomForDirectory(dir, source string) error {
	size, err := sizeOf(source)
	if err != nil {
		return fmt.Errorf("look how large the source is: %w", err)
	}
	return checkRoom(dir, 2*size, "a restore from "+source)
}
