package plan

import (
	"fmt"
	"slices"
	"strings"

	"github.com/quorate/quorate/internal/replica"
)

// Address is the endpoint's address where the load balancer is made on demand. Its user changes: the VM of the only
// replica has it, and from two replicas on the forwarding rule. It has one user at most.
type Address struct {
	Number string
	// Users are who has it, by the address' own word.
	Users []User
	// Attached are the VMs that are in the endpoint group of their zone. It is read while a VM has the address.
	Attached []replica.Place
}

// User is who has an address: a VM, whose Kind is InstanceKind, or a resource.
type User struct{ Kind, Zone, Name string }

// holder is who has the endpoint's address: the forwarding rule, or a VM; the zero value is nobody.
type holder struct {
	rule bool
	vm   replica.Place
}

// nobody has the address: nobody reaches the endpoint.
var nobody holder

// holderFor is who is to have the address once these are the replicas.
func holderFor(places []replica.Place) holder {
	switch len(places) {
	case 0:
		return nobody
	case 1:
		return holder{vm: places[0]}
	}
	return holder{rule: true}
}

// String names it in sentences.
func (h holder) String() string {
	switch {
	case h.rule:
		return "the forwarding rule"
	case h == nobody:
		return "nobody"
	}
	return "VM " + h.vm.String()
}

// The steps that begin and end the outage say so.
const (
	unreachable = "Nobody reaches the endpoint from here until the next step has taken effect: about a minute on " +
		"Google, and connections end."
	reachable = "They reach the endpoint again."
)

// findHolder reads who has the address. What the address says and what the lists say has to be the same: a list may be
// late, and who takes the address by it from the wrong one takes the endpoint down.
func (b *builder) findHolder() error {
	a := b.Surroundings.Address
	if a == nil || b.Kind == Delete {
		return nil
	}
	if err := b.surround(func(r Resource) bool { return r.Kind == AddressKind }); err != nil {
		return err
	}
	var said, seen []holder
	for _, u := range a.Users {
		switch {
		case u.Kind == InstanceKind:
			said = append(said, holder{vm: replica.Place{Zone: u.Zone, Name: u.Name}})
		case u.Kind == RuleKind && u.Name == b.Surroundings.rule().Name:
			said = append(said, holder{rule: true})
		default:
			return refuse(ResourceDiffers, "Take the address from it, or give the document another endpoint.externalIP.",
				"The address %s is used by %s %s.", a.Number, u.Kind, u.Name)
		}
	}
	for _, v := range b.VMs {
		if v.ExternalIP == a.Number {
			seen = append(seen, holder{vm: v.Place})
		}
	}
	if r, found := b.Surroundings.find(b.Surroundings.rule()); found {
		if err := b.Surroundings.rule().fits(r); err != nil {
			return err
		}
		seen = append(seen, holder{rule: true})
	}
	if !slices.Equal(said, seen) || len(said) > 1 {
		return refuse(ListContradicts, "The list is stale, or a VM of somebody else has the address: try again in a "+
			"minute.", "The address %s says that it is used by %s, and the Compute API's lists say by %s.", a.Number,
			namesOf(said), namesOf(seen))
	}
	for _, h := range said {
		b.holder = h
	}
	return nil
}

func namesOf(list []holder) string {
	var out []string
	for _, h := range list {
		out = append(out, h.String())
	}
	if len(out) == 0 {
		return nobody.String()
	}
	return strings.Join(out, " and ")
}

// rule is the forwarding rule that is wanted.
func (s Surroundings) rule() Resource {
	at := slices.IndexFunc(s.Wanted, func(r Resource) bool { return r.Kind == RuleKind })
	if at < 0 {
		return Resource{Kind: RuleKind}
	}
	return s.Wanted[at]
}

// unserved are those whose addition ended before the forwarding rule was made: a command made them within the last
// hour, and there is none yet. Who runs the command again wants that one, and not another.
func (i Inventory) unserved() (out []replica.Place) {
	if _, found := i.Surroundings.find(i.Surroundings.rule()); found || i.Surroundings.Address == nil {
		return nil
	}
	stay := i.staying(replica.Place{})
	for _, p := range stay {
		v, _ := i.vm(p)
		d, _ := i.disk(p.Zone, v.DataDisk)
		if holds := v.ExternalIP == i.Surroundings.Address.Number; len(stay) > 1 && v.Young && !holds &&
			d.Replica == p.Name && d.Replaces == "" {
			out = append(out, p)
		}
	}
	return out
}

// hasGroup refuses to make a master on demand where no endpoint group will be: the load balancer would not reach it.
func (b *builder) hasGroup(p replica.Place) error {
	if b.Surroundings.Address == nil || b.Surroundings.HasGroup(p.Zone) {
		return nil
	}
	return refuse(WrongZone, "Name one of them, or add it to the document's gce.zones while there is one master.",
		"Zone %s is none of gce.zones, so the load balancer has no endpoint group there.", p.Zone)
}

// rescue gives the address to who is to have it, if nobody has it: a command stopped between taking and giving it.
func (b *builder) rescue(places []replica.Place) error {
	if b.holder != nobody {
		return nil
	}
	return b.serveBy(places)
}

// serveBy brings the address to who is to have it once these are the replicas. The only one's VM that is not there yet
// is made with it.
func (b *builder) serveBy(places []replica.Place) error {
	to := holderFor(places)
	switch {
	case b.Surroundings.Address == nil || to == nobody:
		return nil
	case to.rule:
		return b.serveByRule(places)
	}
	b.only = to.vm
	return b.serveByVM(to.vm)
}

