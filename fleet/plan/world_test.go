package plan_test

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strconv"
	"testing"

	"github.com/quorate/quorate/fleet/plan"
	"github.com/quorate/quorate/internal/replica"
)

const region = "us-central1"

var zones = []string{region + "-a", region + "-b", region + "-c"}

// world is a project with a cluster, in memory: what is, and not what an API says of it. Its agents do what quorate's
// do about the membership, in a few lines.
type world struct {
	t      *testing.T
	rng    *rand.Rand
	vms    map[replica.Place]*vm
	disks  map[string]*plan.Disk // by zone and name
	member map[replica.Place]*member
	rec    plan.Record
	ids    int
	// past are earlier lists, for an API that is late.
	past []lists
	// lied is the lie of the last inventory of a command that was to be one.
	lied lie
	// balancer is the load balancer on demand; nil: the document asks for none.
	balancer *balancer
}

type vm struct {
	plan.VM
	// dead: it runs and does nothing.
	dead bool
}

type member struct {
	voter        bool
	disk, runsOn string // the ids of its disk and of its VM
}

type lists struct {
	vms    []plan.VM
	disks  []plan.Disk
	around plan.Surroundings
}

func (w *world) id() string { w.ids++; return strconv.Itoa(1000 + w.ids) }

func (w *world) alive(p replica.Place) bool {
	v, m := w.vms[p], w.member[p]
	return v != nil && m != nil && !v.dead && m.runsOn == v.InstanceID
}

func (w *world) votes() (voters, touch int) {
	for p, m := range w.member {
		if m.voter {
			voters++
			if w.alive(p) {
				touch++
			}
		}
	}
	return voters, touch
}

func (w *world) hasQuorum() bool {
	voters, touch := w.votes()
	return voters > 0 && touch > voters/2
}

func (w *world) places() []replica.Place {
	return slices.SortedFunc(maps.Keys(w.vms), replica.ComparePlaces)
}

func (w *world) leave(p replica.Place) *plan.Leave {
	for n := range w.rec.Leaves {
		if w.rec.Leaves[n].Place == p {
			return &w.rec.Leaves[n]
		}
	}
	return nil
}

func (w *world) diskOf(v *vm) *plan.Disk { return w.disks[v.Zone+"/"+v.DataDisk] }

// tick lets each agent do one thing.
func (w *world) tick() {
	for _, p := range w.places() {
		if v := w.vms[p]; !v.dead && w.leave(p) == nil {
			w.joins(p, v)
		}
	}
	if !w.hasQuorum() {
		return
	}
	for n := range w.rec.Leaves {
		w.leaves(&w.rec.Leaves[n])
	}
	if len(w.member) >= 3 && w.rec.Wanted >= 3 {
		for p, m := range w.member {
			m.voter = m.voter || w.alive(p)
		}
	}
}

func (w *world) joins(p replica.Place, v *vm) {
	d := w.diskOf(v)
	m := w.member[p]
	switch {
	case m != nil && m.disk == d.ID:
		m.runsOn = v.InstanceID // it goes on with its disk
		w.attaches(p, v)
	case m == nil && !w.rec.Formed:
		w.rec.Formed = true
		w.member[p] = &member{voter: true, disk: d.ID, runsOn: v.InstanceID}
	case w.hasQuorum():
		w.member[p] = &member{disk: d.ID, runsOn: v.InstanceID} // its former one is removed, and it learns
	default:
		return
	}
	w.rec.Replicas = slices.DeleteFunc(w.rec.Replicas, func(k plan.Incarnation) bool { return k.Place == p })
	w.rec.Replicas = append(w.rec.Replicas, plan.Incarnation{Place: p, InstanceID: v.InstanceID, DiskID: d.ID})
}

// leaves is etcd's leader: it removes a member by order, and only while the rest is a quorum.
func (w *world) leaves(l *plan.Leave) {
	m := w.member[l.Place]
	if m == nil {
		l.Done = true
		return
	}
	delete(w.member, l.Place)
	if voters, _ := w.votes(); voters == 0 {
		for p, other := range w.member {
			if w.alive(p) {
				other.voter = true
				break
			}
		}
	}
	if !w.hasQuorum() {
		w.member[l.Place] = m
	}
}

