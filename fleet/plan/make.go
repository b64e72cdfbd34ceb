package plan

import (
	"fmt"
	"slices"

	"github.com/quorate/quorate/internal/replica"
)

// Make says what is left to do for a resolved wish, or refuses with a *Refusal. The steps after the first are what will
// follow if each does what it should.
func Make(w Wish, i Inventory) (Plan, error) {
	if err := i.trust(w); err != nil {
		return Plan{}, err
	}
	b := &builder{Wish: w, Inventory: i, whoLeads: i.Members, now: i.Members.count()}
	err := b.findHolder()
	if err != nil {
		return Plan{}, err
	}
	switch w.Kind {
	case Add:
		err = b.add(w.New)
	case Remove:
		err = b.remove()
	case Replace:
		err = b.replace()
	case Roll:
		err = b.roll()
	case Create:
		err = b.create()
	case Delete:
		err = b.deleteAll()
	default:
		err = fmt.Errorf("no plan for %q", w.Kind)
	}
	if err == nil {
		err = b.mayBegin()
	}
	if err != nil {
		return Plan{}, err
	}
	return b.plan, nil
}

// builder is a plan in the making.
type builder struct {
	Wish
	Inventory
	plan Plan
	// whoLeads are the members as they were read; those of the Inventory are what is supposed of later steps.
	whoLeads Members
	// now is the membership once the steps so far are taken.
	now count
	// holder is who has the endpoint's address once the steps so far are taken, and only the replica whose VM is to
	// have it.
	holder holder
	only   replica.Place
}

func (b *builder) warn(format string, args ...any) {
	b.plan.Warnings = append(b.plan.Warnings, fmt.Sprintf(format, args...))
}

// step adds one, with what it risks once it is taken.
func (b *builder) step(s Step, clients, undo, what string, args ...any) {
	s.What, s.Risk = fmt.Sprintf(what, args...), riskOf(b.now, clients, undo)
	b.plan.Steps = append(b.plan.Steps, s)
}

// makeReplica adds the steps by which a VM with a data disk of its own comes to a place; replaces is the VM in whose
// place it is made. Nothing is added where the VM is there.
func (b *builder) makeReplica(p replica.Place, replaces string) {
	if _, there := b.vm(p); there {
		return
	}
	b.makeVM(p, b.makeDisk(p, replaces), replaces)
}

// makeDisk is the name of the empty data disk for a place, which is made unless it is there.
func (b *builder) makeDisk(p replica.Place, replaces string) string {
	if d, there := b.freeDisk(p, replaces); there {
		return d.Name
	}
	name := diskName(p, replaces)
	b.step(Step{Act: CreateDisk, Place: p, Disk: name, Replaces: replaces}, "", "Delete the disk.",
		"Make data disk %s in %s.", name, p.Zone)
	return name
}

func (b *builder) makeVM(p replica.Place, disk, replaces string) {
	address := b.withAddress(p)
	b.step(Step{Act: CreateVM, Place: p, Disk: disk, Image: b.Image, Replaces: replaces, Address: address}, "",
		"Remove the replica.", "Make VM %s in %s with data disk %s%s.", p.Name, p.Zone, disk, addressText(address))
}

// diskName is the name of the data disk of a new place, or of one whose VM is replaced. It follows from the wish, so a
// disk that a list does not show yet is not made twice; and no disk of a place's past has it.
func diskName(p replica.Place, replaces string) string {
	name := p.Name + "-data"
	if replaces != "" {
		name += "-" + replaces[max(0, len(replaces)-8):]
	}
	return name
}

// awaitJoined waits for a new member. The steps behind it go by what will be then.
func (b *builder) awaitJoined(p replica.Place) {
	if b.joined(p) {
		return
	}
	b.suppose(p)
	role := "a member"
	if m, _ := b.Members.member(p); m.Voter {
		role = "a voter"
	}
	b.step(Step{Act: AwaitJoined, Place: p}, "", "", "Wait until %s is %s and ready.", p.Name, role)
}

// suppose has the rest of the plan go by what will be: a replica is there, and well.
func (b *builder) suppose(p replica.Place) {
	is := func(m Member) bool { return m.Place == p }
	was, _ := b.Members.member(p)
	others := slices.DeleteFunc(slices.Clone(b.Members.List), is)
	voter := was.Voter || b.Record.Wanted > 2 || !slices.ContainsFunc(others, func(m Member) bool { return m.Voter })
	b.Members.List = append(others, Member{Place: p, Voter: voter, Leads: was.Leads, Heard: true, Ready: true})
	b.now = b.Members.count()
	if _, there := b.vm(p); !there {
		b.VMs = append(slices.Clone(b.VMs), VM{Place: p})
	}
}

// quorumNow refuses what changes the membership while etcd has no quorum.
func (b *builder) quorumNow() error {
	if b.Members.count().survives() >= 0 {
		return nil
	}
	return refuse(WouldLoseQuorum, "Start the voters that are away; 'quorate health' names them.",
		"etcd has no quorum now, so no member can join or leave.")
}

// quorumWithout refuses to take a member out where the others are no quorum without it, or etcd has none now.
func (b *builder) quorumWithout(p replica.Place) error {
	m, member := b.Members.member(p)
	if !member {
		return nil
	}
	if err := b.quorumNow(); err != nil {
		return err
	}
	if after := b.Members.without(p); m.Voter && after.survives() < 0 {
		return refuse(WouldLoseQuorum, "Repair or remove first those that are away.",
			"Without %s %d of %d voters would be in touch, which is no quorum.", p, after.touch, after.voters)
	}
	return nil
}

// quorumWhileAway refuses to take a VM away where the others are no quorum meanwhile. The only replica's absence is an
// interruption that the operator may accept.
func (b *builder) quorumWhileAway(p replica.Place) error {
	m, member := b.Members.member(p)
	after := b.Members.away(p)
	switch {
	case !member || !m.Voter || !m.Heard || after.survives() >= 0:
		return nil
	case b.now.voters == 1 && b.NewDisk:
		return refuse(WouldLoseQuorum, "Keep its disk, or have the new one come first.",
			"%s is the only voter: with an empty disk there would be no cluster to come back to.", p)
	case b.now.voters == 1 && b.Interrupt:
		return nil
	case b.now.voters == 1:
		return refuse(WouldInterrupt, "Add another replica first, or accept it with --accept-outage.",
			"Nobody is served while %s, the only voter, is replaced in its place.", p)
	}
	return refuse(WouldLoseQuorum, "Repair first those that are away.",
		"While %s is away, %d of %d voters would be in touch, which is no quorum.", p, after.touch, after.voters)
}

// othersAreWell refuses to begin something with one replica while another is not well, or is on its way out.
func (b *builder) othersAreWell(but replica.Place) error {
	for _, l := range b.Record.Leaves {
		if !l.Done && l.Place != but {
			return refuse(AnotherUnderWay, "Run that command again, or wait.",
				"Replica %s is on its way out by order %d.", l.Place, l.Number)
		}
	}
	for _, m := range b.Members.List {
		if m.Place != but && (!m.Heard || !m.Ready) {
			return notWell(m.Place, "Repair or remove that one first; 'quorate health' says what is wrong with it.")
		}
	}
	return nil
}
