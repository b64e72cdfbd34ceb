package fleet_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"slices"
	"sort"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/quorate/quorate/fleet"
	"github.com/quorate/quorate/fleet/plan"
	"github.com/quorate/quorate/internal/gce"
	"github.com/quorate/quorate/internal/localgce/compute"
	"github.com/quorate/quorate/internal/localgce/fault"
	"github.com/quorate/quorate/internal/localgce/instance"
	"github.com/quorate/quorate/internal/localgce/settings"
	"github.com/quorate/quorate/internal/replica"
)

// api is a world's Compute API as localgce serves it. quorate's client asks it through Google's own, and each request
// can meet a fault. It implements compute.Changes by the world.
type api struct {
	*world
	faults  fault.Set
	asOfNow func(fault.Fault) fault.Fault
	server  http.Handler
	asked   []string // the methods of all requests
	lists   []int    // which of those that POST only read
}

// throughAPI gives a world's fleet the API in place of the world itself.
func throughAPI(t *testing.T, w *world) (*fleet.Fleet, *api) {
	a := &api{world: w}
	nobody := func(*http.Request) string { return "" }
	server := compute.New(compute.Config{Healthy: func(uint64) bool { return true }, Instances: a.instances,
		Unattached: a.unattached, Caller: nobody, Changes: a,
		Zones: zones, Images: []instance.Image{{Name: "quorate-1", Family: "quorate"}, {Name: "quorate-2"}},
		Settings: &settings.Settings{Addresses: reserved(w)}})
	t.Cleanup(server.Close)
	a.asOfNow = server.AsOfNow
	a.server = a.faults.Before(fault.Compute, nobody, server)
	cloud, err := gce.NewOperator(gce.ComputeConfig{Project: instance.ProjectID, Cluster: "prod-1", Region: region,
		Endpoint: "http://compute/compute/v1/", Client: &http.Client{Transport: a}})
	if err != nil {
		t.Fatal(err)
	}
	f := fleetOf(w)
	g := f.Document.GCE
	f.Cloud = cloud
	g.Project, g.Network, g.ServiceAccount = instance.ProjectID, "default", instance.MastersAccount()
	g.BootDisk, g.DataDisk = replica.GCEDisk{Type: "pd-ssd", SizeGB: 20}, replica.GCEDisk{Type: "pd-ssd", SizeGB: 50}
	if w.onDemand || w.surrounded {
		w.attach = attachingBy(t, a, server)
	}
	if w.onDemand && len(w.vms) > 1 || len(w.around) > 0 && !w.onDemand {
		surround(t, f)
		a.asked, a.lists = nil, nil
	}
	w.left = func() (out []string) {
		if !w.surrounded && !w.onDemand {
			return nil
		}
		_, there, err := f.Cloud.Surroundings(context.Background(), f.Wanted())
		if err != nil {
			t.Error(err)
		}
		for _, r := range there {
			out = append(out, link(r))
		}
		return out
	}
	return f, a
}

// reserved is the external address of a world whose load balancer is made on demand.
func reserved(w *world) []map[string]any {
	if !w.onDemand {
		return nil
	}
	return []map[string]any{{"name": "prod-1", "address": externalIP, "addressType": "EXTERNAL",
		"networkTier": "PREMIUM"}}
}

// attachingBy is how agents put their VMs into their groups, by a client that meets no fault. That there is no group
// yet is no fault either.
func attachingBy(t *testing.T, a *api, server http.Handler) func(replica.Place) {
	well := &api{world: a.world, server: server}
	agents, err := gce.NewCompute(gce.ComputeConfig{Project: instance.ProjectID, Cluster: "prod-1", Region: region,
		Endpoint: "http://compute/compute/v1/", Client: &http.Client{Transport: well}})
	if err != nil {
		t.Fatal(err)
	}
	return func(p replica.Place) {
		for _, i := range a.instances() {
			if i.Zone == p.Zone && i.Name == p.Name {
				_, _ = agents.Attach(context.Background(), "prod-1", gce.Endpoint{Place: p, Address: i.Address})
			}
		}
	}
}

