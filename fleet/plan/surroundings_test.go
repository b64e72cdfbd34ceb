package plan_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/quorate/quorate/fleet/plan"
	"github.com/quorate/quorate/internal/replica"
)

// wanted are what a document asks for, in the order in which it can be made.
func wanted() []plan.Resource {
	one := func(kind, zone, name string, fields ...plan.Field) plan.Resource {
		return plan.Resource{Kind: kind, Zone: zone, Name: name, Made: true, Fields: fields}
	}
	return []plan.Resource{
		one("firewall rule", "", "prod-1-masters", plan.Field{Name: "allowed", Value: "tcp:2379-2380"}),
		one(plan.AddressKind, "", "prod-1", plan.Field{Name: "address", Value: "10.0.0.9"}),
		one("health check", "", "prod-1", plan.Field{Name: "type", Value: "HTTPS"},
			plan.Field{Name: "httpsHealthCheck.requestPath", Value: "/readyz"}),
		one("endpoint group", zones[0], "prod-1", plan.Field{Name: "networkEndpointType", Value: "GCE_VM_IP"}),
		one("backend service", "", "prod-1", plan.Field{Name: "protocol", Value: "TCP"}),
	}
}

// there are the wanted ones as they are found, each with an id.
func there() (out []plan.Resource) {
	for n, r := range wanted() {
		r.ID, r.Fields = fmt.Sprint(71+n), slices.Clone(r.Fields)
		out = append(out, r)
	}
	return out
}

// around are the steps about the surroundings, in words.
func around(p plan.Plan) (out []string) {
	for _, s := range p.Steps {
		if s.Kind != "" {
			out = append(out, strings.TrimSpace(fmt.Sprint(s.Act, " ", s.Kind, " ", s.Resource, s.ResourceID)+" "+
				s.Place.Zone))
		}
	}
	return out
}

func TestWhatIsMissingAroundTheMastersIsMadeFirst(t *testing.T) {
	create := plan.Wish{Kind: plan.Create, Count: 3, Zones: zones, Prefix: "p", Suffixes: []string{"x", "y", "z"}}
	all := []string{"create-resource firewall rule prod-1-masters", "create-resource address prod-1",
		"create-resource health check prod-1", "create-resource endpoint group prod-1 " + zones[0],
		"create-resource backend service prod-1"}
	for _, tc := range []struct {
		name  string
		there []plan.Resource
		want  []string
	}{
		{"nothing is there", nil, all},
		{"some are there", there()[:3], all[3:]},
		{"one in the middle is missing", slices.Delete(there(), 2, 3), all[2:3]},
		{"all are there", there(), nil},
		{"all are there, made by somebody else", func() []plan.Resource {
			out := there()
			for n := range out {
				out[n].Made = false
			}
			return out
		}(), nil},
		{"the address is reserved under another name", func() []plan.Resource {
			out := there()
			out[1].Name = "theirs"
			return out
		}(), nil},
	} {
		i := plan.Inventory{Cluster: "prod-1", Record: plan.Record{Region: region, Wanted: 3},
			Surroundings: plan.Surroundings{Wanted: wanted(), There: tc.there}}
		w, err := plan.Resolve(create, i)
		if err != nil {
			t.Fatal(err)
		}
		p, err := plan.Make(w, i)
		if err != nil || !slices.Equal(around(p), tc.want) {
			t.Errorf("%s: %q, %v", tc.name, around(p), err)
		}
		if at := len(tc.want); len(p.Steps) <= at || p.Steps[at].Act != plan.BeginRecord {
			t.Errorf("%s: the record does not begin behind them: %+v", tc.name, p.Steps)
		}
	}
}

// Create waits until the load balancer's probes arrive at each master that it can have, and says nothing of others.
func TestCreateProvesThatProbesArrive(t *testing.T) {
	rule := plan.Resource{Kind: plan.RuleKind, Name: "prod-1", Made: true}
	group := func(n int) plan.Resource { return plan.Resource{Kind: plan.GroupKind, Zone: zones[n], Name: "prod-1"} }
	both := []plan.Resource{group(0), group(1), group(2), rule}
	for name, tc := range map[string]struct {
		is   plan.Surroundings
		want string
	}{
		"no probe arrives": {plan.Surroundings{Wanted: both, There: both},
			"await-healthy master-a; await-healthy master-b; await-healthy master-c"},
		"one is missing": {plan.Surroundings{Wanted: both, There: both, Healthy: []replica.Place{place(0), place(2)}},
			"await-healthy master-b"},
		"all pass": {plan.Surroundings{Wanted: both, There: both, Healthy: []replica.Place{place(0), place(1), place(2)}},
			""},
		"a zone has no group": {plan.Surroundings{Wanted: both[1:], There: both[1:]},
			"await-healthy master-b; await-healthy master-c"},
		"no load balancer is asked for": {plan.Surroundings{}, ""},
	} {
		i := wellOff(3)
		i.Surroundings = tc.is
		got := carriedOut(plan.Wish{Kind: plan.Create, Count: 3, Zones: zones, Prefix: "p"}, i)
		if got != tc.want && !fits(got, tc.want) {
			t.Errorf("%s: %s, want %s", name, got, tc.want)
		}
	}
}

