package gce

import (
	"context"
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
func fakeCompute(t *testing.T, wait time.Duration, answer func(w http.ResponseWriter, r *http.Request,
	n int)) *Operator {
	t.Helper()
	return fakeAPI(t, wait, func(w http.ResponseWriter, r *http.Request, n int) {
		if r.Method != http.MethodGet {
			t.Errorf("a client that only reads sent %s", r.Method)
		}
		answer(w, r, n)
	})
}

// fakeAPI answers each path with what the test says, and counts.
func fakeAPI(t *testing.T, wait time.Duration, answer func(w http.ResponseWriter, r *http.Request, n int)) *Operator {
	t.Helper()
	var n atomic.Int64
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		answer(w, r, int(n.Add(1)))
	}))
	t.Cleanup(server.Close)
	c, err := NewOperator(ComputeConfig{Project: "demo", Cluster: "prod", Endpoint: server.URL + "/compute/v1/",
		Wait: wait})
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
	data, _ := json.Marshal(map[string]any{"error": map[string]any{"code": status, "message": message,
		"errors": []any{map[string]any{"reason": reason, "message": message}}}})
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
		if r.URL.Path != "/compute/v1/projects/demo/aggregated/instances" ||
			r.FormValue("filter") != "labels.quorate-cluster=prod" {
			t.Errorf("asked %s", r.URL)
		}
		if r.FormValue("pageToken") == "" {
			send(w, 200,
				instanceList(`"zones/us-central1-b":`+noResults+`,"zones/us-central1-a":{"instances":[`+instance("m1",
					"prod", 1)+`,`+instance("stranger", "prod-2", 7)+`]}`, `,"nextPageToken":"two"`))
			return
		}
		send(w, 200, instanceList(`"zones/us-central1-c":{"instances":[`+instance("m2", "prod", 2)+`]}`, ""))
	})
	got, at, err := c.VMs(t.Context())
	if time.Since(at).Abs() > 5*time.Second {
		t.Errorf("answered at %s", at)
	}
	const source = "https://www.googleapis.com/compute/v1/projects/demo/zones/us-central1-a/disks/"
	vm := func(zone, name, id string) replica.VM {
		return replica.VM{
			Place: replica.Place{Zone: zone, Name: name}, InstanceID: id, Status: "RUNNING",
			Addresses: []netip.Addr{netip.MustParseAddr("10.240.0." + id)},
			Disks: []replica.AttachedDisk{
				{Name: name, DeviceName: "boot", Source: source + name},
				{Name: name + "-pd", DeviceName: "master-pd", Source: source + name + "-pd"},
			},
		}
	}
	want := []replica.VM{vm("us-central1-a", "m1", "1"), vm("us-central1-c", "m2", "2")}
	if diff := cmp.Diff(want, got, cmp.Comparer(func(a, b netip.Addr) bool { return a == b })); diff != "" ||
		err != nil {
		t.Errorf("%v\n%s", err, diff)
	}
}

