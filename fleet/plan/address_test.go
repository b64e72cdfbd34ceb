package plan_test

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/quorate/quorate/fleet/plan"
)

// served gives a cluster a load balancer on demand, whose address a VM has, or, with -1, the forwarding rule.
func served(by int) func(*plan.Inventory) {
	return func(i *plan.Inventory) {
		w := &world{balancer: &balancer{user: "rule"}}
		if by >= 0 {
			w.balancer.user = place(by).String()
			i.VMs[by].ExternalIP = endpoint
		} else {
			parts()(i)
			w.balancer.parts = i.Surroundings.There[1:]
			rule := onDemand()[len(onDemand())-1]
			rule.ID = "500"
			w.balancer.parts = append(w.balancer.parts, rule)
		}
		i.Surroundings = w.around()
	}
}

// parts are there of the load balancer, but for the forwarding rule; nobody has the address.
func parts() func(*plan.Inventory) {
	return func(i *plan.Inventory) {
		w := &world{balancer: &balancer{}}
		for n, r := range onDemand()[1 : len(onDemand())-1] {
			r.ID = string(rune('1' + n))
			w.balancer.parts = append(w.balancer.parts, r)
		}
		i.Surroundings = w.around()
	}
}

// unserved: nobody has the address, and nothing else is there of the load balancer.
func unserved(i *plan.Inventory) {
	i.Surroundings = (&world{balancer: &balancer{}}).around()
}

// words are the acts of a plan, with the kind or the name of what each is about.
func words(p plan.Plan) string {
	var out []string
	for _, s := range p.Steps {
		what := s.Place.Name
		if s.Kind != "" {
			what = s.Kind
		}
		if s.Address != "" {
			what += " " + s.Address
		}
		if text := strings.TrimSpace(string(s.Act) + " " + what); !slices.Contains(out, text) { // a group of each zone
			out = append(out, text)
		}
	}
	return strings.Join(out, "; ")
}

const (
	makeParts   = "create-resource health check; create-resource endpoint group; create-resource backend service"
	deleteParts = "delete-resource backend service; delete-resource endpoint group; delete-resource health check"
	makeRule    = "create-resource forwarding rule"
	deleteRule  = "delete-resource forwarding rule"
	giveA       = "give-address master-a " + endpoint
	takeA       = "take-address master-a " + endpoint
)

