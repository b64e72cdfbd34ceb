// Package compute is the part of the Compute API that quorate uses.
package compute

import (
	"context"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/quorate/quorate/internal/localgce/answer"
	"github.com/quorate/quorate/internal/localgce/fault"
	"github.com/quorate/quorate/internal/localgce/instance"
	"github.com/quorate/quorate/internal/localgce/settings"
)

// Server answers the part of compute/v1 that quorate uses: instances and disks, by get, list and aggregatedList
// with filters, zones and images; insert and delete of instances and disks, instances.stop, a VM's external address;
// firewall rules, and a region's addresses, health checks, backend services and forwarding rules; endpoint groups and
// what is attached to them; and the operations that these begin. It is an http.Handler whose paths start with
// /compute/v1/, and needs no Project. Who gives it Changes must Close it. Safe for concurrent use.
type Server struct {
	conf   Config
	routes *http.ServeMux

	groups     groups
	kept       kept
	orders     sync.Mutex // one is begun at a time
	operations operations
}

// Config is what a ComputeServer answers from. Only Instances has no default.
type Config struct {
	// Instances returns the VMs, at each request.
	Instances func() []instance.VM
	// Unattached returns the disks that no VM has, as instances without a name; nil is none.
	Unattached func() []instance.VM
	// Caller is the VM that sent a request; empty: it came from elsewhere. It is asked only where Changes are given.
	Caller func(*http.Request) string
	// Changes carry out what changes the project; nil: nobody may.
	Changes Changes
	// OperationTime is how long an operation takes, besides what is really done meanwhile; nil: no time.
	OperationTime func() time.Duration
	// Zones are those that there are; nil: those that have VMs.
	Zones []string
	// Images are what there is to boot; nil: instance.ImageName alone.
	Images []instance.Image
	// Settings are what the project has besides VMs; nil is nothing.
	Settings *settings.Settings
	// Healthy says whether an instance passes the health check of a load balancer; nil: nobody asks them.
	Healthy func(id uint64) bool
	// ForwardingChanged is called where what is forwarded to VMs may be another; it may be nil.
	ForwardingChanged func()
}

// New serves what the Config has.
func New(conf Config) *Server {
	if conf.Settings == nil {
		conf.Settings = &settings.Settings{}
	}
	if conf.Images == nil {
		conf.Images = []instance.Image{{Name: instance.ImageName, Family: instance.ImageName}}
	}
	if conf.OperationTime == nil {
		conf.OperationTime = func() time.Duration { return 0 }
	}
	c := &Server{conf: conf, routes: http.NewServeMux()}
	c.operations.ctx, c.operations.cancel = context.WithCancel(context.Background())
	const scope = "/compute/v1/projects/{project}/"
	const root = "GET " + scope
	c.routes.HandleFunc(root+"zones/{zone}/{kind}", c.list)
	c.routes.HandleFunc(root+"zones/{zone}/{kind}/{name}", c.get)
	c.routes.HandleFunc(root+"zones/{zone}/operations/{name}", c.getOperation)
	c.routes.HandleFunc("POST "+scope+"zones/{zone}/operations/{name}/wait", c.waitOperation)
	c.routes.HandleFunc("POST "+scope+"zones/{zone}/instances/{name}/stop", c.stopInstance)
	c.routes.HandleFunc("POST "+scope+"zones/{zone}/instances/{name}/addAccessConfig", c.addAccessConfig)
	c.routes.HandleFunc("POST "+scope+"zones/{zone}/instances/{name}/deleteAccessConfig", c.deleteAccessConfig)
	c.routes.HandleFunc("POST "+scope+"zones/{zone}/instances", c.insertInstance)
	c.routes.HandleFunc("POST "+scope+"zones/{zone}/disks", c.insertDisk)
	c.routes.HandleFunc("DELETE "+scope+"zones/{zone}/instances/{name}", c.deleteInstance)
	c.routes.HandleFunc("DELETE "+scope+"zones/{zone}/disks/{name}", c.deleteDisk)
	c.routeGroups(scope)
	c.routes.HandleFunc(root+"global/images", c.listImages)
	c.routes.HandleFunc(root+"global/images/{name}", c.getImage)
	c.routes.HandleFunc(root+"global/images/family/{name}", c.getImageFromFamily)
	c.routes.HandleFunc(root+"aggregated/{kind}", c.aggregated)
	for _, at := range []string{"global", "regions/{region}"} {
		c.routes.HandleFunc(root+at+"/operations/{name}", c.getOperation)
		c.routes.HandleFunc("POST "+scope+at+"/operations/{name}/wait", c.waitOperation)
	}
	c.routeKept(scope)
	c.routes.HandleFunc("POST "+scope+"regions/{region}/backendServices/{name}/getHealth", c.getHealth)
	c.routes.HandleFunc(root+"global/{kind}", c.listSettings)
	c.routes.HandleFunc(root+"regions/{region}/{kind}", c.listSettings)
	c.routes.HandleFunc(root+"regions/{region}/{kind}/{name}", c.get)
	c.routes.HandleFunc(strings.TrimSuffix(root, "/"), c.getProject)
	c.routes.HandleFunc(root+"zones", c.listZones)
	c.routes.HandleFunc(root+"zones/{name}", c.getZone)
	c.routes.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		answer.Error(w, http.StatusNotFound, "notFound", "The requested URL "+r.URL.Path+" was not found on this server.")
	})
	return c
}

