package gce

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/quorate/quorate/internal/replica"
)

// fakeCompute is a fakeAPI that is only read.
func fakeCompute(t *testing.T, wait time.Duration, answer func(w http.ResponseWriter, r *http.Request, n int)) *Compute {
	t.Helper()
	return fakeAPI(t, wait, func(w http.ResponseWriter, r *http.Request, n int) {
		if r.Method != http.MethodGet {
			t.Errorf("a client that only reads sent %s", r.Method)
		}
		answer(w, r, n)
	})
}

// fakeAPI answers each path with what the test says, and counts.
func fakeAPI(t *testing.T, wait time.Duration, answer func(w http.ResponseWriter, r *http.Request, n int)) *Compute {
	t.Helper()
	var n atomic.Int64
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if auth := r.Header.Get("Authorization"); auth != "" {
			t.Error("credentials were sent to an endpoint of another's")
		}
		answer(w, r, int(n.Add(1)))
	}))
	t.Cleanup(server.Close)
	c, err := NewCompute(ComputeConfig{Project: "demo", Endpoint: server.URL + "/compute/v1/", Wait: wait})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func send(w http.ResponseWriter, status int, body string) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	fmt.Fprint(w, body)
}

func apiError(status int, reason, message string) string {
	data, _ := json.Marshal(map[string]any{"error": map[string]any{"code": status, "message": message, "errors": []any{map[string]any{"reason": reason, "message": message}}}})
	return string(data)
}

func instance(name, cluster string, id int) string {
	return fmt.Sprintf(`{"name":%q,"id":"%d","status":"RUNNING","labels":{"quorate-cluster":%q},
		"networkInterfaces":[{"networkIP":"10.240.0.%d","ipv6Address":"2600:1900::5","accessConfigs":[{"natIP":"198.51.100.7"}]}],
		"disks":[{"deviceName":"boot","source":"https://www.googleapis.com/compute/v1/projects/demo/zones/us-central1-a/disks/%s"},
		         {"deviceName":"master-pd","source":"https://www.googleapis.com/compute/v1/projects/demo/zones/us-central1-a/disks/%s-pd"}]}`, name, id, cluster, id, name, name)
}

const noResults = `{"warning":{"code":"NO_RESULTS_ON_PAGE","message":"There are no results for scope"}}`

func instanceList(items, rest string) string {
	return `{"kind":"compute#instanceAggregatedList","items":{` + items + `}` + rest + `}`
}

func TestInstancesOfAllPagesAndZones(t *testing.T) {
	t.Parallel()
	c := fakeCompute(t, time.Second, func(w http.ResponseWriter, r *http.Request, _ int) {
		if r.URL.Path != "/compute/v1/projects/demo/aggregated/instances" || r.FormValue("filter") != "labels.quorate-cluster=prod" {
			t.Errorf("asked %s", r.URL)
		}
		if r.FormValue("pageToken") == "" {
			send(w, 200, instanceList(`"zones/us-central1-b":`+noResults+`,"zones/us-central1-a":{"instances":[`+instance("m1", "prod", 1)+`,`+instance("stranger", "prod-2", 7)+`]}`, `,"nextPageToken":"two"`))
			return
		}
		send(w, 200, instanceList(`"zones/us-central1-c":{"instances":[`+instance("m2", "prod", 2)+`]}`, ""))
	})
	got, err := c.Instances(t.Context(), "prod")
	vm := func(zone, name, id string) Instance {
		return Instance{
			Place: replica.Place{Zone: zone, Name: name}, InstanceID: id, Status: "RUNNING",
			Addresses: []netip.Addr{netip.MustParseAddr("10.240.0." + id)},
			Disks:     []AttachedDisk{{Name: name, DeviceName: "boot"}, {Name: name + "-pd", DeviceName: "master-pd"}},
		}
	}
	want := []Instance{vm("us-central1-a", "m1", "1"), vm("us-central1-c", "m2", "2")}
	if diff := cmp.Diff(want, got, cmp.Comparer(func(a, b netip.Addr) bool { return a == b })); diff != "" || err != nil {
		t.Errorf("%v\n%s", err, diff)
	}
}

