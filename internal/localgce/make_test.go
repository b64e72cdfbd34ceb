package localgce_test

import (
	"errors"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/quorate/quorate/internal/gce"
	"github.com/quorate/quorate/internal/localgce"
	"github.com/quorate/quorate/internal/realtest"
	"github.com/quorate/quorate/internal/replica"
)

// cloud is quorate's client of a project, as an operator's command has it.
func (w world) cloud() *gce.Operator {
	w.t.Helper()
	c, err := gce.NewOperator(gce.ComputeConfig{Project: localgce.ProjectID, Cluster: "demo", Region: "us-central1",
		Endpoint: w.Status().ComputeEndpoint})
	w.do(err)
	return c
}

// A VM that the Compute API was asked for boots, sees what it was given and is deleted; its disk is kept until that is
// deleted, too.
func TestTheComputeAPIMakesVMs(t *testing.T) {
	t.Parallel()
	w := start(t, config(t.TempDir(), 34))
	ctx, c := t.Context(), w.cloud()
	const zone, links = "us-central1-b", "projects/" + localgce.ProjectID + "/"
	image, err := c.ResolveImage(ctx, links+"global/images/family/quorate-master")
	w.do(err)
	disk := gce.DiskSpec{Name: "m-data", Type: "pd-ssd", SizeGB: 10}
	vm := gce.VMSpec{Name: "m", MachineType: "e2-standard-4", Image: image, Network: links + "global/networks/default",
		DataDisk: disk.Name, DeviceName: localgce.DeviceName, Tags: []string{"masters"},
		Labels: map[string]string{"team": "x"}, Metadata: map[string]string{"colour": "red"}}
	w.do(c.InsertDisk(ctx, zone, disk))
	w.do(c.InsertVM(ctx, zone, vm))
	w.awaitReady("m")
	const meta = "/usr/local/bin/tiny tiny get http://metadata.google.internal/computeMetadata/v1/instance/"
	for script, want := range map[string]string{
		meta + "name": "m", meta + "attributes/colour": "red", meta + "attributes/quorate-cluster": "name: demo",
		meta + "machine-type": "projects/271828182845/machineTypes/e2-standard-4",
		meta + "zone":         "projects/271828182845/zones/" + zone, meta + "id": w.vm("m").InstanceID,
		"blockdev --getsize64 /dev/disk/by-id/google-" + localgce.DeviceName: "10737418240",
	} {
		if got := strings.TrimSpace(w.must("m", script)); got != want {
			t.Errorf("%s: %q, want %q", script, got, want)
		}
	}
	w.must("m", "echo kept > /var/lib/quorate/file")
	vms, err := c.FleetVMs(ctx)
	w.do(err)
	if len(vms) != 1 || vms[0].Image != image || vms[0].DataDisk != disk.Name || vms[0].Labels["team"] != "x" ||
		vms[0].MachineType != vm.MachineType || vms[0].InstanceID != w.vm("m").InstanceID {
		t.Fatalf("the fleet: %+v", vms)
	}
	w.do(c.DeleteVM(ctx, replica.Place{Zone: zone, Name: "m"}, vms[0].InstanceID))
	if left := w.Status().VMs; len(left) > 0 {
		t.Errorf("deleted: %+v", left)
	}

	w.do(c.InsertVM(ctx, zone, vm))
	w.awaitReady("m")
	if w.vm("m").InstanceID == vms[0].InstanceID {
		t.Error("another instance has the id of the former one")
	}
	w.must("m", "grep kept /var/lib/quorate/file && test -f /var/lib/quorate/stopped-in-order")
	w.do(w.KillVM(ctx, "m"))
	vms, err = c.FleetVMs(ctx)
	w.do(err)
	w.do(c.DeleteVM(ctx, vms[0].Place, vms[0].InstanceID)) // although it is off
	disks, err := c.FleetDisks(ctx)
	w.do(err)
	if len(disks) != 1 || len(disks[0].Users) > 0 || disks[0].SizeGB != 10 {
		t.Fatalf("the fleet's disks: %+v", disks)
	}
	w.do(c.DeleteDisk(ctx, zone, disk.Name, disks[0].ID))
	if left, _ := filepath.Glob(filepath.Join(w.conf.State, "disks", "*")); len(left) > 0 {
		t.Errorf("left: %q", left)
	}
}

// What a fault of the API has kept from being made is made by the next try; a VM that hangs can be deleted.
func TestTheComputeAPIFailsToMakeVMs(t *testing.T) {
	realtest.OnlyInCases(t)
	t.Parallel()
	conf := config(t.TempDir(), 35)
	conf.Zones = []string{"us-central1-b"}
	conf.Agent.StopTimeout = time.Second
	w := start(t, conf)
	ctx, c := t.Context(), w.cloud()
	disk := gce.DiskSpec{Name: "m-data", Type: "pd-ssd", SizeGB: 10}
	vm := gce.VMSpec{Name: "m", MachineType: "e2-standard-4", Network: "global/networks/default",
		Image: "projects/" + localgce.ProjectID + "/global/images/quorate-master", DataDisk: disk.Name,
		DeviceName: localgce.DeviceName}
	w.refused("zones/us-central1-a' was not found", c.InsertDisk(ctx, "us-central1-a", disk))
	w.do(w.SetFault(localgce.Compute, localgce.Fault{Kind: "failed", Code: "QUOTA_EXCEEDED", Call: "POST disks", Times: 1}))
	var refused *gce.Refused
	if err := c.InsertDisk(ctx, "us-central1-b", disk); !errors.As(err, &refused) || refused.Reason != gce.QuotaExceeded {
		t.Errorf("above the quota: %v", err)
	}
	w.do(c.InsertDisk(ctx, "us-central1-b", disk))
	w.do(w.SetFault(localgce.Compute, localgce.Fault{Kind: "lost", Call: "POST zones/*/instances", Times: 1}))
	w.do(c.InsertVM(ctx, "us-central1-b", vm))
	w.awaitReady("m")
	w.do(w.FreezeVM(ctx, "m"))
	vms, err := c.FleetVMs(ctx)
	w.do(err)
	w.do(c.DeleteVM(ctx, vms[0].Place, vms[0].InstanceID))
	disks, err := c.FleetDisks(ctx)
	w.do(err)
	w.do(c.DeleteDisk(ctx, disks[0].Zone, disks[0].Name, disks[0].ID))
	if left, _ := filepath.Glob(filepath.Join(w.conf.State, "disks", "*")); len(left)+len(w.Status().VMs) > 0 {
		t.Errorf("left: %q, %+v", left, w.Status().VMs)
	}
}
