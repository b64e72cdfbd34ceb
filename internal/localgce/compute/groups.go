package compute

import (
	"fmt"
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/quorate/quorate/internal/localgce/answer"
	"github.com/quorate/quorate/internal/localgce/instance"
)

// groupKind is what endpoint groups are called in paths.
const groupKind = "networkEndpointGroups"

// group is a zonal network endpoint group of type GCE_VM_IP.
type group struct {
	target
	created     time.Time
	description string
	endpoints   []endpoint
}

// endpoint is a VM that is attached to a group. One of the same name that was made later is not.
type endpoint struct {
	id            uint64
	name, address string
}

// groups are all that were inserted.
type groups struct {
	mu   sync.Mutex
	list []*group
}

// find is the group of a name or id, as it is now.
func (g *groups) find(zone, name string) (group, bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, one := range g.list {
		if one.zone == zone && (one.name == name || answer.Decimal(one.id) == name) {
			out := *one
			out.endpoints = slices.Clone(one.endpoints)
			return out, true
		}
	}
	return group{}, false
}

// all are those of a zone.
func (g *groups) all(zone string) (out []group) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, one := range g.list {
		if one.zone == zone {
			out = append(out, *one)
		}
	}
	return out
}

// change changes the group of an id, if it is still there.
func (g *groups) change(id uint64, f func(*group)) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, one := range g.list {
		if one.id == id {
			f(one)
			return nil
		}
	}
	return failure{"RESOURCE_NOT_FOUND", "The group was deleted meanwhile."}
}

// Serves says whether the load balancer sends anything to an instance: where its zone has endpoint groups, it is
// attached to one of them.
func (c *Server) Serves(zone string, id uint64) bool {
	all := c.groups.all(zone)
	return len(all) == 0 || slices.ContainsFunc(all, func(g group) bool {
		return slices.ContainsFunc(g.endpoints, func(e endpoint) bool { return e.id == id })
	})
}

// routeGroups adds the paths of endpoint groups.
func (c *Server) routeGroups(scope string) {
	at := scope + "zones/{zone}/" + groupKind
	c.routes.HandleFunc("GET "+at, c.listGroups)
	c.routes.HandleFunc("POST "+at, c.insertGroup)
	c.routes.HandleFunc("GET "+at+"/{name}", c.getGroup)
	c.routes.HandleFunc("DELETE "+at+"/{name}", c.deleteGroup)
	c.routes.HandleFunc("POST "+at+"/{name}/listNetworkEndpoints", c.listEndpoints)
	c.routes.HandleFunc("POST "+at+"/{name}/attachNetworkEndpoints", c.attachEndpoints)
	c.routes.HandleFunc("POST "+at+"/{name}/detachNetworkEndpoints", c.detachEndpoints)
}

// living are those of a group's endpoints whose VM is still there, which is Google's word on it: a VM that is deleted
// leaves its groups.
func (c *Server) living(g group) []endpoint {
	vms := c.conf.Instances()
	return slices.DeleteFunc(g.endpoints, func(e endpoint) bool {
		return !slices.ContainsFunc(vms, func(i instance.VM) bool { return i.ID == e.id })
	})
}

func (c *Server) groupResource(r *http.Request, g group) resource {
	base := "http://" + r.Host + "/compute/v1/"
	project := base + "projects/" + instance.ProjectID
	return resource{"kind": "compute#networkEndpointGroup", "id": answer.Decimal(g.id), "name": g.name,
		"description": g.description, "zone": project + "/zones/" + g.zone, "selfLink": base + g.path(),
		"networkEndpointType": "GCE_VM_IP", "size": len(c.living(g)), "creationTimestamp": timestamp(g.created),
		"network":    project + "/global/networks/default",
		"subnetwork": project + "/regions/" + instance.RegionOf(g.zone) + "/subnetworks/default"}
}

// reaches says whether the project and the zone of a request are there; it answers itself where they are not.
func (c *Server) reaches(w http.ResponseWriter, r *http.Request) bool {
	return c.checkProject(w, r) && !c.unreachable(w, r, r.PathValue("zone"))
}

func (c *Server) listGroups(w http.ResponseWriter, r *http.Request) {
	if !c.reaches(w, r) {
		return
	}
	items := []resource{}
	for _, g := range c.groups.all(r.PathValue("zone")) {
		items = append(items, c.groupResource(r, g))
	}
	answer.JSON(w, map[string]any{"kind": "compute#networkEndpointGroupList", "id": r.URL.Path[1:], "items": items,
		"selfLink": self(r)})
}

