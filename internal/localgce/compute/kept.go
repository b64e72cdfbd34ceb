package compute

import (
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/quorate/quorate/internal/localgce/answer"
	"github.com/quorate/quorate/internal/localgce/fault"
	"github.com/quorate/quorate/internal/localgce/instance"
)

// keptKind is a kind of resource that is kept as its fields: what is asked for is checked as Google would, and shown
// again.
type keptKind struct {
	// item is what one is called.
	item string
	// global: it is of the whole project; otherwise of a region.
	global bool
	// read reads a request's body.
	read func(*http.Request) (keptRequest, *refusal)
	// usedBy are the fields by which others refer to one, by their kinds.
	usedBy map[string]string
}

// keptRequest is the body of an insertion.
type keptRequest interface {
	// name is what it is to be called.
	name() string
	// fields are what it is then, without what all have; or why it cannot be made.
	fields(c *Server, t target) (resource, *refusal)
}

// keptKinds are all of them, by what they are called in paths.
var keptKinds = map[string]keptKind{
	"firewalls": {item: "firewall", global: true, read: readAs[firewallRequest]},
	"addresses": {item: "address", read: readAs[addressRequest], usedBy: map[string]string{
		"forwardingRules": "IPAddress"}},
	"healthChecks": {item: "healthCheck", read: readAs[healthCheckRequest], usedBy: map[string]string{
		"backendServices": "healthChecks"}},
	"backendServices": {item: "backendService", read: readAs[backendServiceRequest], usedBy: map[string]string{
		"forwardingRules": "backendService"}},
	"forwardingRules": {item: "forwardingRule", read: readAs[forwardingRuleRequest]},
}

func readAs[T keptRequest](r *http.Request) (keptRequest, *refusal) {
	var to T
	refused := decode(r, &to)
	return to, refused
}

// kept are the resources of these kinds that were inserted.
type kept struct {
	mu   sync.Mutex
	list []keptOne
	// ruled: a firewall rule was among them.
	ruled bool
}

type keptOne struct {
	target
	fields resource
	// asked is what it was made of; nil for what the project's settings have.
	asked keptRequest
}

func (k *kept) add(o keptOne) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.list = append(k.list, o)
	k.ruled = k.ruled || o.resource == "firewalls"
}

func (k *kept) hasRuled() bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.ruled
}

func (k *kept) drop(id uint64) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.list = slices.DeleteFunc(k.list, func(o keptOne) bool { return o.id == id })
}

func (k *kept) all() []keptOne {
	k.mu.Lock()
	defer k.mu.Unlock()
	return slices.Clone(k.list)
}

// routeKept adds the paths of all kinds.
func (c *Server) routeKept(scope string) {
	for kind, k := range keptKinds {
		at := "regions/{region}/" + kind
		if k.global {
			at = "global/" + kind
		}
		c.routes.HandleFunc("GET "+scope+at, func(w http.ResponseWriter, r *http.Request) { c.listKept(w, r, kind) })
		c.routes.HandleFunc("GET "+scope+at+"/{name}", func(w http.ResponseWriter, r *http.Request) {
			c.getKept(w, r, kind)
		})
		c.routes.HandleFunc("POST "+scope+at, func(w http.ResponseWriter, r *http.Request) { c.insertKept(w, r, kind) })
		c.routes.HandleFunc("DELETE "+scope+at+"/{name}", func(w http.ResponseWriter, r *http.Request) {
			c.deleteKept(w, r, kind)
		})
	}
}

// keptOf are those of a kind in a scope: the project's settings, and what was inserted.
func (c *Server) keptOf(kind string, of target) (out []keptOne) {
	settings, _ := c.conf.Settings.Listed(kind)
	if kind == "firewalls" && c.kept.hasRuled() {
		settings = nil
	}
	for _, s := range settings {
		name, _ := s["name"].(string)
		t := of
		t.resource, t.name, t.id = kind, name, nameID(kind+"/"+name)
		out = append(out, keptOne{target: t, fields: s})
	}
	for _, o := range c.kept.all() {
		if o.resource == kind && o.scope() == of.scope() {
			out = append(out, o)
		}
	}
	return out
}

// findKept is the one of a name or id.
func (c *Server) findKept(t target) (keptOne, bool) {
	for _, o := range c.keptOf(t.resource, t) {
		if o.name == t.name || answer.Decimal(o.id) == t.name {
			return o, true
		}
	}
	return keptOne{}, false
}

// shown is how the API shows it.
func (o keptOne) shown(c *Server, r *http.Request) resource {
	base := "http://" + r.Host + "/compute/v1/"
	out := resource{"kind": "compute#" + keptKinds[o.resource].item, "id": answer.Decimal(o.id), "name": o.name,
		"selfLink": base + o.path()}
	if o.region != "" {
		out["region"] = base + o.scope()
	}
	maps.Copy(out, o.fields)
	if users := c.users(o); o.resource == "addresses" && len(users) > 0 {
		out["status"], out["users"] = "IN_USE", users
	}
	return out
}