// serveFirst brings the address to who is to have it before a VM is taken away, or while nobody has it. While nobody
// leads, nobody is served whoever has it: what was taken away comes back first, and waits for no load balancer.
func (b *builder) serveFirst() error {
	stay := b.staying(replica.Place{})
	if b.whoLeads.Unknown == "" {
		return b.serveBy(stay)
	}
	b.only = holderFor(stay).vm // it is made with the address, if nobody has it
	return nil
}

// serveLast shows what serveFirst has left for later. What is refused of it is so once it is its turn.
func (b *builder) serveLast() {
	if b.whoLeads.Unknown != "" {
		_ = b.serveBy(b.staying(replica.Place{}))
	}
}

// serveByRule makes the load balancer: at last the forwarding rule, for which a VM gives the address up. The VMs are in
// their groups before.
func (b *builder) serveByRule(places []replica.Place) error {
	if b.holder.rule {
		return nil
	}
	if err := b.surround(isPart); err != nil {
		return err
	}
	clients := ""
	if b.holder != nobody {
		for _, p := range places {
			if m, _ := b.Members.member(p); m.Heard && m.Ready {
				b.awaitAttached(p)
			}
		}
		if err := b.takeAddress(); err != nil {
			return err
		}
	}
	if b.Record.Formed {
		clients = reachable
	}
	w := b.Surroundings.rule()
	b.step(Step{Act: CreateResource, Kind: w.Kind, Resource: w.Name}, clients, "'quorate remove' of all replicas but "+
		"one deletes it.", "Make %s %s: %s.", w.Kind, w.Name, purposes[w.Kind])
	b.holder = holder{rule: true}
	return nil
}

// awaitAttached waits until a replica's VM is in its endpoint group, where its agent puts it.
func (b *builder) awaitAttached(p replica.Place) {
	if !slices.Contains(b.Surroundings.Address.Attached, p) {
		b.step(Step{Act: AwaitAttached, Place: p}, "", "", "Wait until %s is in the endpoint group of its zone.", p.Name)
	}
}

// serveByVM gives the address to the VM of the only replica: the forwarding rule goes before, and the other parts of
// the load balancer behind it.
func (b *builder) serveByVM(p replica.Place) error {
	if b.holder.vm != p {
		if err := b.moveTo(p); err != nil {
			return err
		}
	}
	b.clear(isPart)
	return nil
}

// moveTo gives the address to a VM, from whoever has it. One that is not there yet is made with it.
func (b *builder) moveTo(p replica.Place) error {
	v, there := b.vm(p)
	number := b.Surroundings.Address.Number
	if v.ExternalIP != "" {
		return refuse(ResourceDiffers, "Take that one from it: 'gcloud compute instances delete-access-config "+p.Name+
			" --zone="+p.Zone+"'.", "VM %s has the external address %s, so it cannot get %s.", p, v.ExternalIP, number)
	}
	if b.holder != nobody {
		if err := b.takeAddress(); err != nil {
			return err
		}
	}
	if there {
		b.step(Step{Act: GiveAddress, Place: p, InstanceID: v.InstanceID, Address: number}, reachable,
			"'quorate add' takes it again.", "Give address %s to VM %s in %s.", number, p.Name, p.Zone)
		b.holder = holder{vm: p}
	}
	return nil
}

// takeAddress takes the address from who has it, which begins an outage that the operator has to accept.
func (b *builder) takeAddress() error {
	if !b.Interrupt {
		return refuse(WouldInterrupt, "Accept it with --accept-outage.", "The address %s has to be taken from %s before "+
			"another can have it: nobody reaches the endpoint for about a minute, and connections end.",
			b.Surroundings.Address.Number, b.holder)
	}
	const undo = "The next step gives it to another; the opposite command gives it back."
	if b.holder.rule {
		r, _ := b.Surroundings.find(b.Surroundings.rule())
		if !r.Made {
			return refuse(ResourceDiffers, "Delete it yourself, and run the command again.",
				"The forwarding rule %s was not made by quorate, and has the endpoint's address.", r.Name)
		}
		b.step(deletionOf(r), unreachable, undo, "Delete %s %s (%s).", r.Kind, r.Name, r.ID)
	} else {
		v, _ := b.vm(b.holder.vm)
		b.step(Step{Act: TakeAddress, Place: v.Place, InstanceID: v.InstanceID, Address: v.ExternalIP}, unreachable,
			undo, "Take address %s from VM %s in %s.", v.ExternalIP, v.Name, v.Zone)
	}
	b.holder = nobody
	return nil
}

// frees notes that a VM is gone, and what it had is free.
func (b *builder) frees(p replica.Place) {
	if b.holder.vm == p {
		b.holder = nobody
	}
}

// withAddress is the address that a new VM is made with; empty: none.
func (b *builder) withAddress(p replica.Place) string {
	if b.Surroundings.Address == nil || b.holder != nobody || b.only != p {
		return ""
	}
	b.holder = holder{vm: p}
	return b.Surroundings.Address.Number
}

// isPart says whether a resource is a part of the load balancer that has neither the address nor is it.
func isPart(r Resource) bool {
	return slices.Contains([]string{HealthCheckKind, GroupKind, ServiceKind}, r.Kind)
}

// isNoPart says whether a resource is there however many replicas there are.
func isNoPart(r Resource) bool { return !isPart(r) && r.Kind != RuleKind }

func deletionOf(r Resource) Step {
	return Step{Act: DeleteResource, Kind: r.Kind, Resource: r.Name, ResourceID: r.ID, Place: inZone(r.Zone)}
}

// addressText is what a step says of the address that a VM is made with.
func addressText(number string) string {
	if number == "" {
		return ""
	}
	return fmt.Sprintf(" and address %s", number)
}
