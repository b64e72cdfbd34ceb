package plan

import (
	"slices"

	"github.com/quorate/quorate/internal/replica"
)

// begun are the places of replicas that a command has begun to make and that have not come to their end, by name: those
// in the place of a VM, or those in nobody's that have not joined yet.
func (i Inventory) begun(replaces string) (out []replica.Place) {
	missing := i.Record.Wanted > len(i.staying(replica.Place{})) // that one has to be made, and some wait for it
	for _, d := range i.Disks {
		p := d.place()
		_, left := i.Record.leave(p)
		_, there := i.vm(p)
		free := there || d.User == "" && !i.Record.hasDisk(d.ID)
		if d.Replica != "" && d.Replaces == replaces && !left &&
			(replaces != "" || i.isNew(p) && free || i.joins(p) && !missing) {
			out = append(out, p)
		}
	}
	slices.SortFunc(out, replica.ComparePlaces)
	return slices.Compact(out)
}

// isNew: no member of a place ever ran, so whatever disk it has holds nothing that was acknowledged.
func (i Inventory) isNew(p replica.Place) bool {
	_, known := i.Record.incarnation(p)
	_, member := i.Members.member(p)
	return !known && !member
}

// joins: a member of the place runs, and its replica has not come to its end since it was made. Nobody wrote down
// whether it ever was ready, so one that is not counts for an hour: later it is an old one that fell ill. A learner
// counts until it votes, but for that of a pair, which waits for a third.
func (i Inventory) joins(p replica.Place) bool {
	m, _ := i.Members.member(p)
	v, _ := i.vm(p)
	d, _ := i.disk(p.Zone, v.DataDisk)
	madeJustNow := v.Young && v.Replaces == d.Replaces // and not made anew, with the disk that the place had
	learns := !m.Voter && i.Record.Wanted > 2 && len(i.Members.List) > 2
	return m.Heard && !i.joined(p) && (learns || madeJustNow && !m.Ready)
}

// disksAlone are the data disks of replicas that were begun and have nothing else: no VM was made, as where the zone
// has none of the type, or it was deleted before it joined. They are in the order of their places. A disk that a member
// of another place ran on is none of them.
func (i Inventory) disksAlone() (out []Disk) {
	for _, d := range i.Disks {
		_, there := i.vm(d.place())
		_, left := i.Record.leave(d.place())
		if d.Replica != "" && !there && !left && i.isNew(d.place()) && !i.Record.hasDisk(d.ID) {
			out = append(out, d)
		}
	}
	slices.SortStableFunc(out, func(a, b Disk) int { return replica.ComparePlaces(a.place(), b.place()) })
	return out
}

func (i Inventory) diskAlone(p replica.Place) (Disk, bool) {
	all := i.disksAlone()
	at := slices.IndexFunc(all, func(d Disk) bool { return d.place() == p })
	if at < 0 {
		return Disk{}, false
	}
	return all[at], true
}

// place is where a command made the disk for a VM.
func (d Disk) place() replica.Place { return replica.Place{Zone: d.Zone, Name: d.Replica} }

// warnOfDisksAlone names the disks of replicas that were begun before, and that the plan does not go on with.
func (b *builder) warnOfDisksAlone() {
	for _, d := range b.disksAlone() {
		if d.Replaces == "" {
			b.warn("Data disk %s in %s is kept: %s was begun with it, and has no VM. 'quorate add --zone %s' goes on with "+
				"it; 'quorate remove %s --delete-disk' deletes it.", d.Name, d.Zone, d.Replica, d.Zone, d.place())
		}
	}
}

// warnOfKept says that a data disk is kept, and who goes on with it where its replica never joined.
func (b *builder) warnOfKept(p replica.Place, d Disk) {
	switch {
	case !b.isNew(p) || d.place() != p:
		b.warn("Its data disk %s in %s is kept.", d.Name, d.Zone)
	case d.Replaces != "":
		b.warn("Its data disk %s in %s is kept, and the same 'quorate replace' goes on with it. 'quorate remove %s "+
			"--delete-disk' deletes it.", d.Name, d.Zone, p)
	default:
		b.warn("Its data disk %s in %s is kept, and the next 'quorate add' there goes on with it. 'quorate remove %s "+
			"--delete-disk' deletes it; 'quorate add NAME' makes another.", d.Name, d.Zone, p)
	}
}

// stillAlone refuses to go on with a removal that meant a disk alone, once somebody has come to it.
func (b *builder) stillAlone(p replica.Place) error {
	if _, there := b.vm(p); b.Kind != Remove || b.InstanceID != "" || b.DiskID == "" || !there && b.isNew(p) {
		return nil
	}
	return refuse(AnotherUnderWay, "Run the command again if that is to go, too.",
		"%s was a data disk alone, and a VM was made with it meanwhile.", p)
}