// users are the links of what refers to it, and of the VM that has an address.
func (c *Server) users(o keptOne) (out []string) {
	for _, i := range c.conf.Instances() {
		if o.resource == "addresses" && i.ExternalIP.IsValid() && o.fields["address"] == i.ExternalIP.String() {
			out = append(out, fullLink(target{resource: "instances", zone: i.Zone, name: i.Name}.path()))
		}
	}
	for kind, field := range keptKinds[o.resource].usedBy {
		for _, user := range c.keptOf(kind, o.target) {
			refers := false
			switch v := user.fields[field].(type) {
			case string:
				refers = v == fullLink(o.path()) || o.fields["address"] != nil && v == o.fields["address"]
			case []string:
				refers = slices.Contains(v, fullLink(o.path()))
			}
			if refers {
				out = append(out, fullLink(user.path()))
			}
		}
	}
	return out
}

func (c *Server) listKept(w http.ResponseWriter, r *http.Request, kind string) {
	if !c.checkProject(w, r) {
		return
	}
	items := []resource{}
	for _, o := range c.keptOf(kind, targetOf(r, kind, "")) {
		items = append(items, o.shown(c, r))
	}
	if fault.Of(r).Kind == "empty" {
		items = nil
	}
	answer.JSON(w, map[string]any{"kind": "compute#" + keptKinds[kind].item + "List", "id": r.URL.Path[1:],
		"items": items, "selfLink": self(r)})
}

func (c *Server) getKept(w http.ResponseWriter, r *http.Request, kind string) {
	if !c.checkProject(w, r) {
		return
	}
	t := targetOf(r, kind, r.PathValue("name"))
	if o, found := c.findKept(t); found {
		answer.JSON(w, o.shown(c, r))
		return
	}
	refuse(w, absent(t))
}

func (c *Server) insertKept(w http.ResponseWriter, r *http.Request, kind string) {
	asked, unread := keptKinds[kind].read(r)
	c.order(w, r, "insert", "compute."+kind+".create", func() (job, *refusal) {
		if unread != nil {
			return job{}, unread
		}
		t := targetOf(r, kind, asked.name())
		if _, taken := c.findKept(t); taken {
			return job{}, exists(t)
		}
		t.id = instance.NewID()
		fields, refused := asked.fields(c, t)
		return job{target: t, now: func() error {
			fields["creationTimestamp"] = timestamp(time.Now())
			c.kept.add(keptOne{t, fields, asked})
			return c.changedForwarding()
		}, then: func() error { return nil }}, firstOf(checkName("name", t.name), c.checkRegion(t.region), refused)
	})
}

// deleteKept answers the deletion of what was inserted, by its name or id. What another refers to is refused.
func (c *Server) deleteKept(w http.ResponseWriter, r *http.Request, kind string) {
	c.order(w, r, "delete", "compute."+kind+".delete", func() (job, *refusal) {
		t := targetOf(r, kind, r.PathValue("name"))
		o, found := c.findKept(t)
		if !found {
			return job{}, absent(t)
		}
		if users := c.users(o); len(users) > 0 {
			return job{}, inUse(o.target, strings.TrimPrefix(users[0], fullLink("")))
		}
		if !slices.ContainsFunc(c.kept.all(), func(x keptOne) bool { return x.id == o.id }) {
			return job{}, invalid("name", o.name, "localgce's settings stay as they are.")
		}
		return job{target: o.target, then: func() error {
			c.kept.drop(o.id)
			return c.changedForwarding()
		}}, c.checkReady(o.target)
	})
}

func exists(t target) *refusal {
	return &refusal{http.StatusConflict, "alreadyExists", "The resource '" + t.path() + "' already exists"}
}

// checkRegion refuses what is to be made in a region without zones.
func (c *Server) checkRegion(region string) *refusal {
	if region == "" || c.conf.Zones == nil || slices.ContainsFunc(c.conf.Zones, func(z string) bool {
		return instance.RegionOf(z) == region
	}) {
		return nil
	}
	return &refusal{http.StatusNotFound, "notFound",
		"The resource 'projects/" + instance.ProjectID + "/regions/" + region + "' was not found"}
}

// referred is the link of one that a request refers to, and which has to be there and ready.
func (c *Server) referred(field, link, kind string, of target) (keptOne, *refusal) {
	folder := strings.TrimPrefix(of.scope(), "projects/"+instance.ProjectID+"/") + "/" + kind
	if !isPartial(link, folder) {
		return keptOne{}, invalid(field, link, "The URL is malformed: it must be projects/"+instance.ProjectID+"/"+folder+
			"/NAME.")
	}
	of.resource, of.name = kind, last(link)
	o, found := c.findKept(of)
	if !found {
		return o, absent(of)
	}
	return o, c.checkReady(o.target)
}
