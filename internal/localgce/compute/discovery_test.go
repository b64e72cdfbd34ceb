package compute_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"google.golang.org/api/compute/v1"
	"google.golang.org/api/googleapi"
	"google.golang.org/api/option"

	"github.com/quorate/quorate/internal/localgce/fault"
	"github.com/quorate/quorate/internal/localgce/instance"
	"github.com/quorate/quorate/internal/replica"
)

// discovery is Google's published document of compute/v1, as far as it is read here.
type discovery struct {
	ServicePath string
	Parameters  map[string]any // of every method
	Resources   map[string]struct{ Methods map[string]*method }
	Schemas     map[string]*schema
}

type method struct {
	HTTPMethod, Path  string
	Parameters        map[string]any
	Request, Response *schema
}

// schema is a type of JSON: of a name, an object with properties or any keys, a list, or a value.
type schema struct {
	Ref                  string `json:"$ref"`
	Type, Format         string
	Enum                 []string
	Properties           map[string]*schema
	AdditionalProperties *schema
	Items                *schema
}

func publishedAPI(t *testing.T) (d discovery) {
	t.Helper()
	folder, err := exec.Command("go", "list", "-m", "-f", "{{.Dir}}", "google.golang.org/api").Output()
	if err != nil {
		t.Fatalf("find the module with Google's document: %v", err)
	}
	text, err := os.ReadFile(filepath.Join(strings.TrimSpace(string(folder)), "compute", "v1", "compute-api.json"))
	if err == nil {
		err = json.Unmarshal(text, &d)
	}
	if err != nil || len(d.Schemas) < 100 || len(d.Resources) < 50 {
		t.Fatalf("%d types, %d kinds of resource, %v", len(d.Schemas), len(d.Resources), err)
	}
	return d
}

// method is the one that a request calls, by its name such as disks.insert.
func (d discovery) method(r *http.Request) (string, *method) {
	for kind, resource := range d.Resources {
		for name, m := range resource.Methods {
			parts := strings.Split("/"+d.ServicePath+m.Path, "/")
			if m.HTTPMethod == r.Method && slices.EqualFunc(parts, strings.Split(r.URL.Path, "/"), isPart) {
				return kind + "." + name, m
			}
		}
	}
	return "", nil
}

// isPart says whether a path's part is what a method's path has there: itself, or anything for a {parameter}.
func isPart(of, part string) bool { return of == part || strings.HasPrefix(of, "{") && part != "" }

// unlisted are parameters that the document lacks while its text recommends them: see the lists' returnPartialSuccess.
var unlisted = []string{"returnPartialSuccess"}

// differs says where JSON is not of a type: a field that is unknown, or a value of another type.
func (d discovery) differs(at string, s *schema, value any) (wrong []string) {
	if s != nil && s.Ref != "" {
		s = d.Schemas[s.Ref]
	}
	if s == nil {
		return []string{at + " is unknown"}
	}
	fits := false
	switch v := value.(type) {
	case map[string]any:
		fits = s.Type == "object"
		for key, field := range v {
			of := s.Properties[key]
			if of == nil {
				of = s.AdditionalProperties
			}
			wrong = append(wrong, d.differs(at+"."+key, of, field)...)
		}
	case []any:
		fits = s.Type == "array"
		for _, item := range v {
			wrong = append(wrong, d.differs(at+"[]", s.Items, item)...)
		}
	case string:
		isNumber := regexp.MustCompile(`^-?[0-9]+$`).MatchString(v)
		fits = s.Type == "string" && (len(s.Enum) == 0 || slices.Contains(s.Enum, v)) &&
			(!slices.Contains([]string{"int64", "uint64"}, s.Format) || isNumber)
	case bool:
		fits = s.Type == "boolean"
	case float64:
		fits = s.Type == "number" || s.Type == "integer" && v == float64(int64(v))
	}
	if !fits {
		wrong = append(wrong, fmt.Sprintf("%s is %v, want %s %s %q", at, value, s.Type, s.Format, s.Enum))
	}
	return wrong
}

