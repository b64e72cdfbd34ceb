package localgce

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
)

// ComputeServer answers the part of compute/v1 that quorate uses: instances and disks, by get, list and aggregatedList
// with filters, and zones; instances.stop, and the operation that it begins. It is an http.Handler whose paths start
// with /compute/v1/, and needs no Project. Safe for concurrent use.
type ComputeServer struct {
	instances func() []Instance
	routes    *http.ServeMux
	// unattached returns the disks that no VM has, as instances without a name; nil is none.
	unattached func() []Instance
	// caller is the VM that sent a request; empty: it came from elsewhere.
	caller func(*http.Request) string
	// stop begins to stop the instance with an id, and calls done when that is over; nil: nobody may.
	stop func(id uint64, done func(error))
	// settings are what the project has besides VMs.
	settings *Settings

	mu         sync.Mutex
	operations []*operation
}

// NewComputeServer serves what instances returns at each request.
func NewComputeServer(instances func() []Instance) *ComputeServer {
	c := &ComputeServer{instances: instances, routes: http.NewServeMux(), settings: &Settings{}}
	const scope = "/compute/v1/projects/{project}/"
	const root = "GET " + scope
	c.routes.HandleFunc(root+"zones/{zone}/{kind}", c.list)
	c.routes.HandleFunc(root+"zones/{zone}/{kind}/{name}", c.get)
	c.routes.HandleFunc(root+"zones/{zone}/operations/{name}", c.getOperation)
	c.routes.HandleFunc("POST "+scope+"zones/{zone}/instances/{name}/stop", c.stopInstance)
	c.routes.HandleFunc(root+"aggregated/{kind}", c.aggregated)
	c.routes.HandleFunc(root+"global/{kind}", c.listSettings)
	c.routes.HandleFunc(root+"regions/{region}/{kind}", c.listSettings)
	c.routes.HandleFunc(strings.TrimSuffix(root, "/"), c.getProject)
	c.routes.HandleFunc(root+"zones", c.listZones)
	c.routes.HandleFunc(root+"zones/{name}", c.getZone)
	c.routes.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		apiError(w, http.StatusNotFound, "notFound", "The requested URL "+r.URL.Path+" was not found on this server.")
	})
	return c
}

// ServeHTTP implements http.Handler.
func (c *ComputeServer) ServeHTTP(w http.ResponseWriter, r *http.Request) { c.routes.ServeHTTP(w, r) }

// asOfNow completes a fault that says what was at the moment at which it was set.
func (c *ComputeServer) asOfNow(f Fault) Fault {
	switch {
	case f.Kind == "stale":
		f.then = c.all()
	case (f.Kind == "terminated" || f.Kind == "stopped") && f.LastStop.IsZero():
		f.LastStop = time.Now()
	}
	return f
}

// current is what there is to show, as the fault lets it be seen.
func (c *ComputeServer) current(r *http.Request, listing bool) []Instance {
	fault := faultOf(r)
	switch {
	case fault.Kind == "stale":
		return fault.then
	case fault.Kind == "missing", fault.Kind == "unlisted" && listing:
		return slices.DeleteFunc(slices.Clone(c.all()), func(i Instance) bool {
			return i.Name != "" &&
				slices.Contains(fault.VMs, i.Name)
		})
	case fault.Kind == "empty" && listing:
		return nil
	case slices.Contains(vmLies, fault.Kind) && fault.Kind != "unlisted":
		all := slices.Clone(c.all())
		for n, i := range all {
			if i.Name != "" && slices.Contains(fault.VMs, i.Name) {
				all[n] = fault.disguise(i)
			}
		}
		return all
	}
	return c.all()
}

// disguise is one of the fault's VMs as the API shows it.
func (f Fault) disguise(i Instance) Instance {
	switch {
	case f.Kind == "absent" && f.Detached:
		i.Name = ""
	case f.Kind == "absent":
		i.hidden = true
	case f.Kind == "multiwriter":
		i.accessMode = "READ_WRITE_MANY"
	case f.Kind == "shared":
		i.alsoOn = "stranger"
	default:
		i.Status, i.LastStop = strings.ToUpper(f.Kind), f.LastStop
	}
	return i
}

func (c *ComputeServer) all() []Instance {
	all := c.instances()
	if c.unattached != nil {
		all = append(slices.Clone(all), c.unattached()...)
	}
	return all
}

// resources are the resources of a kind, or false for a kind that is not served.
func (c *ComputeServer) resources(r *http.Request, listing bool) (list []resource, ok bool) {
	base := "http://" + r.Host + "/compute/v1/projects/" + ProjectID
	for _, i := range c.current(r, listing) {
		switch r.PathValue("kind") {
		case "instances":
			if i.Name != "" && !i.hidden {
				list = append(list, instanceResource(base, i))
			}
		case "disks":
			list = append(list, diskResources(base, i)...)
		default:
			return nil, false
		}
	}
	return list, r.PathValue("kind") == "instances" || r.PathValue("kind") == "disks"
}

// selected are the resources that a list's filter keeps; it answers itself where it returns false.
func (c *ComputeServer) selected(w http.ResponseWriter, r *http.Request) ([]resource, bool) {
	if !c.checkProject(w, r) || c.unreachable(w, r, r.PathValue("zone")) {
		return nil, false
	}
	all, ok := c.resources(r, true)
	if !ok {
		apiError(w, http.StatusNotFound, "notFound", "localgce does not serve "+r.PathValue("kind"))
		return nil, false
	}
	keep, err := parseFilter(r.URL.Query().Get("filter"))
	if err != nil {
		apiError(w, http.StatusBadRequest, "invalid", "Invalid value for field 'filter': "+err.Error())
		return nil, false
	}
	return slices.DeleteFunc(all, func(x resource) bool { return !keep(x) }), true
}

