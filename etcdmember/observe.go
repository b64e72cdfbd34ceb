package etcdmember

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"go.etcd.io/etcd/api/v3/version"

	"github.com/quorate/quorate/etcdmember/datadir"
	"github.com/quorate/quorate/etcdmember/snapshot"
	"github.com/quorate/quorate/etcdmember/table"
	"github.com/quorate/quorate/internal/record"
	"github.com/quorate/quorate/internal/replica"
)

// observer reads what a decision is made of: this replica and the record (self), then who answers, and what of the
// machine and the Compute API depends on that (others). It writes nothing. What it keeps of its observations is in
// memory. Only the loop uses it.
type observer struct {
	cfg      Config
	own      *ownMember
	disk     *diskState
	asks     *asker
	lists    *computeLists
	archives *datadir.Archives
	memory   remembered
	reported *lastReported
	keeping  bool // Keep has begun: the supervisor starts the child again
}

func newObserver(cfg Config, own *ownMember, disk *diskState, a *datadir.Archives, r *lastReported) *observer {
	return &observer{cfg: cfg, own: own, disk: disk, asks: newAsker(cfg), archives: a, reported: r,
		lists:  newComputeLists(cfg.Compute, cfg.Me, cfg.DiskID),
		memory: remembered{beats: map[table.BeatKey]table.Beat{}, superseded: readSuperseded(cfg)}}
}

// self reads what stands here, and the record. It never fails: what could not be read is a fact too.
func (o *observer) self(ctx context.Context, disk table.DiskFacts, r reading) table.Facts {
	f := table.Facts{
		Now: time.Now(), Me: o.cfg.Me, Cluster: o.cfg.Cluster.Name, DiskID: o.lists.ownDisk(), Disk: disk,
		EtcdVersion: version.Version, StrangerSince: o.memory.strangerSince,
		Policy: table.Policy{Replicas: o.cfg.Cluster.Replicas,
			Survivors: o.cfg.Cluster.Survivors == replica.SurvivorsRestore},
	}
	f.Directory = o.disk.directory(ctx, r)
	f.Record, f.RecordErr = o.readRecord(ctx)
	if f.RecordErr == nil {
		f.Policy.Snapshot = snapshot.NewestOfFormed(f.Record, f.Now)
		o.reported.noteRecord(f.Record, f.Now)
		o.lists.noteInstances(f.Record)
		// f.Now may be long ago: a VM can stand still while it reads
		table.NoteBeats(o.memory.beats, f.Record, time.Now())
	}
	f.StartAnyway = o.cfg.StartAnyway != nil && o.cfg.StartAnyway()
	f.Agent, f.AgentErr = o.disk.agent.File, o.disk.agent.Err
	f.Tries, f.Superseded = o.tries(), o.memory.superseded.yes
	return f
}

// tries is what was tried, and how that came out.
func (o *observer) tries() table.Tries {
	return table.Tries{Starts: o.disk.check.starts, Checked: o.disk.check.found, Failed: o.memory.failed,
		Unfit: o.memory.unfit}
}

// others reads who answers, and what of the machine and the Compute API depends on that.
func (o *observer) others(ctx context.Context, f *table.Facts) {
	o.sources(ctx, f)
	formed := f.RecordErr == nil && f.Record.Newest().Formed() != nil
	if !formed {
		o.lists.list(ctx, f.Record) // says whom to ask
	}
	f.Beats, f.ListedBefore = maps.Clone(o.memory.beats), o.memory.listed
	f.Answers = o.asks.ask(ctx, o.addresses(f.Record, !formed))
	o.memory.noteList(*f)
	o.asks.askPeers(ctx, f)
	o.room(f)
	if formed && o.needsLists(*f) {
		o.lists.list(ctx, f.Record)
	}
	o.memory.silences.Note(f)
	f.Compute = o.lists.compute
	f.Compute.Runs = maps.Clone(o.lists.runs)
	f.FindVersions()
	if !formed && o.cfg.Preflight != nil && !f.Directory.Running {
		f.Preflight = o.cfg.Preflight(ctx)
	}
}

