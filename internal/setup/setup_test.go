package setup

import (
	"net/netip"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/quorate/quorate/internal/record"
	"github.com/quorate/quorate/internal/replica"
)

func prefixes(texts ...string) (out []netip.Prefix) {
	for _, t := range texts {
		out = append(out, netip.MustParsePrefix(t))
	}
	return out
}

func vmOf(name, address string) VM {
	return VM{Place: replica.Place{Zone: "z-a", Name: name}, Labelled: true, Network: "n", Account: name + "@x",
		Tags: []string{"tag-" + name}, Address: netip.MustParseAddr(address)}
}

// GCE's order: the lowest number, of two with one number the refusal, and none is a refusal.
func TestWhatTheFirewallAdmits(t *testing.T) {
	etcd := []Ports{{Protocol: "tcp", Ranges: []string{"2379-2380"}}}
	allow := func(priority int64, change func(*FirewallRule)) FirewallRule {
		r := FirewallRule{Name: "allow", Network: "n", Priority: priority, Ports: etcd,
			SourceRanges: prefixes("10.0.0.0/8")}
		if change != nil {
			change(&r)
		}
		return r
	}
	deny := func(priority int64, from string) FirewallRule {
		return FirewallRule{Name: "deny", Network: "n", Deny: true, Priority: priority, Ports: []Ports{{
			Protocol: "all"}},
			SourceRanges: prefixes(from)}
	}
	a, b := vmOf("a", "10.0.0.1"), vmOf("b", "10.0.0.2")
	probe := source{ranges: prefixes("35.191.0.0/16")}
	for name, c := range map[string]struct {
		rules []FirewallRule
		from  source
		want  bool
	}{
		"no rule":               {nil, sourceOf(a), false},
		"a range that holds it": {[]FirewallRule{allow(1000, nil)}, sourceOf(a), true},
		"a range that does not": {[]FirewallRule{allow(1000, nil)}, probe, false},
		"a part of the range": {[]FirewallRule{allow(1, func(r *FirewallRule) {
			r.SourceRanges = prefixes(
				"35.191.0.0/17")
		})}, probe, false},
		"a refusal of a part": {[]FirewallRule{allow(9, func(r *FirewallRule) {
			r.SourceRanges = prefixes(
				"0.0.0.0/0")
		}), deny(5, "35.191.3.0/24")}, probe, false},
		"a refusal before":        {[]FirewallRule{allow(1000, nil), deny(900, "10.0.0.0/24")}, sourceOf(a), false},
		"a refusal after":         {[]FirewallRule{deny(1100, "10.0.0.0/24"), allow(1000, nil)}, sourceOf(a), true},
		"a refusal with the same": {[]FirewallRule{allow(1000, nil), deny(1000, "10.0.0.0/24")}, sourceOf(a), false},
		"a refusal of another":    {[]FirewallRule{allow(1000, nil), deny(900, "10.9.0.0/24")}, sourceOf(a), true},
		"another network": {[]FirewallRule{allow(1, func(r *FirewallRule) { r.Network = "m" })}, sourceOf(a),
			false},
		"another port": {[]FirewallRule{allow(1, func(r *FirewallRule) {
			r.Ports = []Ports{{"tcp", []string{
				"2379"}}}
		})}, sourceOf(a), false},
		"UDP": {[]FirewallRule{allow(1, func(r *FirewallRule) { r.Ports = []Ports{{"udp", nil}} })},
			sourceOf(a), false},
		"all of TCP by number": {[]FirewallRule{allow(1, func(r *FirewallRule) { r.Ports = []Ports{{"6", nil}} })},
			sourceOf(a), true},
		"a source's tag": {[]FirewallRule{allow(1, func(r *FirewallRule) {
			r.SourceRanges, r.SourceTags = nil,
				[]string{"tag-a"}
		})}, sourceOf(a), true},
		"a source's account": {[]FirewallRule{allow(1, func(r *FirewallRule) {
			r.SourceRanges,
				r.SourceAccounts = nil, []string{"a@x"}
		})}, sourceOf(a), true},
		"another's account": {[]FirewallRule{allow(1, func(r *FirewallRule) {
			r.SourceRanges,
				r.SourceAccounts = nil, []string{"c@x"}
		})}, sourceOf(a), false},
		"for its tag": {[]FirewallRule{allow(1, func(r *FirewallRule) {
			r.TargetTags = []string{
				"tag-b"}
		})}, sourceOf(a), true},
		"for another's tag": {[]FirewallRule{allow(1, func(r *FirewallRule) {
			r.TargetTags = []string{
				"tag-c"}
		})}, sourceOf(a), false},
		"for its account": {[]FirewallRule{allow(1, func(r *FirewallRule) {
			r.TargetAccounts = []string{
				"b@x"}
		})}, sourceOf(a), true},
		"for another's account": {[]FirewallRule{allow(1, func(r *FirewallRule) {
			r.TargetAccounts = []string{
				"a@x"}
		})}, sourceOf(a), false},
	} {
		if got, by := admits(c.rules, c.from, b, 2380); got != c.want {
			t.Errorf("%s: %v by %s, want %v", name, got, by, c.want)
		}
	}
}

