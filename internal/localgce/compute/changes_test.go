package compute_test

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"google.golang.org/api/compute/v1"
	"google.golang.org/api/googleapi"

	"github.com/quorate/quorate/internal/gce"
	"github.com/quorate/quorate/internal/localgce/fault"
	"github.com/quorate/quorate/internal/localgce/instance"
	"github.com/quorate/quorate/internal/replica"
)

// life makes a disk and a VM, deletes the VM and then the disk. Each step is one of a table, which can be repeated.
func (w *world) life(ctx context.Context) []func() error {
	place := replica.Place{Zone: zoneA, Name: "master-a"}
	return []func() error{
		func() error { return w.InsertDisk(ctx, zoneA, diskSpec()) },
		func() error { return w.InsertVM(ctx, zoneA, vmSpec()) },
		func() error {
			vms, err := w.FleetVMs(ctx)
			if err != nil || len(vms) == 0 {
				return err
			}
			return w.DeleteVM(ctx, place, vms[0].InstanceID)
		},
		func() error {
			disks, err := w.FleetDisks(ctx)
			if err != nil || len(disks) == 0 {
				return err
			}
			return w.DeleteDisk(ctx, zoneA, disks[0].Name, disks[0].ID)
		},
	}
}

// quorate's own client, over Google's, makes and deletes what a replica consists of.
func TestAReplicaIsMadeAndDeleted(t *testing.T) {
	in(t, func(w *world) {
		steps := w.life(w.t.Context())
		w.do(steps[0]())
		disks, err := w.FleetDisks(w.t.Context())
		w.do(err)
		if len(disks) != 1 || disks[0].SizeGB != 20 || len(disks[0].Users) != 0 || disks[0].Created.IsZero() ||
			disks[0].Labels["quorate-replica"] != "master-a" || disks[0].Labels[gce.ClusterLabel] != "demo" {
			w.t.Errorf("disks: %+v", disks)
		}
		w.do(steps[1]())
		vms, err := w.FleetVMs(w.t.Context())
		w.do(err)
		if len(vms) != 1 || vms[0].Name != "master-a" || vms[0].Zone != zoneA || vms[0].DataDisk != "master-a-data" ||
			vms[0].Image != vmSpec().Image || vms[0].MachineType != "e2-standard-4" || vms[0].Labels["team"] != "x" ||
			vms[0].Status != "RUNNING" {
			w.t.Errorf("VMs: %+v", vms)
		}
		made := w.project.instances()[0]
		if made.Attributes["quorate-cluster"] != "name: demo\n" || made.Made.Tags[0] != "masters" ||
			made.BootDisk().Bytes != 30<<30 || made.Made.DataGoes {
			w.t.Errorf("made: %+v", made)
		}
		disks, err = w.FleetDisks(w.t.Context())
		w.do(err)
		if len(disks) != 1 || len(disks[0].Users) != 1 || disks[0].Users[0] != "master-a" {
			w.t.Errorf("disks of a VM: %+v", disks)
		}
		var refused *gce.Refused
		if err := steps[3](); !errors.As(err, &refused) || refused.Reason != gce.InUse {
			w.t.Errorf("a disk that a VM has is deleted: %v", err)
		}
		w.do(steps[2]())
		if vms, disks := w.project.instances(), w.project.unattached(); len(vms) != 0 || len(disks) != 1 {
			w.t.Errorf("after the VM is deleted: %+v, %+v", vms, disks)
		}
		w.do(steps[3]())
		w.wantEmpty()
	})
}

func (w *world) wantEmpty() {
	w.t.Helper()
	if vms, disks := w.project.instances(), w.project.unattached(); len(vms)+len(disks) > 0 {
		w.t.Errorf("left: %+v, %+v", vms, disks)
	}
}

// A fault is met at each request in turn: the step fails or not, and repeated it has done what it should.
func TestAFaultAtEveryRequest(t *testing.T) {
	for name, f := range map[string]fault.Fault{
		"the request is lost": {Kind: "away"}, "the answer is lost": {Kind: "lost"},
		"no answer": {Kind: "silent"}, "an overload": {Kind: "unavailable", Times: 3},
		"over the rate limit": {Kind: "ratelimited"}, "no permission": {Kind: "forbidden"},
		"the operation fails":   {Kind: "failed", Code: "INTERNAL_ERROR"},
		"above the quota":       {Kind: "failed", Code: "QUOTA_EXCEEDED", Delay: time.Second},
		"the operation is slow": {Kind: "late", Delay: time.Hour},
	} {
		t.Run(name, func(t *testing.T) {
			runs, failed := 0, 0
			for met := true; met; runs++ {
				in(t, func(w *world) {
					f.Skip, f.Times = runs, max(f.Times, 1)
					w.set(f)
					failed += w.wholeLife()
					met = w.faults.Met(fault.Compute) > 0
				})
			}
			if may := f.Kind == "failed" || f.Kind == "forbidden"; (failed > 0) != may || runs < 12 {
				t.Errorf("%d steps failed in %d runs", failed, runs)
			}
		})
	}
}