// ServeHTTP implements http.Handler.
func (c *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if c.checkPermissions(w, r, reading(r)...) {
		c.routes.ServeHTTP(w, r)
	}
}

// Close begins no more operations and returns when those that are under way are over.
func (c *Server) Close() {
	c.orders.Lock()
	c.operations.cancel()
	c.orders.Unlock()
	c.operations.tasks.Wait()
}

// AsOfNow completes a fault that says what was at the moment at which it was set.
func (c *Server) AsOfNow(f fault.Fault) fault.Fault {
	switch {
	case f.Kind == "stale":
		f.Then = c.all()
	case (f.Kind == "terminated" || f.Kind == "stopped") && f.LastStop.IsZero():
		f.LastStop = time.Now()
	}
	return f
}

// current is what there is to show, as the fault lets it be seen.
func (c *Server) current(r *http.Request, listing bool) []shown {
	fault := fault.Of(r)
	switch {
	case fault.Kind == "stale":
		then, _ := fault.Then.([]shown)
		return then
	case fault.Kind == "missing", fault.Kind == "unlisted" && listing:
		return slices.DeleteFunc(c.all(), func(i shown) bool {
			return i.Name != "" &&
				slices.Contains(fault.VMs, i.Name)
		})
	case fault.Kind == "empty" && listing:
		return nil
	case fault.AboutVMs() && fault.Kind != "unlisted":
		all := c.all()
		for n, i := range all {
			if i.Name != "" && slices.Contains(fault.VMs, i.Name) {
				all[n] = i.disguised(fault)
			}
		}
		return all
	}
	return c.all()
}

// shown is an instance as the API shows it.
type shown struct {
	instance.VM
	// hidden: the API does not show the VM, and its data disk as attached to it all the same.
	hidden bool
	// accessMode is the data disk's, and alsoOn a further VM that it is attached to.
	accessMode, alsoOn string
	// regional: the data disk is the region's.
	regional bool
	// diskStatus is the data disk's.
	diskStatus string
}

// disguised is one of the fault's VMs as the API shows it.
func (i shown) disguised(f fault.Fault) shown {
	switch {
	case f.Kind == "absent" && f.Detached:
		i.Name = ""
	case f.Kind == "absent":
		i.hidden = true
	case f.Kind == "multiwriter":
		i.accessMode = "READ_WRITE_MANY"
	case f.Kind == "shared":
		i.alsoOn = "stranger"
	case f.Kind == "regional":
		i.regional = true
	default:
		i.Status, i.LastStop = strings.ToUpper(f.Kind), f.LastStop
	}
	return i
}

// all are the instances and, as ones without a name, the disks that no VM has.
func (c *Server) all() (list []shown) {
	for _, i := range c.conf.Instances() {
		i.Status = c.operations.status("instances", i.ID, i.Status)
		list = append(list, shown{VM: i, diskStatus: "READY"})
	}
	if c.conf.Unattached != nil {
		for _, i := range c.conf.Unattached() {
			list = append(list, shown{VM: i, diskStatus: c.operations.status("disks", i.DataDisk.ID, "READY")})
		}
	}
	return list
}

