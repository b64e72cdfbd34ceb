package compute_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"google.golang.org/api/compute/v1"

	"github.com/quorate/quorate/internal/gce"
	"github.com/quorate/quorate/internal/localgce/fault"
	"github.com/quorate/quorate/internal/localgce/instance"
	"github.com/quorate/quorate/internal/replica"
)

const externalIP = "203.0.113.10"

// reserve reserves the external address.
func (w *world) reserve() {
	w.settings.Addresses = []map[string]any{{"name": "api", "address": externalIP, "addressType": "EXTERNAL",
		"networkTier": "STANDARD", "status": "RESERVED"}}
}

// balanced is a load balancer with the external address.
func balanced() gce.Surroundings {
	s := surroundings()
	s.Scheme, s.Address, s.Zones, s.Sources = "EXTERNAL", externalIP, []string{zoneA}, nil
	return s
}

// users are those of the address, as quorate's client reads them.
func (w *world) users() (out []gce.User) {
	w.t.Helper()
	_, there, err := w.Surroundings(w.t.Context(), balanced())
	w.do(err)
	for _, r := range there {
		out = append(out, r.Users...)
	}
	return out
}

// external is the external address that the list shows at a VM.
func (w *world) external(name string) string {
	w.t.Helper()
	all, err := w.FleetVMs(w.t.Context())
	w.do(err)
	for _, v := range all {
		if v.Name == name {
			return v.ExternalIP
		}
	}
	return "no VM"
}

// addressCalls give the address to a VM that is made with it, take it, and give it again, each also where it is done.
// It counts the calls that failed, which are made again.
func (w *world) addressCalls() (failed int) {
	w.t.Helper()
	ctx, spec := w.t.Context(), vmSpec()
	spec.ExternalIP = externalIP
	again := func(call func() error) {
		w.t.Helper()
		for err := call(); err != nil; err = call() {
			if failed++; failed > 3 {
				w.t.Fatal(err)
			}
		}
	}
	again(func() error { return w.InsertDisk(ctx, zoneA, diskSpec()) })
	again(func() error { return w.InsertVM(ctx, zoneA, spec) })
	all, err := w.FleetVMs(ctx)
	w.do(err)
	v := all[0]
	for _, wanted := range []string{externalIP, "", "", externalIP, externalIP} {
		if wanted == "" {
			again(func() error { return w.TakeAddress(ctx, v.Place, v.InstanceID, externalIP) })
		} else {
			again(func() error { return w.GiveAddress(ctx, v.Place, v.InstanceID, externalIP) })
		}
		users := w.users()
		has := len(users) == 1 && users[0] == gce.User{Kind: gce.Instance, Zone: zoneA, Name: "master-a"}
		if is := w.external("master-a"); is != wanted || has != (wanted != "") || len(users) > 1 {
			w.t.Errorf("the VM has %q, wanted %q; users: %+v", is, wanted, users)
		}
	}
	return failed
}

func TestAnAddressIsGivenAndTaken(t *testing.T) {
	in(t, func(w *world) {
		t := w.t
		w.reserve()
		w.takes = 3 * time.Second
		began := time.Now()
		if failed := w.addressCalls(); failed > 0 {
			t.Errorf("%d calls failed", failed)
		}
		if took := time.Since(began); took < 6*time.Second {
			t.Errorf("it took %s: the operations are not slow", took)
		}
		w.do(w.DeleteVM(t.Context(), replica.Place{Zone: zoneA, Name: "master-a"},
			fmt.Sprint(w.project.instances()[0].ID)))
		if users := w.users(); len(users) > 0 {
			t.Errorf("the VM is gone, and the address is used by %+v", users)
		}
	})
}