func TestNoInstanceIsAnEmptyList(t *testing.T) {
	t.Parallel()
	c := fakeCompute(t, time.Second, func(w http.ResponseWriter, _ *http.Request, _ int) {
		send(w, 200, instanceList(`"zones/us-central1-a":`+noResults, `,"warning":{"code":"NO_RESULTS_ON_PAGE"}`))
	})
	if got, err := c.Instances(t.Context(), "prod"); len(got) != 0 || err != nil {
		t.Errorf("got %v, %v", got, err)
	}
}

// Whoever takes a shorter list for the whole removes living members: each of these must be an error.
func TestInstancesRefusesWhatIsNotWhole(t *testing.T) {
	t.Parallel()
	always := func(status int, body string) func(http.ResponseWriter, *http.Request, int) {
		return func(w http.ResponseWriter, _ *http.Request, _ int) { send(w, status, body) }
	}
	m1 := `"zones/us-central1-a":{"instances":[` + instance("m1", "prod", 1) + `]}`
	for _, tc := range []struct {
		name, want string
		answer     func(http.ResponseWriter, *http.Request, int)
	}{
		{"a zone that is unreachable", `found only part of the list: zones/us-central1-b: UNREACHABLE "zone down"`, always(200, instanceList(m1+`,"zones/us-central1-b":{"warning":{"code":"UNREACHABLE","message":"zone down"}}`, ""))},
		{"a warning on the whole", `all zones: PARTIAL_SUCCESS`, always(200, instanceList(m1, `,"warning":{"code":"PARTIAL_SUCCESS"}`))},
		{"unreachables", "unreachable: zones/us-central1-b", always(200, instanceList(m1, `,"unreachables":["zones/us-central1-b"]`))},
		{"a second page that fails", `found status 503: "backend error"`, func(w http.ResponseWriter, r *http.Request, _ int) {
			if r.FormValue("pageToken") == "" {
				send(w, 200, instanceList(m1, `,"nextPageToken":"two"`))
				return
			}
			send(w, 503, apiError(503, "backendError", "backend error"))
		}},
		{"pages in a circle", "lead in a circle", always(200, instanceList(m1, `,"nextPageToken":"two"`))},
		{"a refusal", `found status 403: "Required 'compute.instances.list' permission"`, always(403, apiError(403, "forbidden", "Required 'compute.instances.list' permission"))},
		{"a project that is not there", "found status 404", always(404, apiError(404, "notFound", "The resource 'projects/demo' was not found"))},
		{"a web page", "found an answer that is not the Compute API's", always(200, "<html>sign in</html>")},
		{"JSON of something else", `found an answer of kind ""; allowed: compute#instanceAggregatedList`, always(200, "{}")},
		{"a redirect", "found status 302", func(w http.ResponseWriter, r *http.Request, _ int) {
			http.Redirect(w, r, "http://203.0.113.1/", http.StatusFound)
		}},
		{"silence", "no answer within 50ms", func(_ http.ResponseWriter, r *http.Request, _ int) { <-r.Context().Done() }},
		{"a connection cut within the answer", "gave up after 300ms", func(w http.ResponseWriter, _ *http.Request, _ int) {
			w.Header().Set("Content-Length", "1000")
			fmt.Fprint(w, instanceList(m1, ""))
			panic(http.ErrAbortHandler)
		}},
		{"an instance without id", `found an instance "m1" in us-central1-a without name, id or status`, always(200, instanceList(strings.Replace(m1, `"id":"1",`, "", 1), ""))},
		{"an address that is none", `found address "nic0"`, always(200, instanceList(strings.Replace(m1, "10.240.0.1", "nic0", 1), ""))},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			c := fakeCompute(t, 300*time.Millisecond, tc.answer)
			got, err := c.Instances(t.Context(), "prod")
			if err == nil || got != nil {
				t.Fatalf("got %v, %v", got, err)
			}
			if !strings.Contains(err.Error(), tc.want) || !strings.Contains(err.Error(), "for the instances of cluster prod: ") || strings.Contains(err.Error(), "\n") {
				t.Errorf("got %v, want %q", err, tc.want)
			}
		})
	}
}

