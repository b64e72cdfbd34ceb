package gce

import (
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/quorate/quorate/internal/replica"
)

// exchange is a request that is expected, and its answer.
type exchange struct {
	to     string // method, and path from the project's folder on
	status int
	body   string
}

const (
	zoneA   = "zones/us-central1-a"
	makes   = "POST " + zoneA + "/disks"
	reads   = "GET " + zoneA + "/disks/d1"
	deletes = "DELETE " + zoneA + "/disks/77"
	polls   = "GET " + zoneA + "/operations/op-1"
	going   = `{"kind":"compute#operation","name":"op-1","status":"RUNNING"}`
	over    = `{"kind":"compute#operation","name":"op-1","status":"DONE"}`
)

var noZone = apiError(404, "notFound", "The resource 'projects/demo/zones/us-central1-a' was not found")

func failed(code, message string) string {
	data, _ := json.Marshal(message)
	return strings.Replace(over, `}`, `,"error":{"errors":[{"code":"`+code+`","message":`+string(data)+`}]}}`, 1)
}

func aDisk(id, status, more string) string {
	return `{"kind":"compute#disk","name":"d1","id":"` + id + `","status":"` + status + `"` + more + `}`
}

// missingDisk is the 404 of a disk, by name or id.
func missingDisk(name string) exchange {
	return exchange{"GET " + zoneA + "/disks/" + name, 404, apiError(404, "notFound",
		"The resource 'projects/demo/zones/us-central1-a/disks/"+name+"' was not found")}
}

// conversation is a client whose requests are these, in this order, all orders of one call with one requestId.
func conversation(t *testing.T, list []exchange) *Operator {
	t.Helper()
	request, n := "", 0
	c := fakeAPI(t, 5*time.Second, func(w http.ResponseWriter, r *http.Request, at int) {
		got := r.Method + " " + strings.TrimPrefix(r.URL.Path, "/compute/v1/projects/demo/")
		if n = at; at > len(list) || got != list[at-1].to {
			t.Errorf("question %d is %s; want %v", at, got, list)
			send(w, 400, "{}")
			return
		}
		if r.Method != http.MethodGet {
			id := r.URL.Query().Get("requestId")
			if len(id) != 36 || request != "" && id != request {
				t.Errorf("request id %q, before %q: want one UUID", id, request)
			}
			if request = id; slices.Contains([]int{http.StatusConflict, http.StatusBadRequest}, list[at-1].status) {
				request = "" // what comes is another order
			}
		}
		if list[at-1].body == "cut" {
			panic(http.ErrAbortHandler)
		}
		send(w, list[at-1].status, list[at-1].body)
	})
	t.Cleanup(func() {
		if n < len(list) {
			t.Errorf("%d questions of %v", n, list)
		}
	})
	return c
}

func TestInsertDisk(t *testing.T) {
	t.Parallel()
	const same = `,"labels":{"quorate-cluster":"prod","quorate-replica":"m1","team":"b"}`
	taken := exchange{makes, 409, apiError(409, "alreadyExists", "The resource '…/d1' already exists")}
	for name, tc := range map[string]struct {
		says   []exchange
		want   string // of the error; empty: it is made
		reason Reason // of a *Refused
	}{
		"made": {[]exchange{{makes, 200, going}, {polls, 200, going}, {polls, 200, over}}, "", ""},
		"an answer that was lost": {[]exchange{{makes, 0, "cut"}, {makes, 503, "busy"}, {makes, 200, going},
			{polls, 0, "cut"}, {polls, 200, over}}, "", ""},
		"made before": {[]exchange{taken, {reads, 200, aDisk("7", "READY", same)}}, "", ""},
		"made before, later": {[]exchange{{makes, 200, failed("RESOURCE_ALREADY_EXISTS", "…")},
			{reads, 200, aDisk("7", "READY", same)}}, "", ""},
		"just being made": {[]exchange{taken, {reads, 200, aDisk("7", "CREATING", same)},
			{reads, 200, aDisk("7", "READY", same)}}, "", ""},
		"just being deleted": {[]exchange{taken, {reads, 200, aDisk("6", "DELETING", "")}, missingDisk("d1"),
			{makes, 200, over}}, "", ""},
		"another's": {[]exchange{taken, {reads, 200, aDisk("6", "READY", "")}},
			`there is another of that name (6): its label quorate-cluster is "", not "prod"`, ""},
		"of another replica": {[]exchange{taken, {reads, 200, aDisk("6", "READY",
			strings.Replace(same, "m1", "m2", 1))}}, `its label quorate-replica is "m2", not "m1"`, ""},
		"with a further label of quorate's": {[]exchange{taken, {reads, 200, aDisk("6", "READY",
			strings.Replace(same, "team", "quorate-replaces", 1))}}, `its label quorate-replaces is "b", not ""`, ""},
		"one that failed": {[]exchange{taken, {reads, 200, aDisk("6", "FAILED", same)}}, "in the state FAILED", ""},
		"above the quota": {[]exchange{{makes, 200, failed("QUOTA_EXCEEDED", "Quota 'SSD_TOTAL_GB' exceeded.")}},
			"have the project's quota raised", QuotaExceeded},
		"above the quota, at once": {[]exchange{{makes, 403, apiError(403, "quotaExceeded", "Quota exceeded")}},
			"have the project's quota raised", QuotaExceeded},
		"no permission": {[]exchange{{makes, 403, apiError(403, "forbidden",
			"Required 'compute.disks.create' permission for 'projects/demo/zones/us-central1-a/disks/d1'")}},
			"the caller lacks the permission compute.disks.create", PermissionMissing},
		"a name that is none": {[]exchange{{makes, 400, apiError(400, "invalid",
			"Invalid value for field 'resource.name': 'D1'.")}}, "Invalid value for field", InvalidRequest},
		"no such zone":           {[]exchange{{makes, 404, noZone}}, "us-central1-a' was not found", NotFound},
		"JSON of something else": {[]exchange{{makes, 200, `{}`}}, "allowed: compute#operation", ""},
		"an error inside": {[]exchange{{makes, 200, failed("INTERNAL_ERROR", "try later")}},
			"INTERNAL_ERROR", ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			err := conversation(t, tc.says).InsertDisk(t.Context(), "us-central1-a", DiskSpec{Name: "d1",
				Type: "pd-ssd", SizeGB: 50, Labels: map[string]string{"quorate-replica": "m1", "team": "a"}})
			check(t, err, tc.want, tc.reason)
		})
	}
}