// RoundTrip implements http.RoundTripper.
func (a *api) RoundTrip(r *http.Request) (res *http.Response, err error) {
	a.mu.Lock()
	if strings.HasSuffix(r.URL.Path, "/listNetworkEndpoints") || strings.HasSuffix(r.URL.Path, "/getHealth") {
		posts := len(a.asked) - strings.Count(strings.Join(a.asked, " "), http.MethodGet) -
			strings.Count(strings.Join(a.asked, " "), http.MethodDelete)
		a.lists = append(a.lists, posts)
	}
	a.asked = append(a.asked, r.Method)
	a.mu.Unlock()
	received := r.Clone(r.Context())
	if received.Body == nil {
		received.Body = io.NopCloser(strings.NewReader(""))
	}
	answer := httptest.NewRecorder()
	defer func() {
		if broken := recover(); broken != nil { // as net/http does with http.ErrAbortHandler
			res, err = nil, fmt.Errorf("the connection breaks: %v", broken)
		}
	}()
	a.server.ServeHTTP(answer, received)
	return answer.Result(), nil
}

// theirs is an image of the world's project by its link in localgce's, and ours the other way round.
func theirs(image string) string {
	return strings.Replace(image, "/example/", "/"+instance.ProjectID+"/", 1)
}
func ours(image string) string {
	return strings.Replace(image, "/"+instance.ProjectID+"/", "/example/", 1)
}

func labelled(labels map[string]string) map[string]string {
	out := map[string]string{gce.ClusterLabel: "prod-1"}
	maps.Copy(out, labels)
	return out
}

func number(id string) uint64 {
	n, _ := strconv.ParseUint(id, 10, 64) // the world's ids are numbers
	return n
}

func (a *api) disk(d *gce.FleetDisk) instance.Disk {
	return instance.Disk{ID: number(d.ID), Name: d.Name, Bytes: 50 << 30, Labels: labelled(d.Labels),
		Created: time.Now()}
}

func (a *api) instances() (out []instance.VM) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for n, p := range a.places() {
		v := a.vms[p]
		out = append(out, instance.VM{ID: number(v.InstanceID), Name: p.Name, Zone: p.Zone, Status: v.Status,
			Labels: labelled(v.Labels), Created: v.booted, DataDisk: a.disk(a.disks[p.Zone+"/"+v.DataDisk]),
			Address: netip.AddrFrom4([4]byte{10, 0, 0, byte(10 + n)}), Attributes: v.Metadata,
			ExternalIP: externalOf(v),
			Made: instance.Made{Image: theirs(v.Image), MachineType: v.MachineType, Tags: v.Tags,
				Boot: instance.Disk{Type: v.Boot.Type, Bytes: v.Boot.SizeGB << 30}}})
	}
	return out
}

func externalOf(v *vm) netip.Addr {
	address, _ := netip.ParseAddr(v.ExternalIP) // none is invalid
	return address
}

func (a *api) unattached() (out []instance.VM) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, key := range slices.Sorted(maps.Keys(a.disks)) {
		if d := a.disks[key]; len(d.Users) == 0 {
			out = append(out, instance.VM{Zone: d.Zone, DataDisk: a.disk(d)})
		}
	}
	return out
}

// AddInstance implements compute.Changes.
func (a *api) AddInstance(i instance.VM) error {
	return a.change(func() error {
		p := replica.Place{Zone: i.Zone, Name: i.Name}
		external := ""
		if i.ExternalIP.IsValid() {
			external = i.ExternalIP.String()
		}
		a.insertVM(p, gce.VMSpec{Name: i.Name, ExternalIP: external, DataDisk: i.DataDisk.Name,
			Image: ours(i.Made.Image), Labels: i.Labels,
			MachineType: i.Made.MachineType, Tags: i.Made.Tags, Metadata: i.Attributes,
			BootDisk: gce.DiskSpec{Type: i.Made.Boot.Type, SizeGB: i.Made.Boot.Bytes >> 30}})
		a.vms[p].InstanceID = strconv.FormatUint(i.ID, 10)
		if i.Attributes["quorate-cluster"] == "" {
			a.t.Errorf("VM %s gets no document: %+v", i.Name, i)
		}
		return nil
	})
}