// A page that is asked for again is counted once.
func TestPassingFaultsAreRetried(t *testing.T) {
	t.Parallel()
	c := fakeCompute(t, time.Minute, func(w http.ResponseWriter, _ *http.Request, n int) {
		m1 := `"zones/us-central1-a":{"instances":[` + instance("m1", "prod", 1) + `]}`
		switch n {
		case 1:
			send(w, 503, "busy")
		case 2:
			send(w, 403, apiError(403, "rateLimitExceeded", "Quota exceeded"))
		case 3:
			send(w, 200, instanceList(m1, `,"unreachables":["zones/us-central1-b"]`))
		default:
			send(w, 200, instanceList(m1, ""))
		}
	})
	if got, err := c.Instances(t.Context(), "prod"); len(got) != 1 || err != nil {
		t.Errorf("got %v, %v", got, err)
	}
}

func TestDisks(t *testing.T) {
	t.Parallel()
	body := `{"kind":"compute#diskAggregatedList","items":{"regions/us-central1":` + noResults + `,"zones/us-central1-a":{"disks":[
		{"name":"m1-pd","id":"77","labels":{"quorate-cluster":"prod"},"users":["https://www.googleapis.com/compute/v1/projects/demo/zones/us-central1-a/instances/m1"]},
		{"name":"other","id":"78"}]}}}`
	c := fakeCompute(t, 300*time.Millisecond, func(w http.ResponseWriter, r *http.Request, n int) {
		if r.URL.Path != "/compute/v1/projects/demo/aggregated/disks" {
			t.Errorf("asked %s", r.URL)
		}
		if n > 1 {
			send(w, 200, strings.Replace(body, "NO_RESULTS_ON_PAGE", "UNREACHABLE", 1))
			return
		}
		send(w, 200, body)
	})
	got, err := c.Disks(t.Context(), "prod")
	if want := "[{us-central1-a m1-pd 77 [us-central1-a.m1]}]"; fmt.Sprint(got) != want || err != nil {
		t.Errorf("got %v, %v, want %s", got, err, want)
	}
	if got, err := c.Disks(t.Context(), "prod"); err == nil || got != nil {
		t.Errorf("with a region that is away: got %v, %v", got, err)
	}
}

func TestHasDisk(t *testing.T) {
	t.Parallel()
	c := fakeCompute(t, 300*time.Millisecond, func(w http.ResponseWriter, r *http.Request, _ int) {
		items := noResults
		switch filter := r.URL.Query().Get("filter"); filter {
		case "id=78":
			items = `{"disks":[{"name":"other","id":"78"}]}`
		case "id=80": // the filter is passed over
			items = `{"disks":[{"name":"other","id":"78"}]}`
		case "id=81":
			items = strings.Replace(noResults, "NO_RESULTS_ON_PAGE", "UNREACHABLE", 1)
		}
		send(w, 200, `{"kind":"compute#diskAggregatedList","items":{"zones/us-central1-a":`+items+`}}`)
	})
	for _, tc := range []struct {
		id           string
		found, fails bool
	}{{"78", true, false}, {"79", false, false}, {"80", false, false}, {"81", false, true}, {"", false, true}, {"a", false, true}} {
		if found, err := c.HasDisk(t.Context(), tc.id); found != tc.found || (err != nil) != tc.fails {
			t.Errorf("id %q: %t, %v", tc.id, found, err)
		}
	}
}