func check(t *testing.T, err error, want string, reason Reason) {
	t.Helper()
	if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
		t.Errorf("got %v, want %q", err, want)
	}
	var refused *Refused
	if errors.As(err, &refused) != (reason != "") || reason != "" && refused.Reason != reason {
		t.Errorf("got %+v, want the reason %q", err, reason)
	}
}

func TestDeleteDisk(t *testing.T) {
	t.Parallel()
	mine := exchange{reads, 200, aDisk("77", "READY", "")}
	gone := exchange{deletes, 404, missingDisk("77").body}
	for name, tc := range map[string]struct {
		says   []exchange
		want   string
		reason Reason
	}{
		"deleted":        {[]exchange{mine, {deletes, 200, going}, {polls, 200, over}}, "", ""},
		"lost answers":   {[]exchange{mine, {deletes, 0, "cut"}, {deletes, 200, going}, {polls, 200, over}}, "", ""},
		"gone":           {[]exchange{missingDisk("d1")}, "", ""},
		"gone meanwhile": {[]exchange{mine, gone, missingDisk("d1")}, "", ""},
		"made again meanwhile": {[]exchange{mine, gone, {reads, 200, aDisk("78", "READY", "")}},
			"another one has that name by now (78)", ""},
		"being deleted already": {[]exchange{mine, {deletes, 400, apiError(400, "resourceNotReady", "… is not ready")},
			missingDisk("d1")}, "", ""},
		"being changed": {[]exchange{mine, {deletes, 400, apiError(400, "resourceNotReady", "… is not ready")},
			mine, {deletes, 200, over}}, "", ""},
		"not found by its id, and there all the same": {[]exchange{mine, gone, mine}, "disks/77' was not found", ""},
		"another's": {[]exchange{{reads, 200, aDisk("78", "READY", "")}}, "another one has that name by now (78)",
			""},
		"no such zone": {[]exchange{{reads, 404, noZone}}, "us-central1-a' was not found", NotFound},
		"no such project": {[]exchange{mine, {deletes, 404, apiError(404, "notFound",
			"The resource 'projects/demo' was not found")}}, "projects/demo' was not found", NotFound},
		"attached": {[]exchange{mine, {deletes, 400, apiError(400, "resourceInUseByAnotherResource",
			"The disk resource 'd1' is already being used by 'm1'")}}, "already being used by 'm1'", InUse},
		"attached meanwhile": {[]exchange{mine, {deletes, 200, failed("RESOURCE_IN_USE_BY_ANOTHER_RESOURCE", "by m1")}},
			"by m1", InUse},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			check(t, conversation(t, tc.says).DeleteDisk(t.Context(), "us-central1-a", "d1", "77"), tc.want, tc.reason)
		})
	}
	for _, id := range []string{"", "0", "d1", "-1"} {
		if err := conversation(t, nil).DeleteDisk(t.Context(), "us-central1-a", "d1", id); err == nil {
			t.Errorf("deleted by id %q", id)
		}
	}
}