func TestNoInstanceIsAnEmptyList(t *testing.T) {
	t.Parallel()
	c := fakeCompute(t, time.Second, func(w http.ResponseWriter, _ *http.Request, _ int) {
		send(w, 200, instanceList(`"zones/us-central1-a":`+noResults, `,"warning":{"code":"NO_RESULTS_ON_PAGE"}`))
	})
	if got, _, err := c.VMs(t.Context()); len(got) != 0 || err != nil {
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
		{"a zone that is unreachable", `found only part of the list: zones/us-central1-b: UNREACHABLE "zone down"`,
			always(200,
				instanceList(m1+`,"zones/us-central1-b":{"warning":{"code":"UNREACHABLE","message":"zone down"}}`,
					""))},
		{"a warning on the whole", `all zones: PARTIAL_SUCCESS`,
			always(200, instanceList(m1, `,"warning":{"code":"PARTIAL_SUCCESS"}`))},
		{"unreachables", "unreachable: zones/us-central1-b",
			always(200, instanceList(m1, `,"unreachables":["zones/us-central1-b"]`))},
		{"a second page that fails", `found status 503: "backend error"`, func(w http.ResponseWriter, r *http.Request,
			_ int) {
			if r.FormValue("pageToken") == "" {
				send(w, 200, instanceList(m1, `,"nextPageToken":"two"`))
				return
			}
			send(w, 503, apiError(503, "backendError", "backend error"))
		}},
		{"pages in a circle", "lead in a circle", always(200, instanceList(m1, `,"nextPageToken":"two"`))},
		{"a refusal", `found status 403: "Required 'compute.instances.list' permission"`,
			always(403, apiError(403, "forbidden", "Required 'compute.instances.list' permission"))},
		{"a project that is not there", "found status 404",
			always(404, apiError(404, "notFound", "The resource 'projects/demo' was not found"))},
		{"a web page", "found an answer that is not the Compute API's", always(200, "<html>sign in</html>")},
		{"JSON of something else", `found an answer of kind ""; allowed: compute#instanceAggregatedList`,
			always(200, "{}")},
		{"a redirect", "found status 302", func(w http.ResponseWriter, r *http.Request, _ int) {
			http.Redirect(w, r, "http://203.0.113.1/", http.StatusFound)
		}},
		{"silence", "no answer within 50ms", func(_ http.ResponseWriter, r *http.Request,
			_ int) {
			<-r.Context().Done()
		}},
		{"a connection cut within the answer", "gave up after 300ms", func(w http.ResponseWriter, _ *http.Request,
			_ int) {
			w.Header().Set("Content-Length", "1000")
			fmt.Fprint(w, instanceList(m1, ""))
			panic(http.ErrAbortHandler)
		}},
		{"an instance without id", `found an instance "m1" in us-central1-a without name, id or status`,
			always(200, instanceList(strings.Replace(m1, `"id":"1",`, "", 1), ""))},
		{"an address that is none", `found address "nic0"`,
			always(200, instanceList(strings.Replace(m1, "10.240.0.1", "nic0", 1), ""))},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			c := fakeCompute(t, 300*time.Millisecond, tc.answer)
			got, at, err := c.VMs(t.Context())
			if err == nil || got != nil || !at.IsZero() {
				t.Fatalf("got %v at %s, %v", got, at, err)
			}
			if !strings.Contains(err.Error(), tc.want) || !strings.Contains(err.Error(),
				"for the instances of cluster prod: ") || strings.Contains(err.Error(), "\n") {
				t.Errorf("got %v, want %q", err, tc.want)
			}
		})
	}
}

// A cluster is in one region: a zone elsewhere that is away must not matter, and one of its own must.
func TestAZoneOfAnotherRegionDoesNotMatter(t *testing.T) {
	t.Parallel()
	const away = `{"warning":{"code":"UNREACHABLE","message":"zone down"}}`
	m1 := `"zones/us-central1-a":{"instances":[` + instance("m1", "prod", 1) + `]}`
	for _, tc := range []struct {
		name, items, rest string
		region            string
		want              string // of the error; empty: a list
	}{
		{"elsewhere", `,"zones/europe-west1-d":` + away, "", "us-central1", ""},
		{"a region elsewhere", `,"regions/europe-west1":` + away, "", "us-central1", ""},
		{"elsewhere, named thrice", `,"zones/europe-west1-d":` + away,
			`,"unreachables":["projects/p/zones/europe-west1-d"],"warning":{"code":"UNREACHABLE"}`, "us-central1", ""},
		{"among those that are unreachable alone", "",
			`,"unreachables":["projects/p/zones/europe-west1-d"],"warning":{"code":"PARTIAL_SUCCESS"}`,
			"us-central1", ""},
		{"another region whose name begins alike", `,"zones/us-central12-a":` + away, "", "us-central1", ""},
		{"of the region", `,"zones/us-central1-b":` + away, "", "us-central1", "zones/us-central1-b: UNREACHABLE"},
		{"the region", `,"regions/us-central1":` + away, "", "us-central1", "regions/us-central1: UNREACHABLE"},
		{"of the region among the unreachable", "",
			`,"unreachables":["https://x/projects/p/zones/us-central1-c","zones/europe-west1-d"]`, "us-central1",
			"unreachable: https://x/projects/p/zones/us-central1-c"},
		{"a scope that is of no region", `,"global":` + away, "", "us-central1", "global: UNREACHABLE"},
		{"nobody says where", "", `,"warning":{"code":"PARTIAL_SUCCESS"}`, "us-central1", "all zones: PARTIAL_SUCCESS"},
		{"a warning of something else", `,"zones/europe-west1-d":` + away, `,"warning":{"code":"DEPRECATED"}`,
			"us-central1", "all zones: DEPRECATED"},
		{"no region is known", `,"zones/europe-west1-d":` + away, "", "", "zones/europe-west1-d: UNREACHABLE"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			c := fakeCompute(t, 2*time.Second, func(w http.ResponseWriter, r *http.Request, _ int) {
				if r.FormValue("returnPartialSuccess") != "true" {
					send(w, 503, apiError(503, "backendError", "a zone is away"))
					return
				}
				send(w, 200, instanceList(m1+tc.items, tc.rest))
			})
			c.region = tc.region
			got, _, err := c.VMs(t.Context())
			if tc.want == "" && (err != nil || len(got) != 1) {
				t.Errorf("got %v, %v", got, err)
			}
			if tc.want != "" && (err == nil || !strings.Contains(err.Error(), tc.want)) {
				t.Errorf("got %v, %v, want %q", got, err, tc.want)
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
			send(w, 503, apiError(503, "backendError", "busy"))
		case 3:
			send(w, 200, instanceList(m1, `,"unreachables":["zones/us-central1-b"]`))
		default:
			send(w, 200, instanceList(m1, ""))
		}
	})
	if got, _, err := c.VMs(t.Context()); len(got) != 1 || err != nil {
		t.Errorf("got %v, %v", got, err)
	}
}

