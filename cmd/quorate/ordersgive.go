package main

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/quorate/quorate/internal/record"
	"github.com/quorate/quorate/internal/replica"
)

func newOrdersGive() *cobra.Command {
	return group(&cobra.Command{Use: "give", Short: "Give an order"}, newGiveReplicas(), newGiveLeave())
}

func newGiveReplicas() *cobra.Command {
	var f orderFlags
	cmd := &cobra.Command{Use: "replicas N", Short: "Say how many replicas the cluster is to have",
		Long: `Say how many replicas the cluster is to have; it wins over the document's field replicas. It makes and deletes no VM: it decides
whether a second replica stays a warm learner (1 and 2) or is promoted with the third (3 to 7).`,
		Args: exactly("N"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return give(cmd, &f, func(b book) (draft, error) { return checkReplicas(b, args[0]) })
		}}
	f.add(cmd)
	return cmd
}

// mostReplicas is what a Cluster document allows, too.
const mostReplicas = 7

func checkReplicas(b book, text string) (draft, error) {
	n, err := strconv.Atoi(text)
	if err != nil || n < 1 || n > mostReplicas {
		return draft{}, notReplicas(text)
	}
	d := draft{order: record.Order{Kind: record.OrderReplicas, Replicas: n}, back: withdrawIt}
	d.means = "No VM is made or deleted by it."
	switch {
	case n == 2:
		d.means += " One of the two is the voter and the other a warm copy of it: a second voter would survive no " +
			"failure and be one more that can fail."
	case n%2 == 0:
		d.means += fmt.Sprintf(" %d voters survive no more failures than %d.", n, n-1)
	}
	if o, ok := b.inForce(kindIs(record.OrderReplicas)); ok && o.Replicas == n {
		d.already = fmt.Sprintf("Order %d says so already, given by %s at %s.", o.Number, o.By, when(o.Time))
	}
	return d, nil
}

func notReplicas(text string) error {
	return refused("replicas %q: a number from 1 to %d is needed", text, mostReplicas)
}

func newGiveLeave() *cobra.Command {
	var f orderFlags
	cmd := &cobra.Command{Use: "leave REPLICA", Short: "Take a replica out of the cluster",
		Long: `Take a replica out of the cluster, named as ZONE.NAME, or by its name where that is clear. Its etcd member hands over and is
removed once the others are a quorum without it, its apiserver stops, and its etcd directory is archived. It stays out, also when
its VM is recreated, until the order is withdrawn; then it joins again by itself.`,
		Args: exactly("REPLICA"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return give(cmd, &f, func(b book) (draft, error) { return checkLeave(b, args[0]) })
		}}
	f.add(cmd)
	return cmd
}

func checkLeave(b book, name string) (draft, error) {
	p, err := findPlace(b.View, name)
	if err != nil {
		return draft{}, err
	}
	d := draft{order: record.Order{Kind: record.OrderLeave, Place: &p}, back: withdrawIt,
		then: "; it joins again by itself",
		means: "Its etcd member is removed as soon as the others are a quorum without it, its apiserver stops, and " +
			"its directory is archived."}
	if o, ok := b.inForce(leaves(p)); ok {
		d.already = fmt.Sprintf("Order %d says so already, given by %s at %s; it is %s.", o.Number, o.By, when(o.Time),
			stateText(b.states[o.Number]))
		return d, nil
	}
	if b.with(b.next(d.order)).nobodyStays() {
		return d, refused("%s is the last replica: the record knows no other that was not ordered to leave, so add "+
			"one first", p)
	}
	return d, nil
}

func leaves(p replica.Place) func(record.Order) bool {
	return func(o record.Order) bool { return o.Kind == record.OrderLeave && o.Place != nil && *o.Place == p }
}

// findPlace finds the replica of which the record knows: ZONE.NAME, ZONE/NAME, or a name that only one has.
func findPlace(v record.View, name string) (replica.Place, error) {
	var found []replica.Place
	known := v.Places()
	for _, p := range known {
		if name == p.String() || name == p.Zone+"/"+p.Name {
			return p, nil
		}
		if name == p.Name {
			found = append(found, p)
		}
	}
	switch {
	case len(known) == 0:
		return replica.Place{}, refused("replica %q: the record knows no replica yet", name)
	case len(found) == 0:
		return replica.Place{}, refused("replica %q: the record knows no such replica; it knows %s", name,
			strings.Join(replica.PlaceNames(known), ", "))
	case len(found) > 1:
		return replica.Place{}, refused("replica %q: there is one in each of several zones; name it as %s", name,
			strings.Join(replica.PlaceNames(found), " or "))
	}
	return found[0], nil
}
