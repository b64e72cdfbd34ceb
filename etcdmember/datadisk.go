package etcdmember

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"github.com/quorate/quorate/etcdmember/acts"
	"github.com/quorate/quorate/etcdmember/datadir"
	"github.com/quorate/quorate/etcdmember/member"
	"github.com/quorate/quorate/etcdmember/table"
)

// openDisk looks whether the data disk is there, and reads agent.json once it is. Until then nothing is read: what lies
// in the folder beneath the mount point is nobody's, and taken for the disk it would make a valid member look empty or
// unknown.
func (m *Membership) openDisk() table.DiskFacts {
	d := m.diskFacts()
	switch {
	case d.Wanted != "" && !d.Mounted:
		m.opened, m.directory = false, nil
		m.agent.File, m.agent.Err = table.AgentFile{}, nil
	case !m.opened:
		m.opened = true
		m.agent.File, m.agent.Err = datadir.LoadAgentFile(m.cfg.dir().AgentFile())
		if m.agent.File.Replica == m.cfg.Me.Place {
			m.mu.Lock()
			m.shown.clusterUID, m.shown.incarnation = m.agent.File.ClusterUID, m.agent.File.Incarnation
			m.mu.Unlock()
		}
	}
	return d
}

// diskFacts tells whether the configured data disk is mounted at the data directory.
func (m *Membership) diskFacts() table.DiskFacts {
	d := table.DiskFacts{Wanted: m.cfg.Cluster.Etcd.DataDisk, DataDir: m.cfg.Cluster.Etcd.DataDir}
	if d.Wanted == "" {
		return d
	}
	mounts, err := os.ReadFile(m.mountinfo)
	if err != nil {
		return d
	}
	d.Mounted = datadir.MountedAt(string(mounts), m.cfg.Cluster.Etcd.DataDir)
	return d
}

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
// reading a log of gigabytes at each observation would make every wait slow.
func (m *Membership) stopToRead(ctx context.Context) reading {
	// between two starts of a kept child, the supervisor has the directory in hand
	if m.keeping || m.cfg.Child.Running() {
		m.directory = nil
		return reading{running: true}
	}
	if !m.opened {
		return reading{}
	}
	key, err := datadir.Key(m.cfg.dir().Etcd())
	if err == nil && key == "" {
		m.directory = nil
	}
	if m.directory != nil && err == nil && key == m.directoryKey && (m.directory.OpenErr != nil || !m.checkDue()) {
		return reading{}
	}
	ctx, cancel := context.WithTimeout(ctx, acts.StopTimeout)
	defer cancel()
	if err := m.cfg.Child.Stop(ctx); err != nil {
		return reading{err: fmt.Errorf("etcd has to be stopped before that: %w", err)}
	}
	return reading{due: true, key: key}
}

// observeDirectory reads the directory, or asks the member that runs on it.
func (m *Membership) observeDirectory(ctx context.Context, r reading) table.Directory {
	switch {
	case r.running:
		return m.runningDirectory(ctx)
	case !m.opened:
		return table.Directory{}
	case r.err != nil:
		return table.Directory{Exists: true, ReadErr: r.err}
	case !r.due:
		return m.withEnd(*m.directory)
	}
	d, err := datadir.Read(m.cfg.dir().Etcd())
	if err != nil {
		return table.Directory{Exists: true, ReadErr: err}
	}
	m.lookForDamage(ctx, &d)
	m.directory, m.directoryKey, m.lastRead = &d, r.key, d
	return m.withEnd(d)
}

// withEnd adds how etcd ended on the directory.
func (m *Membership) withEnd(d table.Directory) table.Directory {
	if d.Exists {
		d.End = member.ReadEnd(m.StatusSocket(), m.cfg.dir().Etcd())
	}
	return d
}

// runningDirectory is what the running member says of itself.
func (m *Membership) runningDirectory(ctx context.Context) table.Directory {
	d := table.Directory{Running: true, Exists: true, MemberID: m.agent.File.MemberID}
	if s, err := m.Status(ctx); err == nil {
		d.MemberID, d.ClusterID, d.Term, d.Commit = s.MemberID, s.ClusterID, s.Term, s.Committed
		d.Leaderless = s.MemberID != 0 && s.Leader == 0
		for _, e := range s.Members {
			if e.Learner {
				d.Learners = append(d.Learners, e.ID)
			} else {
				d.Voters = append(d.Voters, e.ID)
			}
		}
	}
	_, err := os.Stat(filepath.Join(m.cfg.dir().Etcd(), datadir.Marker))
	d.Marker = err == nil
	return d.AsRead(m.lastRead)
}
