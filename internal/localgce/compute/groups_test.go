package compute_test

import (
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"google.golang.org/api/compute/v1"

	"github.com/quorate/quorate/internal/gce"
	"github.com/quorate/quorate/internal/localgce/fault"
	"github.com/quorate/quorate/internal/localgce/instance"
	"github.com/quorate/quorate/internal/localgce/settings"
	"github.com/quorate/quorate/internal/replica"
)

const groupName = "demo"

// addVM adds a running VM to the project behind the API's back, as a person's command would.
func (w *world) addVM(name string, id uint64, address byte) gce.Endpoint {
	w.t.Helper()
	a := netip.AddrFrom4([4]byte{10, 240, 0, address})
	w.project.mu.Lock()
	defer w.project.mu.Unlock()
	w.project.vms = slices.DeleteFunc(w.project.vms, func(i instance.VM) bool { return i.Name == name })
	w.project.vms = append(w.project.vms, instance.VM{ID: id, Name: name, Zone: zoneA, Address: a, Status: "RUNNING",
		Labels:   map[string]string{},
		DataDisk: instance.Disk{ID: id + 1, Name: name + "-data"}})
	return gce.Endpoint{Place: replica.Place{Zone: zoneA, Name: name}, Address: a}
}

// addGroup makes the endpoint group of zone a.
func (w *world) addGroup() {
	w.t.Helper()
	api := w.google()
	op, err := api.NetworkEndpointGroups.Insert(instance.ProjectID, zoneA, &compute.NetworkEndpointGroup{
		Name: groupName, NetworkEndpointType: "GCE_VM_IP"}).Do()
	w.do(err)
	_, err = api.ZoneOperations.Wait(instance.ProjectID, zoneA, op.Name).Do()
	w.do(err)
}

// endpoints are the group's, each as NAME ADDRESS.
func (w *world) endpoints() (out []string) {
	w.t.Helper()
	list, err := w.google().NetworkEndpointGroups.ListNetworkEndpoints(instance.ProjectID, zoneA, groupName,
		&compute.NetworkEndpointGroupsListEndpointsRequest{HealthStatus: "SKIP"}).Do()
	w.do(err)
	for _, item := range list.Items {
		out = append(out, item.NetworkEndpoint.Instance+" "+item.NetworkEndpoint.IpAddress)
	}
	return out
}

// attach attaches a VM, as its own agent would.
func (w *world) attach(e gce.Endpoint) (bool, error) {
	w.caller = e.Name
	defer func() { w.caller = "" }()
	return w.Attach(w.t.Context(), groupName, e)
}

// detach takes a VM out, as its own agent would.
func (w *world) detach(e gce.Endpoint) (bool, error) {
	w.caller = e.Name
	defer func() { w.caller = "" }()
	return w.Detach(w.t.Context(), groupName, e.Place)
}

// A VM is attached once, and again where it was made again: a deletion takes the endpoint with it.
func TestAVMIsAttachedToItsGroup(t *testing.T) {
	in(t, func(w *world) {
		a, b := w.addVM("master-a", 7, 20), w.addVM("master-b", 8, 21)
		if !w.server.Serves(zoneA, 7) {
			w.t.Error("without a group it is not served")
		}
		w.addGroup()
		if w.server.Serves(zoneA, 7) {
			w.t.Error("it is served before it is attached")
		}
		want := func(when string, did, wantDid bool, err error, want ...string) {
			w.t.Helper()
			if got := w.endpoints(); err != nil || did != wantDid || !slices.Equal(got, want) {
				w.t.Errorf("%s: %v, %v; the group has %q", when, did, err, got)
			}
		}
		did, err := w.attach(a)
		want("attached", did, true, err, "master-a 10.240.0.20")
		if !w.server.Serves(zoneA, 7) || w.server.Serves(zoneA, 8) {
			w.t.Error("not just what is attached is served")
		}
		did, err = w.attach(a)
		want("attached again", did, false, err, "master-a 10.240.0.20")
		did, err = w.attach(b)
		want("the other one", did, true, err, "master-a 10.240.0.20", "master-b 10.240.0.21")
		a = w.addVM("master-a", 9, 20)
		if got := w.endpoints(); !slices.Equal(got, []string{"master-b 10.240.0.21"}) || w.server.Serves(zoneA, 9) {
			w.t.Errorf("a VM that was made again is in the group: %q", got)
		}
		did, err = w.attach(a)
		want("made again", did, true, err, "master-b 10.240.0.21", "master-a 10.240.0.20")
		did, err = w.detach(b)
		want("detached", did, true, err, "master-a 10.240.0.20")
		did, err = w.detach(b)
		want("detached again", did, false, err, "master-a 10.240.0.20")
		if w.changed == 0 {
			w.t.Error("the project hears nothing")
		}
	})
}

