package compute_test

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"path"
	"slices"
	"strings"
	"testing"
	"time"

	"google.golang.org/api/compute/v1"
	"google.golang.org/api/googleapi"
	"google.golang.org/api/option"

	local "github.com/quorate/quorate/internal/localgce/compute"
	"github.com/quorate/quorate/internal/localgce/fault"
	"github.com/quorate/quorate/internal/localgce/instance"
)

// master is a VM with a data disk.
func master() instance.VM {
	return instance.VM{
		ID: 4902571698253978401, Name: "master-1", Zone: "us-central1-a", Status: "RUNNING",
		Address: netip.MustParseAddr("10.240.0.2"), Forwarded: []netip.Addr{netip.MustParseAddr("10.240.0.100")},
		Attributes: map[string]string{"quorate-cluster": "name: demo\n", "startup-script": "#!/bin/sh"},
		Labels:     map[string]string{"quorate-cluster": "demo"},
		Created:    time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC),
		DataDisk:   instance.Disk{ID: 17, Name: "master-1-data", Bytes: 4 << 30},
	}
}

// computeAPI is Google's client of a server, behind faults, with master-1 (cluster demo, zone a) and node-1 (cluster
// other, zone b).
func computeAPI(t *testing.T) (setFault func(fault.Fault) error, c *compute.Service, all *[]instance.VM) {
	node := master()
	node.ID, node.Name, node.Zone, node.Status = 99, "node-1", "us-central1-b", "TERMINATED"
	node.Labels = map[string]string{"quorate-cluster": "other"}
	node.DataDisk = instance.Disk{ID: 18, Name: "node-1-data", Bytes: 4 << 30}
	all = &[]instance.VM{master(), node}
	server, faults := local.New(local.Config{Instances: func() []instance.VM { return *all }}), &fault.Set{}
	setFault = func(f fault.Fault) error { return faults.Put(fault.Compute, server.AsOfNow(f)) }
	nobody := func(*http.Request) string { return "" }
	h := httptest.NewServer(faults.Before(fault.Compute, nobody, server))
	t.Cleanup(h.Close)
	c, err := compute.NewService(t.Context(), option.WithEndpoint(h.URL+"/compute/v1/"), option.WithoutAuthentication())
	if err != nil {
		t.Fatal(err)
	}
	return setFault, c, all
}

func TestGooglesClientReadsAnInstance(t *testing.T) {
	_, c, _ := computeAPI(t)
	i, err := c.Instances.Get(instance.ProjectID, "us-central1-a", "master-1").Do()
	if err != nil {
		t.Fatal(err)
	}
	if i.Id != 4902571698253978401 || i.Status != "RUNNING" || i.NetworkInterfaces[0].NetworkIP != "10.240.0.2" ||
		i.Labels["quorate-cluster"] != "demo" || i.CreationTimestamp != "2026-11-20T12:00:00.000+00:00" {
		t.Errorf("instance: %+v", i)
	}
	if !slices.ContainsFunc(i.Metadata.Items, func(m *compute.MetadataItems) bool {
		return m.Key == "quorate-cluster" &&
			*m.Value == "name: demo\n"
	}) {
		t.Errorf("metadata: %+v", i.Metadata)
	}
	d, err := c.Disks.Get(instance.ProjectID, "us-central1-a", "master-1-data").Do()
	if err != nil {
		t.Fatal(err)
	}
	if d.Id != 17 || d.SizeGb != 4 || d.SelfLink != i.Disks[1].Source || i.Disks[1].DeviceName != "quorate-data" {
		t.Errorf("disk %+v of %+v", d, i.Disks[1])
	}
}