// A disk that holds a replica's data must not go with its VM, whoever made that VM.
func TestAVMThatWouldTakeItsDataWithItIsNotDeleted(t *testing.T) {
	t.Parallel()
	read := exchange{"GET " + zoneA + "/instances/m1", 200, `{"kind":"compute#instance","name":"m1","id":"42",
		"disks":[{"boot":true,"autoDelete":true},
		{"autoDelete":true,"source":"https://x/zones/us-central1-a/disks/d1"}]}`}
	p := replica.Place{Zone: "us-central1-a", Name: "m1"}
	err := conversation(t, []exchange{read}).DeleteVM(t.Context(), p, "42")
	check(t, err, "its disk d1 would be deleted with it", DiskWouldGo)
	err = conversation(t, []exchange{read}).DeleteVM(t.Context(), p, "41")
	var changed *Changed
	if !errors.As(err, &changed) || changed.Found != "42" {
		t.Errorf("another VM of the name: %v", err)
	}
	read.body = strings.Replace(read.body, `{"autoDelete":true`, `{"autoDelete":false`, 1)
	order := "DELETE " + zoneA + "/instances/42"
	if err := conversation(t, []exchange{read, {order, 200, over}}).DeleteVM(t.Context(), p, "42"); err != nil {
		t.Error(err)
	}
}

func aVM(status, disk, labels string) string {
	return `{"kind":"compute#instance","name":"m1","id":"42","status":"` + status + `","labels":{` + labels +
		`},"disks":[{"boot":true},{"source":"https://x/projects/demo/zones/us-central1-a/disks/` + disk + `"}]}`
}

func TestInsertVM(t *testing.T) {
	t.Parallel()
	const (
		order = "POST " + zoneA + "/instances"
		read  = "GET " + zoneA + "/instances/m1"
		own   = `"quorate-cluster":"prod","quorate-replaces":"41"`
	)
	taken := exchange{order, 409, apiError(409, "alreadyExists", "The resource '…/m1' already exists")}
	used := exchange{order, 400, apiError(400, "resourceInUseByAnotherResource", "by m0")}
	for name, tc := range map[string]struct {
		says   []exchange
		want   string
		reason Reason
	}{
		"made":        {[]exchange{{order, 200, going}, {polls, 200, over}}, "", ""},
		"made before": {[]exchange{taken, {read, 200, aVM("RUNNING", "d1", own)}}, "", ""},
		"just being made": {[]exchange{taken, {read, 200, aVM("STAGING", "d1", own)},
			{read, 200, aVM("RUNNING", "d1", own)}}, "", ""},
		"the one that it replaces": {[]exchange{taken, {read, 200, aVM("RUNNING", "d1", `"quorate-cluster":"prod"`)}},
			`its label quorate-replaces is "", not "41"`, ""},
		"with another disk": {[]exchange{taken, {read, 200, aVM("RUNNING", "d0", own)}},
			"it does not have the disk d1", ""},
		"no machine": {[]exchange{{order, 200, failed("ZONE_RESOURCE_POOL_EXHAUSTED", "The zone is full")}},
			"take another zone", NoCapacity},
		"no image": {[]exchange{{order, 404, apiError(404, "notFound",
			"The resource 'projects/demo/global/images/i1' was not found")}}, "i1' was not found", ImageUnusable},
		"a disk that another has": {[]exchange{used, {read, 404, apiError(404, "notFound",
			"The resource 'projects/demo/zones/us-central1-a/instances/m1' was not found")}}, "by m0", InUse},
		"made before, by its disk": {[]exchange{used, {read, 200, aVM("RUNNING", "d1", own)}}, "", ""},
		"another's, by its disk": {[]exchange{used, {read, 200, aVM("RUNNING", "d0", own)}},
			"it does not have the disk d1", ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			err := conversation(t, tc.says).InsertVM(t.Context(), "us-central1-a", VMSpec{Name: "m1", DataDisk: "d1",
				Labels: map[string]string{"quorate-replaces": "41"}})
			check(t, err, tc.want, tc.reason)
		})
	}
}