// StartInstance implements compute.Changes: the world's VMs boot by themselves.
func (a *api) StartInstance(uint64) error { return nil }

// StopInstance implements compute.Changes.
func (a *api) StopInstance(uint64) error { return errors.New("no command stops a VM") }

// DeleteInstance implements compute.Changes.
func (a *api) DeleteInstance(id uint64, withDisk bool) error {
	if withDisk {
		a.t.Errorf("the data disk of VM %d goes with it", id)
	}
	for _, i := range a.instances() {
		if i.ID == id {
			return a.DeleteVM(context.Background(), replica.Place{Zone: i.Zone, Name: i.Name}, fmt.Sprint(id))
		}
	}
	return errors.New("deleted a VM that is not there")
}

// SetExternalIP implements compute.Changes.
func (a *api) SetExternalIP(id uint64, address netip.Addr) error {
	return a.change(func() error {
		for _, p := range a.places() {
			if v := a.vms[p]; number(v.InstanceID) == id {
				return a.setAddress(p, address)
			}
		}
		return errors.New("gave an address to a VM that is not there")
	})
}

// AddDisk implements compute.Changes.
func (a *api) AddDisk(zone string, d instance.Disk) error {
	return a.change(func() error {
		a.disks[zone+"/"+d.Name] = &gce.FleetDisk{Zone: zone, Name: d.Name, ID: strconv.FormatUint(d.ID, 10),
			Labels: d.Labels}
		return nil
	})
}

// DeleteDisk implements compute.Changes.
func (a *api) DeleteDisk(id uint64) error {
	for _, i := range a.unattached() {
		if i.DataDisk.ID == id {
			return a.world.DeleteDisk(context.Background(), i.Zone, i.DataDisk.Name, fmt.Sprint(id))
		}
	}
	return errors.New("deleted a disk that is not there, or that a VM has")
}

// by is the command in a world whose fleet is reached through the API.
func (c command) by(ctx context.Context, w *world, f *fleet.Fleet) error {
	w.rules, c.wish.Image = c.rules, theirs(c.wish.Image)
	_, err := f.Run(ctx, c.wish, talk(nil))
	return err
}

func (c command) againBy(w *world, f *fleet.Fleet) error {
	if c.isDone(w) {
		return nil
	}
	return c.unlessGone(w, c.by(context.Background(), w, f))
}

// sampled runs one case in seven where the tests are to be short.
func sampled(t *testing.T, n *int, name string, do func(*testing.T)) {
	t.Helper()
	if *n++; !testing.Short() || *n%7 == 0 {
		t.Run(name, do)
	}
}

// TestEachRequestOfEachCommandFails: the commands ask the Compute API through Google's own client, and one request in
// turn meets a fault. Running the command again completes it, and nothing is left over.
func TestEachRequestOfEachCommandFails(t *testing.T) {
	cases := 0
	for _, c := range commands {
		asked, lists := []string(nil), []int(nil)
		c.inWorld(t, func(t *testing.T, w *world) {
			f, a := throughAPI(t, w)
			if err := c.by(t.Context(), w, f); err != nil {
				t.Fatal(err)
			}
			asked, lists = slices.Clone(a.asked), a.lists
			c.check(t, w)
		})
		sort.Strings(asked)
		reads := strings.Count(strings.Join(asked, " "), http.MethodGet)
		for n, method := range asked {
			n -= slices.Index(asked, method)
			if method == http.MethodPost && slices.Contains(lists, n) {
				continue // a reading may be made again
			}
			faults := []fault.Fault{{Kind: "forbidden"}}
			if method != http.MethodGet {
				faults = append(faults, fault.Fault{Kind: "away"}, fault.Fault{Kind: "lost"},
					fault.Fault{Kind: "failed", Code: "QUOTA_EXCEEDED", Delay: time.Minute},
					fault.Fault{Kind: "late", Delay: 5 * time.Minute})
			} else if n > 6 && (n%10 > 0 || n > reads-10) {
				continue // it is as the others; and what waits may read once more or less in another run
			}
			for _, one := range faults {
				one.Call, one.Skip, one.Times = method+" *", n, 1
				sampled(t, &cases, fmt.Sprintf("%s, %s %d %s", c.name, method, n+1, one.Kind),
					func(t *testing.T) { c.meets(t, one) })
			}
		}
		if reads < 3 || reads == len(asked) {
			t.Errorf("%s asks %q", c.name, asked)
		}
	}
}

