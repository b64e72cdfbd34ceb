package plan

import (
	"slices"

	"github.com/quorate/quorate/internal/replica"
)

// Inventory is all that was read before a plan is made: the Compute API's lists, the record, and what etcd's leader
// says of the members.
type Inventory struct {
	Cluster string
	// VMs and Disks are those that carry the cluster's label, of all zones of its region.
	VMs   []VM
	Disks []Disk
	// Incomplete says why these lists may lack something; empty: they are whole.
	Incomplete string
	Record     Record
	Members    Members
	// Surroundings are read for Create and Delete, and where the load balancer is made on demand for the others too.
	Surroundings Surroundings
}

// VM is a master's VM as the Compute API shows it.
type VM struct {
	replica.Place
	InstanceID, Status string
	// Image is what its boot disk was made of. DataDisk is the name of its data disk; empty: none is attached.
	Image, DataDisk string
	// ExternalIP is its external address; empty: it has none.
	ExternalIP string
	// Differs is what else of it is not as the Cluster document says.
	Differs []Difference
	// Replaces is the numeric id of the VM in whose place this one was made by a command; empty: in nobody's.
	Replaces string
	// Young: it was made within the last hour.
	Young bool
}

// Disk is a data disk. Replica is the name of the VM that a command made it for; empty: a command of ours did not.
type Disk struct {
	Zone, Name, ID string
	Replica        string
	// Replaces is the numeric id of the VM in whose place that VM is made; empty: in nobody's.
	Replaces string
	// User is the name of the VM that it is attached to; empty: of none.
	User string
}

// Record is what the record says of the cluster.
type Record struct {
	// Unread says why it could not be read, or not be believed; empty: it was, and it is whole.
	Unread string
	// Begun: it has an inception. Formed: a cluster was formed.
	Begun, Formed bool
	// Region is the inception's; of a record that has not begun the document's.
	Region string
	// Wanted is the number of replicas by the newest order, or else by the document.
	Wanted int
	// Busy says why the membership is to be left alone, such as a pause or a restore; empty: it is not.
	Busy string
	// Replicas are the newest confirmed incarnations of all places.
	Replicas []Incarnation
	// Leaves are the orders to leave that are in force, done ones too.
	Leaves []Leave
}

// Incarnation is the VM and the data disk that a place had last, as its agent wrote it down.
type Incarnation struct {
	replica.Place
	InstanceID, DiskID string
}

// Leave is an order that takes a place out of the cluster. Done: no member of the place is left.
type Leave struct {
	replica.Place
	Number uint64
	Done   bool
}

// Members is what etcd's leader says of the cluster.
type Members struct {
	// Unknown says why nobody could be believed; empty: List is the leader's own.
	Unknown string
	List    []Member
}

// Member is one member of etcd. One that has not said yet whose it is, as each joins, has a place without a zone.
type Member struct {
	replica.Place
	Voter, Leads bool
	// Heard: the leader hears of it now. Ready: its replica says that its boot is done and nothing holds it up.
	Heard, Ready bool
}

func (i Inventory) vm(p replica.Place) (VM, bool) {
	at := slices.IndexFunc(i.VMs, func(v VM) bool { return v.Place == p })
	if at < 0 {
		return VM{}, false
	}
	return i.VMs[at], true
}

func (i Inventory) disk(zone, name string) (Disk, bool) {
	at := slices.IndexFunc(i.Disks, func(d Disk) bool { return d.Zone == zone && d.Name == name })
	if at < 0 {
		return Disk{}, false
	}
	return i.Disks[at], true
}

func (i Inventory) diskByID(id string) (Disk, bool) {
	at := slices.IndexFunc(i.Disks, func(d Disk) bool { return d.ID == id && id != "" })
	if at < 0 {
		return Disk{}, false
	}
	return i.Disks[at], true
}

// freeDisk is a disk that a command made for a place and that no VM has yet: the same command, by the VM that is
// replaced. One that was kept from an earlier replacement is not meant.
func (i Inventory) freeDisk(p replica.Place, replaces string) (Disk, bool) {
	at := slices.IndexFunc(i.Disks, func(d Disk) bool {
		return d.Zone == p.Zone && d.Replica == p.Name && d.User == "" && d.Replaces == replaces
	})
	if at < 0 {
		return Disk{}, false
	}
	return i.Disks[at], true
}

func (r Record) incarnation(p replica.Place) (Incarnation, bool) {
	at := slices.IndexFunc(r.Replicas, func(k Incarnation) bool { return k.Place == p })
	if at < 0 {
		return Incarnation{}, false
	}
	return r.Replicas[at], true
}

// hasDisk: a place's newest confirmed member ran on it.
func (r Record) hasDisk(id string) bool {
	return id != "" && slices.ContainsFunc(r.Replicas, func(i Incarnation) bool { return i.DiskID == id })
}

func (r Record) leave(p replica.Place) (Leave, bool) {
	at := slices.IndexFunc(r.Leaves, func(l Leave) bool { return l.Place == p })
	if at < 0 {
		return Leave{}, false
	}
	return r.Leaves[at], true
}

func (m Members) member(p replica.Place) (Member, bool) {
	at := slices.IndexFunc(m.List, func(x Member) bool { return x.Place == p })
	if at < 0 {
		return Member{}, false
	}
	return m.List[at], true
}

// joined reports whether a replica has come to its end: it is a member, in touch and ready. Where three or more are
// wanted it votes, too; of two the second stays a learner.
func (i Inventory) joined(p replica.Place) bool {
	m, ok := i.Members.member(p)
	return ok && m.Heard && m.Ready && (m.Voter || i.Record.Wanted <= 2)
}

func (m Member) nameless() bool { return m.Zone == "" }

// Known are all that VMs, members and the record know, but for those that have left; in the order of their names. A
// nameless member is no further one: it is of one of them.
func (i Inventory) Known() []replica.Place {
	var out []replica.Place
	for _, v := range i.VMs {
		out = append(out, v.Place)
	}
	for _, m := range i.Members.List {
		if !m.nameless() {
			out = append(out, m.Place)
		}
	}
	for _, k := range i.Record.Replicas {
		if l, left := i.Record.leave(k.Place); !left || !l.Done {
			out = append(out, k.Place)
		}
	}
	slices.SortFunc(out, replica.ComparePlaces)
	return slices.Compact(out)
}
