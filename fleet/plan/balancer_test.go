package plan_test

import (
	"errors"
	"fmt"
	"slices"

	"github.com/quorate/quorate/fleet/plan"
	"github.com/quorate/quorate/internal/replica"
)

// endpoint is the address of the walks' clusters.
const endpoint = "203.0.113.10"

// balancer is a project's load balancer on demand, and who has its address: nobody, a VM's place as text, or "rule".
type balancer struct {
	user  string
	parts []plan.Resource
	// attached are the VMs in their groups, by their ids.
	attached map[replica.Place]string
}

// onDemand are what a document asks for with a load balancer on demand.
func onDemand() []plan.Resource {
	out := []plan.Resource{{Kind: plan.AddressKind, Name: "api",
		Fields: []plan.Field{{Name: "address", Value: endpoint}}},
		{Kind: plan.HealthCheckKind, Name: "prod-1", Made: true}}
	for _, z := range zones {
		out = append(out, plan.Resource{Kind: plan.GroupKind, Zone: z, Name: "prod-1", Made: true})
	}
	return append(out, plan.Resource{Kind: plan.ServiceKind, Name: "prod-1", Made: true},
		plan.Resource{Kind: plan.RuleKind, Name: "prod-1", Made: true,
			Fields: []plan.Field{{Name: "IPAddress", Value: endpoint}}})
}

// balance gives half of the worlds a load balancer on demand, mostly with who is to have the address.
func (w *world) balance() {
	if w.rng.IntN(2) == 0 {
		return
	}
	w.balancer = &balancer{attached: map[replica.Place]string{}}
	places := w.places()
	rule := len(places) > 1
	if w.rng.IntN(4) == 0 && len(places) > 0 {
		rule = !rule
	}
	switch {
	case w.rng.IntN(8) == 0:
	case rule:
		for _, r := range onDemand()[1:] {
			_ = w.takeBalanced(plan.Step{Act: plan.CreateResource, Kind: r.Kind, Resource: r.Name,
				Place: replica.Place{Zone: r.Zone}})
		}
	case len(places) > 0:
		p := places[w.rng.IntN(len(places))]
		_ = w.takeBalanced(plan.Step{Act: plan.GiveAddress, Place: p, InstanceID: w.vms[p].InstanceID,
			Address: endpoint})
	}
	w.tick()
}

// around is what is read of it.
func (w *world) around() (s plan.Surroundings) {
	if w.balancer == nil {
		return s
	}
	s.Wanted, s.Address = onDemand(), &plan.Address{Number: endpoint}
	s.There = append(s.Wanted[:1:1], w.balancer.parts...)
	switch user := w.balancer.user; user {
	case "":
	case "rule":
		s.Address.Users = []plan.User{{Kind: plan.RuleKind, Name: "prod-1"}}
	default:
		p, _ := replica.ParsePlace(user)
		s.Address.Users = []plan.User{{Kind: plan.InstanceKind, Zone: p.Zone, Name: p.Name}}
	}
	for _, p := range w.places() {
		if w.balancer.attached[p] == w.vms[p].InstanceID {
			s.Address.Attached = append(s.Address.Attached, p)
		}
	}
	return s
}

// has finds a part.
func (b *balancer) has(kind, zone string) bool {
	return slices.ContainsFunc(b.parts, func(r plan.Resource) bool { return r.Kind == kind && r.Zone == zone })
}

// attaches is what an agent does once its group is there.
func (w *world) attaches(p replica.Place, v *vm) {
	if w.balancer != nil && w.balancer.has(plan.GroupKind, p.Zone) {
		w.balancer.attached[p] = v.InstanceID
	}
}

func (w *world) getsAddress(who string) error {
	if w.balancer.user != "" {
		return fmt.Errorf("400 the address is used by %s", w.balancer.user)
	}
	w.balancer.user = who
	return nil
}

func (w *world) losesAddress(p replica.Place) {
	if w.balancer != nil && w.balancer.user == p.String() {
		w.balancer.user = ""
	}
}

// takeBalanced does what a step about the load balancer says, and refuses it as Google does.
func (w *world) takeBalanced(s plan.Step) error {
	v := w.vms[s.Place]
	here := v != nil && v.InstanceID == s.InstanceID
	switch s.Act {
	case plan.CreateResource:
		return w.makePart(s)
	case plan.DeleteResource:
		return w.deletePart(s)
	case plan.TakeAddress:
		if here && v.ExternalIP == s.Address {
			v.ExternalIP = ""
			w.losesAddress(s.Place)
		}
	case plan.GiveAddress:
		if !here {
			return errors.New("404 no such VM")
		}
		if v.ExternalIP == s.Address {
			return nil
		}
		err := w.getsAddress(s.Place.String())
		if err == nil {
			v.ExternalIP = s.Address
		}
		return err
	default:
		return fmt.Errorf("no act %q", s.Act)
	}
	return nil
}