// wholeLife goes through all steps, the first of them again where it fails, and counts these.
func (w *world) wholeLife() (failed int) {
	w.t.Helper()
	for n, step := range w.life(w.t.Context()) {
		if err := step(); err != nil {
			failed++
			w.do(step())
		}
		if vms := len(w.project.instances()); vms != map[int]int{1: 1}[n] {
			w.t.Errorf("%d VMs after step %d", vms, n)
		}
	}
	w.wantEmpty()
	return failed
}

// A client that waits is told of the end of an operation, and not of the moment at which it had its effect.
func TestAnOperationTakesAsLongAsItIsSaidTo(t *testing.T) {
	in(t, func(w *world) {
		w.takes = 20 * time.Second
		for n, step := range w.life(w.t.Context()) {
			begun := time.Now()
			w.do(step())
			if took := time.Since(begun); took < w.takes || took > w.takes+15*time.Second {
				w.t.Errorf("step %d took %s", n, took)
			}
		}
	})
}

// What is under way is shown so, and nothing else is ordered of it.
func TestAnOperationTakesItsTime(t *testing.T) {
	in(t, func(w *world) {
		steps := w.life(w.t.Context())
		w.do(steps[0]())
		w.set(fault.Fault{Kind: "late", Delay: 500 * time.Millisecond})
		ended := make(chan error)
		go func() { ended <- steps[1]() }()
		for len(w.project.instances()) == 0 {
			time.Sleep(time.Millisecond)
		}
		vms, err := w.FleetVMs(w.t.Context())
		w.do(err)
		if vms[0].Status != "PROVISIONING" {
			w.t.Errorf("it is %s while it is made", vms[0].Status)
		}
		w.do(steps[1]()) // waits for the other
		if is := w.project.instances()[0].Status; is != "RUNNING" {
			w.t.Errorf("made before it runs: it is %s", is)
		}
		w.do(<-ended)
		go func() { ended <- steps[2]() }()
		for vms[0].Status != "STOPPING" {
			time.Sleep(time.Millisecond)
			vms, err = w.FleetVMs(w.t.Context())
			w.do(err)
		}
		w.do(steps[2]()) // waits as well
		if left := w.project.instances(); len(left) > 0 {
			w.t.Errorf("deleted while it is there: %+v", left)
		}
		w.do(<-ended)
		w.do(steps[3]())
		w.wantEmpty()
	})
}

// Nothing is left of a VM that does not start but its data disk, and the next try meets no trace of it.
func TestAVMThatDoesNotStart(t *testing.T) {
	in(t, func(w *world) {
		steps := w.life(w.t.Context())
		w.do(steps[0]())
		w.project.bootFail = errors.New("no host has room")
		if err := steps[1](); err == nil || !strings.Contains(err.Error(), "no host has room") {
			w.t.Errorf("made: %v", err)
		}
		if vms, disks := w.project.instances(), w.project.unattached(); len(vms) != 0 || len(disks) != 1 {
			w.t.Errorf("left: %+v, %+v", vms, disks)
		}
		w.project.bootFail = nil
		for _, step := range steps[1:] {
			w.do(step())
		}
		w.wantEmpty()
	})
}