func TestGooglesClientFindsInstancesByFilter(t *testing.T) {
	_, c, _ := computeAPI(t)
	for filter, want := range map[string][]string{
		"":                                {"master-1", "node-1"},
		"labels.quorate-cluster=demo":     {"master-1"},
		`labels.quorate-cluster = "demo"`: {"master-1"},
		`(labels.quorate-cluster = "other") (status = TERMINATED)`: {"node-1"},
		`labels.quorate-cluster = "other" AND status = "RUNNING"`:  nil,
		"labels.quorate-cluster:* AND name != node-1":              {"master-1"},
		"labels.absent=x": nil,
	} {
		found, err := c.Instances.AggregatedList(instance.ProjectID).Filter(filter).Do()
		if err != nil {
			t.Errorf("%s: %v", filter, err)
			continue
		}
		var got []string
		for zone, items := range found.Items {
			for _, i := range items.Instances {
				got = append(got, i.Name)
				if "zones/"+i.Zone[len(i.Zone)-len("us-central1-x"):] != zone {
					t.Errorf("%s of %s is listed in %s", i.Name, i.Zone, zone)
				}
			}
			if len(items.Instances) == 0 && (items.Warning == nil || items.Warning.Code != "NO_RESULTS_ON_PAGE") {
				t.Errorf("%s: the empty %s has no warning", filter, zone)
			}
		}
		if slices.Sort(got); !slices.Equal(got, want) {
			t.Errorf("%s: %q, want %q", filter, got, want)
		}
	}
	inZone, err := c.Instances.List(instance.ProjectID, "us-central1-b").Do()
	if err != nil || len(inZone.Items) != 1 || inZone.Items[0].Name != "node-1" {
		t.Errorf("list of a zone: %+v, %v", inZone, err)
	}
	disks, err := c.Disks.AggregatedList(instance.ProjectID).Filter("labels.quorate-cluster=demo").Do()
	if err != nil || len(disks.Items["zones/us-central1-a"].Disks) != 2 {
		t.Errorf("disks: %+v, %v", disks, err)
	}
	one, err := c.Disks.AggregatedList(instance.ProjectID).Filter("id=18").Do()
	if err != nil || len(one.Items["zones/us-central1-b"].Disks) != 1 ||
		len(one.Items["zones/us-central1-a"].Disks) != 0 {
		t.Errorf("a disk by its id: %+v, %v", one, err)
	}
}

func TestComputeAPIRefuses(t *testing.T) {
	setFault, c, _ := computeAPI(t)
	code := func(err error) int {
		var e *googleapi.Error
		if errors.As(err, &e) {
			return e.Code
		}
		t.Errorf("not an error of the API: %v", err)
		return 0
	}
	_, err := c.Instances.Get(instance.ProjectID, "us-central1-b", "master-1").Do()
	if code(err) != 404 {
		t.Error("an instance is found in another zone")
	}
	_, err = c.Instances.List("other", "us-central1-a").Do()
	if code(err) != 404 {
		t.Error("another project is served")
	}
	_, err = c.Instances.AggregatedList(instance.ProjectID).Filter("name > 3").Do()
	if code(err) != 400 {
		t.Error("a filter that is not understood is accepted")
	}
	if err := setFault(fault.Fault{Kind: "forbidden"}); err != nil {
		t.Fatal(err)
	}
	_, err = c.Instances.AggregatedList(instance.ProjectID).Do()
	if code(err) != 403 {
		t.Error("forbidden is allowed")
	}
}

func TestComputeAPIListsWhatIsNotSo(t *testing.T) {
	setFault, c, all := computeAPI(t)
	count := func() (n int) {
		found, err := c.Instances.AggregatedList(instance.ProjectID).Do()
		if err != nil {
			t.Fatal(err)
		}
		for _, items := range found.Items {
			n += len(items.Instances)
		}
		return n
	}
	_ = setFault(fault.Fault{Kind: "stale"})
	*all = (*all)[:1]
	if n := count(); n != 2 {
		t.Errorf("stale: %d instances, want the 2 of before", n)
	}
	_ = setFault(fault.Fault{Kind: "empty"})
	if n := count(); n != 0 {
		t.Errorf("empty: %d instances", n)
	}
	_ = setFault(fault.Fault{})
	if n := count(); n != 1 {
		t.Errorf("well again: %d instances, want 1", n)
	}
}

