package localgce

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
)

// ComputeFault is a way for the Compute API to fail.
type ComputeFault struct {
	// Kind is empty (well), or of all that is asked: forbidden (403), notfound (404), unavailable (503), empty (lists
	// have no items, while each resource is still found by its name), stale (answers as of the moment at which the
	// fault was set). Of VMs, whatever they really are: missing (they and their disks are in no answer), unlisted (they
	// are in no list, as without their labels, while each is still found by its name), absent (they are in no answer,
	// while their data disks are), terminated or stopped (they are called so, and their disks are attached to them).
	Kind string `json:"kind"`
	// Caller is the VM that the API fails for; empty for all that have no fault of their own. To be well without a caller heals all.
	Caller string `json:"caller,omitempty"`
	// VMs are those that a kind is about.
	VMs []string `json:"vms,omitempty"`
	// LastStop is when those that are terminated or stopped were stopped: the moment at which the fault was set where
	// it is zero.
	LastStop time.Time `json:"lastStop,omitzero"`
	// Detached: the disks of those that are absent are attached to nobody.
	Detached bool `json:"detached,omitempty"`
}

// computeFaults are the kinds; those of some VMs are vmFaults.
var (
	computeFaults = append([]string{"", "forbidden", "notfound", "unavailable", "empty", "stale"}, vmFaults...)
	vmFaults      = []string{"missing", "unlisted", "absent", "terminated", "stopped"}
)

// setFault is a fault and what the API showed when it was set.
type setFault struct {
	ComputeFault
	then []Instance // instances and unattached disks
}

// ComputeServer answers the part of compute/v1 that quorate uses: instances and disks, by get, list and aggregatedList with filters, and
// zones; instances.stop, and the operation that it begins. It is an http.Handler whose paths start with /compute/v1/, and needs no Project.
// Safe for concurrent use.
type ComputeServer struct {
	instances func() []Instance
	routes    *http.ServeMux
	// unattached returns the disks that no VM has, as instances without a name; nil is none.
	unattached func() []Instance
	// stop begins to stop the instance with an id, and calls done when that is over; nil: nobody may.
	stop func(id uint64, done func(error))

	mu         sync.Mutex
	faults     map[string]setFault // by caller; "" is for all others
	operations []*operation
}

// NewComputeServer serves what instances returns at each request.
func NewComputeServer(instances func() []Instance) *ComputeServer {
	c := &ComputeServer{instances: instances, routes: http.NewServeMux(), faults: map[string]setFault{}}
	const scope = "/compute/v1/projects/{project}/"
	const root = "GET " + scope
	c.routes.HandleFunc(root+"zones/{zone}/{kind}", c.list)
	c.routes.HandleFunc(root+"zones/{zone}/{kind}/{name}", c.get)
	c.routes.HandleFunc(root+"zones/{zone}/operations/{name}", c.getOperation)
	c.routes.HandleFunc("POST "+scope+"zones/{zone}/instances/{name}/stop", c.stopInstance)
	c.routes.HandleFunc(root+"aggregated/{kind}", c.aggregated)
	c.routes.HandleFunc(root+"zones", c.listZones)
	c.routes.HandleFunc(root+"zones/{name}", c.getZone)
	c.routes.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		computeError(w, http.StatusNotFound, "notFound", "The requested URL "+r.URL.Path+" was not found on this server.")
	})
	return c
}

// SetFault makes the server fail, or be well with the zero value.
func (c *ComputeServer) SetFault(f ComputeFault) error {
	if !slices.Contains(computeFaults, f.Kind) {
		return fmt.Errorf("compute fault %q: %s or none are known", f.Kind, listed(computeFaults[1:]))
	}
	if slices.Contains(vmFaults, f.Kind) != (len(f.VMs) > 0) {
		return fmt.Errorf("compute fault %q with %d vms: %s need some, and nothing else does",
			f.Kind, len(f.VMs), listed(vmFaults))
	}
	stops := f.Kind == "terminated" || f.Kind == "stopped"
	if f.Detached && f.Kind != "absent" || !f.LastStop.IsZero() && !stops {
		return fmt.Errorf("compute fault %q: detached is for absent, a last stop for terminated and stopped", f.Kind)
	}
	if stops && f.LastStop.IsZero() {
		f.LastStop = time.Now()
	}
	now := c.all()
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case f.Kind != "":
		c.faults[f.Caller] = setFault{f, now}
	case f.Caller != "":
		delete(c.faults, f.Caller)
	default:
		clear(c.faults)
	}
	return nil
}

// faultFor is the fault that a request meets: its sender's own, or the one for all.
func (c *ComputeServer) faultFor(r *http.Request) setFault {
	caller := c.caller(r)
	c.mu.Lock()
	defer c.mu.Unlock()
	if f, ok := c.faults[caller]; ok {
		return f
	}
	return c.faults[""]
}

// caller is the VM that sent a request; empty: it came from elsewhere.
func (c *ComputeServer) caller(r *http.Request) (name string) {
	if from, err := netip.ParseAddrPort(r.RemoteAddr); err == nil {
		for _, i := range c.instances() {
			if i.Address == from.Addr().Unmap() {
				name = i.Name
			}
		}
	}
	return name
}