// An answer that is lost, an overload, an operation that is late: it is attached once, and detached.
func TestAttachingSurvivesFaults(t *testing.T) {
	for name, f := range map[string]fault.Fault{
		"the answer is lost": {Kind: "lost", Times: 1}, "an overload": {Kind: "unavailable", Times: 3},
		"the operation is late": {Kind: "late", Delay: 20 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			in(t, func(w *world) {
				a := w.addVM("master-a", 7, 20)
				w.addGroup()
				w.set(f)
				did, err := w.attach(a)
				if got := w.endpoints(); err != nil || !did || len(got) != 1 {
					w.t.Errorf("attached: %v, %v, %q", did, err, got)
				}
				w.set(f)
				did, err = w.detach(a)
				if got := w.endpoints(); err != nil || !did || len(got) != 0 {
					w.t.Errorf("detached: %v, %v, %q", did, err, got)
				}
			})
		})
	}
}

// What is missing is named: the group with the command that makes it, or the permission.
func TestWhyAVMIsNotAttached(t *testing.T) {
	in(t, func(w *world) {
		a := w.addVM("master-a", 7, 20)
		refused := func(when string, err error, reason gce.Reason, want ...string) {
			w.t.Helper()
			var r *gce.Refused
			if !errors.As(err, &r) || r.Reason != reason {
				w.t.Fatalf("%s: %v", when, err)
			}
			for _, part := range want {
				if !strings.Contains(err.Error(), part) {
					w.t.Errorf("%s: the error lacks %q: %v", when, part, err)
				}
			}
		}
		_, err := w.attach(a)
		refused("no group", err, gce.NotFound, "networkEndpointGroups/demo' was not found",
			"gcloud compute network-endpoint-groups create demo --zone=us-central1-a")
		if did, err := w.detach(a); did || err != nil {
			w.t.Errorf("detached from no group: %v, %v", did, err)
		}
		w.addGroup()
		for _, missing := range []string{"compute.networkEndpointGroups.get",
			"compute.networkEndpointGroups.attachNetworkEndpoints", "compute.instances.use",
			"compute.zoneOperations.get"} {
			w.settings.Roles = without(settings.Whole("demo").Roles, missing)
			_, err = w.attach(a)
			refused("without "+missing, err, gce.PermissionMissing, "Required '"+missing+"' permission")
		}
		w.settings.Roles = settings.Whole("demo").Roles
		if did, err := w.detach(a); !did || err != nil { // nobody could ask how the attachment went, and it went well
			w.t.Errorf("detached: %v, %v", did, err)
		}
		stranger := a
		stranger.Address = netip.MustParseAddr("10.240.0.99")
		_, err = w.attach(stranger)
		refused("another's address", err, gce.InvalidRequest, "ipAddress': '10.240.0.99'")
		if got := w.endpoints(); len(got) > 0 {
			w.t.Errorf("the group has %q", got)
		}
	})
}

// without are roles that lack a permission.
func without(roles map[string][]string, permission string) map[string][]string {
	for name, all := range roles {
		roles[name] = slices.DeleteFunc(slices.Clone(all), func(p string) bool { return p == permission })
	}
	return roles
}

// A VM may attach and detach, and nothing else.
func TestAVMMakesNoGroup(t *testing.T) {
	in(t, func(w *world) {
		w.caller = w.addVM("master-a", 7, 20).Name
		_, err := w.google().NetworkEndpointGroups.Insert(instance.ProjectID, zoneA, &compute.NetworkEndpointGroup{
			Name: groupName, NetworkEndpointType: "GCE_VM_IP"}).Do()
		if want := "Required 'compute.networkEndpointGroups.create' permission"; !strings.Contains(fmt.Sprint(err), want) {
			w.t.Errorf("made: %v", err)
		}
	})
}

// groupCalls are all that localgce has of endpoint groups.
func (w *world) groupCalls() {
	w.t.Helper()
	api, a := w.google().NetworkEndpointGroups, w.addVM("master-n", 70, 90)
	w.addGroup()
	const project = instance.ProjectID
	_, err := api.Insert(project, zoneA, &compute.NetworkEndpointGroup{Name: groupName,
		NetworkEndpointType: "GCE_VM_IP"}).Do()
	if !strings.Contains(fmt.Sprint(err), "alreadyExists") {
		w.t.Errorf("made twice: %v", err)
	}
	_, err = w.attach(a)
	w.do(err)
	list, err := api.List(project, zoneA).Do()
	w.do(err)
	one, err := api.Get(project, zoneA, groupName).Do()
	w.do(err)
	if len(list.Items) != 1 || list.Items[0].Id != one.Id || one.Size != 1 || one.NetworkEndpointType != "GCE_VM_IP" {
		w.t.Errorf("listed %+v, got %+v", list.Items, one)
	}
	shown, err := api.ListNetworkEndpoints(project, zoneA, groupName,
		&compute.NetworkEndpointGroupsListEndpointsRequest{HealthStatus: "SHOW"}).Do()
	w.do(err)
	if len(shown.Items) != 1 || len(shown.Items[0].Healths) != 1 || shown.Items[0].Healths[0].HealthState != "HEALTHY" {
		w.t.Errorf("endpoints: %+v", shown.Items)
	}
	_, err = w.detach(a)
	w.do(err)
	op, err := api.Delete(project, zoneA, groupName).Do()
	w.do(err)
	_, err = w.google().ZoneOperations.Wait(project, zoneA, op.Name).Do()
	w.do(err)
	w.project.mu.Lock()
	defer w.project.mu.Unlock()
	w.project.vms = slices.DeleteFunc(w.project.vms, func(i instance.VM) bool { return i.ID == 70 })
}