// Only what is understood whole is judged.
func TestConditions(t *testing.T) {
	const o = "projects/_/buckets/b/objects/"
	for expression, want := range map[string]string{
		`resource.name.startsWith("` + o + `c/marks/")`:                                               "c/marks/",
		`(resource.name.startsWith('` + o + `c/marks/') || resource.name.startsWith("` + o + `c/x"))`: "c/marks/ c/x",
		"resource.name.startsWith(\"" + o + "a\") ||\n  resource.name.startsWith(\"" + o + "b\")":     "a b",
		`!resource.name.startsWith("` + o + `c/marks/")`:                                              "?",
		`resource.name.startsWith("` + o + `c/") && resource.type == "storage.googleapis.com/Object"`: "?",
		`resource.name.startsWith("` + o + `a") resource.name.startsWith("` + o + `b")`:               "?",
		`request.time < timestamp("2027-01-01T00:00:00Z")`:                                            "?",
		``: "?",
	} {
		got, ok := conditionPrefixes(expression, "b")
		text := strings.Join(got, " ")
		if !ok {
			text = "?"
		}
		if text != want {
			t.Errorf("%s: %q, want %q", expression, text, want)
		}
	}
	if got, ok := conditionPrefixes(`resource.name.startsWith("projects/_/buckets/other/objects/c/marks/")`,
		"b"); !ok ||
		got[0] != "" {
		t.Errorf("another bucket's: %q", got)
	}
}

func TestWhoHoldsARole(t *testing.T) {
	project := Policy{{Role: "roles/editor", Members: []string{"serviceAccount:m@x"}}}
	for member, want := range map[string]string{
		"serviceAccount:m@x": "yes", "serviceAccount:other@x": "no", "user:m@x": "no", "allUsers": "yes",
		"allAuthenticatedUsers": "yes", "projectEditor:p": "yes", "projectOwner:p": "no", "group:g@x": "maybe",
		"domain:x": "maybe",
	} {
		g := grants{account: "m@x", project: "p", inherited: Asked[Policy]{Answer: project}}
		mine, maybe := g.holds([]string{"serviceAccount:z@x", member})
		if got := map[bool]string{true: "yes", false: map[bool]string{true: "maybe",
			false: "no"}[maybe]}[mine]; got != want {
			t.Errorf("%s: %s, want %s", member, got, want)
		}
	}
}

// rightsOf judges the rights of m@x over bucket b.
func rightsOf(f Facts) (out []record.Finding) {
	f.Cluster, f.Project, f.BucketName, f.Prefix, f.Account = "c", "p", "b", "c/", "m@x"
	var l list
	l.rights(f)
	return l.found
}

// What cannot be read here is not known to be missing, and never known to be there.
func TestRightsThatAreNotSeenAreNotProven(t *testing.T) {
	refused := &Fault{Why: Refused, Text: "no"}
	group := Policy{{Role: "roles/all", Members: []string{"group:g@x"}}}
	all := map[string]Asked[[]string]{"roles/all": {Answer: slices.Concat(bucketRights, keyRights, computeRights)}}
	worst := func(findings []record.Finding) record.Level {
		for _, level := range []record.Level{record.Fail, record.Warn} {
			if slices.ContainsFunc(findings, func(f record.Finding) bool {
				return f.Level == level &&
					strings.Contains(f.What, "storage.objects.create")
			}) {
				return level
			}
		}
		return record.OK
	}
	for name, c := range map[string]struct {
		f    Facts
		want record.Level
	}{
		"nobody gives it": {Facts{}, record.Fail},
		"the project gives it": {Facts{Roles: all, ProjectPolicy: Asked[Policy]{Answer: Policy{{Role: "roles/all",
			Members: []string{"serviceAccount:m@x"}}}}}, record.OK},
		"a group may give it":        {Facts{Roles: all, BucketPolicy: Asked[Policy]{Answer: group}}, record.Warn},
		"the project cannot be read": {Facts{ProjectPolicy: Asked[Policy]{Fault: refused}}, record.Warn},
		"the role cannot be read": {Facts{BucketPolicy: Asked[Policy]{Answer: Policy{{Role: "roles/all",
			Members: []string{"serviceAccount:m@x"}}}}, Roles: map[string]Asked[[]string]{"roles/all": {Fault: refused}}},
			record.Warn},
		"it is given under a condition": {Facts{Roles: all, BucketPolicy: Asked[Policy]{Answer: Policy{{
			Role: "roles/all", Condition: "x", Members: []string{"serviceAccount:m@x"}}}}}, record.Warn},
	} {
		if got := worst(rightsOf(c.f)); got != c.want {
			t.Errorf("%s: %s, want %s: %v", name, got, c.want, rightsOf(c.f))
		}
	}
}

