package compute

import (
	"net/http"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/quorate/quorate/internal/localgce/answer"
	"github.com/quorate/quorate/internal/localgce/instance"
)

// Forwardings are what the forwarding rules that were inserted lead to.
func (c *Server) Forwardings() (out []instance.Forwarding) {
	for _, o := range c.kept.all() {
		if rule, ok := o.asked.(forwardingRuleRequest); ok {
			if f, ok := c.forwarding(rule, o.target); ok {
				out = append(out, f)
			}
		}
	}
	return out
}

// forwarding follows a rule's links. What a rule refers to cannot be deleted before it; it is ok to find nothing.
func (c *Server) forwarding(rule forwardingRuleRequest, of target) (out instance.Forwarding, ok bool) {
	service, ok := requestOf[backendServiceRequest](c, of, "backendServices", rule.BackendService)
	if !ok {
		return out, false
	}
	check, ok := requestOf[healthCheckRequest](c, of, "healthChecks", service.HealthChecks[0])
	if !ok {
		return out, false
	}
	// Both were checked when the rule was made.
	address, _ := netip.ParseAddr(rule.Address)
	port, _ := strconv.Atoi(rule.Ports[0])
	out = instance.Forwarding{Address: address, Port: port, Internal: rule.Scheme == "INTERNAL", Check: check.value(),
		Drain: time.Duration(service.Draining.TimeoutSec) * time.Second}
	for _, b := range service.Backends {
		g, _ := c.groups.find(zoneOf(b.Group), last(b.Group))
		for _, e := range g.endpoints {
			out.Endpoints = append(out.Endpoints, e.id)
		}
	}
	return out, true
}

// requestOf is what a resource was made of that a link leads to.
func requestOf[T keptRequest](c *Server, of target, kind, link string) (out T, ok bool) {
	of.resource, of.name = kind, last(link)
	o, _ := c.findKept(of)
	out, ok = o.asked.(T)
	return out, ok
}

func (a healthCheckRequest) value() instance.HealthCheck {
	return instance.HealthCheck{Port: a.HTTPS.Port, Path: a.HTTPS.RequestPath,
		Interval: time.Duration(a.CheckIntervalSec) * time.Second, Timeout: time.Duration(a.TimeoutSec) * time.Second,
		Healthy: a.HealthyThreshold, Unhealthy: a.UnhealthyThreshold}
}

// zoneOf is the zone in a link.
func zoneOf(link string) string {
	_, rest, _ := strings.Cut(link, "zones/")
	zone, _, _ := strings.Cut(rest, "/")
	return zone
}

// getHealth answers regionBackendServices.getHealth: what the health check makes of a group's endpoints.
func (c *Server) getHealth(w http.ResponseWriter, r *http.Request) {
	if !c.reaches(w, r) || !c.checkPermissions(w, r, "compute.regionBackendServices.get") {
		return
	}
	var asked struct {
		Group string `json:"group"`
	}
	refused := decode(r, &asked)
	service, found := c.findKept(targetOf(r, "backendServices", r.PathValue("name")))
	of, isService := service.asked.(backendServiceRequest)
	g, isGroup := c.groups.find(zoneOf(asked.Group), last(asked.Group))
	switch {
	case refused != nil:
	case !found || !isService:
		refused = absent(targetOf(r, "backendServices", r.PathValue("name")))
	case !isGroup || !slices.ContainsFunc(of.Backends, func(b backendRequest) bool {
		return partial(b.Group) == partial(asked.Group)
	}):
		refused = invalid("group", asked.Group, "It is no backend of the service.")
	}
	if refused != nil {
		refuse(w, refused)
		return
	}
	states := []any{}
	for _, e := range c.living(g) {
		state := "UNHEALTHY"
		if c.conf.Healthy != nil && c.conf.Healthy(e.id) {
			state = "HEALTHY"
		}
		states = append(states, map[string]any{"healthState": state, "ipAddress": e.address,
			"instance": fullLink(target{resource: "instances", zone: g.zone, name: e.name}.path())})
	}
	answer.JSON(w, map[string]any{"kind": "compute#backendServiceGroupHealth", "healthStatus": states})
}