func (w *world) makePart(s plan.Step) error {
	b := w.balancer
	at := slices.IndexFunc(onDemand(), func(r plan.Resource) bool { return r.Kind == s.Kind && r.Zone == s.Place.Zone })
	groups := !slices.ContainsFunc(zones, func(z string) bool { return !b.has(plan.GroupKind, z) })
	switch {
	case b.has(s.Kind, s.Place.Zone):
		return nil
	case s.Kind == plan.ServiceKind && !(groups && b.has(plan.HealthCheckKind, "")),
		s.Kind == plan.RuleKind && !b.has(plan.ServiceKind, ""):
		return errors.New("404 what it refers to is not there")
	case s.Kind == plan.RuleKind:
		if err := w.getsAddress("rule"); err != nil {
			return err
		}
	}
	r := onDemand()[at]
	r.ID = w.id()
	b.parts = append(b.parts, r)
	return nil
}

func (w *world) deletePart(s plan.Step) error {
	b := w.balancer
	if s.Kind == plan.ServiceKind && b.has(plan.RuleKind, "") ||
		(s.Kind == plan.GroupKind || s.Kind == plan.HealthCheckKind) && b.has(plan.ServiceKind, "") {
		return errors.New("400 it is in use")
	}
	b.parts = slices.DeleteFunc(b.parts, func(r plan.Resource) bool {
		if r.ID != s.ResourceID {
			return false
		}
		if r.Kind == plan.RuleKind {
			b.user = ""
		}
		return true
	})
	if s.Kind == plan.GroupKind {
		for p := range b.attached {
			if p.Zone == s.Place.Zone {
				delete(b.attached, p)
			}
		}
	}
	return nil
}

// mayServe checks a step against the endpoint: while nobody has the address, and somebody could, nothing else is done
// than to give it, or to bring a VM back while nobody leads; it is taken only where the operator has accepted that; and
// no VM goes for good with it. Lists that are all of an earlier time may make an outage longer, and do no more.
func (k *walk) mayServe(s plan.Step) error {
	if k.balancer == nil || k.wish.Kind == plan.Delete {
		return nil
	}
	gives := s.Act == plan.CreateResource || s.Act == plan.GiveAddress || s.Act == plan.CreateVM && s.Address != "" ||
		s.Act == plan.DeleteResource && s.Kind != plan.RuleKind
	takes := s.Act == plan.TakeAddress || s.Act == plan.DeleteResource && s.Kind == plan.RuleKind
	gives = gives || takes && k.balancer.user == "" // once more, by a list that is late: nothing is left to take
	goes := s.Act == plan.DeleteVM && k.balancer.user == s.Place.String()
	inPlace := k.wish.InPlace || k.wish.Kind == plan.Roll
	back := slices.Contains([]plan.Act{plan.CreateDisk, plan.CreateVM, plan.AwaitJoined}, s.Act)
	gives = gives || inPlace && back && k.lied == noLeader
	switch {
	case k.balancer.user == "" && k.someoneCouldServe() && !gives && k.lied != oldSurroundings:
		return fmt.Errorf("nobody has the address, and %s is done", s.Act)
	case takes && !k.wish.Interrupt:
		return fmt.Errorf("%s without consent", s.Act)
	case goes && (!inPlace || len(k.stay()) > 1 && k.lied != oldLists):
		return fmt.Errorf("VM %s goes with the address", s.Place)
	}
	return nil
}

// stay are the replicas that are not ordered to leave.
func (k *walk) stay() []replica.Place {
	return slices.DeleteFunc(k.inventory(false).Known(), func(p replica.Place) bool { return k.leave(p) != nil })
}

func (k *walk) someoneCouldServe() bool {
	return k.hasQuorum() && slices.ContainsFunc(k.stay(), k.alive)
}

// served checks that who is to have the address has it, with all parts of the load balancer or with none.
func (k *walk) served() error {
	if k.balancer == nil || k.wish.Kind == plan.Delete {
		return nil
	}
	stay, want, parts := k.stay(), "rule", len(onDemand())-1
	if len(stay) == 1 {
		want, parts = stay[0].String(), 0
		if k.vms[stay[0]] == nil {
			want = ""
		}
	}
	if k.balancer.user != want || len(k.balancer.parts) != parts {
		return fmt.Errorf("%d replicas: the address is used by %q, not %q, and there are %d parts", len(stay),
			k.balancer.user, want, len(k.balancer.parts))
	}
	return nil
}
