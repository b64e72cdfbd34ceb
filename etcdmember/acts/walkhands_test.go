package acts

import (
	"context"
	"fmt"
	"slices"

	"github.com/quorate/quorate/etcdmember/table"
	"github.com/quorate/quorate/internal/record"
	"github.com/quorate/quorate/internal/replica"
)

// What an act of the walk writes to. Each write may fail, before or after it takes effect.

// walkRecord is the record as one VM reaches it.
type walkRecord struct {
	w *world
	v *vm
}

// create makes an object where there is none, and returns what the record holds then.
func create[T any](r walkRecord, find func() *T, put func()) (got T, won bool, err error) {
	if err := r.w.unreadable(r.v); err != nil {
		return got, false, err
	}
	if find() == nil {
		put()
		won = true
	}
	at := find()
	if at == nil {
		return got, false, errWalk // what it belongs to is lost
	}
	if !r.w.calm && r.w.chance(3) {
		return got, won, errWalk // its answer is lost
	}
	return *at, won, nil
}

func (r walkRecord) CreateClaim(_ context.Context, n uint64, c record.Claim) (record.Claim, bool, error) {
	return create(r, func() *record.Claim {
		if e := r.w.epoch(n); e != nil {
			return e.Claim
		}
		return nil
	}, func() {
		// Another claim in the place of one that was lost is another history: a person has to say which one counts
		// (row 5).
		if r.w.epoch(n) == nil {
			r.w.view.Epochs = append(r.w.view.Epochs, record.Epoch{Number: n, Claim: &c})
		}
	})
}

func (r walkRecord) CreateOutcome(_ context.Context, n uint64, o record.Outcome) (record.Outcome, bool, error) {
	return create(r, func() *record.Outcome {
		if e := r.w.epoch(n); e != nil {
			return e.Outcome
		}
		return nil
	}, func() {
		e := r.w.epoch(n)
		if e == nil {
			return
		}
		e.Outcome = &o
		r.w.checkOutcome(e)
		if d := r.v.disk.dir; o.Formed != nil && d != nil && d.cid == o.Formed.ClusterID {
			r.w.checkRestored(e, d)
		}
	})
}

func (r walkRecord) CreateStopped(_ context.Context, n uint64, s record.Stopped) (record.Stopped, bool, error) {
	return create(r, func() *record.Stopped {
		e := r.w.epoch(n)
		if e == nil {
			return nil
		}
		i := slices.IndexFunc(e.Stopped,
			func(x record.Stopped) bool { return x.Place == s.Place && x.Incarnation == s.Incarnation })
		if i < 0 {
			return nil
		}
		return &e.Stopped[i]
	}, func() {
		if e := r.w.epoch(n); e != nil {
			e.Stopped = append(slices.Clip(e.Stopped), s)
		}
	})
}

func (r walkRecord) CreateIncarnation(_ context.Context, i record.Incarnation) (record.Incarnation, bool, error) {
	return create(r, func() *record.Incarnation { return r.w.incarnation(r.v.place, i.Number) }, func() {
		i.Written = r.w.now
		r.w.view.Replicas[i.Place] = append(r.w.view.Replicas[i.Place], i)
	})
}

func (r walkRecord) ConfirmIncarnation(_ context.Context, _ replica.Place, k uint64,
	s record.Started) (record.Started, bool, error) {
	return create(r, func() *record.Started {
		if i := r.w.incarnation(r.v.place, k); i != nil {
			return i.Started
		}
		return nil
	}, func() {
		if i := r.w.incarnation(r.v.place, k); i != nil {
			i.Started = &s
		}
	})
}

func (w *world) incarnation(place int, k uint64) *record.Incarnation {
	for i := range w.view.Replicas[places[place]] {
		if inc := &w.view.Replicas[places[place]][i]; inc.Number == k {
			return inc
		}
	}
	return nil
}

func (w *world) epoch(n uint64) *record.Epoch {
	for i := range w.view.Epochs {
		if w.view.Epochs[i].Number == n {
			return &w.view.Epochs[i]
		}
	}
	return nil
}

func (w *world) orderOf(n uint64) *record.Order {
	for i := range w.view.Orders {
		if w.view.Orders[i].Number == n {
			return &w.view.Orders[i]
		}
	}
	return &record.Order{}
}

