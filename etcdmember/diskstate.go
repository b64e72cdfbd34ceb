package etcdmember

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/quorate/quorate/etcdmember/acts"
	"github.com/quorate/quorate/etcdmember/datadir"
	"github.com/quorate/quorate/etcdmember/member"
	"github.com/quorate/quorate/etcdmember/table"
	"github.com/quorate/quorate/internal/local"
)

// diskState is what this VM's data disk says: whether it is there, agent.json, and what etcd's directory holds. Only
// the loop uses it, but for mounted.
type diskState struct {
	cfg      Config
	files    *files
	own      *ownMember
	reported *lastReported
	// mountinfo is the kernel's list of mounts, roomOf asks how full a disk is.
	mountinfo string
	roomOf    func(dir string) (table.Room, error)

	opened bool // the data disk is there, and agent.json was read from it
	agent  *acts.AgentStore
	// etcd is what etcd's directory held when it was read, and key of what it was read (datadir.Key); nil: it has to be
	// read. former is what it was when the member was last stopped.
	etcd   *table.Directory
	key    string
	former table.Directory
	check  databaseCheck
}

func newDiskState(cfg Config, f *files, own *ownMember, agent *acts.AgentStore, r *lastReported) *diskState {
	return &diskState{cfg: cfg, files: f, own: own, agent: agent, reported: r, mountinfo: "/proc/self/mountinfo",
		roomOf: roomOf, check: databaseCheck{log: cfg.Log, dir: cfg.dir().Etcd()}}
}

// established: etcd has run on this very disk as this replica's member.
func (d *diskState) established() bool {
	return d.agent.Err == nil && d.agent.File.Phase == table.PhaseStarted && d.agent.File.Replica == d.cfg.Me.Place
}

// open finds out whether the data disk is there, and reads agent.json once it is. Until then nothing is read: what lies
// in the folder beneath the mount point is nobody's. Taken for the disk, a valid member would count as empty or
// unknown.
func (d *diskState) open() table.DiskFacts {
	f := d.mounted()
	switch {
	case f.Wanted != "" && !f.Mounted:
		d.opened, d.etcd = false, nil
		d.agent.File, d.agent.Err = table.AgentFile{}, nil
	case !d.opened:
		d.opened = true
		d.agent.File, d.agent.Err = datadir.LoadAgentFile(d.cfg.dir().AgentFile())
		if d.agent.File.Replica == d.cfg.Me.Place {
			d.reported.noteAgentFile(d.agent.File)
		}
	}
	return f
}

// mounted tells whether the configured data disk is mounted at the data directory. It may be called at any time.
func (d *diskState) mounted() table.DiskFacts {
	f := table.DiskFacts{Wanted: d.cfg.Cluster.Etcd.DataDisk, DataDir: d.cfg.Cluster.Etcd.DataDir}
	if f.Wanted == "" {
		return f
	}
	mounts, err := os.ReadFile(d.mountinfo)
	if err != nil {
		return f
	}
	f.Mounted = datadir.MountedAt(string(mounts), d.cfg.Cluster.Etcd.DataDir)
	return f
}

// noteStart notes that the member is being started: its directory is its own from then on. joins: as one that joins.
func (d *diskState) noteStart(joins bool) {
	d.forget()
	d.check.starts = d.check.starts.Again(joins, time.Now())
}

// forget lets the directory be read again: a step may change it.
func (d *diskState) forget() { d.etcd = nil }

// reading says how the directory is to be observed: while the member runs it is the member's own.
type reading struct {
	running bool
	// due: it has to be read. key is of what is there (datadir.Key), err why it cannot be read now.
	due bool
	key string
	err error
}

