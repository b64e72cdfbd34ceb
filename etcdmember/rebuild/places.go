package rebuild

import (
	"fmt"
	"slices"

	"github.com/quorate/quorate/etcdmember/table"
	"github.com/quorate/quorate/internal/record"
	"github.com/quorate/quorate/internal/replica"
)

// findIncarnations: the incarnation that each disk carries, and its confirmation where a member ran with it. Lower ones
// decide nothing.
func (b *rebuilder) findIncarnations() {
	for _, t := range b.said {
		a := t.Agent
		if a.Incarnation == 0 {
			continue
		}
		have := b.Incarnation(a.Replica, a.Incarnation)
		if have != nil && (have.InstanceID != a.InstanceID || have.BootID != a.BootID) {
			b.fault("replicas/%s/%d.json is of instance %s, and the disk took that incarnation with instance %s: the "+
				"record was rolled back and went on without this disk",
				a.Replica, a.Incarnation, have.InstanceID, a.InstanceID)
			continue
		}
		why := fmt.Sprintf("agent.json of %s carries it", t)
		if have == nil {
			b.lose(Lost{Key: fmt.Sprintf("replicas/%s/%d.json", a.Replica, a.Incarnation), Why: why, Place: a.Replica,
				Number: a.Incarnation,
				Object: t.incarnation(b)})
		}
		// One that the record still has is confirmed by its own agent, unless it runs already and would not observe
		// again.
		confirmed := have != nil && have.Started != nil || b.orphan(a.Replica, a.Incarnation)
		if t.settled() && t.memberID() != 0 && !confirmed && (have == nil || t.Running) {
			b.lose(Lost{Key: fmt.Sprintf("replicas/%s/%d.started.json", a.Replica, a.Incarnation), Place: a.Replica,
				Number: a.Incarnation,
				Why:    fmt.Sprintf("its member %s has started on that disk", t.memberID()),
				Object: record.Started{Epoch: a.Epoch, MemberID: t.memberID(), DiskID: t.DiskID, Time: b.wish.Now}})
		}
	}
}

// incarnation is the object that the disk's word makes. The addresses are known where the VM that took it still runs.
func (t Testimony) incarnation(b *rebuilder) record.Incarnation {
	a := t.Agent
	i := record.Incarnation{Place: a.Replica, Number: a.Incarnation, InstanceID: a.InstanceID, BootID: a.BootID,
		Epoch:    a.Epoch,
		MemberID: t.memberID(), DiskID: t.DiskID, Time: b.wish.Now}
	if i.Epoch == 0 {
		i.Epoch = b.epoch
	}
	if id := t.Identity; id != nil && id.Place == a.Replica && id.InstanceID == a.InstanceID {
		i.Addresses = id.Addresses
	}
	return i
}

func (b *rebuilder) orphan(p replica.Place, k uint64) bool {
	return slices.ContainsFunc(b.Orphans, func(o record.Orphan) bool { return o.Place == p && o.Number == k })
}

// findOrphans gives back the incarnation to each confirmation that has none. An instance that nobody knows may be
// missing only where it decides nothing: below the newest of its place, or where the member's disk is lost for good.
// Else the VM that runs would count as superseded; and without its addresses nobody who joins could find it. Etcd's
// list does not do: the name there is the last that the member published, which may be its former VM's.
func (b *rebuilder) findOrphans() {
	for _, o := range b.Orphans {
		if slices.ContainsFunc(b.lost, func(l Lost) bool {
			_, is := l.Object.(record.Incarnation)
			return is && l.Place == o.Place && l.Number == o.Number
		}) {
			continue
		}
		key := fmt.Sprintf("replicas/%s/%d.json", o.Place, o.Number)
		why := "its confirmation is there; a newer incarnation of the place makes its instance of no consequence"
		if o.Number >= b.newest(o.Place) {
			if !slices.Contains(b.wish.Without, o.Started.MemberID) {
				b.fault("%s is lost, and no file says which instance it was: give the file of %s, or, if its disk is "+
					"lost for good, --without %s",
					key, o.Place, o.Started.MemberID)
				continue
			}
			why = "its confirmation is there, and its disk is lost for good by your word"
		}
		b.lose(Lost{Key: key, Why: why, Place: o.Place, Number: o.Number, Object: record.Incarnation{Place: o.Place,
			Number:     o.Number,
			InstanceID: rebuiltInstance, BootID: rebuiltInstance, Epoch: o.Started.Epoch, MemberID: o.Started.MemberID,
			DiskID: o.Started.DiskID, Time: b.wish.Now}})
	}
}

// newest is the newest incarnation of a place whose instance is known.
func (b *rebuilder) newest(p replica.Place) (k uint64) {
	for _, i := range b.Replicas[p] {
		k = max(k, i.Number)
	}
	for _, t := range b.said {
		if t.Agent.Replica == p {
			k = max(k, t.Agent.Incarnation)
		}
	}
	return k
}

// accountForMembers: each member's place is in the record as it will be, or the person says that its disk is lost. A
// member that nobody spoke for would find the record rolled back, and could not be told from an old copy of its disk.
func (b *rebuilder) accountForMembers() {
	after := b.after()
	known := map[record.MemberID]bool{}
	for _, list := range after.Replicas {
		for _, i := range list {
			known[table.IncarnationMember(i)] = true
		}
	}
	seen := map[record.MemberID]bool{}
	running := slices.ContainsFunc(b.said, func(t Testimony) bool { return t.Running && t.Agent.Epoch == b.epoch })
	for _, t := range b.said {
		if !t.settled() || t.Agent.Epoch != b.epoch || running && !t.Running {
			continue
		}
		for _, m := range t.Members {
			if known[m.ID] || seen[m.ID] || slices.Contains(b.wish.Without, m.ID) {
				continue
			}
			seen[m.ID] = true
			name := "member " + m.ID.String()
			if p, _, ok := table.ParseMemberName(m.Name); ok {
				name += ", " + p.String() + ","
			}
			b.fault("%s is in the list of %s, and nobody speaks for it: give the file of its replica, or, if its "+
				"disk is lost for good, --without %s", name, t, m.ID)
		}
	}
}