// Who is over the rate limit stays so until the minute is over, by the server's clock: nothing is asked before.
func TestARateLimitIsWaitedOutToTheMinute(t *testing.T) {
	t.Parallel()
	var asked atomic.Int64
	second := atomic.Pointer[string]{}
	c := fakeCompute(t, time.Minute, func(w http.ResponseWriter, _ *http.Request, _ int) {
		asked.Add(1)
		if s := second.Swap(nil); s != nil {
			w.Header().Set("Date", "Mon, 23 Nov 2026 11:00:"+*s+" GMT")
			send(w, 403, apiError(403, "rateLimitExceeded", "Quota exceeded"))
			return
		}
		send(w, 200, instanceList(`"zones/us-central1-a":`+noResults, ""))
	})
	limited := func(at string) { second.Store(&at); asked.Store(0) }

	limited("58")
	begin := time.Now()
	_, _, err := c.VMs(t.Context())
	if took := time.Since(begin); err != nil || asked.Load() != 2 || took < 2*time.Second || took > 10*time.Second {
		t.Errorf("at second 58: %v after %s and %d questions", err, took, asked.Load())
	}

	limited("10")
	short, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	begin = time.Now()
	for range 3 { // and no other question either
		if _, _, err = c.VMs(short); err == nil || !strings.Contains(err.Error(), "Quota exceeded") {
			t.Errorf("at second 10: %v", err)
		}
	}
	if _, _, err := c.Disk(short, "77"); err == nil {
		t.Error("a disk was asked for")
	}
	if took := time.Since(begin); asked.Load() != 1 || took > 5*time.Second {
		t.Errorf("at second 10: %d questions within %s", asked.Load(), took)
	}
}