func (r walkRecord) AcceptOrder(_ context.Context, n uint64, a record.Accepted) (record.Accepted, bool, error) {
	o := r.w.orderOf(n)
	return create(r, func() *record.Accepted { return o.Accepted }, func() {
		r.w.checkAccepted(r.v, o)
		o.Accepted = &a
	})
}

func (r walkRecord) SettleOrder(_ context.Context, n uint64, v record.Verdict) (record.Verdict, bool, error) {
	o := r.w.orderOf(n)
	return create(r, func() *record.Verdict { return o.Verdict }, func() { r.w.writeVerdict(r.v, n, v.Closing) })
}

func (r walkRecord) CreateClosed(_ context.Context, n uint64, c record.Closed) (record.Closed, bool, error) {
	e := r.w.epoch(n)
	return create(r, func() *record.Closed { return e.Closed }, func() {
		r.w.checkSilence(r.v, n)
		e.Closed = &c
	})
}

func (r walkRecord) CreateOrder(_ context.Context, o record.Order) (record.Order, error) {
	if err := r.w.unreadable(r.v); err != nil {
		return o, err
	}
	r.w.order(o, r.w.shows(o.Restore, true))
	if !r.w.calm && r.w.chance(3) {
		return o, errWalk
	}
	return o, nil
}

func (r walkRecord) View(context.Context) (record.View, error) {
	return r.w.copyOfView(), r.w.unreadable(r.v)
}

// walkDisk is the data disk of one VM.
type walkDisk struct {
	w *world
	v *vm
}

// write is one write to the disk: a disk that another host has takes none.
func (d walkDisk) write(do func()) error {
	if d.v.fenced {
		return errWalk
	}
	fails, after := !d.w.calm && d.w.chance(1), false
	if fails {
		after = d.w.chance(50)
	}
	if !fails || after {
		do()
	}
	if fails {
		d.w.log("%s a write to disk %s fails, done %t", d.v.id, d.v.disk.id, after)
		d.w.passing++
		return errWalk
	}
	return nil
}

func (d walkDisk) writeAgent(a table.AgentFile) error {
	return d.write(func() { d.v.disk.agent, d.v.disk.agentErr = a, nil })
}

func (d walkDisk) HasDirectory() bool { return d.v.disk.dir != nil }

func (d walkDisk) Archive() error { return d.write(d.v.disk.archive) }

func (d walkDisk) MarkWhole(string) error {
	if d.v.disk.dir == nil {
		return errWalk
	}
	return d.write(func() { d.v.disk.dir.marker = true })
}

// CheckSource finds a damaged page wherever nobody has the database open.
func (d walkDisk) CheckSource(_ context.Context, f table.Facts, s record.Source) error {
	d.v.stands("read the source")
	if s.Kind == record.SourceSnapshot {
		if d.w.snapshot(s.Snapshot).Name == "" {
			return fmt.Errorf("no snapshot %s", s.Snapshot)
		}
		return nil
	}
	if f.Directory.Running && f.Directory.MemberID == s.MemberID {
		return nil
	}
	from := d.source(s)
	switch {
	case from == nil:
		return fmt.Errorf("no directory of %s", s.MemberID)
	case from.corrupt || from.page:
		d.w.unfit++
		return fmt.Errorf("the directory of %s is damaged", s.MemberID)
	}
	return nil
}

// source is the directory of a member: the one in place, or the archive that reaches furthest.
func (d walkDisk) source(s record.Source) (from *dir) {
	for _, x := range append(slices.Clone(d.v.disk.archives), d.v.disk.dir) {
		if x != nil && x.id == s.MemberID && !x.corrupt && (from == nil || len(x.log) > len(from.log)) {
			from = x
		}
	}
	return from
}

func (d walkDisk) MakeRestored(_ context.Context, _ table.Facts, p table.Plan, token string) error {
	made := d.w.restored(d.v, p)
	if made == nil {
		return errWalk
	}
	made.cid = d.w.clusterOf(token)
	return d.write(func() { d.v.disk.made = made })
}

func (d walkDisk) MarkRestored(string) error {
	return d.write(func() { d.v.disk.made.marker = true })
}

func (d walkDisk) PlaceRestored() error {
	if d.v.disk.dir != nil {
		return errWalk // a folder that is not empty is in its place
	}
	return d.write(func() { d.v.disk.dir, d.v.disk.made = d.v.disk.made, nil })
}