// resources are the resources of a kind, or false for a kind that is not served.
func (c *Server) resources(r *http.Request, listing bool) (list []resource, ok bool) {
	base := "http://" + r.Host + "/compute/v1/projects/" + instance.ProjectID
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
func (c *Server) selected(w http.ResponseWriter, r *http.Request) ([]resource, bool) {
	if !c.checkProject(w, r) || c.unreachable(w, r, r.PathValue("zone")) {
		return nil, false
	}
	all, ok := c.resources(r, true)
	if !ok {
		answer.Error(w, http.StatusNotFound, "notFound", "localgce does not serve "+r.PathValue("kind"))
		return nil, false
	}
	keep, err := parseFilter(r.URL.Query().Get("filter"))
	if err != nil {
		answer.Error(w, http.StatusBadRequest, "invalid", "Invalid value for field 'filter': "+err.Error())
		return nil, false
	}
	return slices.DeleteFunc(all, func(x resource) bool { return !keep(x) }), true
}

func (c *Server) checkProject(w http.ResponseWriter, r *http.Request) bool {
	if named := r.PathValue("project"); named == instance.ProjectID || named == answer.Decimal(instance.ProjectNumber) {
		return true
	}
	answer.Error(w, http.StatusNotFound, "notFound", "The resource 'projects/"+r.PathValue("project")+"' was not found")
	return false
}

// unreachable answers in place of a zone that is, and says whether it did.
func (c *Server) unreachable(w http.ResponseWriter, r *http.Request, zone string) bool {
	if zone == "" || zone != fault.Of(r).Zone {
		return false
	}
	answer.Error(w, http.StatusServiceUnavailable, "backendError", "The zone '"+zone+"' is currently unreachable.")
	return true
}

func (c *Server) list(w http.ResponseWriter, r *http.Request) {
	all, ok := c.selected(w, r)
	if !ok {
		return
	}
	items := slices.DeleteFunc(all, func(x resource) bool { return x.place() != placeOf(r) })
	answer.JSON(w, map[string]any{"kind": "compute#" + singular(r) + "List", "id": r.URL.Path[1:], "items": items,
		"selfLink": self(r)})
}

func (c *Server) aggregated(w http.ResponseWriter, r *http.Request) {
	all, ok := c.selected(w, r)
	if !ok {
		return
	}
	away := fault.Of(r).Zone
	if partial := r.URL.Query().Get("returnPartialSuccess") == "true"; !partial && c.unreachable(w, r, away) {
		return
	}
	body := map[string]any{}
	items := map[string]any{}
	for _, place := range c.places(r) {
		here := slices.DeleteFunc(slices.Clone(all), func(x resource) bool { return x.place() != place })
		switch {
		case away != "" && place == "zones/"+away:
			items[place] = map[string]any{"warning": map[string]any{
				"code": "UNREACHABLE", "message": "The zone '" + away + "' is currently unreachable."}}
			body["unreachables"] = []string{"projects/" + instance.ProjectID + "/" + place}
		case len(here) > 0:
			items[place] = map[string]any{r.PathValue("kind"): here}
		default:
			items[place] = map[string]any{"warning": map[string]any{"code": "NO_RESULTS_ON_PAGE",
				"message": "There are no results for scope '" + place + "' on this page."}}
		}
	}
	body["kind"], body["id"] = "compute#"+singular(r)+"AggregatedList", r.URL.Path[1:]
	body["items"], body["selfLink"] = items, self(r)
	answer.JSON(w, body)
}

func (c *Server) get(w http.ResponseWriter, r *http.Request) {
	if !c.checkProject(w, r) || c.unreachable(w, r, r.PathValue("zone")) {
		return
	}
	all, ok := c.resources(r, false)
	name := r.PathValue("name")
	for _, x := range all {
		if ok && x.place() == placeOf(r) && (x["name"] == name || x["id"] == name) {
			answer.JSON(w, x)
			return
		}
	}
	refuse(w, absent(targetOf(r, r.PathValue("kind"), name)))
}

// placeOf is where a request asks.
func placeOf(r *http.Request) string {
	if region := r.PathValue("region"); region != "" {
		return "regions/" + region
	}
	return "zones/" + r.PathValue("zone")
}

// places are the zones, and of disks the regions too.
func (c *Server) places(r *http.Request) (places []string) {
	for _, zone := range c.zones(r) {
		places = append(places, "zones/"+zone)
		if region := "regions/" + instance.RegionOf(zone); r.PathValue("kind") == "disks" &&
			!slices.Contains(places, region) {
			places = append(places, region)
		}
	}
	return places
}

// zones are those that there are, and the one that is unreachable.
func (c *Server) zones(r *http.Request) (zones []string) {
	zones = slices.Clone(c.conf.Zones)
	if away := fault.Of(r).Zone; away != "" && !slices.Contains(zones, away) {
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

func (c *Server) listZones(w http.ResponseWriter, r *http.Request) {
	items := []resource{}
	for _, z := range c.zones(r) {
		items = append(items, zoneResource(self(r), z))
	}
	answer.JSON(w, map[string]any{"kind": "compute#zoneList", "items": items, "selfLink": self(r)})
}

func (c *Server) getZone(w http.ResponseWriter, r *http.Request) {
	if name := r.PathValue("name"); slices.Contains(c.zones(r), name) {
		answer.JSON(w, zoneResource(strings.TrimSuffix(self(r), "/"+name), name))
		return
	}
	answer.Error(w, http.StatusNotFound, "notFound",
		"The resource 'projects/"+instance.ProjectID+"/zones/"+r.PathValue("name")+"' was not found")
}

func singular(r *http.Request) string { return strings.TrimSuffix(r.PathValue("kind"), "s") }
func self(r *http.Request) string     { return "http://" + r.Host + r.URL.Path }
