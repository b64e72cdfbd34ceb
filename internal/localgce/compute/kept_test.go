package compute_test

import (
	"errors"
	"fmt"
	"net/netip"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"google.golang.org/api/compute/v1"

	"github.com/quorate/quorate/internal/gce"
	"github.com/quorate/quorate/internal/localgce/fault"
	"github.com/quorate/quorate/internal/localgce/instance"
)

// surroundings are an internal load balancer's parts and the firewall rules.
func surroundings() gce.Surroundings {
	const project = "projects/" + instance.ProjectID
	return gce.Surroundings{Project: instance.ProjectID, Cluster: "demo", Region: "us-central1", Name: "demo-lb",
		Network: project + "/global/networks/default", Account: instance.MastersAccount(), Port: 443, Scheme: "INTERNAL",
		Address: "10.240.0.99", Sources: []string{"10.128.0.0/20"}, Probes: []string{"35.191.0.0/16", "130.211.0.0/22"}}
}

// read are the resources that are wanted, and those that are there.
func (w *world) read() (wanted, there []gce.Resource) {
	w.t.Helper()
	wanted, there, err := w.Surroundings(w.t.Context(), surroundings())
	w.do(err)
	return wanted, there
}

// surround makes all of them, each again where that fails, and counts these.
func (w *world) surround() (failed int) {
	w.t.Helper()
	wanted := surroundings().Resources()
	for _, r := range wanted {
		if err := w.InsertResource(w.t.Context(), r); err != nil {
			failed++
			w.do(w.InsertResource(w.t.Context(), r))
		}
	}
	if _, there := w.read(); len(there) != len(wanted) {
		w.t.Errorf("%d of %d are there", len(there), len(wanted))
	}
	return failed
}

// clear deletes all of them, the last made first.
func (w *world) clear() (failed int) {
	w.t.Helper()
	_, there := w.read()
	for _, r := range slices.Backward(there) {
		if err := w.DeleteResource(w.t.Context(), r); err != nil {
			failed++
			w.do(w.DeleteResource(w.t.Context(), r))
		}
	}
	if _, left := w.read(); len(left) > 0 {
		w.t.Errorf("left: %+v", left)
	}
	return failed
}

// What quorate's client makes is found with the fields that it was to have, marked as the cluster's, and goes again.
func TestWhatSurroundsMastersIsMadeAndDeleted(t *testing.T) {
	in(t, func(w *world) {
		w.surround()
		w.surround() // it is done
		wanted, there := w.read()
		for n, r := range there {
			if r.Kind != wanted[n].Kind || r.Name != wanted[n].Name || !r.Made || r.ID == "" ||
				!slices.Equal(r.Fields, wanted[n].Fields) {
				w.t.Errorf("%+v\nwanted %+v", r, wanted[n])
			}
		}
		rule, err := w.google().ForwardingRules.Get(instance.ProjectID, "us-central1", "demo-lb").Do()
		w.do(err)
		address, err := w.google().Addresses.Get(instance.ProjectID, "us-central1", "demo-lb").Do()
		w.do(err)
		if address.Status != "IN_USE" || len(address.Users) != 1 || rule.IPAddress != address.Address {
			w.t.Errorf("%+v\n%+v", rule, address)
		}
		w.clear()
	})
}

// A fault is met at each request in turn: an order fails or not, and repeated it has done what it should.
func TestAFaultAtEveryRequestForWhatSurroundsMasters(t *testing.T) {
	for name, f := range map[string]fault.Fault{
		"the request is lost": {Kind: "away"}, "the answer is lost": {Kind: "lost"},
		"no permission": {Kind: "forbidden"}, "above the quota": {Kind: "failed", Code: "QUOTA_EXCEEDED"},
		"the operation is slow": {Kind: "late", Delay: time.Hour},
	} {
		for _, call := range []string{"POST *", "DELETE *"} {
			t.Run(name+", "+call, func(t *testing.T) {
				runs, failed := 0, 0
				for met := true; met; runs++ {
					in(t, func(w *world) {
						f.Skip, f.Times, f.Call = runs, 1, call
						w.set(f)
						failed += w.surround() + w.clear()
						met = w.faults.Met(fault.Compute) > 0
					})
				}
				if may := f.Kind == "failed" || f.Kind == "forbidden"; (failed > 0) != may || runs < 7 {
					t.Errorf("%d orders failed in %d runs", failed, runs)
				}
			})
		}
	}
}

// Nothing is made of what refers to nothing, or that another has; nothing goes that is referred to, or that is not the
// cluster's.
func TestWhatSurroundsMastersIsRefused(t *testing.T) {
	in(t, func(w *world) {
		parts := surroundings().Resources()
		by := func(kind gce.ResourceKind) gce.Resource {
			return parts[slices.IndexFunc(parts, func(r gce.Resource) bool { return r.Kind == kind })]
		}
		refused := func(want string, err error) {
			w.t.Helper()
			if err == nil || !strings.Contains(err.Error(), want) {
				w.t.Errorf("%v; want %s", err, want)
			}
		}
		ctx := w.t.Context()
		refused("healthChecks/demo-lb' was not found", w.InsertResource(ctx, by(gce.BackendService)))
		refused("backendServices/demo-lb' was not found", w.InsertResource(ctx, by(gce.ForwardingRule)))
		external := surroundings()
		external.Scheme, external.Address = "EXTERNAL", "203.0.113.9"
		refused("Specified external IP address not found", w.InsertResource(ctx, external.Resources()[3]))
		w.surround()
		_, there := w.read()
		for _, r := range there {
			var refused *gce.Refused
			err := w.DeleteResource(ctx, r)
			used := r.Kind == gce.Address || r.Kind == gce.HealthCheck || r.Kind == gce.BackendService
			if got := errors.As(err, &refused) && refused.Reason == gce.InUse; got != used {
				w.t.Errorf("delete %s: %v", r.Kind, err)
			}
			if used {
				continue
			}
			w.do(w.InsertResource(ctx, by(r.Kind)))
			var changed *gce.Changed
			if err := w.DeleteResource(ctx, r); r.Kind != gce.FirewallRule && !errors.As(err, &changed) {
				w.t.Errorf("a successor: %v", err)
			}
		}
		other := surroundings()
		other.Port = 6443
		var exists *gce.Exists
		if err := w.InsertResource(ctx, other.Resources()[4]); !errors.As(err, &exists) ||
			!strings.Contains(exists.Differs, `its httpsHealthCheck.port is "443", not "6443"`) {
			w.t.Errorf("one with another port: %v", err)
		}
	})
}