// archive renames the directory away.
func (d *data) archive() {
	if d.dir != nil {
		d.archives, d.dir = append(slices.Clip(d.archives), d.dir), nil
	}
}

// walkMember is etcd's process on one VM.
type walkMember struct {
	w *world
	v *vm
}

func (m walkMember) Running() bool { return m.v.etcd != nil }

// Start begins a directory where there is none. It is half made until etcd runs, and the power can be cut in that: etcd
// cannot start on it then, and its process ends right after its start.
func (m walkMember) Start(_ context.Context, s Start) error {
	w, v := m.w, m.v
	if v.fenced {
		return errWalk
	}
	if v.etcd != nil {
		return nil
	}
	w.countStart(v, s.MemberID != 0)
	switch d := v.disk.dir; {
	case d != nil && d.page: // etcd opens it, and ends
		return nil
	case d != nil && d.corrupt:
		return nil
	case d == nil && s.New:
		v.disk.dir = w.seeded(v, s.Token)
		v.stands("etcd makes its directory")
	case d == nil && s.MemberID != 0:
		formed := table.HistoryOf(table.Facts{Now: w.now, Record: w.view}).Formed
		if formed == nil {
			return nil
		}
		v.disk.dir = &dir{cid: formed.Outcome.Formed.ClusterID, id: s.MemberID, corrupt: true}
		v.stands("etcd makes its directory")
	case d == nil:
		return nil
	}
	if v.disk.dir == nil || v.etcd != nil {
		return nil
	}
	v.disk.dir.corrupt = false
	w.launch(v)
	return nil
}

// seeded is the directory of a seed: the same token makes the same cluster and member.
func (w *world) seeded(v *vm, token string) *dir {
	d := &dir{cid: w.clusterOf(token), id: record.MemberID(v.place+1)<<40 | record.MemberID(v.disk.agent.Epoch)<<32,
		term: 1}
	d.log = []logEntry{{term: 1, kind: addVoter, id: d.id, place: v.place}}
	d.commit, d.conf, d.corrupt = 1, conf{}.apply(d.log[0]), true
	return d
}

// Served ends with a linearizable read. Others may have joined by now, and been given the leadership.
func (m walkMember) Served(context.Context) (record.MemberID, record.MemberID, error) {
	w, v := m.w, m.v
	v.stands("stand for leader")
	if v.etcd == nil || w.leaderOf(v) == nil && !w.elect(v) {
		return 0, 0, errWalk
	}
	v.stands("read through the leader")
	if v.etcd == nil {
		return 0, 0, errWalk
	}
	l := w.leaderOf(v)
	if l == nil {
		return 0, 0, errWalk
	}
	w.commitAll(l)
	if v.etcd == nil || l.etcd == nil || !w.linearizable(l) {
		return 0, 0, errWalk
	}
	return v.etcd.cid, v.etcd.id, nil
}

func (m walkMember) HandOver(context.Context) error { return nil } // the others elect

func (m walkMember) Stop(context.Context) error { m.v.etcd = nil; return nil }

// walkCluster is etcd's client.
type walkCluster struct {
	w *world
	v *vm
}

func (c walkCluster) AddLearner(_ context.Context, via table.Answer) (record.MemberID, error) {
	id := record.MemberID(c.v.place+1)<<40 | record.MemberID(c.w.now.Unix()-t0.Unix())
	return id, c.request(via, logEntry{kind: addLearner, id: id, place: c.v.place})
}

func (c walkCluster) RemoveMember(_ context.Context, via table.Answer, id record.MemberID) error {
	return c.request(via, logEntry{kind: remove, id: id})
}

// request asks the member that answered through quorum. Only a clear yes lets the act go on.
func (c walkCluster) request(via table.Answer, e logEntry) error {
	w, u := c.w, c.w.byInstance(via.InstanceID)
	if u == nil || u.etcd == nil || !w.reach(c.v, u) {
		return errWalk
	}
	l := w.leaderOf(u)
	if l == nil || !slices.Contains(u.etcd.conf.voters, u.etcd.id) || !w.linearizable(l) {
		return errWalk
	}
	if e.kind == remove && !l.etcd.conf.has(e.id) {
		return nil // an earlier try took effect after all
	}
	if w.propose(u, e) != done {
		return errWalk
	}
	return nil
}