func TestWhatCannotBeMadeIsRefused(t *testing.T) {
	in(t, func(w *world) {
		w.do(w.InsertDisk(w.t.Context(), zoneA, diskSpec()))
		elsewhere := diskSpec()
		elsewhere.Name = "other-data"
		w.do(w.InsertDisk(w.t.Context(), zoneA, elsewhere))
		disk := func(change func(*gce.DiskSpec)) func() error {
			return func() error {
				d := diskSpec()
				d.Name = "new"
				change(&d)
				return w.InsertDisk(w.t.Context(), zoneA, d)
			}
		}
		vm := func(change func(*gce.VMSpec)) func() error {
			return func() error {
				v := vmSpec()
				change(&v)
				return w.InsertVM(w.t.Context(), zoneA, v)
			}
		}
		const images = "projects/quorate-local/global/images/"
		noZone := func() error { return w.InsertDisk(w.t.Context(), "us-central1-q", diskSpec()) }
		before := fmt.Sprint(w.project.unattached())
		for want, do := range map[string]func() error{
			"resource.name': 'New'":              disk(func(d *gce.DiskSpec) { d.Name = "New" }),
			"Disk size cannot be smaller than":   disk(func(d *gce.DiskSpec) { d.SizeGB = 9 }),
			"resource.type'":                     disk(func(d *gce.DiskSpec) { d.Type = "pd-golden" }),
			"resource.labels': 'team=A'":         disk(func(d *gce.DiskSpec) { d.Labels = map[string]string{"team": "A"} }),
			"zones/us-central1-q' was not found": noZone,
			"resource.machineType'":              vm(func(v *gce.VMSpec) { v.MachineType = "" }),
			"networks/other' was not found":      vm(func(v *gce.VMSpec) { v.Network = "global/networks/other" }),
			"subnetworks/default' was not found": vm(func(v *gce.VMSpec) {
				v.Subnetwork = "projects/" + instance.ProjectID + "/regions/europe-west1/subnetworks/default"
			}),
			"serviceAccounts[0].email":              vm(func(v *gce.VMSpec) { v.ServiceAccount = "me@example.com" }),
			"disks[1].deviceName":                   vm(func(v *gce.VMSpec) { v.DeviceName = "data" }),
			"resource.disks': '1'":                  vm(func(v *gce.VMSpec) { v.DataDisk = "" }),
			"disks/absent' was not found":           vm(func(v *gce.VMSpec) { v.DataDisk = "absent" }),
			"images/master-9' was not found":        vm(func(v *gce.VMSpec) { v.Image = images + "master-9" }),
			"disks[0].initializeParams.sourceImage": vm(func(v *gce.VMSpec) { v.Image = images + "master-1" }),
			"initializeParams.diskType":             vm(func(v *gce.VMSpec) { v.BootDisk.Type = "pd-golden" }),
		} {
			if err := do(); err == nil || !strings.Contains(err.Error(), want) {
				w.t.Errorf("%v; want %s", err, want)
			}
		}
		if after := fmt.Sprint(w.project.unattached()); after != before || len(w.project.instances()) > 0 {
			w.t.Errorf("something has changed: %s, %+v", after, w.project.instances())
		}
		w.do(vm(func(*gce.VMSpec) {})())
		for want, do := range map[string]func() error{
			"it does not have the disk other-data": vm(func(v *gce.VMSpec) { v.DataDisk = "other-data" }),
			"already being used by":                vm(func(v *gce.VMSpec) { v.Name = "master-b" }),
			"names of their own": func() error {
				return w.InsertVM(w.t.Context(), "us-central1-b", elsewhereSpec())
			},
		} {
			if err := do(); err == nil || !strings.Contains(err.Error(), want) {
				w.t.Errorf("%v; want %s", err, want)
			}
		}
	})
}

// elsewhereSpec is the same VM in zone b.
func elsewhereSpec() gce.VMSpec {
	v := vmSpec()
	v.Subnetwork = ""
	return v
}

func TestImages(t *testing.T) {
	in(t, func(w *world) {
		const folder = "projects/" + instance.ProjectID + "/global/images/"
		if got, err := w.ResolveImage(w.t.Context(), folder+"family/master"); got != folder+"master-2" {
			w.t.Errorf("the newest of its family that is not deprecated: %s, %v", got, err)
		}
		for image, want := range map[string]string{"family/node": "there is no image of the family",
			"node-1": "there is no image", "master-1": "is obsolete", "master-3": "is deprecated"} {
			_, err := w.ResolveImage(w.t.Context(), folder+image)
			if err == nil || !strings.Contains(err.Error(), want) {
				w.t.Errorf("%s: %v", image, err)
			}
		}
		if got, err := w.ResolveImage(w.t.Context(), folder+"master-2"); got != folder+"master-2" {
			w.t.Errorf("by its name: %s, %v", got, err)
		}
	})
}

// One requestId is one operation, however often it is sent; another of the same name is refused.
func TestARequestIsCarriedOutOnce(t *testing.T) {
	in(t, func(w *world) {
		disks, disk := w.google().Disks, &compute.Disk{Name: "d", SizeGb: 10}
		const one, other = "00000000-0000-4000-8000-000000000001", "00000000-0000-4000-8000-000000000002"
		first, err := disks.Insert(instance.ProjectID, zoneA, disk).RequestId(one).Do()
		w.do(err)
		time.Sleep(time.Second)
		again, err := disks.Insert(instance.ProjectID, zoneA, disk).RequestId(one).Do()
		w.do(err)
		if again.Name != first.Name || again.Status != "DONE" || len(w.project.unattached()) != 1 {
			w.t.Errorf("first %+v, then %+v", first, again)
		}
		for id, want := range map[string]int{other: 409, "": 409, "one": 400} {
			_, err = disks.Insert(instance.ProjectID, zoneA, disk).RequestId(id).Do()
			var refused *googleapi.Error
			if !errors.As(err, &refused) || refused.Code != want {
				w.t.Errorf("request %q: %v", id, err)
			}
		}
	})
}

// The order has the id, so a successor of the same name is left alone.
func TestASuccessorIsLeftAlone(t *testing.T) {
	in(t, func(w *world) {
		steps := w.life(w.t.Context())
		w.do(steps[0]())
		w.do(steps[1]())
		id := w.project.instances()[0].ID
		w.do(steps[2]())
		w.do(steps[1]())
		var changed *gce.Changed
		err := w.DeleteVM(w.t.Context(), replica.Place{Zone: zoneA, Name: "master-a"}, strconv.FormatUint(id, 10))
		if !errors.As(err, &changed) || len(w.project.instances()) != 1 {
			w.t.Errorf("deleted by a former id: %v", err)
		}
	})
}
