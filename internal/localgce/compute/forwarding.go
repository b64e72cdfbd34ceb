package compute

import (
	"net/netip"
	"strconv"
	"strings"
	"time"

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
	out = instance.Forwarding{Address: address, Port: port, Check: check.value(),
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
