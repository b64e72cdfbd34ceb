package localgce_test

import (
	"fmt"
	"net"
	"slices"
	"strings"
	"testing"
	"time"

	"google.golang.org/api/compute/v1"
	"google.golang.org/api/option"

	"github.com/quorate/quorate/internal/gce"
	"github.com/quorate/quorate/internal/localgce"
	"github.com/quorate/quorate/internal/localgce/instance"
)

// walls are rules as `quorate create` makes them, for a and b, which have the masters' account.
func (w world) walls(sources ...string) gce.Surroundings {
	const links = "projects/" + localgce.ProjectID + "/"
	s := gce.Surroundings{Project: localgce.ProjectID, Cluster: "demo", Region: "us-central1", Name: "demo",
		Network: links + "global/networks/default", Account: instance.MastersAccount(), Port: 443,
		Probes: []string{"35.191.0.0/16", "209.85.152.0/22", "209.85.204.0/22"}}
	s.Sources = sources
	return s
}

// TestFirewallRulesAreInForce has the rules of `quorate create` and others let in who may, and nobody else.
func TestFirewallRulesAreInForce(t *testing.T) {
	t.Parallel()
	w := start(t, config(t.TempDir(), 47, "a", "b"))
	ctx, c := t.Context(), w.cloud()
	const zone, links = "us-central1-b", "projects/" + localgce.ProjectID + "/"
	w.do(c.InsertDisk(ctx, zone, gce.DiskSpec{Name: "s-data", Type: "pd-ssd", SizeGB: 10}))
	w.do(c.InsertVM(ctx, zone, gce.VMSpec{Name: "stranger", MachineType: "e2-standard-4", DataDisk: "s-data",
		Image: links + "global/images/quorate-master", Network: links + "global/networks/default",
		DeviceName: localgce.DeviceName, Tags: []string{"nodes"}}))
	w.awaitReady("a", "b", "stranger")
	for _, vm := range []string{"a", "b"} {
		w.must(vm, "setsid /usr/local/bin/tiny tiny listen 2380 >/dev/null 2>&1 </dev/null &")
	}
	port := func(vm, to string, port int) bool {
		_, err := w.in(vm, fmt.Sprintf("/usr/local/bin/tiny tiny dial %s:%d", w.address(to), port))
		return err == nil
	}
	fromHost := func() bool {
		call, err := net.DialTimeout("tcp", w.address("a")+":443", time.Second)
		if err == nil {
			call.Close()
		}
		return err == nil
	}
	w.await("a listens", func() bool { return port("b", "a", 2380) })
	if !port("stranger", "a", 2380) || !fromHost() {
		t.Fatal("without a rule not everything gets everywhere")
	}
	held := keptOpen(t, "https://"+w.address("a")+"/name")
	if name, err := held(); name != "a" {
		t.Fatal(name, err)
	}

	wanted, _, err := c.Surroundings(ctx, w.walls("10.243.47.0/25"))
	w.do(err)
	wanted = slices.DeleteFunc(wanted, func(r gce.Resource) bool { return r.Kind != gce.FirewallRule })
	for _, r := range wanted {
		w.do(c.InsertResource(ctx, r))
	}
	w.await("the rules are in force", func() bool { return !port("stranger", "a", 2380) })
	for what, bad := range map[string]bool{
		"a master does not reach another at 2380":             !port("a", "b", 2380),
		"a stranger does not reach 443 from an allowed range": !port("stranger", "a", 443),
		"the host reaches 443 from a range that is not":       fromHost(),
		"a stranger is reached, and no rule is for it":        port("a", "stranger", 443),
		"what leaves a VM is not let out":                     !w.reaches("stranger", w.Status().ComputeEndpoint),
	} {
		if bad {
			t.Error(what)
		}
	}
	if name, err := held(); name != "a" {
		t.Errorf("a connection from before the rules ended: %q, %v", name, err)
	}
	w.await("both pass their health check", func() bool {
		s := w.Status()
		return strings.Join(s.Backends, " ") == "a b" && !s.FailOpen
	})

	api, err := compute.NewService(ctx, option.WithEndpoint(w.Status().ComputeEndpoint), option.WithoutAuthentication())
	w.do(err)
	rule := func(name string, change func(*compute.Firewall)) {
		t.Helper()
		r := &compute.Firewall{Name: name, Network: links + "global/networks/default", SourceRanges: []string{"0.0.0.0/0"},
			Priority: 10, Denied: []*compute.FirewallDenied{{IPProtocol: "all"}}}
		change(r)
		_, err := api.Firewalls.Insert(localgce.ProjectID, r).Do()
		w.do(err)
	}
	rule("tagged", func(r *compute.Firewall) {
		r.SourceRanges, r.SourceTags, r.Denied = nil, []string{"nodes"}, nil
		r.Allowed = []*compute.FirewallAllowed{{IPProtocol: "tcp", Ports: []string{"2000-2400"}}}
	})
	w.await("a rule for a tag lets it in", func() bool { return port("stranger", "a", 2380) })
	rule("off", func(r *compute.Firewall) { r.Priority, r.Disabled = 1, true })
	rule("above", func(r *compute.Firewall) { r.Priority = 11 })
	if !port("stranger", "a", 2380) {
		t.Error("a rule that is disabled, or has a higher number, counts")
	}
	rule("same", func(r *compute.Firewall) {})
	w.await("of one number what denies counts", func() bool { return !port("stranger", "a", 2380) })
	for _, name := range []string{"tagged", "same", "above", "off"} {
		_, err := api.Firewalls.Delete(localgce.ProjectID, name).Do()
		w.do(err)
	}

	at := slices.IndexFunc(wanted, func(r gce.Resource) bool { return strings.HasSuffix(r.Name, "-probes") })
	_, err = api.Firewalls.Delete(localgce.ProjectID, wanted[at].Name).Do()
	w.do(err)
	w.await("without the rule for probes none passes its check", func() bool { return w.Status().FailOpen })
}