// check holds an exchange to the document, and returns the method's name.
func (d discovery) check(t *testing.T, e exchange) string {
	t.Helper()
	name, m := d.method(e.request)
	if m == nil {
		t.Errorf("%s %s is no method", e.request.Method, e.request.URL.Path)
		return ""
	}
	for parameter := range e.request.URL.Query() {
		if m.Parameters[parameter] == nil && d.Parameters[parameter] == nil && !slices.Contains(unlisted, parameter) {
			t.Errorf("%s has no parameter %s", name, parameter)
		}
	}
	for what, of := range map[string]struct {
		body []byte
		is   *schema
	}{"request": {e.sent, m.Request}, "answer": {e.answered, m.Response}} {
		if len(of.body) == 0 || what == "answer" && e.status != http.StatusOK {
			continue
		}
		var value any
		if err := json.Unmarshal(of.body, &value); err != nil {
			t.Errorf("%s: %s: %v", name, what, err)
		}
		for _, wrong := range d.differs(name+" "+what, of.is, value) {
			t.Error(wrong)
		}
	}
	return name
}

// TestRequestsAndAnswersAreGoogles: what quorate asks and what localgce answers is as Google's document has it.
func TestRequestsAndAnswersAreGoogles(t *testing.T) {
	d := publishedAPI(t)
	called := map[string]bool{}
	in(t, func(w *world) {
		w.wholeConversation()
		for _, e := range w.asked {
			called[d.check(w.t, e)] = true
		}
	})
	want := []string{"addresses.delete", "addresses.get", "addresses.insert", "addresses.list",
		"disks.aggregatedList", "disks.delete", "disks.get", "disks.insert", "disks.list", "firewalls.delete",
		"firewalls.get", "firewalls.insert", "firewalls.list", "forwardingRules.delete", "forwardingRules.get",
		"forwardingRules.insert", "forwardingRules.list", "globalOperations.get", "images.get",
		"images.getFromFamily", "images.list", "instances.addAccessConfig",
		"instances.aggregatedList", "instances.delete", "instances.deleteAccessConfig", "instances.get",
		"instances.insert", "instances.list", "instances.stop", "networkEndpointGroups.attachNetworkEndpoints",
		"networkEndpointGroups.delete", "networkEndpointGroups.detachNetworkEndpoints", "networkEndpointGroups.get",
		"networkEndpointGroups.insert", "networkEndpointGroups.list", "networkEndpointGroups.listNetworkEndpoints",
		"regionBackendServices.delete", "regionBackendServices.get", "regionBackendServices.getHealth",
		"regionBackendServices.insert", "regionBackendServices.list", "regionHealthChecks.delete",
		"regionHealthChecks.get", "regionHealthChecks.insert",
		"regionHealthChecks.list", "regionOperations.get", "regionOperations.wait", "zoneOperations.get",
		"zoneOperations.wait", "zones.get", "zones.list"}
	if got := slices.Sorted(maps.Keys(called)); !slices.Equal(got, want) {
		t.Errorf("called %q", got)
	}
}

// wholeConversation calls all that localgce has of VMs and disks.
func (w *world) wholeConversation() {
	w.t.Helper()
	ctx, steps := w.t.Context(), w.life(w.t.Context())
	w.set(fault.Fault{Kind: "failed", Code: "QUOTA_EXCEEDED", Times: 1, Call: "POST disks"})
	if steps[0]() == nil {
		w.t.Error("made above the quota")
	}
	w.set(fault.Fault{Kind: "late", Delay: time.Minute})
	w.do(steps[0]())
	w.do(steps[1]())
	w.do(steps[0]()) // made before, and so got by its name
	w.do(steps[1]())
	w.do(w.StopInstance(ctx, replica.Place{Zone: zoneA, Name: "master-a"},
		fmt.Sprint(w.project.instances()[0].ID)))
	const image = "projects/" + instance.ProjectID + "/global/images/"
	for _, name := range []string{"master-2", "family/master"} {
		_, err := w.ResolveImage(ctx, image+name)
		w.do(err)
	}
	_, _ = w.ResolveImage(ctx, image+"master-3") // deprecated
	w.surround()
	w.clear()
	w.healthCalls()
	w.remainingCalls()
	w.groupCalls()
	w.reserve()
	e := w.addVM("master-x", 301, 91)
	w.do(w.GiveAddress(ctx, e.Place, "301", externalIP))
	w.do(w.TakeAddress(ctx, e.Place, "301", externalIP))
	w.do(steps[2]())
	w.do(steps[3]())
}