func (c *ComputeServer) checkProject(w http.ResponseWriter, r *http.Request) bool {
	if named := r.PathValue("project"); named == ProjectID || named == decimal(ProjectNumber) {
		return true
	}
	apiError(w, http.StatusNotFound, "notFound", "The resource 'projects/"+r.PathValue("project")+"' was not found")
	return false
}

// unreachable answers in place of a zone that is, and says whether it did.
func (c *ComputeServer) unreachable(w http.ResponseWriter, r *http.Request, zone string) bool {
	if zone == "" || zone != faultOf(r).Zone {
		return false
	}
	apiError(w, http.StatusServiceUnavailable, "backendError", "The zone '"+zone+"' is currently unreachable.")
	return true
}

func (c *ComputeServer) list(w http.ResponseWriter, r *http.Request) {
	all, ok := c.selected(w, r)
	if !ok {
		return
	}
	items := slices.DeleteFunc(all, func(x resource) bool { return x.zone() != r.PathValue("zone") })
	answer(w, map[string]any{"kind": "compute#" + singular(r) + "List", "id": r.URL.Path[1:], "items": items,
		"selfLink": self(r)})
}

func (c *ComputeServer) aggregated(w http.ResponseWriter, r *http.Request) {
	all, ok := c.selected(w, r)
	if !ok {
		return
	}
	away := faultOf(r).Zone
	if partial := r.URL.Query().Get("returnPartialSuccess") == "true"; !partial && c.unreachable(w, r, away) {
		return
	}
	body := map[string]any{}
	items := map[string]any{}
	for _, zone := range c.zones(r) {
		if zone == away {
			items["zones/"+zone] = map[string]any{"warning": map[string]any{
				"code": "UNREACHABLE", "message": "The zone '" + zone + "' is currently unreachable."}}
			body["unreachables"] = []string{"projects/" + ProjectID + "/zones/" + zone}
			continue
		}
		inZone := slices.DeleteFunc(slices.Clone(all), func(x resource) bool { return x.zone() != zone })
		if len(inZone) > 0 {
			items["zones/"+zone] = map[string]any{r.PathValue("kind"): inZone}
			continue
		}
		items["zones/"+zone] = map[string]any{"warning": map[string]any{
			"code": "NO_RESULTS_ON_PAGE", "message": "There are no results for scope 'zones/" + zone +
				"' on this page.",
		}}
	}
	body["kind"], body["id"] = "compute#"+singular(r)+"AggregatedList", r.URL.Path[1:]
	body["items"], body["selfLink"] = items, self(r)
	answer(w, body)
}

func (c *ComputeServer) get(w http.ResponseWriter, r *http.Request) {
	if !c.checkProject(w, r) || c.unreachable(w, r, r.PathValue("zone")) {
		return
	}
	all, ok := c.resources(r, false)
	name, zone := r.PathValue("name"), r.PathValue("zone")
	for _, x := range all {
		if ok && x.zone() == zone && (x["name"] == name || x["id"] == name) {
			answer(w, x)
			return
		}
	}
	c.missing(w, zone, r.PathValue("kind"), name)
}

func (c *ComputeServer) missing(w http.ResponseWriter, zone, kind, name string) {
	apiError(w, http.StatusNotFound, "notFound", fmt.Sprintf("The resource 'projects/%s/zones/%s/%s/%s' was not found",
		ProjectID, zone, kind, name))
}

// zones are those that have VMs, and the one that is unreachable.
func (c *ComputeServer) zones(r *http.Request) (zones []string) {
	if away := faultOf(r).Zone; away != "" {
		zones = append(zones, away)
	}
	for _, i := range c.current(r, false) {
		if !slices.Contains(zones, i.Zone) {
			zones = append(zones, i.Zone)
		}
	}
	slices.Sort(zones)
	return zones
}

func (c *ComputeServer) listZones(w http.ResponseWriter, r *http.Request) {
	items := []resource{}
	for _, z := range c.zones(r) {
		items = append(items, zoneResource(self(r), z))
	}
	answer(w, map[string]any{"kind": "compute#zoneList", "items": items, "selfLink": self(r)})
}

func (c *ComputeServer) getZone(w http.ResponseWriter, r *http.Request) {
	if name := r.PathValue("name"); slices.Contains(c.zones(r), name) {
		answer(w, zoneResource(strings.TrimSuffix(self(r), "/"+name), name))
		return
	}
	apiError(w, http.StatusNotFound, "notFound",
		"The resource 'projects/"+ProjectID+"/zones/"+r.PathValue("name")+"' was not found")
}

func singular(r *http.Request) string { return strings.TrimSuffix(r.PathValue("kind"), "s") }
func self(r *http.Request) string     { return "http://" + r.Host + r.URL.Path }

func answer(w http.ResponseWriter, body any) {
	w.Header().Set("Content-Type", "application/json; charset=UTF-8")
	_ = json.NewEncoder(w).Encode(body) // the client has gone
}

// apiError answers as Google's clients want it (googleapi.Error).
func apiError(w http.ResponseWriter, code int, reason, message string) {
	w.Header().Set("Content-Type", "application/json; charset=UTF-8")
	w.WriteHeader(code)
	_ = json.NewEncoder(w).Encode(map[string]any{"error": map[string]any{
		"code": code, "message": message,
		"errors": []any{map[string]any{"message": message, "domain": "global", "reason": reason}},
	}})
}

func decimal(id uint64) string { return strconv.FormatUint(id, 10) }
