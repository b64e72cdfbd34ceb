package etcdmember

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/quorate/quorate/etcdmember/datadir"
	"github.com/quorate/quorate/etcdmember/member"
	"github.com/quorate/quorate/etcdmember/restoredir"
	"github.com/quorate/quorate/etcdmember/table"
	"github.com/quorate/quorate/internal/record"
)

// diskSteps is acts.Disk on this VM's data disk.
type diskSteps struct {
	cfg   Config
	files *files
	// archives reads those that are on the disk.
	archives func() []table.Archive
}

// writeAgent replaces agent.json.
func (d *diskSteps) writeAgent(a table.AgentFile) error {
	b, err := json.MarshalIndent(a, "", "  ")
	if err != nil {
		return fmt.Errorf("encode the agent's file: %w", err)
	}
	return d.files.write(d.cfg.dir().AgentFile(), b, 0o600)
}

// HasDirectory is of acts.Disk.
func (d *diskSteps) HasDirectory() bool {
	_, err := os.Stat(d.cfg.dir().Etcd())
	return !errors.Is(err, fs.ErrNotExist) // the rename says what else is wrong
}

// Archive names the archive by the time.
func (d *diskSteps) Archive() error {
	if err := os.MkdirAll(d.cfg.dir().Archives(), 0o700); err != nil {
		return fmt.Errorf("make the archive: %w", err)
	}
	to := filepath.Join(d.cfg.dir().Archives(), datadir.ArchiveName(time.Now()))
	if err := d.files.rename(d.cfg.dir().Etcd(), to); err != nil {
		return fmt.Errorf("archive etcd's directory: %w", err)
	}
	d.cfg.Log.Info("archived etcd's directory", "to", to)
	return member.ForgetEnd(d.cfg.statusSocket())
}

// MarkWhole is of acts.Disk.
func (d *diskSteps) MarkWhole(token string) error {
	return d.files.write(filepath.Join(d.cfg.dir().Etcd(), datadir.Marker), []byte(token+"\n"), 0o600)
}

// MarkRestored is of acts.Disk.
func (d *diskSteps) MarkRestored(token string) error {
	return d.files.write(filepath.Join(d.cfg.dir().Restored(), datadir.Marker), []byte(token+"\n"), 0o600)
}

// PlaceRestored is of acts.Disk.
func (d *diskSteps) PlaceRestored() error {
	return d.files.rename(d.cfg.dir().Restored(), d.cfg.dir().Etcd())
}

// CheckSource asks for room first, which costs nothing. A snapshot is then read whole; so is the database of a
// directory that nobody has open, whose log the observation has read; and the directory of a running member is as good
// as that member is.
func (d *diskSteps) CheckSource(ctx context.Context, f table.Facts, s record.Source) error {
	d.dropScratch() // what an attempt that was broken off has left takes room
	if s.Kind == record.SourceSnapshot {
		if err := d.roomForSnapshot(ctx, d.cfg.Cluster.Etcd.DataDir, s.Snapshot); err != nil {
			return err
		}
		_, err := d.cfg.Record.ReadSnapshot(ctx, s.Snapshot, io.Discard)
		return err
	}
	dir, err := d.findDirectory(f, s)
	if err != nil {
		return err
	}
	if err := d.roomForDirectory(d.cfg.Cluster.Etcd.DataDir, dir); err != nil || f.Directory.Running &&
		dir == d.cfg.dir().Etcd() {
		return err
	}
	if err := datadir.CheckPages(ctx, datadir.DatabaseFile(dir)); err != nil {
		return fmt.Errorf("read the database of %s: %w", dir, err)
	}
	return nil
}

// findDirectory finds the directory of the member that an order names: the one in place, or an archive.
func (d *diskSteps) findDirectory(f table.Facts, s record.Source) (string, error) {
	if f.Directory.Exists && f.Directory.MemberID == s.MemberID {
		return d.cfg.dir().Etcd(), nil
	}
	var unread error
	for _, a := range d.archives() {
		switch {
		case a.ReadErr != nil:
			unread = errors.Join(unread, fmt.Errorf("archive %s: %w", a.Name, a.ReadErr))
		case a.MemberID == s.MemberID && a.OpenErr == nil:
			return filepath.Join(d.cfg.dir().Archives(), a.Name), nil
		}
	}
	if unread != nil {
		return "", fmt.Errorf("find the directory of member %s on this disk: %w", s.MemberID, unread)
	}
	return "", fmt.Errorf("no directory of member %s is on this disk: %w", s.MemberID, os.ErrNotExist)
}