// A question without an answer is a finding, whatever it was about, and an API that is off is named once.
func TestWhatCouldNotBeAskedIsNotWhole(t *testing.T) {
	for _, c := range []struct {
		why  Why
		want record.Level
		text string
	}{{Refused, record.Warn, "not checked: no"}, {Failed, record.Warn, "not checked: no"},
		{Absent, record.Fail, "it does not exist: no"}, {Disabled, record.Fail, "is not enabled: no"}} {
		fault := &Fault{Why: c.why, Text: "no"}
		f := Facts{Cluster: "c", Project: "p", Region: "r", KeyName: "projects/p/locations/l/keyRings/r/cryptoKeys/k",
			Account: "m@x", Bucket: Asked[Bucket]{Fault: fault}, Key: Asked[Key]{Fault: fault}, Zones: Asked[[]Zone]{
				Fault: fault},
			VMs: Asked[[]VM]{Fault: fault}, Addresses: Asked[[]Address]{Fault: fault},
			Metadata: Asked[map[string]string]{Fault: fault}}
		found := 0
		for _, one := range Judge(f) {
			if strings.Contains(one.What, c.text) && one.Level == c.want {
				found++
			}
		}
		if want := map[bool]int{true: 3, false: 6}[c.why == Disabled]; found != want {
			t.Errorf("%s: %d findings %q, want %d: %v", c.why, found, c.text, want, Judge(f))
		}
	}
}

// A Cloud NAT is a way out as well, for the subnetworks that it serves.
func TestTheWayOut(t *testing.T) {
	vm := vmOf("a", "10.0.0.1")
	vm.Subnet = "s"
	outside := vm
	outside.External = true
	for name, c := range map[string]struct {
		vm   VM
		nats []NAT
		want bool
	}{
		"none":                  {vm, nil, false},
		"an external address":   {outside, nil, true},
		"a NAT for all":         {vm, []NAT{{Network: "n"}}, true},
		"a NAT for it":          {vm, []NAT{{Network: "n", Subnets: []string{"t", "s"}}}, true},
		"a NAT for another":     {vm, []NAT{{Network: "n", Subnets: []string{"t"}}}, false},
		"another network's NAT": {vm, []NAT{{Network: "m"}}, false},
	} {
		var l list
		l.wayOut(Facts{VMs: Asked[[]VM]{Answer: []VM{c.vm}}, NATs: Asked[[]NAT]{Answer: c.nats},
			Subnets: Asked[[]Subnet]{Answer: []Subnet{{Name: "s", Network: "n"}, {Name: "t", Network: "n"}}}})
		if whole := !slices.ContainsFunc(l.found, func(
			f record.Finding) bool {
			return f.Level != record.OK
		}); whole != c.want {
			t.Errorf("%s: %v", name, l.found)
		}
	}
}