// Somebody else's has the name: it is neither taken for ours nor deleted. An address is known by its number.
func TestWhatOthersMadeIsKept(t *testing.T) {
	in(t, func(w *world) {
		_, err := w.google().Addresses.Insert(instance.ProjectID, "us-central1", &compute.Address{Name: "theirs",
			AddressType: "INTERNAL", Address: surroundings().Address}).Do()
		w.do(err)
		_, err = w.google().RegionHealthChecks.Insert(instance.ProjectID, "us-central1", &compute.HealthCheck{
			Name: "demo-lb", Type: "HTTPS", CheckIntervalSec: 5, TimeoutSec: 5, HealthyThreshold: 2, UnhealthyThreshold: 2,
			HttpsHealthCheck: &compute.HTTPSHealthCheck{Port: 443, PortSpecification: "USE_FIXED_PORT",
				RequestPath: "/readyz"}}).Do()
		w.do(err)
		time.Sleep(time.Second)
		wanted, there := w.read()
		if len(there) != 2 || there[0].Name != "theirs" || there[0].Made || there[1].Made {
			w.t.Fatalf("there: %+v", there)
		}
		for _, r := range there {
			if err := w.DeleteResource(w.t.Context(), r); err == nil || !strings.Contains(err.Error(), "its description") {
				w.t.Errorf("delete %s: %v", r.Kind, err)
			}
		}
		var exists *gce.Exists
		if err := w.InsertResource(w.t.Context(), wanted[4]); !errors.As(err, &exists) {
			w.t.Errorf("made: %v", fmt.Sprint(err))
		}
	})
}

// The rules that count are those that were inserted and are not disabled, as they were asked for; from the first on,
// those of the project's settings are none any more.
func TestTheFirewallRulesInForce(t *testing.T) {
	in(t, func(w *world) {
		if list, ruled := w.server.FirewallRules(); len(list) > 0 || ruled {
			w.t.Errorf("before one is made: %+v, %t", list, ruled)
		}
		api := w.google()
		const network = "projects/" + instance.ProjectID + "/global/networks/default"
		for _, r := range []*compute.Firewall{
			{Name: "allows", SourceTags: []string{"nodes"}, TargetTags: []string{"masters"},
				Allowed: []*compute.FirewallAllowed{{IPProtocol: "tcp", Ports: []string{"443", "2379-2380"}}}},
			{Name: "denies", Priority: 7, SourceRanges: []string{"10.0.0.0/8"},
				Denied: []*compute.FirewallDenied{{IPProtocol: "all"}}},
			{Name: "off", Disabled: true, SourceRanges: []string{"10.0.0.0/8"},
				Denied: []*compute.FirewallDenied{{IPProtocol: "udp"}}},
		} {
			r.Network = network
			op, err := api.Firewalls.Insert(instance.ProjectID, r).Do()
			w.do(err)
			_, err = api.GlobalOperations.Get(instance.ProjectID, op.Name).Do()
			w.do(err)
		}
		list, ruled := w.server.FirewallRules()
		want := []instance.FirewallRule{{Name: "allows", Priority: 1000, SourceTags: []string{"nodes"},
			TargetTags: []string{"masters"}, Ports: []instance.Ports{{Protocol: "tcp", Ranges: []string{"443",
				"2379-2380"}}}},
			{Name: "denies", Priority: 7, Deny: true, Sources: []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8")},
				Ports: []instance.Ports{{Protocol: "all"}}}}
		if !ruled || !reflect.DeepEqual(list, want) {
			w.t.Errorf("%+v, %t\nwant %+v", list, ruled, want)
		}
		for what, r := range map[string]*compute.Firewall{
			"nothing":                {Name: "x", SourceRanges: []string{"10.0.0.0/8"}},
			"tags and accounts":      {Name: "x", SourceTags: []string{"a"}, TargetServiceAccounts: []string{"b"}},
			"ports of no such thing": {Name: "x", SourceRanges: []string{"10.0.0.0/8"}, Description: "icmp"},
		} {
			if r.Network = network; what != "nothing" {
				r.Allowed = []*compute.FirewallAllowed{{IPProtocol: "icmp", Ports: []string{"7"}}}
			}
			if what == "tags and accounts" {
				r.Allowed[0].Ports = nil
			}
			if _, err := api.Firewalls.Insert(instance.ProjectID, r).Do(); err == nil {
				w.t.Errorf("a rule with %s is made", what)
			}
		}
	})
}