// ServeHTTP implements http.Handler.
func (c *ComputeServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	switch c.faultFor(r).Kind {
	case "forbidden":
		computeError(w, http.StatusForbidden, "forbidden", "Required 'compute.instances.list' permission for 'projects/"+ProjectID+"'")
	case "notfound":
		computeError(w, http.StatusNotFound, "notFound", "The resource 'projects/"+ProjectID+"' was not found")
	case "unavailable":
		computeError(w, http.StatusServiceUnavailable, "backendError", "The service is currently unavailable.")
	default:
		c.routes.ServeHTTP(w, r)
	}
}

// current is what there is to show, as the fault lets it be seen.
func (c *ComputeServer) current(r *http.Request, listing bool) []Instance {
	fault := c.faultFor(r)
	switch {
	case fault.Kind == "stale":
		return fault.then
	case fault.Kind == "missing", fault.Kind == "unlisted" && listing:
		return slices.DeleteFunc(slices.Clone(c.all()), func(i Instance) bool { return i.Name != "" && slices.Contains(fault.VMs, i.Name) })
	case fault.Kind == "empty" && listing:
		return nil
	case slices.Contains(vmFaults, fault.Kind) && fault.Kind != "unlisted":
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
func (f ComputeFault) disguise(i Instance) Instance {
	switch {
	case f.Kind == "absent" && f.Detached:
		i.Name = ""
	case f.Kind == "absent":
		i.hidden = true
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
	if !c.checkProject(w, r) {
		return nil, false
	}
	all, ok := c.resources(r, true)
	if !ok {
		computeError(w, http.StatusNotFound, "notFound", "localgce does not serve "+r.PathValue("kind"))
		return nil, false
	}
	keep, err := parseFilter(r.URL.Query().Get("filter"))
	if err != nil {
		computeError(w, http.StatusBadRequest, "invalid", "Invalid value for field 'filter': "+err.Error())
		return nil, false
	}
	return slices.DeleteFunc(all, func(x resource) bool { return !keep(x) }), true
}

func (c *ComputeServer) checkProject(w http.ResponseWriter, r *http.Request) bool {
	if named := r.PathValue("project"); named == ProjectID || named == decimal(ProjectNumber) {
		return true
	}
	computeError(w, http.StatusNotFound, "notFound", "The resource 'projects/"+r.PathValue("project")+"' was not found")
	return false
}

func (c *ComputeServer) list(w http.ResponseWriter, r *http.Request) {
	all, ok := c.selected(w, r)
	if !ok {
		return
	}
	items := slices.DeleteFunc(all, func(x resource) bool { return x.zone() != r.PathValue("zone") })
	answer(w, map[string]any{"kind": "compute#" + singular(r) + "List", "id": r.URL.Path[1:], "items": items, "selfLink": self(r)})
}

func (c *ComputeServer) aggregated(w http.ResponseWriter, r *http.Request) {
	all, ok := c.selected(w, r)
	if !ok {
		return
	}
	items := map[string]any{}
	for _, zone := range c.zones(r) {
		inZone := slices.DeleteFunc(slices.Clone(all), func(x resource) bool { return x.zone() != zone })
		if len(inZone) > 0 {
			items["zones/"+zone] = map[string]any{r.PathValue("kind"): inZone}
			continue
		}
		items["zones/"+zone] = map[string]any{"warning": map[string]any{
			"code": "NO_RESULTS_ON_PAGE", "message": "There are no results for scope 'zones/" + zone + "' on this page.",
		}}
	}
	answer(w, map[string]any{"kind": "compute#" + singular(r) + "AggregatedList", "id": r.URL.Path[1:], "items": items, "selfLink": self(r)})
}

func (c *ComputeServer) get(w http.ResponseWriter, r *http.Request) {
	if !c.checkProject(w, r) {
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
	computeError(w, http.StatusNotFound, "notFound", fmt.Sprintf("The resource 'projects/%s/zones/%s/%s/%s' was not found", ProjectID, zone, kind, name))
}

// zones are those that have VMs.
func (c *ComputeServer) zones(r *http.Request) (zones []string) {
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
	computeError(w, http.StatusNotFound, "notFound", "The resource 'projects/"+ProjectID+"/zones/"+r.PathValue("name")+"' was not found")
}

func singular(r *http.Request) string { return strings.TrimSuffix(r.PathValue("kind"), "s") }
func self(r *http.Request) string     { return "http://" + r.Host + r.URL.Path }

func answer(w http.ResponseWriter, body any) {
	w.Header().Set("Content-Type", "application/json; charset=UTF-8")
	_ = json.NewEncoder(w).Encode(body) // the client has gone
}

// computeError answers as googleapi.Error wants it.
func computeError(w http.ResponseWriter, code int, reason, message string) {
	w.Header().Set("Content-Type", "application/json; charset=UTF-8")
	w.WriteHeader(code)
	_ = json.NewEncoder(w).Encode(map[string]any{"error": map[string]any{
		"code": code, "message": message,
		"errors": []any{map[string]any{"message": message, "domain": "global", "reason": reason}},
	}})
}

func decimal(id uint64) string { return strconv.FormatUint(id, 10) }
