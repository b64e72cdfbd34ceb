package acts

import (
	"context"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/quorate/quorate/etcdmember/table"
	"github.com/quorate/quorate/internal/record"
)

// mishap is one thing that goes wrong.
type mishap struct {
	name string
	do   func(w *world, v *vm) bool
}

var faultsOfWalk = []mishap{
	{"the agent crashes", func(w *world, v *vm) bool { w.crash(v); return v.on }},
	{"etcd exits", func(w *world, v *vm) bool { ran := v.etcd != nil; v.etcd = nil; return ran }},
	{"the VM is reset", func(w *world, v *vm) bool { w.boot(v); return true }},
	{"the VM is stopped", func(w *world, v *vm) bool { on := v.on; w.off(v); return on }},
	{"the VM is recreated, its disk kept",
		func(w *world, v *vm) bool { w.drop(v); w.create(v.place, v.disk); return true }},
	{"the VM is recreated with an empty disk", func(w *world, v *vm) bool {
		w.drop(v)
		delete(w.disks, v.disk.id)
		w.create(v.place, w.blankDisk())
		return true
	}},
	{"the VM is recreated with an empty disk, the old disk is left", func(w *world, v *vm) bool {
		w.drop(v)
		w.keepCopy(v.disk)
		w.create(v.place, w.blankDisk())
		return true
	}},
	{"the VM is recreated while the old one still runs", func(w *world, v *vm) bool {
		v.ghost = true
		w.create(v.place, w.blankDisk())
		return true
	}},
	{"the VM is recreated while the old one is about to join with an empty disk", func(w *world, v *vm) bool {
		f := table.HistoryOf(table.Facts{Now: w.now, Record: w.view}).Formed
		if v.newer != nil || w.unreadable(v) != nil || f == nil || w.view.Inception == nil {
			return false
		}
		v.disk = &data{id: v.disk.id}
		w.boot(v)
		taken := len(w.view.Replicas[places[v.place]])
		v.actor.Take(context.Background(), table.Facts{Now: w.now, DiskID: v.disk.id, Record: w.copyOfView()},
			table.Plan{Act: table.ActTakeIncarnation, Epoch: f.Number, Incarnation: uint64(taken + 1)})
		w.readRecord(v)
		v.ghost, v.slow = true, 8+w.random.IntN(15)
		w.create(v.place, w.blankDisk())
		return true
	}},
	{"the VM is recreated with a clone while the old one still runs", func(w *world, v *vm) bool {
		v.ghost = true
		w.create(v.place, w.clone(v.disk))
		return true
	}},
	{"the disk is emptied in place", func(w *world, v *vm) bool {
		v.disk = &data{id: v.disk.id}
		w.boot(v)
		return true
	}},
	{"etcd's directory is deleted, agent.json stays", func(w *world, v *vm) bool {
		had := v.disk.dir != nil
		v.disk.dir = nil
		w.crash(v)
		return had
	}},
	{"the disks of two VMs are swapped", func(w *world, v *vm) bool {
		u := w.another(v)
		if u == nil {
			return false
		}
		u.disk, v.disk = v.disk, u.disk
		w.boot(u)
		w.boot(v)
		return true
	}},
	{"the disk is cloned to another place's VM", func(w *world, v *vm) bool {
		u := w.another(v)
		if u == nil {
			return false
		}
		u.disk = w.clone(v.disk)
		w.boot(u)
		return true
	}},
	{cutWhileMaking, func(w *world, v *vm) bool {
		making := v.making()
		if making {
			w.boot(v)
		}
		return making
	}},
	{"the VM boots once with a blank disk", func(w *world, v *vm) bool { return w.park(v, w.chance(50)) }},
	{"all VMs boot once with blank disks", func(w *world, v *vm) bool {
		again, any := w.chance(50), false
		for _, u := range slices.Clone(w.vms) {
			any = w.park(u, again) || any
		}
		return any
	}},
	{"agent.json is lost", func(w *world, v *vm) bool {
		if v.disk.dir == nil || v.disk.agentErr != nil || v.disk.agent.Phase == table.PhaseSeeding ||
			!w.formedCluster(v.disk.dir.cid) {
			// where nothing was formed such a directory halts its replica: it may be the wrong bucket (DESIGN.md, known
			// limits)
			return false
		}
		v.disk.agentErr = errWalk
		w.crash(v)
		return true
	}},
	{"a page of the database is damaged", func(w *world, v *vm) bool {
		if v.disk.dir == nil || v.disk.dir.page {
			return false
		}
		v.disk.dir.page = true
		w.crash(v)
		return true
	}},
	{"the VM is suspended", func(w *world, v *vm) bool {
		was := v.suspended
		v.suspended = v.on
		return v.on && !was
	}},
	{"the host fails, and the instance is started on another one", (*world).hostError},
	{"the Compute API lacks a VM that runs", func(w *world, v *vm) bool { return w.lost(v, "ABSENT") }},
	{"the Compute API calls a VM stopped that runs", func(w *world, v *vm) bool { return w.lost(v, "TERMINATED") }},
	{"a copy of the disk is kept", func(w *world, v *vm) bool { w.keepCopy(v.disk); return true }},
	{"an older copy is put back, as a new disk", func(w *world, v *vm) bool {
		c := w.copyOf(v.place)
		if c == nil {
			return false
		}
		v.disk = w.clone(c)
		w.boot(v)
		return true
	}},
	{"an older copy is put back in place", (*world).rollBack},
	{"the directory is corrupt", func(w *world, v *vm) bool {
		if v.disk.dir == nil {
			return false
		}
		v.disk.dir.corrupt = true
		w.crash(v)
		return true
	}},
	{"a byte of the database flips", func(w *world, v *vm) bool {
		if v.disk.dir == nil || v.disk.dir.first == 0 { // who joins would have it right from the log, again and again
			return false
		}
		v.disk.dir.flipped = w.next()
		return true
	}},
	{"a database is full", func(w *world, v *vm) bool { return v.fill() }},
	{"all databases are full", func(w *world, v *vm) bool {
		any := false
		for _, u := range w.vms {
			any = u.fill() || any
		}
		return any
	}},
	{"the network is cut", func(w *world, v *vm) bool {
		for _, u := range w.vms {
			u.side = w.random.IntN(2)
		}
		return true
	}},
	{"the network is cut from one VM to another", func(w *world, v *vm) bool {
		u := w.another(v)
		if u != nil {
			w.cuts[[2]*vm{v, u}] = true
		}
		return u != nil
	}},
	{"the record is unreadable for one", func(w *world, v *vm) bool { v.blind = true; return true }},
	{"the record is unreadable for all", func(w *world, v *vm) bool {
		for _, u := range w.vms {
			u.blind = true
		}
		return true
	}},
	{"an object of the record is lost", (*world).loseObject},
	{"the Compute API fails", func(w *world, v *vm) bool { w.computeErr = true; return true }},
	{"the Compute API's list is empty", func(w *world, v *vm) bool { w.computeEmpty = true; return true }},
	{"the Compute API's list is late", func(w *world, v *vm) bool { w.computeLate = true; return true }},
}