func (c *Server) getGroup(w http.ResponseWriter, r *http.Request) {
	if !c.reaches(w, r) {
		return
	}
	if g, found := c.groups.find(r.PathValue("zone"), r.PathValue("name")); found {
		answer.JSON(w, c.groupResource(r, g))
		return
	}
	refuse(w, absent(targetOf(r, groupKind, r.PathValue("name"))))
}

// groupRequest is the body of networkEndpointGroups.insert, as far as it is understood here.
type groupRequest struct {
	Name        string `json:"name"`
	Description string `json:"description"`
	Type        string `json:"networkEndpointType"`
	Network     string `json:"network"`
	Subnetwork  string `json:"subnetwork"`
}

// check refuses what is no group of VMs in the only network.
func (a groupRequest) check(zone string) *refusal {
	switch {
	case !isName.MatchString(a.Name):
		return invalid("name", a.Name, "Must be a match of regex '"+nameRule+"'")
	case a.Type != "GCE_VM_IP":
		return invalid("networkEndpointType", a.Type, "localgce has groups of type GCE_VM_IP.")
	case a.Network != "" && (!isPartial(a.Network, "global/networks") || last(a.Network) != "default"):
		return &refusal{http.StatusNotFound, "notFound", "The resource '" + a.Network + "' was not found"}
	case a.Subnetwork != "" && (!isPartial(a.Subnetwork, "regions/"+instance.RegionOf(zone)+"/subnetworks") ||
		last(a.Subnetwork) != "default"):
		return &refusal{http.StatusNotFound, "notFound", "The resource '" + a.Subnetwork + "' was not found"}
	}
	return nil
}

// insertGroup answers networkEndpointGroups.insert.
func (c *Server) insertGroup(w http.ResponseWriter, r *http.Request) {
	var asked groupRequest
	unread := decode(r, &asked)
	c.order(w, r, "insert", "compute."+groupKind+".create", func() (job, *refusal) {
		t := target{resource: groupKind, zone: r.PathValue("zone"), name: asked.Name, id: instance.NewID()}
		refused := firstOf(unread, c.checkZone(t.zone), asked.check(t.zone))
		if _, taken := c.groups.find(t.zone, t.name); taken && refused == nil {
			refused = &refusal{http.StatusConflict, "alreadyExists", "The resource '" + t.path() + "' already exists"}
		}
		made := &group{target: t, created: time.Now(), description: asked.Description}
		return job{target: t, now: func() error {
			c.groups.mu.Lock()
			defer c.groups.mu.Unlock()
			c.groups.list = append(c.groups.list, made)
			return nil
		}, then: c.changedForwarding}, refused
	})
}

// deleteGroup answers networkEndpointGroups.delete.
func (c *Server) deleteGroup(w http.ResponseWriter, r *http.Request) {
	c.order(w, r, "delete", "compute."+groupKind+".delete", func() (job, *refusal) {
		g, refused := c.namedGroup(r)
		if user := c.userOf(g); user != "" && refused == nil {
			refused = inUse(g.target, user)
		}
		return job{target: g.target, then: func() error {
			c.groups.mu.Lock()
			c.groups.list = slices.DeleteFunc(c.groups.list, func(x *group) bool { return x.id == g.id })
			c.groups.mu.Unlock()
			return c.changedForwarding()
		}}, refused
	})
}

// userOf is the path of a backend service that has a group; empty: none has.
func (c *Server) userOf(g group) string {
	for _, o := range c.kept.all() {
		if s, ok := o.asked.(backendServiceRequest); ok && slices.ContainsFunc(s.Backends, func(b backendRequest) bool {
			return partial(b.Group) == g.path()
		}) {
			return o.path()
		}
	}
	return ""
}

// namedGroup is the group that a request names.
func (c *Server) namedGroup(r *http.Request) (group, *refusal) {
	g, found := c.groups.find(r.PathValue("zone"), r.PathValue("name"))
	if !found {
		t := target{resource: groupKind, zone: r.PathValue("zone"), name: r.PathValue("name")}
		return group{target: t}, absent(t)
	}
	return g, nil
}

// endpointsRequest is the body of the three calls about a group's endpoints, as far as it is understood here.
type endpointsRequest struct {
	HealthStatus string            `json:"healthStatus,omitempty"`
	Endpoints    []endpointRequest `json:"networkEndpoints"`
}

type endpointRequest struct {
	Instance string `json:"instance"`
	Address  string `json:"ipAddress"`
}