// stopToRead ends a child that waits to be started again, where its directory has to be read: it would write meanwhile.
// A directory is read again only when something was done to it, by us or by a person who put another in its place:
// reading a log of gigabytes at each observation would make every wait slow. keeping: the supervisor starts the child
// again, and has the directory in hand between two starts.
func (d *diskState) stopToRead(ctx context.Context, keeping bool) reading {
	if keeping || d.own.Running() {
		d.forget()
		return reading{running: true}
	}
	if !d.opened {
		return reading{}
	}
	key, err := datadir.Key(d.cfg.dir().Etcd())
	if err == nil && key == "" {
		d.forget()
	}
	if d.etcd != nil && err == nil && key == d.key && (d.etcd.OpenErr != nil || !d.check.due()) {
		return reading{}
	}
	ctx, cancel := context.WithTimeout(ctx, acts.StopTimeout)
	defer cancel()
	if err := d.own.Stop(ctx); err != nil {
		return reading{err: fmt.Errorf("etcd has to be stopped before that: %w", err)}
	}
	return reading{due: true, key: key}
}

// directory reads etcd's directory, or asks the member that runs on it.
func (d *diskState) directory(ctx context.Context, r reading) table.Directory {
	switch {
	case r.running:
		return d.runningDirectory(ctx)
	case !d.opened:
		return table.Directory{}
	case r.err != nil:
		return table.Directory{Exists: true, ReadErr: r.err}
	case !r.due:
		return d.withEnd(*d.etcd)
	}
	found, err := datadir.Read(d.cfg.dir().Etcd())
	if err != nil {
		return table.Directory{Exists: true, ReadErr: err}
	}
	d.check.read(ctx, &found)
	d.etcd, d.key, d.former = &found, r.key, found
	return d.withEnd(found)
}

// withEnd adds how etcd ended on the directory.
func (d *diskState) withEnd(found table.Directory) table.Directory {
	if found.Exists {
		found.End = member.ReadEnd(d.cfg.statusSocket(), d.cfg.dir().Etcd())
		if found.End.Text == "" { // a panic leaves no last word; without a number of times it condemns nothing
			found.End.Text = d.cfg.Child.Ended()
		}
	}
	return found
}

// runningDirectory is what the running member says of itself.
func (d *diskState) runningDirectory(ctx context.Context) table.Directory {
	said := table.Directory{Running: true, Exists: true, MemberID: d.agent.File.MemberID}
	s, err := d.own.Status(ctx)
	said.Silent = err != nil && ctx.Err() == nil
	if err == nil {
		said.MemberID, said.ClusterID, said.Term, said.Commit = s.MemberID, s.ClusterID, s.Term, s.Committed
		said.Leaderless = s.MemberID != 0 && s.Leader == 0
		for _, e := range s.Members {
			if e.Learner {
				said.Learners = append(said.Learners, e.ID)
			} else {
				said.Voters = append(said.Voters, e.ID)
			}
		}
	}
	_, err = os.Stat(filepath.Join(d.cfg.dir().Etcd(), datadir.Marker))
	said.Marker = err == nil
	return said.AsRead(d.former)
}

// noteDamage writes down what reading the database whole has found, next to the database. Where that fails this
// agent knows it all the same, and the next one finds it again.
func (d *diskState) noteDamage() {
	found := d.check.damage
	if found == nil {
		return
	}
	d.check.damage = nil
	d.cfg.Log.Warn("the database is damaged", "found", found.Text)
	err := d.cfg.at(acts.StepNoteDamage, func() error { return found.Save(d.cfg.dir().Etcd(), d.files.write) })
	if err != nil {
		d.cfg.Log.Warn("note the damage", "err", err.Error())
	}
}

// room asks how full the data disk is; zero: it is not known.
func (d *diskState) room() table.Room {
	r, err := d.roomOf(d.cfg.Cluster.Etcd.DataDir)
	if err != nil {
		return table.Room{}
	}
	return r
}

// roomOf asks how full a disk is.
func roomOf(dir string) (table.Room, error) {
	free, total, err := local.Room(dir)
	return table.Room{Free: free, Total: total}, err
}