// What has a wanted name and is another thing is named with its field: nothing is changed, and nothing begins.
func TestWhatDiffersAroundTheMastersIsRefused(t *testing.T) {
	for _, tc := range []struct {
		name, refusal, why string
		change             func(*plan.Surroundings)
	}{
		{"a field", plan.ResourceDiffers, `The health check prod-1 is there, and its httpsHealthCheck.requestPath is ` +
			`"/healthz"; needed: "/readyz".`,
			func(s *plan.Surroundings) { s.There[2].Fields[1].Value = "/healthz" }},
		{"a field that is not read", plan.ResourceDiffers, `its type is "nothing"; needed: "HTTPS"`,
			func(s *plan.Surroundings) { s.There[2].Fields = nil }},
		{"one of a zone", plan.ResourceDiffers, "The endpoint group prod-1 in " + zones[0] + " is there",
			func(s *plan.Surroundings) { s.There[3].Fields[0].Value = "GCE_VM_IP_PORT" }},
		{"an address of our name with another number", plan.ResourceDiffers, `its address is "10.0.0.8"`,
			func(s *plan.Surroundings) { s.There[1].Fields[0].Value = "10.0.0.8" }},
		{"an address that Google draws", plan.ResourceMissing, "The address 10.0.0.9 is not reserved in " + region,
			func(s *plan.Surroundings) { s.There, s.Wanted[1].Made = nil, false }},
	} {
		i := plan.Inventory{Cluster: "prod-1", Record: plan.Record{Region: region, Wanted: 3},
			Surroundings: plan.Surroundings{Wanted: wanted(), There: there()}}
		tc.change(&i.Surroundings)
		_, err := plan.Make(plan.Wish{Kind: plan.Create}, i)
		var r *plan.Refusal
		if !errors.As(err, &r) || r.Name != tc.refusal || !strings.Contains(r.Why, tc.why) || r.Next == "" {
			t.Errorf("%s: %v", tc.name, err)
		}
	}
}

// delete takes away what commands made, the last made first and after the VMs and disks, also where nothing else was
// made yet. It keeps what somebody else made.
func TestWhatCommandsMadeAroundTheMastersGoesLast(t *testing.T) {
	i := wellOff(3)
	i.Surroundings = plan.Surroundings{Wanted: wanted(), There: there()}
	i.Surroundings.There[1].Made, i.Surroundings.There[1].Name = false, "theirs"
	want := []string{"delete-resource backend service prod-175", "delete-resource endpoint group prod-174 " + zones[0],
		"delete-resource health check prod-173", "delete-resource firewall rule prod-1-masters71"}
	p, err := plan.Make(plan.Wish{Kind: plan.Delete}, i)
	if err != nil || !slices.Equal(around(p), want) || p.Steps[len(p.Steps)-5].Act != plan.DeleteDisk {
		t.Errorf("%q of %d steps, %v", around(p), len(p.Steps), err)
	}
	if !slices.Contains(p.Warnings, "The address theirs was not made by quorate, and is kept.") {
		t.Errorf("said: %q", p.Warnings)
	}
	i = plan.Inventory{Cluster: "prod-1", Record: plan.Record{Region: region}, Surroundings: i.Surroundings}
	if p, err = plan.Make(plan.Wish{Kind: plan.Delete}, i); err != nil || len(p.Steps) != len(want) {
		t.Errorf("before the record began: %q, %v", around(p), err)
	}
	i.Surroundings.There = nil
	var r *plan.Refusal
	if _, err = plan.Make(plan.Wish{Kind: plan.Delete}, i); !errors.As(err, &r) || r.Name != plan.RecordNotBegun {
		t.Errorf("with nothing at all: %v", err)
	}
}

// A cluster that was deleted is not created again, which is said at once: nothing that could still come changes it.
func TestACreateAfterADeleteIsRefusedAtOnce(t *testing.T) {
	for _, unknown := range []string{"", "nobody leads"} {
		i := wellOff(3)
		i.VMs, i.Disks, i.Members.Unknown = nil, nil, unknown
		_, err := plan.Resolve(plan.Wish{Kind: plan.Create, Count: 3}, i)
		var r *plan.Refusal
		if !errors.As(err, &r) || r.Name != plan.WasDeleted {
			t.Errorf("%q: %v", unknown, err)
		}
	}
}