// A zone that is away fails the list of all zones, unless it asks for what there is.
func TestComputeAPIWithoutAZone(t *testing.T) {
	setFault, c, _ := computeAPI(t)
	for _, zone := range []string{"us-central1-b", "europe-west1-d"} {
		if err := setFault(fault.Fault{Kind: "unreachable", Zone: zone}); err != nil {
			t.Fatal(err)
		}
		if _, err := c.Disks.AggregatedList(instance.ProjectID).Do(); err == nil {
			t.Errorf("%s: a whole list", zone)
		}
		list, err := c.Disks.AggregatedList(instance.ProjectID).Do(googleapi.QueryParameter("returnPartialSuccess",
			"true"))
		if err != nil {
			t.Fatal(err)
		}
		away := list.Items["zones/"+zone]
		if len(list.Items["zones/us-central1-a"].Disks) != 2 || len(away.Disks) != 0 || away.Warning == nil ||
			away.Warning.Code != "UNREACHABLE" || len(list.Unreachables) != 1 {
			t.Errorf("%s: %+v, unreachable %q", zone, list.Items, list.Unreachables)
		}
		if _, err := c.Instances.List(instance.ProjectID, zone).Do(); err == nil {
			t.Errorf("%s: it is listed", zone)
		}
		if _, err := c.Instances.Get(instance.ProjectID, "us-central1-a", "master-1").Do(); err != nil {
			t.Errorf("%s: %v", zone, err)
		}
	}
	if _, err := c.Instances.Get(instance.ProjectID, "europe-west1-d", "node-1").Do(); err == nil {
		t.Error("a VM of a zone that is away is found")
	}
}

// A regional disk is found in its region, in no zone, and by its instance's link.
func TestComputeAPIShowsARegionalDisk(t *testing.T) {
	setFault, c, _ := computeAPI(t)
	if err := setFault(fault.Fault{Kind: "regional", VMs: []string{"master-1"}}); err != nil {
		t.Fatal(err)
	}
	vm, err := c.Instances.Get(instance.ProjectID, "us-central1-a", "master-1").Do()
	if err != nil {
		t.Fatal(err)
	}
	link := vm.Disks[1].Source
	name := path.Base(link)
	if !strings.HasSuffix(link, "/regions/us-central1/disks/"+name) {
		t.Errorf("the instance's data disk is at %s", link)
	}
	d, err := c.RegionDisks.Get(instance.ProjectID, "us-central1", name).Do()
	if err != nil || d.Id != 17 || d.Zone != "" || path.Base(d.Region) != "us-central1" || d.SelfLink != link {
		t.Errorf("%+v, %v", d, err)
	}
	if d, err := c.Disks.Get(instance.ProjectID, "us-central1-a", name).Do(); err == nil {
		t.Errorf("it is in a zone, too: %+v", d)
	}
	all, err := c.Disks.AggregatedList(instance.ProjectID).Do()
	if err != nil {
		t.Fatal(err)
	}
	of := map[string]int{}
	for _, place := range []string{"zones/us-central1-a", "regions/us-central1"} {
		of[place] = len(all.Items[place].Disks)
	}
	list, err := c.RegionDisks.List(instance.ProjectID, "us-central1").Do()
	if err != nil || len(list.Items) != 1 || of["zones/us-central1-a"] != 1 || of["regions/us-central1"] != 1 {
		t.Errorf("%d in the region, %v, %v", len(list.Items), of, err)
	}
}

func TestAnOrderToStopIsRefusedWhereNobodyMay(t *testing.T) {
	_, c, _ := computeAPI(t)
	_, err := c.Instances.Stop(instance.ProjectID, "us-central1-a", "master-1").Do()
	var e *googleapi.Error
	if !errors.As(err, &e) || e.Code != 403 {
		t.Errorf("stopped: %v", err)
	}
}