// Google fills in what a request lacks, and by no means with what is wanted here.
func TestWhatAVMIsMadeOf(t *testing.T) {
	t.Parallel()
	body := ""
	c := fakeAPI(t, time.Second, func(w http.ResponseWriter, r *http.Request, _ int) {
		data, _ := io.ReadAll(r.Body)
		body = string(data)
		send(w, 200, over)
	})
	err := c.InsertVM(t.Context(), "us-central1-a", VMSpec{Name: "m1", MachineType: "e2-standard-4",
		Image: "projects/i/global/images/i1", Network: "projects/n/global/networks/n1",
		Subnetwork:     "projects/n/regions/us-central1/subnetworks/s1",
		ServiceAccount: "masters@demo.iam.gserviceaccount.com",
		BootDisk:       DiskSpec{Type: "pd-balanced", SizeGB: 20, Labels: map[string]string{"team": "a"}},
		DataDisk:       "d1", DeviceName: "quorate-data", Tags: []string{"masters"},
		Labels:   map[string]string{"quorate-replaces": "41"},
		Metadata: map[string]string{"quorate-cluster": "name: prod\n", "a": ""}})
	const want = `{"canIpForward":true,"disks":[{"autoDelete":true,"boot":true,"initializeParams":{"diskSizeGb":"20",` +
		`"diskType":"projects/demo/zones/us-central1-a/diskTypes/pd-balanced","labels":{"quorate-cluster":"prod",` +
		`"team":"a"},"sourceImage":"projects/i/global/images/i1"}},{"autoDelete":false,"deviceName":"quorate-data",` +
		`"mode":"READ_WRITE","source":"projects/demo/zones/us-central1-a/disks/d1"}],"labels":{"quorate-cluster":` +
		`"prod","quorate-replaces":"41"},` +
		`"machineType":"projects/demo/zones/us-central1-a/machineTypes/e2-standard-4",` +
		`"metadata":{"items":[{"key":"a","value":""},{"key":"quorate-cluster","value":"name: prod\n"}]},"name":"m1",` +
		`"networkInterfaces":[{"network":"projects/n/global/networks/n1","subnetwork":` +
		`"projects/n/regions/us-central1/subnetworks/s1"}],"scheduling":{"automaticRestart":true,` +
		`"hostErrorTimeoutSeconds":90,"onHostMaintenance":"MIGRATE"},"serviceAccounts":[{"email":` +
		`"masters@demo.iam.gserviceaccount.com","scopes":["https://www.googleapis.com/auth/cloud-platform"]}],` +
		`"shieldedInstanceConfig":{"enableIntegrityMonitoring":true,"enableSecureBoot":false,"enableVtpm":true},` +
		`"tags":{"items":["masters"]}}`
	if got := strings.TrimSpace(body); err != nil || got != want {
		t.Errorf("%v\ngot  %s\nwant %s", err, got, want)
	}
	other := map[string]string{ClusterLabel: "prod-2"}
	if err := c.InsertVM(t.Context(), "us-central1-a", VMSpec{Name: "m1", Labels: other}); err == nil {
		t.Error("made with another cluster's label")
	}
	if err := c.InsertDisk(t.Context(), "us-central1-a", DiskSpec{Name: "m1", Labels: other}); err == nil {
		t.Error("a disk was made with another cluster's label")
	}
}

func TestResolveImage(t *testing.T) {
	t.Parallel()
	c := fakeCompute(t, time.Second, func(w http.ResponseWriter, r *http.Request, _ int) {
		image := func(name, more string) string { return `{"kind":"compute#image","name":"` + name + `"` + more + `}` }
		switch strings.TrimPrefix(r.URL.Path, "/compute/v1/projects/i/global/images/") {
		case "i1":
			send(w, 200, image("i1", `,"status":"READY"`))
		case "family/f":
			send(w, 200, image("i2", `,"status":"READY","deprecated":{"state":"ACTIVE"}`))
		case "old":
			send(w, 200, image("old",
				`,"deprecated":{"state":"OBSOLETE","replacement":"https://x/projects/i/global/images/i2"}`))
		case "young":
			send(w, 200, image("young", `,"status":"PENDING"`))
		case "none", "family/none":
			send(w, 404, apiError(404, "notFound",
				"The resource '"+strings.TrimPrefix(r.URL.Path, "/compute/v1/")+"' was not found"))
		case "other":
			send(w, 200, image("i1", ""))
		default:
			send(w, 403, apiError(403, "forbidden", "Required 'compute.images.get' permission for 'projects/i'"))
		}
	})
	for image, tc := range map[string]struct {
		want, fails string
		reason      Reason
	}{
		"i1":          {"projects/i/global/images/i1", "", ""},
		"family/f":    {"projects/i/global/images/i2", "", ""},
		"old":         {"", "is obsolete; it is replaced by projects/i/global/images/i2", ImageUnusable},
		"young":       {"", "is not ready: it is PENDING", ImageUnusable},
		"none":        {"", "there is no image projects/i/global/images/none", ImageUnusable},
		"family/none": {"", "there is no image of the family", ImageUnusable},
		"other":       {"", `found an image "i1"`, ""},
		"secret":      {"", "lacks the permission compute.images.get", PermissionMissing},
		"a/b":         {"", "allowed: projects/PROJECT/global/images/NAME", ""},
	} {
		got, err := c.ResolveImage(t.Context(), "projects/i/global/images/"+image)
		check(t, err, tc.fails, tc.reason)
		if got != tc.want {
			t.Errorf("%s: got %q", image, got)
		}
	}
}