const cutWhileMaking = "the power is cut while a directory is made"

// making: its act has begun a directory and not finished it.
func (v *vm) making() bool {
	return v.on && v.etcd == nil && v.disk.dir != nil && v.disk.dir.corrupt && v.busy()
}

func (w *world) fault() {
	v := w.vms[w.random.IntN(len(w.vms))]
	if v.ghost {
		return
	}
	f := faultsOfWalk[w.random.IntN(len(faultsOfWalk))]
	if v.making() && w.chance(20) { // that moment is short
		f = faultsOfWalk[slices.IndexFunc(faultsOfWalk, func(m mishap) bool { return m.name == cutWhileMaking })]
	}
	w.log("FAULT %s: %s", v.id, f.name)
	if !f.do(w, v) {
		w.history = w.history[:len(w.history)-1]
		return
	}
	w.injected[f.name]++
	w.faults--
}

// fill lets the database reach its quota.
func (v *vm) fill() bool {
	d := v.disk.dir
	if d == nil || d.full {
		return false
	}
	d.space = space{true, d.conf.compactions}
	return true
}

// park takes the disk of a VM out of its place for a while: the VM is started again, or made again, with a blank one.
func (w *world) park(v *vm, again bool) bool {
	if v.ghost || w.parked[v.place] != nil || v.fenced {
		return false
	}
	w.parked[v.place] = v.disk
	if again {
		w.drop(v)
		w.create(v.place, w.blankDisk())
		return true
	}
	v.disk = w.blankDisk()
	w.boot(v)
	return true
}