func TestDisk(t *testing.T) {
	t.Parallel()
	c := fakeCompute(t, 300*time.Millisecond, func(w http.ResponseWriter, r *http.Request, _ int) {
		switch path := strings.TrimPrefix(r.URL.Path, "/compute/v1/projects/demo/zones/"); path {
		case "us-central1-a/disks/m1-pd":
			send(w, 200, `{"kind":"compute#disk","name":"m1-pd","id":"77"}`)
		case "us-central1-a/disks/gone":
			send(w, 404, apiError(404, "notFound", "The resource 'projects/demo/zones/us-central1-a/disks/gone' was not found"))
		case "nowhere/disks/gone":
			send(w, 404, apiError(404, "notFound", "The resource 'projects/demo/zones/nowhere' was not found"))
		default:
			send(w, 200, `{}`)
		}
	})
	for _, tc := range []struct {
		zone, name, id string
		found, fails   bool
	}{
		{"us-central1-a", "m1-pd", "77", true, false},
		{"us-central1-a", "gone", "", false, false},
		{"nowhere", "gone", "", false, true},
		{"us-central1-a", "strange", "", false, true},
	} {
		id, found, err := c.Disk(t.Context(), tc.zone, tc.name)
		if id != tc.id || found != tc.found || (err != nil) != tc.fails {
			t.Errorf("%s in %s: got %q, %v, %v", tc.name, tc.zone, id, found, err)
		}
	}
}

func TestInstanceByItsName(t *testing.T) {
	t.Parallel()
	c := fakeCompute(t, 300*time.Millisecond, func(w http.ResponseWriter, r *http.Request, _ int) {
		switch path := strings.TrimPrefix(r.URL.Path, "/compute/v1/projects/demo/zones/"); path {
		case "us-central1-a/instances/m1":
			send(w, 200, instance("m1", "another-label", 5))
		case "us-central1-a/instances/gone":
			send(w, 404, apiError(404, "notFound", "The resource 'projects/demo/zones/us-central1-a/instances/gone' was not found"))
		case "nowhere/instances/gone":
			send(w, 404, apiError(404, "notFound", "The resource 'projects/demo/zones/nowhere' was not found"))
		case "us-central1-a/instances/secret":
			send(w, 403, apiError(403, "forbidden", "Required 'compute.instances.get' permission for 'projects/demo/zones/us-central1-a/instances/secret'"))
		default:
			send(w, 200, `{}`)
		}
	})
	for _, tc := range []struct {
		zone, name, id string
		found, fails   bool
	}{
		{"us-central1-a", "m1", "5", true, false},
		{"us-central1-a", "gone", "", false, false},
		{"nowhere", "gone", "", false, true},
		{"us-central1-a", "secret", "", false, true},
		{"us-central1-a", "strange", "", false, true},
	} {
		vm, found, err := c.Instance(t.Context(), replica.Place{Zone: tc.zone, Name: tc.name})
		if vm.InstanceID != tc.id || found != tc.found || (err != nil) != tc.fails {
			t.Errorf("%s in %s: got %+v, %v, %v", tc.name, tc.zone, vm, found, err)
		}
	}
}

func TestComputeNeedsAProject(t *testing.T) {
	t.Parallel()
	if _, err := NewCompute(ComputeConfig{}); err == nil {
		t.Error("a client without project was made")
	}
}

// Opening must not need the cloud: an agent restarts while it is away.
func TestComputeLooksForCredentialsAtTheFirstQuestion(t *testing.T) {
	t.Setenv("GOOGLE_APPLICATION_CREDENTIALS", filepath.Join(t.TempDir(), "absent.json"))
	c, err := NewCompute(ComputeConfig{Project: "demo", Wait: 300 * time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	if got, err := c.Instances(t.Context(), "prod"); got != nil || err == nil || !strings.Contains(err.Error(), "ask the Compute API for the instances of cluster prod: ") || !strings.Contains(err.Error(), "absent.json") {
		t.Errorf("got %v, %v", got, err)
	}
}