// listEndpoints answers networkEndpointGroups.listNetworkEndpoints.
func (c *Server) listEndpoints(w http.ResponseWriter, r *http.Request) {
	if !c.reaches(w, r) || !c.checkPermissions(w, r, "compute.networkEndpointGroups.get") {
		return
	}
	var asked endpointsRequest
	if refused := decode(r, &asked); refused != nil {
		answer.Error(w, refused.status, refused.reason, refused.text)
		return
	}
	g, found := c.groups.find(r.PathValue("zone"), r.PathValue("name"))
	if !found {
		refuse(w, absent(targetOf(r, groupKind, r.PathValue("name"))))
		return
	}
	items := []any{}
	for _, e := range c.living(g) {
		item := map[string]any{"networkEndpoint": map[string]any{"instance": e.name, "ipAddress": e.address}}
		if asked.HealthStatus == "SHOW" && c.conf.Healthy != nil {
			state := "UNHEALTHY"
			if c.conf.Healthy(e.id) {
				state = "HEALTHY"
			}
			item["healths"] = []any{map[string]any{"healthState": state}}
		}
		items = append(items, item)
	}
	answer.JSON(w, map[string]any{"kind": "compute#networkEndpointGroupsListNetworkEndpoints", "id": r.URL.Path[1:],
		"items": items})
}

// attachEndpoints answers networkEndpointGroups.attachNetworkEndpoints. What is attached already stays so.
func (c *Server) attachEndpoints(w http.ResponseWriter, r *http.Request) {
	c.changeEndpoints(w, r, "attachNetworkEndpoints", func(g *group, e endpoint) {
		if !slices.Contains(g.endpoints, e) {
			g.endpoints = append(slices.Clone(g.endpoints), e)
		}
	}, func(group, endpoint) *refusal { return nil })
}

// detachEndpoints answers networkEndpointGroups.detachNetworkEndpoints. What is not attached cannot be detached.
func (c *Server) detachEndpoints(w http.ResponseWriter, r *http.Request) {
	c.changeEndpoints(w, r, "detachNetworkEndpoints", func(g *group, e endpoint) {
		g.endpoints = slices.DeleteFunc(slices.Clone(g.endpoints), func(x endpoint) bool { return x == e })
	}, func(g group, e endpoint) *refusal {
		if slices.Contains(g.endpoints, e) {
			return nil
		}
		return invalid("networkEndpoints[0]", e.name+" "+e.address, "The endpoint is not in the group.")
	})
}

// changeEndpoints answers a request that changes a group's endpoints. The VMs' account may send it where its roles say
// so.
func (c *Server) changeEndpoints(w http.ResponseWriter, r *http.Request, kind string, act func(*group, endpoint),
	check func(group, endpoint) *refusal) {
	var asked endpointsRequest
	unread := decode(r, &asked)
	prepare := func() (job, *refusal) {
		g, refused := c.namedGroup(r)
		if refused = firstOf(unread, refused); refused != nil {
			return job{}, refused
		}
		var all []endpoint
		for n, one := range asked.Endpoints {
			e, refused := c.endpointOf(fmt.Sprintf("networkEndpoints[%d].", n), g.zone, one)
			if refused = firstOf(refused, check(g, e)); refused != nil {
				return job{}, refused
			}
			all = append(all, e)
		}
		if len(all) == 0 {
			return job{}, invalid("networkEndpoints", "", "At least one endpoint is needed.")
		}
		return job{target: g.target, then: func() error {
			err := c.groups.change(g.id, func(g *group) {
				for _, e := range all {
					act(g, e)
				}
			})
			_ = c.changedForwarding()
			return err
		}}, nil
	}
	c.orderBy(w, r, kind, []string{"compute." + groupKind + "." + kind, "compute.instances.use"}, prepare)
}

// endpointOf is the VM that a request names, by its own address.
func (c *Server) endpointOf(field, zone string, asked endpointRequest) (endpoint, *refusal) {
	name := last(asked.Instance)
	if asked.Instance != name && !isPartial(asked.Instance, "zones/"+zone+"/instances") {
		return endpoint{}, invalid(field+"instance", asked.Instance, "The URL is malformed, or not of the group's zone.")
	}
	for _, i := range c.conf.Instances() {
		if i.Zone != zone || i.Name != name {
			continue
		}
		if address := i.Address.String(); asked.Address != "" && asked.Address != address {
			return endpoint{}, invalid(field+"ipAddress", asked.Address,
				"Specified IP address doesn't belong to the instance.")
		}
		return endpoint{i.ID, i.Name, i.Address.String()}, nil
	}
	return endpoint{}, absent(target{resource: "instances", zone: zone, name: name})
}

// changedForwarding tells the project that what is forwarded to VMs may be another.
func (c *Server) changedForwarding() error {
	if c.conf.ForwardingChanged != nil {
		c.conf.ForwardingChanged()
	}
	return nil
}