// unpark brings a disk back into its place. The blank one stays where it is, attached to nobody.
func (w *world) unpark(place int) {
	d := w.parked[place]
	v := w.inPlace(&record.RestoreOrder{Replica: places[place]})
	if d == nil || v == nil || v.newer != nil {
		return
	}
	delete(w.parked, place)
	w.log("disk %s comes back to place %d", d.id, place)
	if w.chance(50) {
		w.drop(v)
		w.create(place, d)
		return
	}
	v.disk = d
	w.boot(v)
}

// hostError is GCE's: the cloud gives a VM's host up and starts the same instance on another one, with its disk and its
// address. The former one may run on, with nobody but the bucket in its reach. Mostly its writes reach no disk any
// more; else its disk is a copy, as nothing that Google promises excludes, and then it is one of several voters: a
// voter that is alone could go on without anybody to tell it.
func (w *world) hostError(v *vm) bool {
	if !v.on || v.newer != nil || v.suspended {
		return false
	}
	u := &vm{place: v.place, id: v.id, disk: v.disk.copied(v.disk.id)}
	several := v.disk.dir != nil && v.disk.agent.Phase == table.PhaseStarted && len(v.disk.dir.conf.voters) > 1 &&
		slices.Contains(v.disk.dir.conf.voters, v.disk.dir.id)
	v.ghost, v.newer, v.fenced = true, u, !several || w.chance(60)
	v.blind = v.fenced && w.chance(50)
	if v.disk.dir != nil {
		v.disk.dir.left = true
	}
	v.breakOff()
	w.vms = append(w.vms, u)
	w.boot(u)
	return true
}

// lost is a host that has lost its way to Google's control plane. A VM that is no user of its disk any more cannot
// write to it. A host that is said to have stopped is noticed, and ended, within 330 s.
func (w *world) lost(v *vm, said string) bool {
	if !v.on || v.newer != nil || v.said != "" {
		return false
	}
	v.said, v.stoppedAt = said, w.now
	v.blind = w.chance(50)
	if said == "TERMINATED" {
		v.fails = w.now.Add(time.Duration(w.random.IntN(330)) * time.Second)
		return true
	}
	v.noUser = w.chance(50)
	v.fenced = v.noUser
	v.breakOff()
	return true
}

func (w *world) clone(d *data) *data {
	c := d.copied(w.blankDisk().id)
	return c
}

func (w *world) keepCopy(d *data) { w.older = append(w.older, d.copied(d.id)) }

func (w *world) another(v *vm) *vm {
	u := w.vms[w.random.IntN(len(w.vms))]
	if u == v || u.ghost {
		return nil
	}
	return u
}

// copyOf is a copy of a disk that was of this place.
func (w *world) copyOf(place int) *data {
	for _, c := range w.older {
		if c.agent.Replica == places[place] && c.dir != nil {
			return c
		}
	}
	return nil
}

// rollBack puts an older copy back under the same disk id. What ends above the last mark is told by the leader, if it
// is there to be asked (checkEarlier); where the mark or the incarnation that tell it are lost is left out.
func (w *world) rollBack(v *vm) bool {
	c := w.copyOf(v.place)
	if c == nil || c.id != v.disk.id || w.restoreLost != nil {
		return false
	}
	mark := w.view.Marks[c.dir.id]
	told := mark.Epoch == c.agent.Epoch && (mark.Applied > uint64(len(c.dir.log))*indexUnit || mark.Term > c.dir.term)
	for _, i := range w.view.Replicas[places[v.place]] {
		told = told || i.Started != nil && i.Number > c.agent.Incarnation
	}
	v.disk = c.copied(c.id)
	v.disk.dir.earlier = !told && v.disk.dir.version != w.ever[v.disk.dir.who()]
	w.boot(v)
	return true
}