// roomForSnapshot refuses a snapshot that is not there or too large for the disk: its database and the new directory.
func (d *diskSteps) roomForSnapshot(ctx context.Context, dir, name string) error {
	list, err := d.cfg.Record.Snapshots(ctx)
	if err != nil {
		return err
	}
	for _, s := range list {
		if s.Name == name {
			return restoredir.CheckRoom(dir, 2*s.Size, "a restore from snapshot "+name)
		}
	}
	return fmt.Errorf("snapshot %s is not in the record: %w", name, os.ErrNotExist)
}

// roomForDirectory refuses a directory that is too large for the disk: the copy and its database; then that and the new
// one.
func (d *diskSteps) roomForDirectory(dir, source string) error {
	size, err := datadir.SizeOf(source)
	if err != nil {
		return fmt.Errorf("find out how large the source is: %w", err)
	}
	return restoredir.CheckRoom(dir, 2*size, "a restore from "+source)
}

// MakeRestored makes the new directory in the scratch folder.
func (d *diskSteps) MakeRestored(ctx context.Context, f table.Facts, p table.Plan, token string) error {
	work := restoredir.Job{
		Scratch: d.cfg.dir().Scratch(), Out: d.cfg.dir().Restored(),
		Name: d.cfg.Me.MemberName(), DNSName: d.cfg.dnsName(), Token: token,
		Epochs: p.Epoch - sourceEpoch(f, p),
	}
	if err := errors.Join(os.RemoveAll(work.Scratch), os.MkdirAll(work.Scratch, 0o700)); err != nil {
		return fmt.Errorf("make room for the restore: %w", err)
	}
	if err := d.fetchSource(ctx, p, &work); err != nil {
		return err
	}
	begin := time.Now()
	if err := d.cfg.MakeDirectory(ctx, work); err != nil {
		return err
	}
	d.cfg.Log.Info("made the directory of the restore", "took", time.Since(begin).Round(time.Millisecond).String())
	return nil
}

// sourceEpoch is the epoch whose history the source holds: a snapshot's by its name, a directory's by its cluster.
// Where neither is known it is taken for the first, so that the revisions grow by more than they have to.
func sourceEpoch(f table.Facts, p table.Plan) uint64 {
	cluster := f.Directory.ClusterID
	if p.Source.Kind == record.SourceSnapshot {
		if n := slices.IndexFunc(f.Snapshots,
			func(s record.Snapshot) bool { return s.Name == p.Source.Snapshot }); n >= 0 {
			return f.Snapshots[n].Epoch
		}
		return 0
	}
	if p.Archive != "" {
		cluster = 0
	}
	for _, a := range f.Directory.Archives {
		if p.Archive != "" && a.Name == p.Archive {
			cluster = a.ClusterID
		}
	}
	return record.NumberOf(f.Record.OfCluster(cluster))
}

// fetchSource brings the source within reach: a snapshot is read from the record to a file, a directory stays where it
// is.
func (d *diskSteps) fetchSource(ctx context.Context, p table.Plan, work *restoredir.Job) error {
	if p.Source.Kind == record.SourceSnapshot {
		work.Snapshot = filepath.Join(work.Scratch, "snapshot.db")
		return d.fetchSnapshot(ctx, p.Source.Snapshot, work.Snapshot)
	}
	work.Directory = d.cfg.dir().Etcd()
	if p.Archive != "" {
		work.Directory = filepath.Join(d.cfg.dir().Archives(), p.Archive)
	}
	return d.roomForDirectory(work.Scratch, work.Directory)
}

func (d *diskSteps) fetchSnapshot(ctx context.Context, name, file string) (err error) {
	if err := d.roomForSnapshot(ctx, filepath.Dir(file), name); err != nil {
		return err
	}
	out, err := os.OpenFile(file, os.O_CREATE|os.O_WRONLY|os.O_TRUNC, 0o600)
	if err != nil {
		return fmt.Errorf("fetch snapshot %s: %w", name, err)
	}
	defer func() { err = errors.Join(err, out.Close()) }()
	_, err = d.cfg.Record.ReadSnapshot(ctx, name, out)
	return err
}

// dropScratch gives the room of the restore directory back.
func (d *diskSteps) dropScratch() {
	if err := os.RemoveAll(d.cfg.dir().Scratch()); err != nil {
		d.cfg.Log.Warn("give the room of a restore back", "err", err.Error())
	}
}