// google is Google's own client of the world's API.
func (w *world) google() *compute.Service {
	w.t.Helper()
	api, err := compute.NewService(w.t.Context(), option.WithEndpoint("http://compute/compute/v1/"),
		option.WithHTTPClient(&http.Client{Transport: w}))
	w.do(err)
	return api
}

// healthCalls ask whether VMs pass the health check of a load balancer with a group.
func (w *world) healthCalls() {
	w.t.Helper()
	s, a := surroundings(), w.addVM("master-y", 302, 92)
	s.Name, s.Zones = "demo-health", []string{zoneA}
	for _, r := range s.Resources() {
		w.do(w.InsertResource(w.t.Context(), r))
	}
	healthy := func(want bool) {
		w.t.Helper()
		if is, err := w.IsHealthy(w.t.Context(), s.Name, a.Place); is != want || err != nil {
			w.t.Errorf("%s passes its health check: %t, %v; want %t", a.Place, is, err, want)
		}
	}
	healthy(false)
	_, err := w.Attach(w.t.Context(), s.Name, a)
	w.do(err)
	healthy(true)
	if _, err := w.IsHealthy(w.t.Context(), "absent", a.Place); err == nil {
		w.t.Error("a backend service that is not there has a health")
	}
	_, there, err := w.Surroundings(w.t.Context(), s)
	w.do(err)
	for _, r := range slices.Backward(there) {
		w.do(w.DeleteResource(w.t.Context(), r))
	}
}

// remainingCalls are those that quorate's client does not make here.
func (w *world) remainingCalls() {
	w.t.Helper()
	api := w.google()
	const project, zone, region = instance.ProjectID, zoneA, "us-central1"
	for _, call := range []func(...googleapi.CallOption) error{
		func(o ...googleapi.CallOption) error {
			_, err := api.Instances.List(project, zone).Do(o...)
			return err
		},
		func(o ...googleapi.CallOption) error { _, err := api.Disks.List(project, zone).Do(o...); return err },
		func(o ...googleapi.CallOption) error { _, err := api.Images.List(project).Do(o...); return err },
		func(o ...googleapi.CallOption) error { _, err := api.Zones.List(project).Do(o...); return err },
		func(o ...googleapi.CallOption) error { _, err := api.Firewalls.List(project).Do(o...); return err },
		func(o ...googleapi.CallOption) error {
			_, err := api.RegionHealthChecks.List(project, region).Do(o...)
			return err
		},
		func(o ...googleapi.CallOption) error {
			_, err := api.RegionBackendServices.List(project, region).Do(o...)
			return err
		},
		func(o ...googleapi.CallOption) error {
			_, err := api.ForwardingRules.List(project, region).Do(o...)
			return err
		},
		func(o ...googleapi.CallOption) error { _, err := api.Zones.Get(project, zone).Do(o...); return err },
	} {
		w.do(call())
	}
	op, err := api.Disks.Insert(project, zone, &compute.Disk{Name: "passing", SizeGb: 10}).Do()
	w.do(err)
	if op.Status != "PENDING" {
		w.t.Errorf("begun: %s", op.Status)
	}
	op, err = api.ZoneOperations.Wait(project, zone, op.Name).Do()
	w.do(err)
	if op.Status != "DONE" || op.StartTime == "" || op.EndTime == "" {
		w.t.Errorf("over: %+v", op)
	}
	op, err = api.Disks.Delete(project, zone, "passing").Do()
	w.do(err)
	_, err = api.ZoneOperations.Wait(project, zone, op.Name).Do()
	w.do(err)
	op, err = api.Addresses.Insert(project, region, &compute.Address{Name: "passing", AddressType: "INTERNAL",
		Address: "10.240.0.98"}).Do()
	w.do(err)
	_, err = api.RegionOperations.Wait(project, region, op.Name).Do()
	w.do(err)
}
