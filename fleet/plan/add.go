package plan

import (
	"fmt"
	"slices"

	"github.com/quorate/quorate/internal/replica"
)

// add makes a replica in a place and waits until it has joined. The number is ordered first: whether the new replica
// has joined depends on it, and by that a command that is run again knows which one was begun.
func (b *builder) add(p replica.Place) error {
	then := append(b.staying(p), p)
	if err := b.notOrderedOut(p); err != nil {
		return err
	}
	if err := b.hasGroup(p); err != nil {
		return err
	}
	if err := b.rescue(then); err != nil {
		return err
	}
	wanted := len(then)
	if wanted > b.Record.Wanted {
		b.step(Step{Act: OrderReplicas, Replicas: wanted}, "", b.orderBack(),
			"Order that the cluster has %s.", countText(wanted))
		b.Record.Wanted = wanted
	}
	b.makeReplica(p, "")
	b.awaitJoined(p)
	b.warnOf(then)
	b.warnOfIll(p)
	b.warnOfDisksAlone()
	return b.serveBy(then)
}

// notOrderedOut refuses to wait for a replica that an order keeps out: it does not join as long as that is in force.
func (b *builder) notOrderedOut(p replica.Place) error {
	l, ordered := b.Record.leave(p)
	if !ordered {
		return nil
	}
	is := "and stays out"
	if !l.Done {
		is = "and is on its way out"
	}
	return refuse(OrderedOut, fmt.Sprintf("'quorate remove %s' takes it away to the end; 'quorate orders withdraw %d' "+
		"brings it back. Then run the command again.", p, l.Number),
		"Replica %s was ordered to leave by order %d, %s.", p, l.Number, is)
}

func countText(replicas int) string {
	if replicas == 1 {
		return "1 replica"
	}
	return fmt.Sprintf("%d replicas", replicas)
}

// orderBack is the command that takes an order for a number of replicas back.
func (b *builder) orderBack() string {
	return fmt.Sprintf("quorate orders give replicas %d", b.Record.Wanted)
}

// warnOf says what is not good about who the replicas will be.
func (b *builder) warnOf(places []replica.Place) {
	zones := map[string]int{}
	for _, p := range places {
		zones[p.Zone]++
	}
	switch n := len(places); {
	case n == 2:
		b.warn("Of two replicas one votes and the other is a warm copy: the loss of the voter stops the cluster. " +
			"Add a third.")
	case n%2 == 0:
		b.warn("%d replicas survive no more failures than %d.", n, n-1)
	}
	if len(places) > 1 {
		for _, p := range places {
			if zones[p.Zone] > len(places)/2 {
				b.warn("%d of %d replicas are in zone %s: the loss of that zone stops the cluster.", zones[p.Zone],
					len(places), p.Zone)
				return
			}
		}
	}
}

// warnOfIll names those that are not well while another one is added: they count, and are not waited for.
func (b *builder) warnOfIll(but replica.Place) {
	for _, m := range b.whoLeads.List {
		if m.Place != but && !m.nameless() && (!m.Heard || !m.Ready) {
			b.warn("Replica %s is not well, and another one is added: 'quorate health' says what is wrong.", m.Place)
		}
	}
}

// create makes what surrounds the replicas, then as many of them as are wanted, all at once, and waits for them. It
// goes on where it stopped.
func (b *builder) create() error {
	if err := b.noSmallerDisk(); err != nil {
		return err
	}
	for _, p := range b.Places {
		if err := b.notOrderedOut(p); err != nil {
			return err
		}
	}
	if err := b.surroundAll(); err != nil {
		return err
	}
	if !b.Record.Begun {
		b.step(Step{Act: BeginRecord}, "", "",
			"Begin the record: cluster %s is created here, on purpose, in %s.", b.Cluster, b.Record.Region)
	}
	if n := len(b.Places); n > b.Record.Wanted || n < b.Record.Wanted && !b.Record.Formed {
		b.step(Step{Act: OrderReplicas, Replicas: n}, "", b.orderBack(), "Order that the cluster has %s.",
			countText(n))
		b.Record.Wanted = n
	}
	for _, p := range b.Places {
		if k, known := b.Record.incarnation(p); known {
			if _, there := b.vm(p); !there {
				return refuse(ReplicaIsNotDone, "Replace or remove it first.",
					"Replica %s (%s) has no VM any more.", p, k.InstanceID)
			}
			if m, member := b.Members.member(p); member && !m.Heard {
				return notWell(p, "Repair or remove it first; 'quorate health' says what is wrong with it.")
			}
			continue
		}
		if err := b.hasGroup(p); err != nil {
			return err
		}
		b.makeReplica(p, "")
	}
	for _, p := range b.Places {
		b.awaitJoined(p)
	}
	for _, p := range b.Places {
		b.awaitHealthy(p)
	}
	b.warnOf(b.Places)
	b.warnOfDisksAlone()
	return b.serveBy(b.stayingOf(b.Places))
}

// surroundAll makes what is missing around the masters. A load balancer on demand is made now only where nobody has the
// address, and last where a VM has it.
func (b *builder) surroundAll() error {
	if b.Surroundings.Address == nil {
		return b.surround(all)
	}
	if err := b.surround(isNoPart); err != nil {
		return err
	}
	return b.rescue(b.stayingOf(b.Places))
}

// stayingOf are those of places that were not ordered to leave.
func (b *builder) stayingOf(places []replica.Place) []replica.Place {
	return slices.DeleteFunc(slices.Clone(places), func(p replica.Place) bool {
		_, left := b.Record.leave(p)
		return left
	})
}
