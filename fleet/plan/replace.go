package plan

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/quorate/quorate/internal/replica"
)

// replace brings a new replica in and takes the old one out; or makes the old one's VM anew under its name.
func (b *builder) replace() error {
	if b.InPlace {
		return b.replaceInPlace()
	}
	if _, given := b.Record.leave(b.Place); !given {
		if err := b.quorumNow(); err != nil {
			return err
		}
		if err := b.notOrderedOut(b.New); err != nil {
			return err
		}
		if err := b.hasGroup(b.New); err != nil {
			return err
		}
		if !b.joined(b.New) { // it is none yet who could have the address
			if err := b.rescue(b.staying(b.New)); err != nil {
				return err
			}
		}
		b.makeReplica(b.New, b.InstanceID)
		b.awaitJoined(b.New)
	}
	return b.remove()
}

// replaceInPlace deletes a VM and makes it anew under its name, with its data disk or with an empty one. Its member
// stays, or is replaced by its own successor.
func (b *builder) replaceInPlace() error {
	p := b.Place
	if l, left := b.Record.leave(p); left {
		return refuse(NoSuchReplica, fmt.Sprintf("'quorate orders withdraw %d' brings it back; 'quorate add' makes another "+
			"replica.", l.Number), "%s was ordered to leave by order %d.", p, l.Number)
	}
	if err := b.serveFirst(); err != nil {
		return err
	}
	v, there := b.vm(p)
	switch {
	case there && v.InstanceID == b.InstanceID:
		if err := b.mayGo(p); err != nil {
			return err
		}
		b.now = b.Members.away(p)
		b.step(Step{Act: DeleteVM, Place: p, InstanceID: v.InstanceID}, b.interruption(drains),
			"It is made anew by the next steps.", "Delete VM %s in %s (%s); its data disk is kept.", p.Name, p.Zone,
			v.InstanceID)
		b.frees(p)
		return b.remake(p)
	case !there:
		return b.remake(p)
	}
	b.returns(p)
	b.keepOld(p)
	b.serveLast()
	if len(b.plan.Steps) == 0 {
		b.warn("VM %s was made anew within the last hour; with --again it is made once more.", p.Name)
	}
	return nil
}

// mayGo: the VM may be taken away now.
func (b *builder) mayGo(p replica.Place) error {
	if err := b.quorumWhileAway(p); err != nil {
		return err
	}
	if err := b.othersAreWell(p); err != nil && !b.away(p) {
		return err
	}
	return nil
}

// remake makes the VM of a place again, with the disk that the wish says.
func (b *builder) remake(p replica.Place) error {
	if b.NewDisk {
		b.makeVM(p, b.makeDisk(p, b.InstanceID), b.InstanceID)
	} else {
		d, ok := b.diskByID(b.DiskID)
		if !ok {
			return refuse(DiskNotKnown, "Replace it with a new disk, or have a new one come first.",
				"Which data disk %s had is not known, or it is gone.", p)
		}
		b.makeVM(p, d.Name, b.InstanceID)
	}
	b.returns(p)
	b.keepOld(p)
	b.serveLast()
	return nil
}

// returns waits until a place is well again.
func (b *builder) returns(p replica.Place) {
	if _, there := b.vm(p); there && b.joined(p) && len(b.plan.Steps) == 0 {
		return
	}
	b.suppose(p)
	b.step(Step{Act: AwaitJoined, Place: p}, "", "", "Wait until %s is a member again, and ready.", p.Name)
}

// keepOld says which disk is left where the VM gets another. It is never deleted: it may be the only copy of something.
func (b *builder) keepOld(p replica.Place) {
	if d, there := b.diskByID(b.DiskID); there && b.NewDisk && len(b.plan.Steps) > 0 && d.Replaces != b.InstanceID {
		b.warn("The former data disk of %s, %s in %s, is kept.", p.Name, d.Name, d.Zone)
	}
}

// interruption is what clients notice while a replica is away.
func (b *builder) interruption(otherwise string) string {
	if b.now.survives() < 0 {
		return "Nobody is served until it is back."
	}
	return otherwise
}

// roll replaces each VM that is not as it is wanted, in its place and with its disk, one at a time: etcd's leader last.
// It goes on only while everybody else is well. A VM that is away comes back before anybody else is judged, and leads
// again where nobody does: one that came to the cluster meanwhile, and cannot be rolled, does not keep it away.
func (b *builder) roll() error {
	amiss := b.showDifferences() // of those that are there: those that come back are supposed to be as wanted
	if err := b.serveFirst(); err != nil {
		return cmp.Or(amiss, err)
	}
	begun, lost := b.bringBack()
	comesBack := b.whoLeads.Unknown != "" && len(begun) > 0 ||
		slices.ContainsFunc(b.plan.Steps, func(s Step) bool { return s.Act == CreateVM })
	if amiss = cmp.Or(amiss, lost); amiss == nil {
		amiss = b.rollOthers(begun)
	}
	if amiss != nil && !comesBack {
		return amiss
	}
	b.serveLast()
	return b.allAsWanted()
}

// bringBack goes on with those that were begun, and says who cannot come back.
func (b *builder) bringBack() (begun map[replica.Place]bool, lost error) {
	begun = map[replica.Place]bool{}
	for _, p := range b.staying(replica.Place{}) {
		v, there := b.vm(p)
		if there && (b.isOld(v) || b.joined(p)) {
			continue
		}
		k, known := b.Record.incarnation(p)
		d, ok := b.diskByID(k.DiskID)
		switch {
		case there:
		case known && ok && d.User == "":
			b.makeVM(p, d.Name, k.InstanceID)
		default:
			lost = refuse(ReplicaIsNotDone, "Repair or remove it first.",
				"Replica %s has no VM, and no data disk is left of it.", p)
			continue
		}
		begun[p] = true
		b.returns(p)
	}
	return begun, lost
}

// rollOthers makes those anew that are not as they are wanted, and that were not begun.
func (b *builder) rollOthers(begun map[replica.Place]bool) error {
	for _, p := range b.leaderLast() {
		v, there := b.vm(p)
		if !there || !b.isOld(v) || begun[p] {
			continue
		}
		k, known := b.Record.incarnation(p)
		d, ok := b.diskByID(k.DiskID)
		if !known || !ok {
			return refuse(DiskNotKnown, "Have a new one come first.", "Which data disk %s has is not known.", p)
		}
		if len(b.plan.Steps) == 0 { // what comes later is judged when it is its turn
			if err := b.othersAreWell(replica.Place{}); err != nil {
				return err
			}
			if err := b.mayGo(p); err != nil {
				return err
			}
		}
		before := b.now
		b.now = b.Members.away(p)
		b.step(Step{Act: DeleteVM, Place: p, InstanceID: v.InstanceID}, b.interruption(drains),
			"It is made anew by the next steps.", "Delete VM %s in %s (%s); its data disk is kept.", p.Name, p.Zone,
			v.InstanceID)
		b.frees(p)
		b.makeVM(p, d.Name, v.InstanceID)
		b.now = before
		b.step(Step{Act: AwaitJoined, Place: p}, "", "", "Wait until %s is a member again, and ready.", p.Name)
	}
	return nil
}

// leaderLast are the replicas in the order in which they are rolled.
func (b *builder) leaderLast() []replica.Place {
	var first, last []replica.Place
	for _, p := range b.staying(replica.Place{}) {
		if m, ok := b.Members.member(p); ok && m.Leads {
			last = append(last, p)
		} else {
			first = append(first, p)
		}
	}
	return append(first, last...)
}