// What the checks ask for is what docs/iam.md tells people to grant: of a kind with .* each of get, create and delete,
// and what is named next to it.
func TestTheGuideHasEachPermission(t *testing.T) {
	text, err := os.ReadFile("../../docs/iam.md")
	if err != nil {
		t.Fatal(err)
	}
	page := string(text)
	c := &replica.Cluster{GCE: &replica.GCE{Image: "family/x", Tags: []string{"t"},
		Firewall:     replica.GCEFirewall{APISources: []string{"10.0.0.0/8"}},
		LoadBalancer: replica.LoadBalancer{Type: replica.ExternalBalancer}}}
	moving := &replica.Cluster{GCE: &replica.GCE{LoadBalancer: replica.LoadBalancer{Type: replica.ExternalBalancer,
		OnDemand: true}}}
	inner := &replica.Cluster{GCE: &replica.GCE{LoadBalancer: replica.LoadBalancer{Type: replica.InternalBalancer}}}
	all := slices.Concat(bucketRights, keyRights, computeRights, endpointRights, ToMakeMasters(c, true).Project,
		ToMakeMasters(inner, true).Project, ToMakeMasters(c, true).Account,
		ToMakeMasters(moving, false).Project)
	for _, p := range all {
		at := strings.LastIndexByte(p, '.')
		kind, action := p[:at], p[at+1:]
		usual := slices.Contains([]string{"get", "create", "delete"}, action)
		if !strings.Contains(page, "`"+p+"`") && (!strings.Contains(page, "`"+kind+".*`") ||
			!usual && !strings.Contains(page, "`"+action+"`")) {
			t.Errorf("docs/iam.md does not name %s", p)
		}
	}
	if around, alone := ToMakeMasters(c, true).Project, ToMakeMasters(c, false).Project; len(around) <= len(alone) ||
		slices.Contains(alone, "compute.firewalls.create") {
		t.Errorf("add needs %q, create %q", alone, around)
	}
	if adds := ToMakeMasters(moving, false).Project; !slices.Contains(adds, "compute.instances.deleteAccessConfig") ||
		!slices.Contains(adds, "compute.forwardingRules.create") {
		t.Errorf("add with a load balancer on demand needs %q", adds)
	}
}

// An API that only the checks ask is named too, and stops nobody.
func TestAnAPIOfTheChecksAloneOnlyWarns(t *testing.T) {
	off := &Fault{Why: Disabled, Text: "no"}
	f := Facts{Project: "p", ProjectPolicy: Asked[Policy]{Fault: off}, ServiceAccount: Asked[bool]{Fault: off}}
	var l list
	l.apis(f)
	if len(l.found) != 2 || l.found[0].Level != record.Warn || l.found[1].Level != record.Warn {
		t.Errorf("found %v", l.found)
	}
}

// A network of another project is not asked for, so nothing is said to be wrong with it.
func TestASharedNetworkIsNotJudged(t *testing.T) {
	c := &replica.Cluster{Name: "c", GCE: &replica.GCE{Project: "p", Region: "r-x1", Zones: []string{"r-x1-a"},
		Network: "projects/host/global/networks/n", ServiceAccount: "m@p.iam.gserviceaccount.com"}}
	f := Wanted(c, "quorate-data", nil)
	var l list
	l.network(f)
	l.firewall(f)
	l.wayOut(f)
	if len(l.found) != 1 || l.found[0].Level != record.Warn || !strings.Contains(l.found[0].What, "of project host") {
		t.Errorf("found %v", l.found)
	}
}

// A rule that is missing holds nobody up who makes it: for the masters' account, and where no other refuses.
func TestRulesThatCreateMakes(t *testing.T) {
	a, b := vmOf("a", "10.0.0.1"), vmOf("b", "10.0.0.2")
	a.Account, b.Account = "me@x", "me@x"
	f := Facts{Cluster: "demo", Project: "p", Account: "me@x", Port: 443, External: netip.MustParseAddr("203.0.113.1"),
		MakesRules: true, VMs: Asked[[]VM]{Answer: []VM{a, b}}}
	refusal := FirewallRule{Name: "deny", Network: "n", Deny: true, Priority: 900, Ports: []Ports{{Protocol: "all"}},
		SourceRanges: prefixes("0.0.0.0/0")}
	for name, c := range map[string]struct {
		change func(*Facts)
		fails  int
	}{
		"create":               {func(f *Facts) { f.Creates = true }, 0},
		"another command":      {func(*Facts) {}, 2},
		"rules are not made":   {func(f *Facts) { f.Creates, f.MakesRules = true, false }, 2},
		"masters of another":   {func(f *Facts) { f.Creates, f.Account = true, "you@x" }, 2},
		"another rule refuses": {func(f *Facts) { f.Creates, f.Firewall.Answer = true, []FirewallRule{refusal} }, 2},
	} {
		facts, l := f, list{}
		c.change(&facts)
		l.firewall(facts)
		fails := 0
		for _, found := range l.found {
			if found.Level == record.Fail {
				fails++
			}
		}
		if fails != c.fails {
			t.Errorf("%s: %d fail, want %d: %+v", name, fails, c.fails, l.found)
		}
	}
}