// meets carries the command out while a request meets a fault, and then again.
func (c command) meets(t *testing.T, one fault.Fault) {
	t.Helper()
	c.inWorld(t, func(t *testing.T, w *world) {
		f, a := throughAPI(t, w)
		if err := a.faults.Put(fault.Compute, one); err != nil {
			t.Fatal(err)
		}
		err := c.by(t.Context(), w, f)
		if a.faults.Met(fault.Compute) == 0 {
			t.Error("the fault was not met")
		}
		ends := one.Kind == "failed" || one.Kind == "forbidden"
		if !strings.HasPrefix(one.Call, http.MethodGet) && (err != nil) != ends { // a reading may be made again
			t.Errorf("after a fault: %v", err)
		}
		_ = a.faults.Put(fault.Compute, fault.Fault{})
		if err != nil {
			err = c.againBy(w, f)
		}
		if err != nil {
			t.Fatalf("run again: %v", err)
		}
		c.check(t, w)
	})
}

// TestAListThatLies: one of the API's lists, or all of a command's, lacks VMs, is of before, or calls them stopped. No
// command takes away what it should not, and none costs the quorum: the world looks. Once the API is well, running the
// command again completes it.
func TestAListThatLies(t *testing.T) {
	cases := 0
	for _, c := range commands {
		for _, lie := range []fault.Fault{{Kind: "empty"}, {Kind: "stale"}, {Kind: "missing", VMs: []string{"master-a"}},
			{Kind: "absent", VMs: []string{"master-b"}}, {Kind: "terminated", VMs: []string{"master-b"}},
			{Kind: "unreachable", Zone: zones[1]}} {
			for _, when := range [][2]int{{0, 0}, {0, 1}, {1, 1}, {7, 0}} {
				lie.Skip, lie.Times, lie.Call = when[0], when[1], "GET *"
				sampled(t, &cases, fmt.Sprintf("%s, %s from list %d on, %d times", c.name, lie.Kind, lie.Skip, lie.Times),
					func(t *testing.T) { c.isLiedTo(t, lie) })
			}
		}
	}
}

// isLiedTo carries the command out while the lists lie, and then again.
func (c command) isLiedTo(t *testing.T, lie fault.Fault) {
	t.Helper()
	c.inWorld(t, func(t *testing.T, w *world) {
		f, a := throughAPI(t, w)
		if err := a.faults.Put(fault.Compute, a.asOfNow(lie)); err != nil {
			t.Fatal(err)
		}
		ctx, end := context.WithTimeout(t.Context(), 5*time.Minute)
		defer end()
		err := c.by(ctx, w, f)
		_ = a.faults.Put(fault.Compute, fault.Fault{})
		same := slices.Contains([]plan.Kind{plan.Create, plan.Roll, plan.Delete}, c.wish.Kind) ||
			c.rules.begun == begunDisk
		if first := err; err != nil || same { // these may have been told that all is done
			if err = c.againBy(w, f); err != nil {
				t.Errorf("run again: %v; before: %v", err, first)
			}
		}
		c.check(t, w)
	})
}
