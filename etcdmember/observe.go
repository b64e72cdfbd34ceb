package etcdmember

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"go.etcd.io/etcd/api/v3/version"

	"github.com/quorate/quorate/etcdmember/acts"
	"github.com/quorate/quorate/etcdmember/hosts"
	"github.com/quorate/quorate/etcdmember/snapshot"
	"github.com/quorate/quorate/etcdmember/table"
	"github.com/quorate/quorate/internal/record"
	"github.com/quorate/quorate/internal/replica"
)

// gather is what a decision is made of: it observes this replica and the record, prepares what has to be ready before
// anything is decided, and observes the others. It never fails: what could not be read is a fact too. Each step is
// decided on what was read right before it and on nothing else.
func (m *Membership) gather(ctx context.Context) table.Facts {
	disk := m.openDisk()
	f := m.observeSelf(ctx, disk, m.stopToRead(ctx))
	m.prepare(&f)
	m.observeOthers(ctx, &f)
	return f
}

// observeSelf reads what stands here, and the record. It writes nothing, nor does observeOthers; what an agent
// remembers of its observations is in memory (noted.go).
func (m *Membership) observeSelf(ctx context.Context, disk table.DiskFacts, r reading) table.Facts {
	f := table.Facts{
		Now: time.Now(), Me: m.cfg.Me, Cluster: m.cfg.Cluster.Name, DiskID: m.lists.ownDisk(), Disk: disk,
		EtcdVersion: version.Version, StrangerSince: m.strangerSince,
		Policy: table.Policy{Replicas: m.cfg.Cluster.Replicas,
			Survivors: m.cfg.Cluster.Survivors == replica.SurvivorsRestore},
	}
	f.Directory = m.observeDirectory(ctx, r)
	f.Record, f.RecordErr = m.readRecord(ctx)
	if f.RecordErr == nil {
		f.Policy.Snapshot = snapshot.NewestOfFormed(f.Record, f.Now)
		m.mu.Lock()
		m.seen, m.recordRead = new(f.Record), f.Now
		m.mu.Unlock()
		m.note(f.Record)
		m.lists.noteInstances(f.Record)
		table.NoteBeats(m.beats, f.Record, time.Now()) // f.Now may be long ago: a VM can stand still while it reads
	}
	f.StartAnyway = m.cfg.StartAnyway != nil && m.cfg.StartAnyway()
	f.Agent, f.AgentErr, f.Tries, f.Superseded = m.agent.File, m.agent.Err, m.tries, m.superseded
	return f
}

// prepare writes what has to be on this machine before anything is decided, whatever that will be: what was found out
// about the directory and the record, and the peers' names. It gives back the room of a restore that was overtaken
// before room is asked for. Each of it may fail, and is tried again by the next one.
func (m *Membership) prepare(f *table.Facts) {
	if m.damage != nil {
		m.noteDamage(*m.damage)
		m.damage = nil
	}
	if f.RecordErr == nil {
		m.noteEpoch(f.Record)
		f.Agent, f.AgentErr = m.agent.File, m.agent.Err
		m.keepHosts(f.Record)
	}
	m.clearOvertaken(*f)
}

// observeOthers reads who answers, and what of the machine and the Compute API depends on that.
func (m *Membership) observeOthers(ctx context.Context, f *table.Facts) {
	m.observeSources(ctx, f)
	formed := f.RecordErr == nil && f.Record.Newest().Formed() != nil
	if !formed {
		m.lists.list(ctx, f.Record) // says whom to ask
	}
	f.Beats, f.ListedBefore = maps.Clone(m.beats), m.listed
	f.Answers = m.asks.ask(ctx, m.addresses(f.Record, !formed))
	m.noteList(*f)
	m.asks.askPeers(ctx, f)
	m.observeRoom(f)
	if formed && m.needsLists(*f) {
		m.lists.list(ctx, f.Record)
	}
	m.silences.Note(f)
	f.Compute = m.lists.compute
	f.Compute.Runs = maps.Clone(m.lists.runs)
	f.FindVersions()
	if !formed && m.cfg.Preflight != nil && !f.Directory.Running {
		f.Preflight = m.cfg.Preflight(ctx)
	}
}

// RestartPatience is how long a restart of the agent waits for what this boot of the VM has heard before: the metadata
// server, and the record for row 1. Where they answer, that takes some 0.1 s. The member is down meanwhile. What they
// might have said is made up for: the running replica polls the record, and a new document counts from the next start.
const RestartPatience = 1500 * time.Millisecond

// readRecord reads the record, patiently wherever the table cannot go on without it.
func (m *Membership) readRecord(ctx context.Context) (record.View, error) {
	a := m.agent.File
	if !m.keeping && m.Established() && a.InstanceID == m.cfg.Me.InstanceID && a.BootID == m.cfg.Me.BootID {
		bounded, cancel := context.WithTimeoutCause(ctx, RestartPatience, fmt.Errorf("no answer within %s",
			RestartPatience))
		defer cancel()
		return m.cfg.Record.View(bounded)
	}
	return m.cfg.Record.View(ctx)
}

// noteEpoch writes the newest epoch that was seen into agent.json: a record that is later found below it has been
// rolled back.
func (m *Membership) noteEpoch(v record.View) {
	ours := m.agent.File.Replica == m.cfg.Me.Place && v.Inception != nil && m.agent.File.ClusterUID == v.Inception.UID
	if len(v.Epochs) == 0 || m.agent.Err != nil || !ours {
		return
	}
	newest := v.Newest().Number
	if newest > m.agent.File.NewestEpoch {
		if err := m.at(acts.StepNoteNewestEpoch,
			func() error { return m.agent.Set(func(a *table.AgentFile) { a.NewestEpoch = newest }) }); err != nil {
			m.cfg.Log.Warn("note the newest epoch", "err", err.Error())
		}
	}
}

// keepHosts writes the peers' names into /etc/hosts: the newest incarnation of each place says where it is. Where two
// claim one address, it is this replica's, or the younger one's.
func (m *Membership) keepHosts(v record.View) {
	var newest []record.Incarnation
	for place := range v.Replicas {
		if i := v.Last(place); i != nil && place != m.cfg.Me.Place {
			newest = append(newest, *i)
		}
	}
	slices.SortFunc(newest, func(a, b record.Incarnation) int { return b.Time.Compare(a.Time) })
	peers := []replica.Peer{{Place: m.cfg.Me.Place, InstanceID: m.cfg.Me.InstanceID, Addresses: m.cfg.Me.Addresses}}
	for _, i := range newest {
		peers = append(peers, replica.Peer{Place: i.Place, Addresses: i.Addresses})
	}
	changed, err := hosts.Write(m.cfg.HostsFile, m.cfg.Cluster.Name, peers)
	if err != nil {
		m.cfg.Log.Warn("keep the hosts file", "err", err.Error())
	} else if changed {
		m.cfg.Log.Info("hosts file changed", "peers", len(peers))
	}
}

// needsLists: nobody answers through a quorum, and it may be gone for good. A reboot with a disk, and a join, need no
// cloud service: a member that started here has been alone for longer than an election before the API is asked, and
// then also while it is stopped to be judged.
func (m *Membership) needsLists(f table.Facts) bool {
	switch {
	case table.AnswersQuorum(f):
		return false
	case f.Directory.Running:
		return !m.silences.Alone.IsZero() && f.Now.Sub(m.silences.Alone) >= table.QuorumPatience
	}
	return m.agent.File.Phase != table.PhaseStarted || !m.lists.compute.Second.Time.IsZero()
}
