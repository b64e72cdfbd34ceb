package order

import (
	"fmt"
	"strings"

	"github.com/quorate/quorate/internal/record"
	"github.com/quorate/quorate/internal/replica"
)

// CheckLeave checks the order that takes a replica out of the cluster, named as ZONE.NAME or by its name.
func (l Log) CheckLeave(name, reason string) (Draft, error) {
	p, err := findPlace(l.View, name)
	if err != nil {
		return Draft{}, err
	}
	d := Draft{Order: record.Order{Kind: record.OrderLeave, Place: &p, Reason: reason}, Back: withdrawIt,
		Then: "; it joins again by itself", Confirm: fmt.Sprintf("Take %s out of the cluster?", p),
		Means: "Its etcd member is removed as soon as the others are a quorum without it, its apiserver stops, and " +
			"its directory is archived."}
	if o, ok := l.inForce(leaves(p)); ok {
		d.Already = fmt.Sprintf("Order %d says so already, %s; it is %s.", o.Number, given(o),
			StateText(l.states[o.Number]))
		return d, nil
	}
	if l.With(l.next(d.Order)).nobodyStays() {
		return d, Refuse("%s is the last replica: the record knows no other that was not ordered to leave, so add "+
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
		return replica.Place{}, Refuse("replica %q: the record knows no replica yet", name)
	case len(found) == 0:
		return replica.Place{}, Refuse("replica %q: the record knows no such replica; it knows %s", name,
			strings.Join(replica.PlaceNames(known), ", "))
	case len(found) > 1:
		return replica.Place{}, Refuse("replica %q: there is one in each of several zones; name it as %s", name,
			strings.Join(replica.PlaceNames(found), " or "))
	}
	return found[0], nil
}