// room asks how full the data disk is, before a member runs on it, and where a step has failed because it is full. What
// cannot be found out is not known, and holds nothing back.
func (o *observer) room(f *table.Facts) {
	if o.disk.opened && (!f.Directory.Running || f.Tries.FailedForSpace()) {
		f.Room = o.disk.room()
	}
}

// readRecord reads the record, patiently wherever the table cannot go on without it.
func (o *observer) readRecord(ctx context.Context) (record.View, error) {
	a, me := o.disk.agent.File, o.cfg.Me
	if !o.keeping && o.disk.established() && a.InstanceID == me.InstanceID && a.BootID == me.BootID {
		bounded, cancel := context.WithTimeoutCause(ctx, RestartPatience, fmt.Errorf("no answer within %s",
			RestartPatience))
		defer cancel()
		return o.cfg.Record.View(bounded)
	}
	return o.cfg.Record.View(ctx)
}

// addresses are those of the newest incarnation of each place, the own one only while the own member runs, and, while
// nothing is formed, of every VM of this cluster that the Compute API lists.
func (o *observer) addresses(v record.View, all bool) []target {
	var out []target
	for place := range v.Replicas {
		if i := v.Last(place); i != nil && place != o.cfg.Me.Place && len(i.Addresses) > 0 {
			out = append(out, target{place, i.InstanceID, i.Addresses[0]})
		}
	}
	if o.own.Running() {
		out = append(out, target{o.cfg.Me.Place, o.cfg.Me.InstanceID, o.cfg.Me.Address()})
	}
	if !all {
		return out
	}
	for _, vm := range o.lists.vms {
		if len(vm.Addresses) == 0 || vm.Place == o.cfg.Me.Place {
			continue
		}
		if !slices.ContainsFunc(out, func(t target) bool { return t.address == vm.Addresses[0] }) {
			out = append(out, target{vm.Place, vm.InstanceID, vm.Addresses[0]})
		}
	}
	return out
}

// needsLists: nobody answers through a quorum, and it may be gone for good. A reboot with a disk, and a join, need no
// cloud service: a member that started here has been alone for longer than an election before the API is asked, and
// then also while it is stopped to be judged.
func (o *observer) needsLists(f table.Facts) bool {
	alone := o.memory.silences.Alone
	switch {
	case table.AnswersQuorum(f):
		return false
	case f.Directory.Running:
		return !alone.IsZero() && f.Now.Sub(alone) >= table.QuorumPatience
	}
	return o.disk.agent.File.Phase != table.PhaseStarted || !o.lists.compute.Second.Time.IsZero()
}

// sources finds what a restore can be made of: the snapshots in the record, and the archives on this disk. Both take
// long, so it does only where a restore is ordered or claimed, or where a policy could order one.
func (o *observer) sources(ctx context.Context, f *table.Facts) {
	if f.RecordErr != nil || f.Directory.Running {
		return
	}
	h := table.HistoryOf(*f)
	inSight := h.RestoreInSight()
	if inSight {
		f.Directory.Archives = o.archives.Read()
	}
	if inSight || h.Formed != nil && f.Agent.Phase != table.PhaseStarted && h.Wanted() == 1 {
		f.Snapshots, f.SnapshotsErr = o.cfg.Record.Snapshots(ctx)
	}
	// The newest is the one of the highest revision, which is the history's own: a time is by the clock of the VM that
	// saved it.
	var newest record.Snapshot
	for _, s := range f.Snapshots {
		if h.Formed != nil && s.Epoch == h.Formed.Number && s.Revision >= newest.Revision {
			newest = s
			f.Policy.Snapshot = &table.SnapshotRef{Name: s.Name, Epoch: s.Epoch, Revision: s.Revision, Time: s.Time}
		}
	}
}
