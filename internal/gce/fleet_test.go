package gce

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"
)

// cloudOf answers the two lists of a fleet.
func cloudOf(t *testing.T, instances, disks string) *Operator {
	return fakeCompute(t, 300*time.Millisecond, func(w http.ResponseWriter, r *http.Request, _ int) {
		switch path := strings.TrimPrefix(r.URL.Path, "/compute/v1/projects/demo/"); path {
		case "aggregated/instances":
			send(w, 200, instanceList(instances, ""))
		case "aggregated/disks":
			send(w, 200, `{"kind":"compute#diskAggregatedList","items":{`+disks+`}}`)
		case "zones/us-central1-a/disks/by-hand":
			send(w, 200, `{"kind":"compute#disk","name":"by-hand","id":"9","sizeGb":"10","type":"`+links+
				`zones/us-central1-a/diskTypes/pd-standard","sourceImage":"`+links+`global/images/i0"}`)
		default:
			send(w, 404, apiError(404, "notFound", "The resource 'projects/demo/"+path+"' was not found"))
		}
	})
}

const links = "https://www.googleapis.com/compute/v1/projects/demo/"

func fleetInstance(name, id, boot string) string {
	a := links + "zones/us-central1-a/"
	return `{"name":"` + name + `","id":"` + id + `","status":"RUNNING",
		"machineType":"` + a + `machineTypes/e2-standard-4",
		"networkInterfaces":[{"network":"` + links + `global/networks/default",
			"subnetwork":"` + links + `regions/us-central1/subnetworks/s"}],
		"serviceAccounts":[{"email":"m@demo.iam.gserviceaccount.com","scopes":["x"]}],"tags":{"items":["etcd","m"]},
		"metadata":{"items":[{"key":"quorate-cluster","value":"kind: Cluster"}]},
		"labels":{"quorate-cluster":"prod","quorate-replaces":"41"},"disks":[
		{"boot":true,"source":"` + a + `disks/` + boot + `"},{"source":"` + a + `disks/` + name + `-data"}]}`
}

func fleetDiskOf(name, id, more string) string {
	return `{"name":"` + name + `","id":"` + id + `","sizeGb":"50","type":"` + links + `zones/us-central1-a/diskTypes/pd-ssd","labels":{"quorate-cluster":"prod",
		"quorate-replica":"m1"},"selfLink":"` + links + `zones/us-central1-a/disks/` + name + `",
		"creationTimestamp":"2026-11-22T05:00:00.123-07:00"` + more + `}`
}

func TestTheFleet(t *testing.T) {
	t.Parallel()
	vms := `"zones/us-central1-a":{"instances":[` + fleetInstance("m1", "1", "m1") + `,` +
		fleetInstance("m2", "2", "by-hand") + `]}`
	disks := `"regions/us-central1":{"disks":[` + fleetDiskOf("regional", "70", "") + `]},` +
		`"zones/us-central1-a":{"disks":[` +
		fleetDiskOf("m1", "71", `,"sourceImage":"`+links+`global/images/i1"`) + `,` +
		fleetDiskOf("m1-data", "72", `,"users":["`+links+`zones/us-central1-a/instances/m1"]`) + `,` +
		fleetDiskOf("kept", "73", "") + `,` +
		fleetDiskOf("copied", "74", `,"sourceSnapshot":"s","guestOsFeatures":[{"type":"UEFI_COMPATIBLE"}]`) + `,` +
		fleetDiskOf("licensed", "75", `,"sourceSnapshot":"s","licenses":["l"]`) + `]}`
	c := cloudOf(t, vms, disks)
	got, err := c.FleetVMs(t.Context())
	if err != nil || len(got) != 2 {
		t.Fatalf("%v, %v", got, err)
	}
	m1, m2 := got[0], got[1]
	if m1.Place.String() != "us-central1-a.m1" || m1.InstanceID != "1" ||
		m1.Image != "projects/demo/global/images/i1" || m1.DataDisk != "m1-data" || m1.MachineType != "e2-standard-4" ||
		m1.Labels["quorate-replaces"] != "41" {
		t.Errorf("m1: %+v", m1)
	}
	if m1.Network != "projects/demo/global/networks/default" || fmt.Sprint(m1.Tags) != "[etcd m]" ||
		m1.Subnetwork != "projects/demo/regions/us-central1/subnetworks/s" || m1.Boot.SizeGB != 50 ||
		m1.Boot.Type != "pd-ssd" || m1.ServiceAccount != "m@demo.iam.gserviceaccount.com" ||
		m1.Metadata["quorate-cluster"] != "kind: Cluster" {
		t.Errorf("m1 is made so: %+v", m1)
	}
	if m2.Image != "projects/demo/global/images/i0" || m2.DataDisk != "m2-data" || m2.Boot.SizeGB != 10 ||
		m2.Boot.Type != "pd-standard" {
		t.Errorf("m2, whose boot disk has no label: %+v", m2)
	}
	data, err := c.FleetDisks(t.Context())
	if want := "[{us-central1-a m1-data 72 map[quorate-cluster:prod quorate-replica:m1] pd-ssd 50 [m1] " +
		"2026-11-22 05:00:00.123 -0700 -0700} " +
		"{us-central1-a kept 73 map[quorate-cluster:prod quorate-replica:m1] pd-ssd 50 [] " +
		"2026-11-22 05:00:00.123 -0700 -0700}]"; fmt.Sprint(data) != want || err != nil {
		t.Errorf("got  %v, %v\nwant %s", data, err, want)
	}
}

// A list with a hole, and one whose image cannot be found, are errors and never shorter lists.
func TestAFleetIsWholeOrAnError(t *testing.T) {
	t.Parallel()
	away := `"zones/us-central1-b":{"warning":{"code":"UNREACHABLE","message":"zone down"}}`
	m1 := `"zones/us-central1-a":{"instances":[` + fleetInstance("m1", "1", "gone") + `]}`
	none := `"zones/us-central1-a":` + noResults
	for name, tc := range map[string]struct{ instances, disks, vms, data string }{
		"a zone without VMs":       {away, none, "UNREACHABLE", ""},
		"a zone without disks":     {none, away, "UNREACHABLE", "UNREACHABLE"},
		"a boot disk that is gone": {m1, none, "find the boot disk of instance us-central1-a.m1", ""},
		"a disk's user that cannot be read": {none, `"zones/us-central1-a":{"disks":[` +
			fleetDiskOf("d", "7", `,"users":["m1"]`) + `]}`, "", `found user "m1" at disk d`},
		"nothing": {none, none, "", ""},
	} {
		c := cloudOf(t, tc.instances, tc.disks)
		vms, err := c.FleetVMs(t.Context())
		checkList(t, name, len(vms), err, tc.vms)
		disks, err := c.FleetDisks(t.Context())
		checkList(t, name, len(disks), err, tc.data)
	}
}

func checkList(t *testing.T, name string, n int, err error, want string) {
	t.Helper()
	if n != 0 || (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
		t.Errorf("%s: %d, %v, want %q", name, n, err, want)
	}
}