// loseObject takes one object out of the record, once in a walk; after a disk was copied that can be the one that tells
// the copy from the disk, so it is not both.
func (w *world) loseObject(*vm) bool {
	n := len(w.view.Epochs)
	if w.restoreLost != nil || n == 0 || len(w.older) > 0 {
		return false
	}
	e := w.view.Epochs[n-1].Number
	switch w.random.IntN(3) {
	case 0:
		was := w.view.Inception
		w.view.Inception = nil
		w.restoreLost = func() { w.view.Inception = was }
	case 1:
		was := w.epoch(e).Claim
		w.epoch(e).Claim = nil
		w.restoreLost = func() { w.epoch(e).Claim = was }
	default:
		was := w.epoch(e).Outcome
		if was == nil || was.Formed == nil || !w.provenFormed(e) {
			return false
		}
		w.epoch(e).Outcome = nil
		w.restoreLost = func() {
			if w.epoch(e).Outcome == nil {
				w.epoch(e).Outcome = was
			}
		}
	}
	return true
}

// provenFormed: something else proves that the epoch was formed. That nothing does, a lone voter without a mark, is the
// loss that the page says cannot be survived.
func (w *world) provenFormed(e uint64) bool {
	for _, m := range w.view.Marks {
		if m.Epoch == e {
			return true
		}
	}
	return len(w.epoch(e).Stopped) > 0
}

// ease ends what does not last.
func (w *world) ease(v *vm) {
	switch w.random.IntN(6) {
	case 4:
		for p := range w.places {
			w.unpark(p)
		}
	case 5:
		v.suspended = false
	case 0:
		clear(w.cuts)
		for _, u := range w.vms {
			u.side = 0
		}
	case 1:
		v.blind = false
	case 2:
		w.computeErr, w.computeEmpty, w.computeLate = false, false, false
	case 3:
		if !v.on && !v.ghost && v.said == "" {
			w.boot(v)
		}
	}
}

// heal ends every fault and does what the shown waits ask of a person: start what is stopped, delete what is
// superseded, rebuild the record.
func (w *world) heal() {
	w.computeErr, w.computeEmpty, w.computeLate = false, false, false
	clear(w.cuts)
	if w.restoreLost != nil {
		w.restoreLost()
	}
	for _, v := range slices.Clone(w.vms) {
		if v.said == "ABSENT" {
			v.foundAgain = w.now
		}
		v.side, v.blind, v.suspended, v.said, v.noUser, v.fails = 0, false, false, "", false, time.Time{}
		switch {
		case v.newer != nil:
			w.drop(v)
		case v.ghost:
			w.drop(v)
			delete(w.disks, v.disk.id)
		case v.fenced: // its host is given up, and the VM started elsewhere
			v.fenced = false
			w.boot(v)
		case !v.on:
			w.boot(v)
		}
	}
	for p := range w.places {
		w.unpark(p)
	}
	slices.SortFunc(w.vms, func(a, b *vm) int { return a.place - b.place })
	w.resume()
	w.log("faults end")
}

// obey does what `superseded` says: the VM is deleted, and made again. An old VM of a place that never took an
// incarnation can take one after its successor did (DESIGN.md, known limits), so the one that stays can be the one that
// is superseded.
func (w *world) obey() {
	for _, v := range slices.Clone(w.vms) {
		if v.blocked != nil && v.blocked.Name == "superseded" {
			w.drop(v)
			w.create(v.place, v.disk)
			w.log("%s is made again", v.id)
		}
	}
	w.stopNamed()
	w.nameWrong()
}

// stopNamed does what `restore-waits` says: the VMs that it names are stopped, and started again when the restore is
// done.
func (w *world) stopNamed() {
	waits := slices.IndexFunc(w.vms, func(v *vm) bool { return v.blocked != nil && v.blocked.Name == "restore-waits" })
	for _, v := range w.vms {
		switch {
		case waits >= 0 && v.on && v != w.vms[waits] && strings.Contains(w.vms[waits].blocked.Reason,
			"(instance "+v.id+")"):
			w.off(v)
			w.log("%s is stopped for the restore", v.id)
			w.noteStop(v)
		case !v.on && !w.ending():
			w.boot(v)
		}
	}
}

// noteStop is what `quorate restore --stop-vms` writes once its operation has ended.
func (w *world) noteStop(v *vm) {
	for i := range w.view.Orders {
		o := &w.view.Orders[i]
		if o.Restore == nil {
			continue
		}
		o.VMStops = maps.Clone(o.VMStops)
		if o.VMStops == nil {
			o.VMStops = map[string]record.VMStop{}
		}
		o.VMStops[v.id] = record.VMStop{InstanceID: v.id, By: "person", Written: w.now}
	}
}