// take does what a step says.
func (w *world) take(s plan.Step) error {
	switch s.Act {
	case plan.CreateDisk:
		key := s.Place.Zone + "/" + s.Disk
		if w.disks[key] == nil {
			w.disks[key] = &plan.Disk{Zone: s.Place.Zone, Name: s.Disk, ID: w.id(), Replica: s.Place.Name,
				Replaces: s.Replaces}
		}
	case plan.CreateVM:
		d := w.disks[s.Place.Zone+"/"+s.Disk]
		if w.vms[s.Place] != nil {
			return fmt.Errorf("409 the VM %s exists", s.Place)
		}
		if d == nil || d.User != "" {
			return fmt.Errorf("400 disk %s is not free", s.Disk)
		}
		if s.Address != "" {
			if err := w.getsAddress(s.Place.String()); err != nil {
				return err
			}
		}
		d.User = s.Place.Name
		w.vms[s.Place] = &vm{VM: plan.VM{Place: s.Place, InstanceID: w.id(), Status: "RUNNING", Image: s.Image,
			DataDisk: s.Disk, Replaces: s.Replaces, Young: true, ExternalIP: s.Address}}
	case plan.OrderReplicas:
		w.rec.Wanted = s.Replicas
	case plan.OrderLeave:
		if w.leave(s.Place) == nil {
			w.rec.Leaves = append(w.rec.Leaves, plan.Leave{Place: s.Place, Number: uint64(len(w.rec.Leaves) + 1)})
		}
	case plan.AwaitJoined, plan.AwaitLeft, plan.AwaitAttached, plan.AwaitHealthy:
		for range 3 {
			w.tick()
		}
	case plan.DeleteVM:
		if v := w.vms[s.Place]; v != nil && v.InstanceID == s.InstanceID {
			w.diskOf(v).User = ""
			w.losesAddress(s.Place)
			delete(w.vms, s.Place)
		}
	case plan.DeleteDisk:
		for key, d := range w.disks {
			if d.ID == s.DiskID && d.User != "" {
				return fmt.Errorf("400 disk %s is in use", d.Name)
			}
			if d.ID == s.DiskID {
				delete(w.disks, key)
			}
		}
	default:
		return w.takeBalanced(s)
	}
	return nil
}

// list is the truth, as the Compute API should tell it.
func (w *world) list() (l lists) {
	for _, p := range w.places() {
		l.vms = append(l.vms, w.vms[p].VM)
	}
	for _, key := range slices.Sorted(maps.Keys(w.disks)) {
		l.disks = append(l.disks, *w.disks[key])
	}
	l.around = w.around()
	return l
}

// inventory is what a command reads. lies: the API may be late, empty or partial, with or without saying so; the
// record and the leader may be out of reach.
func (w *world) inventory(lies bool) plan.Inventory {
	now := w.list()
	w.past = append(w.past, now)
	i := plan.Inventory{Cluster: "prod-1", Record: w.rec, VMs: now.vms, Disks: now.disks, Surroundings: now.around}
	i.Record.Begun, i.Record.Region = true, region
	i.Record.Replicas, i.Record.Leaves = slices.Clone(w.rec.Replicas), slices.Clone(w.rec.Leaves)
	for _, p := range slices.SortedFunc(maps.Keys(w.member), replica.ComparePlaces) {
		m := w.member[p]
		i.Members.List = append(i.Members.List, plan.Member{Place: p, Voter: m.voter, Heard: w.alive(p),
			Ready: w.alive(p)})
	}
	for n := range i.Members.List {
		if m := &i.Members.List[n]; m.Voter && m.Heard {
			m.Leads = true
			break
		}
	}
	if !w.hasQuorum() {
		i.Members = plan.Members{Unknown: "no leader answers"}
	}
	if lies {
		w.lie(&i)
	}
	return i
}

// lie is a way in which an inventory is wrong, by its number in world.lie.
type lie int

// The truth, and the lies by which the walks judge a step: that nobody says who the members are, and two that nothing
// contradicts, as all of it is of one earlier time.
const (
	truth           lie = -1
	oldLists        lie = 1
	noLeader        lie = 7
	oldSurroundings lie = 9
)

func (w *world) lie(i *plan.Inventory) {
	w.lied = lie(w.rng.IntN(12))
	switch w.lied {
	case 0:
		i.VMs, i.Disks = nil, nil
	case oldLists:
		then := w.past[w.rng.IntN(len(w.past))]
		i.VMs, i.Disks = then.vms, then.disks
	case 2:
		i.VMs = w.past[max(0, len(w.past)-2)].vms
	case 3:
		i.Disks = w.past[max(0, len(w.past)-2)].disks
	case 4:
		i.VMs = without(w.rng, i.VMs)
	case 5:
		i.Disks = without(w.rng, i.Disks)
	case 6:
		i.VMs, i.Incomplete = without(w.rng, i.VMs), "zone us-central1-b did not answer"
	case noLeader:
		i.Members = plan.Members{Unknown: "no report is younger than 45 s"}
	case 8:
		i.Record.Unread = "503"
	case oldSurroundings:
		i.Surroundings = w.past[w.rng.IntN(len(w.past))].around
	case 10:
		i.Surroundings.There = w.past[max(0, len(w.past)-2)].around.There
	case 11:
		i.Surroundings.Address = w.past[max(0, len(w.past)-2)].around.Address
	}
}

func without[T any](rng *rand.Rand, list []T) []T {
	if len(list) == 0 {
		return list
	}
	at := rng.IntN(len(list))
	return slices.Delete(slices.Clone(list), at, at+1)
}