// A fault is met at each order in turn; repeated, it has done what it should.
func TestAFaultAtEveryRequestAboutAnAddress(t *testing.T) {
	for name, f := range map[string]fault.Fault{
		"the request is lost": {Kind: "away"}, "the answer is lost": {Kind: "lost"},
		"no permission": {Kind: "forbidden"}, "the operation fails": {Kind: "failed", Code: "INTERNAL_ERROR"},
		"the operation is slow": {Kind: "late", Delay: time.Hour},
	} {
		t.Run(name, func(t *testing.T) {
			for runs, met := 0, true; met; runs++ {
				in(t, func(w *world) {
					t := w.t
					w.reserve()
					f.Skip, f.Times, f.Call = runs, 1, "POST *"
					w.set(f)
					failed := w.addressCalls()
					if met = w.faults.Met(fault.Compute) > 0; !met && runs < 4 {
						t.Errorf("only %d orders", runs)
					}
					if may := f.Kind == "failed" || f.Kind == "forbidden"; failed > 0 && !may {
						t.Errorf("%d calls failed", failed)
					}
				})
			}
		})
	}
}

// One address has one user: a VM that another gets it, or a forwarding rule.
func TestAnAddressHasOneUser(t *testing.T) {
	in(t, func(w *world) {
		t := w.t
		w.reserve()
		a, b := w.addVM("master-a", 101, 21), w.addVM("master-b", 201, 22)
		ctx := t.Context()
		inUse := func(what string, err error) {
			t.Helper()
			var refused *gce.Refused
			if !errors.As(err, &refused) || refused.Reason != gce.InUse {
				t.Errorf("%s: %v", what, err)
			}
		}
		w.do(w.GiveAddress(ctx, a.Place, "101", externalIP))
		inUse("a second VM", w.GiveAddress(ctx, b.Place, "201", externalIP))
		wanted, _, err := w.Surroundings(ctx, balanced())
		w.do(err)
		rule := wanted[len(wanted)-1]
		for _, r := range wanted[1 : len(wanted)-1] {
			w.do(w.InsertResource(ctx, r))
		}
		inUse("a forwarding rule", w.InsertResource(ctx, rule))
		w.do(w.TakeAddress(ctx, a.Place, "101", externalIP))
		w.do(w.InsertResource(ctx, rule))
		inUse("a VM, of a forwarding rule", w.GiveAddress(ctx, a.Place, "101", externalIP))
		if users := w.users(); len(users) != 1 || users[0].Kind != gce.ForwardingRule || users[0].Name != rule.Name {
			t.Errorf("users: %+v", users)
		}
		if attached, err := w.IsAttached(ctx, rule.Name, a.Place); attached || err != nil {
			t.Errorf("attached: %t, %v", attached, err)
		}
		_, err = w.Attach(ctx, rule.Name, a)
		w.do(err)
		if attached, err := w.IsAttached(ctx, rule.Name, a.Place); !attached || err != nil {
			t.Errorf("attached: %t, %v", attached, err)
		}
		if attached, err := w.IsAttached(ctx, "no-group", a.Place); attached || err != nil {
			t.Errorf("attached to a group that is not there: %t, %v", attached, err)
		}
	})
}

func TestWhatIsNoAddressOfAVMIsRefused(t *testing.T) {
	in(t, func(w *world) {
		t := w.t
		w.reserve()
		a := w.addVM("master-a", 101, 21)
		ctx := t.Context()
		for want, err := range map[string]error{
			"203.0.113.99: it is not reserved": w.GiveAddress(ctx, a.Place, "101", "203.0.113.99"),
			"there is no instance 999":         w.GiveAddress(ctx, a.Place, "999", externalIP),
		} {
			if err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("%v; want %s", err, want)
			}
		}
		w.do(w.TakeAddress(ctx, a.Place, "999", externalIP)) // who is not there has no address
		api := w.google()
		for want, access := range map[string]*compute.AccessConfig{
			"networkTier": {Name: "External NAT", Type: "ONE_TO_ONE_NAT", NatIP: externalIP, NetworkTier: "PREMIUM"},
			"type":        {Name: "External NAT", Type: "DIRECT_IPV6", NatIP: externalIP},
			"name":        {Name: "mine", Type: "ONE_TO_ONE_NAT", NatIP: externalIP},
			"natIP":       {Name: "External NAT", Type: "ONE_TO_ONE_NAT"},
		} {
			_, err := api.Instances.AddAccessConfig(instance.ProjectID, zoneA, "master-a", "nic0", access).Do()
			if err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("%s: %v", want, err)
			}
		}
	})
}