func TestTheAddressMovesWithTheNumberOfReplicas(t *testing.T) {
	type changes = []func(*plan.Inventory)
	made := func(i *plan.Inventory) {
		i.VMs[1].Young, i.Disks[1].Replica = true, place(1).Name
	}
	add := plan.Wish{Kind: plan.Add, Interrupt: true}
	remove := plan.Wish{Kind: plan.Remove, Name: "master-b", Interrupt: true}
	for _, tc := range []struct {
		name string
		n    int
		but  changes
		wish plan.Wish
		want string
	}{
		{"a second comes: the rule is made last", 1, changes{served(0)}, add, "order-replicas; create-disk x; " +
			"create-vm x; await-joined x; " + makeParts + "; await-attached master-a; await-attached x; " + takeA + "; " +
			makeRule},
		{"a third comes: nothing moves", 2, changes{served(-1)}, add,
			"order-replicas; create-disk x; create-vm x; await-joined x"},
		{"the second has come, and its command stopped before the address moved", 2, changes{served(0), made}, add,
			makeParts + "; await-attached master-a; await-attached master-b; " + takeA + "; " + makeRule},
		{"the second has come, and its command stopped while nobody had the address", 2, changes{parts(), made}, add,
			makeRule},
		{"the last but one goes: the rule is deleted first", 2, changes{served(-1)}, remove,
			"order-leave master-b; await-left master-b; order-replicas; " + deleteRule + "; " + giveA + "; " + deleteParts +
				"; delete-vm master-b; delete-disk master-b"},
		{"it goes, and its command stopped while nobody had the address", 2, changes{parts(), left(1), ordered(1)}, remove,
			giveA + "; " + deleteParts + "; delete-vm master-b; delete-disk master-b"},
		{"one of three goes: nothing moves", 3, changes{served(-1)}, remove,
			"order-leave master-b; await-left master-b; order-replicas; delete-vm master-b; delete-disk master-b"},
		{"the one that has the address goes: it gives it up before", 2, changes{served(1)}, remove,
			"take-address master-b " + endpoint + "; " + giveA + "; order-leave master-b; await-left master-b; " +
				"order-replicas; delete-vm master-b; delete-disk master-b"},
		{"the only one is replaced by a new one", 1, changes{served(0)},
			plan.Wish{Kind: plan.Replace, Name: "master-a", Interrupt: true}, "create-disk x; create-vm x; " +
				"await-joined x; " + takeA + "; give-address x " + endpoint + "; order-leave master-a; " +
				"await-left master-a; delete-vm master-a; delete-disk master-a"},
		{"the only one is replaced in its place", 1, changes{served(0)},
			plan.Wish{Kind: plan.Replace, Name: "master-a", InPlace: true, Interrupt: true},
			"delete-vm master-a; create-vm master-a " + endpoint + "; await-joined master-a"},
		{"the only one is rolled", 1, changes{served(0)}, plan.Wish{Kind: plan.Roll, Image: "image-2", Interrupt: true},
			"delete-vm master-a; create-vm master-a " + endpoint + "; await-joined master-a"},
		{"nobody has the address of three: that comes first", 3, changes{unserved}, remove, makeParts + "; " + makeRule +
			"; order-leave master-b; await-left master-b; order-replicas; delete-vm master-b; delete-disk master-b"},
		{"create goes on with two", 1, changes{served(0)}, plan.Wish{Kind: plan.Create, Count: 2, Interrupt: true},
			"order-replicas; create-disk x; create-vm x; await-joined x; " + makeParts + "; await-attached master-a; " +
				"await-attached x; " + takeA + "; " + makeRule},
		{"the only one is away for a roll, and another came meanwhile: it comes back first", 1, changes{unserved,
			stranger("prod-1-y", zones[1]), gone(0), leaderless}, plan.Wish{Kind: plan.Roll, Image: "image-2",
			Interrupt: true}, "create-vm master-a; await-joined master-a; " + makeParts + "; " + makeRule},
		{"the only one is away for its replacement, and another came meanwhile", 1, changes{unserved,
			stranger("prod-1-y", zones[1]), gone(0), leaderless}, plan.Wish{Kind: plan.Replace, Name: "master-a",
			InPlace: true, Interrupt: true}, "create-vm master-a; await-joined master-a; " + makeParts + "; " + makeRule},
		{"the only one is away, and parts are left: it comes back with the address", 1, changes{parts(), gone(0),
			leaderless}, plan.Wish{Kind: plan.Roll, Image: "image-1", Interrupt: true}, "create-vm master-a " + endpoint +
			"; await-joined master-a; " + deleteParts},
		{"the voter of a pair is away, and the other was ordered out: it comes back without consent, too", 2,
			changes{served(-1), left(1), gone(0), leaderless}, plan.Wish{Kind: plan.Replace, Name: "master-a",
				InPlace: true}, "create-vm master-a; await-joined master-a"},
		{"all of it goes", 1, changes{served(0)}, plan.Wish{Kind: plan.Delete}, "delete-vm master-a; delete-disk"},

		{"without consent nothing begins", 1, changes{served(0)}, plan.Wish{Kind: plan.Add}, plan.WouldInterrupt},
		{"without consent nobody is ordered out", 2, changes{served(-1)},
			plan.Wish{Kind: plan.Remove, Name: "master-b"}, plan.WouldInterrupt},
		{"a zone without an endpoint group", 1, changes{served(0)}, plan.Wish{Kind: plan.Add, Zone: region + "-f",
			Interrupt: true}, plan.WrongZone},
		{"somebody else has the address", 1, changes{unserved, func(i *plan.Inventory) {
			i.Surroundings.Address.Users = []plan.User{{Kind: plan.RuleKind, Name: "theirs"}}
		}}, add, plan.ResourceDiffers},
		{"a VM that is not listed has the address", 1, changes{unserved, func(i *plan.Inventory) {
			i.Surroundings.Address.Users = []plan.User{{Kind: plan.InstanceKind, Zone: zones[0], Name: "theirs"}}
		}}, add, plan.ListContradicts},
		{"the address does not say that the VM has it", 1, changes{served(0), func(i *plan.Inventory) {
			i.Surroundings.Address.Users = nil
		}}, add, plan.ListContradicts},
		{"the address has two users", 2, changes{served(-1), func(i *plan.Inventory) {
			i.VMs[0].ExternalIP = endpoint
			i.Surroundings.Address.Users = append(i.Surroundings.Address.Users,
				plan.User{Kind: plan.InstanceKind, Zone: zones[0], Name: "master-a"})
		}}, add, plan.ListContradicts},
		{"the address is not reserved", 1, changes{served(0), func(i *plan.Inventory) { i.Surroundings.There = nil }}, add,
			plan.ResourceMissing},
		{"the rule is somebody else's", 2, changes{served(-1), func(i *plan.Inventory) {
			i.Surroundings.There[len(i.Surroundings.There)-1].Made = false
		}}, remove, plan.ResourceDiffers},
		{"the rule leads elsewhere", 2, changes{served(-1), func(i *plan.Inventory) {
			i.Surroundings.There[len(i.Surroundings.There)-1].Fields = []plan.Field{{Name: "IPAddress", Value: "x"}}
		}}, remove, plan.ResourceDiffers},
		{"who stays has another external address", 2, changes{served(-1), func(i *plan.Inventory) {
			i.VMs[0].ExternalIP = "203.0.113.99"
		}}, remove, plan.ResourceDiffers},
	} {
		t.Run(tc.name, func(t *testing.T) {
			i := wellOff(tc.n)
			for _, c := range tc.but {
				c(&i)
			}
			w := tc.wish
			w.Zones, w.Prefix, w.Suffixes, w.DropDisk = zones, "prod-1", []string{"x"}, true
			w, err := plan.Resolve(w, i)
			var p plan.Plan
			if err == nil {
				p, err = plan.Make(w, i)
			}
			got := strings.ReplaceAll(words(p), "prod-1-x", "x")
			var r *plan.Refusal
			if errors.As(err, &r) {
				got = r.Name
			}
			if got != tc.want {
				t.Errorf("got  %s (%v)\nwant %s", got, err, tc.want)
			}
		})
	}
}

// The outage is in the plan before anybody agrees to it: between the step that takes and the one that gives.
func TestThePlanSaysWhenNobodyReachesTheEndpoint(t *testing.T) {
	i := wellOff(1)
	served(0)(&i)
	w, err := plan.Resolve(plan.Wish{Kind: plan.Add, Zones: zones, Prefix: "prod-1", Suffixes: []string{"x"},
		Interrupt: true}, i)
	if err != nil {
		t.Fatal(err)
	}
	p, err := plan.Make(w, i)
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range p.Steps {
		want := ""
		switch {
		case s.Act == plan.TakeAddress:
			want = "Nobody reaches the endpoint from here until the next step"
		case s.Kind == plan.RuleKind:
			want = "They reach the endpoint again."
		}
		if !strings.HasPrefix(s.Risk.Clients, want) || want == "" && s.Risk.Clients != "" {
			t.Errorf("%s: %q, wanted %q", s.What, s.Risk.Clients, want)
		}
	}
}