func TestDisks(t *testing.T) {
	t.Parallel()
	body := `{"kind":"compute#diskAggregatedList","items":{"regions/us-central1":` + noResults + `,"zones/us-central1-a":{"disks":[
		{"name":"m1-pd","id":"77","accessMode":"READ_WRITE_MANY","labels":{"quorate-cluster":"prod"},
		 "users":["https://www.googleapis.com/compute/v1/projects/demo/zones/us-central1-a/instances/m1"]},
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
	got, err := c.Disks(t.Context())
	if want := "[{77 [us-central1-a.m1] READ_WRITE_MANY}]"; fmt.Sprint(got) != want || err != nil {
		t.Errorf("got %v, %v, want %s", got, err, want)
	}
	if got, err := c.Disks(t.Context()); err == nil || got != nil {
		t.Errorf("with a region that is away: got %v, %v", got, err)
	}
	c.region = "europe-west1"
	if got, err := c.Disks(t.Context()); err != nil || len(got) != 1 {
		t.Errorf("with another region that is away: got %v, %v", got, err)
	}
}

func TestDiskByItsID(t *testing.T) {
	t.Parallel()
	c := fakeCompute(t, 300*time.Millisecond, func(w http.ResponseWriter, r *http.Request, _ int) {
		items := noResults
		switch filter := r.URL.Query().Get("filter"); filter {
		case "id=78":
			items = `{"disks":[{"name":"other","id":"78","users":["https://x/projects/demo/zones/us-central1-b/instances/m2"]}]}`
		case "id=80": // the filter is passed over
			items = `{"disks":[{"name":"other","id":"78"}]}`
		case "id=81":
			items = strings.Replace(noResults, "NO_RESULTS_ON_PAGE", "UNREACHABLE", 1)
			if r.FormValue("returnPartialSuccess") != "true" {
				t.Error("asked for the disks of all zones on Earth")
			}
		case "id=82":
			items = `{"disks":[{"name":"other","id":"82","users":["m2"]}]}`
		}
		send(w, 200, `{"kind":"compute#diskAggregatedList","items":{"zones/us-central1-a":`+items+`}}`)
	})
	for _, tc := range []struct {
		id           string
		found, fails bool
	}{
		{"78", true, false}, {"79", false, false}, {"80", false, false}, {"81", false, true}, {"82", false, true},
		{"", false, true}, {"a", false, true},
	} {
		d, found, err := c.Disk(t.Context(), tc.id)
		whole := d.ID == tc.id && fmt.Sprint(d.Users) == "[us-central1-b.m2]"
		if found != tc.found || (err != nil) != tc.fails || found != whole {
			t.Errorf("id %q: %+v, %t, %v", tc.id, d, found, err)
		}
	}
}

// A regional disk is no zone's: its URL says so, and it is another resource.
func TestAnAttachedDiskIsReadWhereItsURLSays(t *testing.T) {
	t.Parallel()
	c := fakeCompute(t, 300*time.Millisecond, func(w http.ResponseWriter, r *http.Request, _ int) {
		switch path := strings.TrimPrefix(r.URL.Path, "/compute/v1/projects/demo/"); path {
		case "zones/us-central1-a/disks/m1-pd":
			send(w, 200, `{"kind":"compute#disk","name":"m1-pd","id":"77"}`)
		case "regions/us-central1/disks/m1-pd":
			send(w, 200,
				`{"kind":"compute#disk","name":"m1-pd","id":"78","users":["https://x/zones/us-central1-a/instances/m1"]}`)
		case "zones/us-central1-a/disks/gone":
			send(w, 404, apiError(404, "notFound", "The resource 'projects/demo/zones/us-central1-a/disks/gone' was "+
				"not found"))
		default:
			send(w, 200, `{}`)
		}
	})
	const base = "https://www.googleapis.com/compute/v1/projects/demo/"
	for _, tc := range []struct{ source, name, want string }{
		{base + "zones/us-central1-a/disks/m1-pd", "m1-pd", "{77 [] }"},
		{base + "regions/us-central1/disks/m1-pd", "m1-pd", "{78 [us-central1-a.m1] }"},
		{base + "zones/us-central1-a/disks/gone", "gone", ""},
		{base + "zones/us-central1-a/disks/strange", "strange", ""},
		{base + "global/us-central1/disks/m1-pd", "m1-pd", ""},
		{base + "zones/us-central1-a/images/m1-pd", "m1-pd", ""},
		{"", "", ""},
	} {
		got, err := c.Attached(t.Context(), replica.AttachedDisk{Name: tc.name, Source: tc.source})
		if (err == nil) != (tc.want != "") || err == nil && fmt.Sprint(got) != tc.want {
			t.Errorf("%q: got %+v, %v, want %s", tc.source, got, err, tc.want)
		}
	}
}

// The API's clock is that of the oldest page. A clock that it does not show is not made up.
func TestWhenAListWasAnswered(t *testing.T) {
	t.Parallel()
	early, late := "Sun, 22 Nov 2026 12:00:00 GMT", "Sun, 22 Nov 2026 12:00:07 GMT"
	for name, tc := range map[string]struct {
		dates [2]string
		want  string
	}{
		"the first page is the older":     {[2]string{early, late}, early},
		"the second page is the older":    {[2]string{late, early}, early},
		"the first page does not say":     {[2]string{"", late}, ""},
		"the second page does not say":    {[2]string{early, ""}, ""},
		"a date that is none":             {[2]string{early, "yesterday"}, ""},
		"a time without a zone of HTTP's": {[2]string{early, "2026-11-22T12:00:07Z"}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := fakeCompute(t, time.Second, func(w http.ResponseWriter, r *http.Request, _ int) {
				page, next := 0, `,"nextPageToken":"two"`
				if r.FormValue("pageToken") != "" {
					page, next = 1, ""
				}
				w.Header()["Date"] = nil
				if tc.dates[page] != "" {
					w.Header().Set("Date", tc.dates[page])
				}
				send(w, 200, instanceList(`"zones/us-central1-a":`+noResults, next))
			})
			_, at, err := c.VMs(t.Context())
			got := ""
			if !at.IsZero() {
				got = at.UTC().Format(http.TimeFormat)
			}
			if err != nil || got != tc.want {
				t.Errorf("got %q, %v, want %q", got, err, tc.want)
			}
		})
	}
}

func TestWhenAVMWasLastStopped(t *testing.T) {
	t.Parallel()
	for stamp, want := range map[string]string{
		`"lastStopTimestamp":"2026-11-22T05:00:00.123-07:00",`: "2026-11-22T12:00:00.123Z",
		`"lastStopTimestamp":"last night",`:                    "0001-01-01T00:00:00Z",
		`"lastStopTimestamp":"",`:                              "0001-01-01T00:00:00Z",
		``:                                                     "0001-01-01T00:00:00Z",
	} {
		vm := strings.Replace(instance("m1", "prod", 1), `"status"`, stamp+`"status"`, 1)
		c := fakeCompute(t, time.Second, func(w http.ResponseWriter, r *http.Request, _ int) {
			if strings.HasSuffix(r.URL.Path, "/aggregated/instances") {
				send(w, 200, instanceList(`"zones/us-central1-a":{"instances":[`+vm+`]}`, ""))
				return
			}
			send(w, 200, vm)
		})
		list, _, err := c.VMs(t.Context())
		one, found, errOne := c.VM(t.Context(), replica.Place{Zone: "us-central1-a", Name: "m1"})
		if err != nil || errOne != nil || !found || len(list) != 1 {
			t.Fatalf("%s: listed %v, %v; by its name %v, %v", stamp, list, err, one, errOne)
		}
		if at := list[0].LastStop; at.UTC().Format(time.RFC3339Nano) != want || !one.LastStop.Equal(at) {
			t.Errorf("%s: listed %v, by its name %v, want %s", stamp, at, one.LastStop, want)
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
			send(w, 404, apiError(404, "notFound", "The resource 'projects/demo/zones/us-central1-a/instances/gone' "+
				"was not found"))
		case "nowhere/instances/gone":
			send(w, 404, apiError(404, "notFound", "The resource 'projects/demo/zones/nowhere' was not found"))
		case "us-central1-a/instances/secret":
			send(w, 403, apiError(403, "forbidden", "Required 'compute.instances.get' permission for "+
				"'projects/demo/zones/us-central1-a/instances/secret'"))
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
		vm, found, err := c.VM(t.Context(), replica.Place{Zone: tc.zone, Name: tc.name})
		if vm.InstanceID != tc.id || found != tc.found || (err != nil) != tc.fails {
			t.Errorf("%s in %s: got %+v, %v, %v", tc.name, tc.zone, vm, found, err)
		}
	}
}

func TestComputeNeedsAProjectAndACluster(t *testing.T) {
	t.Parallel()
	for _, cfg := range []ComputeConfig{{Project: "demo"}, {Cluster: "prod"}} {
		if _, err := NewCompute(cfg); err == nil {
			t.Errorf("a client was made with %+v alone", cfg)
		}
	}
}

// Opening must not need the cloud: an agent restarts while it is away.
func TestComputeLooksForCredentialsAtTheFirstQuestion(t *testing.T) {
	t.Setenv("GOOGLE_APPLICATION_CREDENTIALS", filepath.Join(t.TempDir(), "absent.json"))
	c, err := NewCompute(ComputeConfig{Project: "demo", Cluster: "prod", Client: UserClient(), Wait: time.Minute})
	if err != nil {
		t.Fatal(err)
	}
	if got, _, err := c.VMs(t.Context()); got != nil || err == nil || !strings.Contains(err.Error(),
		"ask the Compute API for the instances of cluster prod: ") || !strings.Contains(err.Error(), "absent.json") {
		t.Errorf("got %v, %v", got, err)
	}
}