// A VM may be called stopped, or be in no answer, while it runs: what the API says of its disk is another matter.
func TestComputeAPICallsARunningVMStoppedOrAbsent(t *testing.T) {
	setFault, c, _ := computeAPI(t)
	const stamp, user = "2026-11-22T12:00:00.000+00:00", "/zones/us-central1-a/instances/master-1"
	stop := time.Date(2026, 11, 22, 12, 0, 0, 0, time.UTC)
	for name, tc := range map[string]struct {
		fault  fault.Fault
		status string   // of master-1; empty: it is absent
		stop   string   // lastStopTimestamp
		users  []string // of its data disk; nil: that is absent
	}{
		"well": {fault.Fault{}, "RUNNING", "", []string{"master-1"}},
		"terminated": {fault.Fault{Kind: "terminated", LastStop: stop}, "TERMINATED", stamp,
			[]string{"master-1"}},
		"stopped": {fault.Fault{Kind: "stopped", LastStop: stop}, "STOPPED", stamp,
			[]string{"master-1"}},
		"suspended": {fault.Fault{Kind: "suspended"}, "SUSPENDED", "", []string{"master-1"}},
		"about to stop": {fault.Fault{Kind: "pending_stop"}, "PENDING_STOP", "",
			[]string{"master-1"}},
		"absent, disk attached": {fault.Fault{Kind: "absent"}, "", "", []string{"master-1"}},
		"absent, disk detached": {fault.Fault{Kind: "absent", Detached: true}, "", "", []string{}},
		"absent with its disk":  {fault.Fault{Kind: "missing"}, "", "", nil},
	} {
		t.Run(name, func(t *testing.T) {
			if tc.fault.Kind != "" {
				tc.fault.VMs = []string{"master-1"}
			}
			if err := setFault(tc.fault); err != nil {
				t.Fatal(err)
			}
			list, err := c.Instances.AggregatedList(instance.ProjectID).Filter("labels.quorate-cluster=demo").Do()
			if err != nil || list.Header.Get("Date") == "" {
				t.Fatalf("%v, answered at %q", err, list.Header.Get("Date"))
			}
			one, errOne := c.Instances.Get(instance.ProjectID, "us-central1-a", "master-1").Do()
			listed := list.Items["zones/us-central1-a"].Instances
			if tc.status == "" && (len(listed) != 0 || errOne == nil) {
				t.Errorf("it is there: listed %+v, by its name %+v", listed, one)
			}
			if tc.status != "" {
				listed = append(listed, one)
			}
			if tc.status != "" && len(listed) != 2 {
				t.Errorf("listed %d times", len(listed)-1)
			}
			for _, i := range listed {
				if errOne != nil || i.Status != tc.status || i.LastStopTimestamp != tc.stop {
					t.Errorf("shown as %s since %q, %v", i.Status, i.LastStopTimestamp, errOne)
				}
			}
			disks, err := c.Disks.AggregatedList(instance.ProjectID).Filter("id=17").Do()
			if err != nil {
				t.Fatal(err)
			}
			found := disks.Items["zones/us-central1-a"].Disks
			if len(found) != map[bool]int{true: 1, false: 0}[tc.users != nil] {
				t.Fatalf("its disk: %+v", found)
			}
			for _, d := range found {
				if len(d.Users) != len(tc.users) || len(d.Users) == 1 && !strings.HasSuffix(d.Users[0], user) {
					t.Errorf("its disk's users: %q", d.Users)
				}
			}
		})
	}
	now := time.Now()
	if err := setFault(fault.Fault{Kind: "terminated", VMs: []string{"master-1"}}); err != nil {
		t.Fatal(err)
	}
	i, err := c.Instances.Get(instance.ProjectID, "us-central1-a", "master-1").Do()
	if err != nil {
		t.Fatal(err)
	}
	if at, err := time.Parse(time.RFC3339, i.LastStopTimestamp); err != nil || at.Sub(now).Abs() > time.Second {
		t.Errorf("stopped at %s, %v", i.LastStopTimestamp, err)
	}
}

func TestComputeAPIShowsASpotVM(t *testing.T) {
	_, c, all := computeAPI(t)
	(*all)[1].Spot = true
	for name, want := range map[string]bool{"us-central1-a/master-1": false, "us-central1-b/node-1": true} {
		zone, vm, _ := strings.Cut(name, "/")
		i, err := c.Instances.Get(instance.ProjectID, zone, vm).Do()
		if err != nil || i.Scheduling.Preemptible != want || (i.Scheduling.ProvisioningModel == "SPOT") != want {
			t.Errorf("%s: %+v, %v", name, i, err)
		}
	}
}
