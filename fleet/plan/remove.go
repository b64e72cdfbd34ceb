package plan

import "github.com/quorate/quorate/internal/replica"

// drains says what a master does before it stops, for the steps that stop one.
const drains = "Those connected to it reconnect: it closes their requests and watches before it stops."

// remove takes a replica out: its member first, by order, then its VM, then its disk. The load balancer serves until it
// has left; a VM that has the endpoint's address gives it up before.
func (b *builder) remove() error {
	p, stay := b.Place, b.staying(b.Place)
	if err := b.stillAlone(p); err != nil {
		return err
	}
	if !b.holder.rule {
		if err := b.serveBy(stay); err != nil {
			return err
		}
	}
	if err := b.takeOut(p); err != nil {
		return err
	}
	if b.Wanted != 0 && b.Wanted != b.Record.Wanted { // before its disk: what is last is what a rerun goes by
		b.step(Step{Act: OrderReplicas, Replicas: b.Wanted}, b.becomesCopy(), b.orderBack(),
			"Order that the cluster has %s.", countText(b.Wanted))
	}
	if err := b.serveBy(stay); err != nil {
		return err
	}
	b.deleteOld(p)
	if len(b.plan.Steps) > 0 {
		b.warnOf(b.staying(p))
		if b.InstanceID != "" {
			b.warn("The certificates of %s are valid until they expire, at most 90 days from now.", p.Name)
		}
	}
	return nil
}

// becomesCopy says what clients notice where the second of two voters gives its vote up by the order.
func (b *builder) becomesCopy() string {
	if b.Wanted != 2 || b.now.voters != 2 {
		return ""
	}
	return "Those connected to the second reconnect: it joins again as a warm copy, and serves nobody for some 30 s."
}

// takeOut has a member leave by order. The leader carries the order out only while the others are a quorum without it,
// so the order's end is the proof that the VM may go.
func (b *builder) takeOut(p replica.Place) error {
	order, given := b.Record.leave(p)
	_, member := b.Members.member(p)
	_, known := b.Record.incarnation(p)
	switch {
	case given && order.Done && !member:
		return nil
	case !given && !member && !known:
		return nil // it has never been a member, and no order can name it
	case len(b.staying(p)) == 0:
		return refuse(LastReplica, "Add one first, or delete the whole cluster.",
			"%s is the last replica.", p)
	}
	if err := b.quorumWithout(p); err != nil {
		return err
	}
	if err := b.othersAreWell(p); err != nil && !b.away(p) {
		return err
	}
	if !given {
		b.step(Step{Act: OrderLeave, Place: p}, "", "Withdraw the order: it joins again by itself.",
			"Order %s to leave: it hands over, and its member is removed.", p)
	}
	b.now = b.Members.without(p)
	clients := ""
	if v, there := b.vm(p); there && v.Status == "RUNNING" {
		clients = drains
	}
	b.step(Step{Act: AwaitLeft, Place: p}, clients, "Withdraw the order: it joins again by itself.",
		"Wait until no member of %s is left.", p)
	return nil
}

// away: the replica takes no part, so that its removal repairs the cluster, whoever else is not well.
func (b *builder) away(p replica.Place) bool {
	m, member := b.Members.member(p)
	return !member || !m.Heard
}

// deleteOld deletes the VM that the wish names, and its disk where that is asked for. A VM of another id is left alone.
func (b *builder) deleteOld(p replica.Place) {
	v, there := b.vm(p)
	if there && v.InstanceID == b.InstanceID {
		b.step(Step{Act: DeleteVM, Place: p, InstanceID: v.InstanceID}, "", "",
			"Delete VM %s in %s (%s).", p.Name, p.Zone, v.InstanceID)
	} else if there {
		b.warn("Another VM (%s) has the name %s now, and is left alone.", v.InstanceID, p)
	}
	d, left := b.diskByID(b.DiskID)
	switch {
	case !left:
	case !b.DropDisk:
		b.warnOfKept(p, d)
	case d.User == "" || there && d.User == p.Name && v.InstanceID == b.InstanceID:
		b.deleteDisk(p, d)
	default:
		b.warn("Its data disk %s in %s is kept: VM %s has it.", d.Name, d.Zone, d.User)
	}
}

func (b *builder) deleteDisk(p replica.Place, d Disk) {
	b.step(Step{Act: DeleteDisk, Place: p, Disk: d.Name, DiskID: d.ID}, "", "",
		"Delete data disk %s in %s (%s).", d.Name, d.Zone, d.ID)
}

// deleteAll deletes every VM and data disk of the cluster, and then what commands made around them. The record stays.
func (b *builder) deleteAll() error {
	b.now = b.Members.count()
	for _, v := range b.VMs {
		b.now = count{members: max(0, b.now.members-1), voters: max(0, b.now.voters-1), touch: max(0, b.now.touch-1)}
		b.step(Step{Act: DeleteVM, Place: v.Place, InstanceID: v.InstanceID}, "The cluster serves nobody any more.", "",
			"Delete VM %s in %s (%s).", v.Name, v.Zone, v.InstanceID)
	}
	for _, d := range b.Disks {
		b.deleteDisk(replica.Place{Zone: d.Zone, Name: d.Replica}, d)
	}
	b.clear(all)
	if len(b.plan.Steps) > 0 {
		b.warn("Its record, with the snapshots and the sealed CA keys, is kept.")
	}
	return nil
}
