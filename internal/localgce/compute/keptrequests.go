package compute

import (
	"fmt"
	"net/http"
	"net/netip"
	"regexp"
	"slices"

	"github.com/quorate/quorate/internal/localgce/instance"
)

// firewallRequest is the body of firewalls.insert, as far as it is understood here.
type firewallRequest struct {
	Name                  string           `json:"name"`
	Description           string           `json:"description"`
	Network               string           `json:"network"`
	Direction             string           `json:"direction"`
	Priority              *int             `json:"priority"`
	Disabled              bool             `json:"disabled"`
	SourceRanges          []string         `json:"sourceRanges"`
	SourceTags            []string         `json:"sourceTags"`
	SourceServiceAccounts []string         `json:"sourceServiceAccounts"`
	TargetTags            []string         `json:"targetTags"`
	TargetServiceAccounts []string         `json:"targetServiceAccounts"`
	Allowed               []allowedRequest `json:"allowed"`
	Denied                []allowedRequest `json:"denied"`
}

type allowedRequest struct {
	Protocol string   `json:"IPProtocol"`
	Ports    []string `json:"ports,omitempty"`
}

func (a firewallRequest) name() string { return a.Name }

// isPorts is a port, or FROM-TO.
var isPorts = regexp.MustCompile(`^[0-9]{1,5}(-[0-9]{1,5})?$`)

func (a firewallRequest) fields(*Server, target) (resource, *refusal) {
	if refused := firstOf(checkNetwork(a.Network, ""), a.checkSources(), checkPorts("allowed", a.Allowed),
		checkPorts("denied", a.Denied)); refused != nil {
		return nil, refused
	}
	out := resource{"description": a.Description, "network": fullLink(networkPath), "direction": "INGRESS",
		"priority": a.priority(), "disabled": a.Disabled}
	for field, list := range map[string][]allowedRequest{"allowed": a.Allowed, "denied": a.Denied} {
		if len(list) > 0 {
			out[field] = list
		}
	}
	for field, list := range map[string][]string{"sourceRanges": a.SourceRanges, "sourceTags": a.SourceTags,
		"sourceServiceAccounts": a.SourceServiceAccounts, "targetTags": a.TargetTags,
		"targetServiceAccounts": a.TargetServiceAccounts} {
		if len(list) > 0 {
			out[field] = list
		}
	}
	return out, nil
}

// usualPriority is a rule's where none is given.
const usualPriority = 1000

func (a firewallRequest) priority() int {
	if a.Priority == nil {
		return usualPriority
	}
	return *a.Priority
}

func (a firewallRequest) checkSources() *refusal {
	tags, accounts := len(a.SourceTags)+len(a.TargetTags), len(a.SourceServiceAccounts)+len(a.TargetServiceAccounts)
	switch {
	case a.Direction != "" && a.Direction != "INGRESS":
		return invalid("direction", a.Direction, "localgce knows INGRESS.")
	case (len(a.Allowed) == 0) == (len(a.Denied) == 0):
		return invalid("allowed", "", "Exactly one of allowed and denied is required.")
	case a.priority() < 0 || a.priority() > 65535:
		return invalid("priority", fmt.Sprint(a.priority()), "Must be between 0 and 65535.")
	case tags > 0 && accounts > 0:
		return invalid("sourceTags", "", "Tags and service accounts cannot be in one rule.")
	case len(a.SourceRanges)+len(a.SourceTags)+len(a.SourceServiceAccounts) == 0:
		return invalid("sourceRanges", "", "localgce opens no port to everybody where nothing is said.")
	}
	for _, text := range a.SourceRanges {
		if p, err := netip.ParsePrefix(text); err != nil || p != p.Masked() || !p.Addr().Is4() {
			return invalid("sourceRanges[0]", text, "Must be a CIDR range.")
		}
	}
	return nil
}

// isProtocol is one that a rule may name.
var isProtocol = regexp.MustCompile(`^(tcp|udp|icmp|esp|ah|sctp|ipip|all|[0-9]{1,3})$`)

func checkPorts(field string, list []allowedRequest) *refusal {
	for _, one := range list {
		if !isProtocol.MatchString(one.Protocol) {
			return invalid(field+"[0].IPProtocol", one.Protocol, "Must be tcp, udp, icmp, esp, ah, sctp, ipip, all, "+
				"or a number.")
		}
		for _, ports := range one.Ports {
			if !slices.Contains([]string{"tcp", "udp", "sctp"}, one.Protocol) || !isPorts.MatchString(ports) {
				return invalid(field+"[0].ports[0]", ports, "Must be a port or a range of ports, of tcp, udp or sctp.")
			}
		}
	}
	return nil
}

// networkPath is the only network there is.
const networkPath = "projects/" + instance.ProjectID + "/global/networks/default"

// checkNetwork: there is one network, with one subnetwork in each region.
func checkNetwork(network, subnetwork string, of ...target) *refusal {
	folders := map[string]string{network: "global/networks"}
	for _, t := range of {
		folders[subnetwork] = "regions/" + t.region + "/subnetworks"
	}
	for link, folder := range folders {
		if link != "" && (!isPartial(link, folder) || last(link) != "default") {
			return &refusal{http.StatusNotFound, "notFound", "The resource '" + link + "' was not found"}
		}
	}
	return nil
}

// addressRequest is the body of addresses.insert, as far as it is understood here.
type addressRequest struct {
	Name        string `json:"name"`
	Description string `json:"description"`
	Address     string `json:"address"`
	AddressType string `json:"addressType"`
	Subnetwork  string `json:"subnetwork"`
}

func (a addressRequest) name() string { return a.Name }

// fields: Google draws external addresses by itself, and takes a given one only where something of the project has it.
func (a addressRequest) fields(c *Server, t target) (resource, *refusal) {
	ip, err := netip.ParseAddr(a.Address)
	switch {
	case a.AddressType != "INTERNAL":
		return nil, invalid("address", a.Address, "Specified external IP address not found.")
	case err != nil || !ip.Is4():
		return nil, invalid("address", a.Address, "Must be an IPv4 address of the subnetwork.")
	}
	if refused := checkNetwork("", a.Subnetwork, t); refused != nil {
		return nil, refused
	}
	taken := slices.ContainsFunc(c.conf.Instances(), func(i instance.VM) bool { return i.Address == ip }) ||
		slices.ContainsFunc(c.keptOf("addresses", t), func(o keptOne) bool { return o.fields["address"] == a.Address })
	if taken {
		return nil, &refusal{http.StatusBadRequest, "invalid", "IP address '" + a.Address +
			"' is already being used by another resource."}
	}
	out := resource{"description": a.Description, "address": a.Address, "addressType": a.AddressType,
		"status": "RESERVED", "purpose": "GCE_ENDPOINT", "networkTier": "PREMIUM"}
	if a.Subnetwork != "" {
		out["subnetwork"] = fullLink("projects/" + instance.ProjectID + "/regions/" + t.region + "/subnetworks/default")
	}
	return out, nil
}

// healthCheckRequest is the body of regionHealthChecks.insert, as far as it is understood here.
type healthCheckRequest struct {
	Name               string       `json:"name"`
	Description        string       `json:"description"`
	Type               string       `json:"type"`
	CheckIntervalSec   int          `json:"checkIntervalSec"`
	TimeoutSec         int          `json:"timeoutSec"`
	HealthyThreshold   int          `json:"healthyThreshold"`
	UnhealthyThreshold int          `json:"unhealthyThreshold"`
	HTTPS              httpsRequest `json:"httpsHealthCheck"`
}

type httpsRequest struct {
	Port              int    `json:"port"`
	PortSpecification string `json:"portSpecification"`
	RequestPath       string `json:"requestPath"`
}

func (a healthCheckRequest) name() string { return a.Name }

func (a healthCheckRequest) fields(*Server, target) (resource, *refusal) {
	switch {
	case a.Type != "HTTPS":
		return nil, invalid("type", a.Type, "localgce asks by HTTPS.")
	case a.HTTPS.PortSpecification != "USE_FIXED_PORT" || a.HTTPS.Port < 1 || a.HTTPS.Port > 65535:
		return nil, invalid("httpsHealthCheck.port", fmt.Sprint(a.HTTPS.Port), "Passthrough load balancers need a fixed port.")
	case a.CheckIntervalSec < 1 || a.TimeoutSec < 1 || a.TimeoutSec > a.CheckIntervalSec:
		return nil, invalid("timeoutSec", fmt.Sprint(a.TimeoutSec), "Must be at least 1, and at most checkIntervalSec.")
	case a.HealthyThreshold < 1 || a.UnhealthyThreshold < 1:
		return nil, invalid("healthyThreshold", fmt.Sprint(a.HealthyThreshold), "Must be between 1 and 10.")
	}
	return resource{"description": a.Description, "type": a.Type, "checkIntervalSec": a.CheckIntervalSec,
		"timeoutSec": a.TimeoutSec, "healthyThreshold": a.HealthyThreshold, "unhealthyThreshold": a.UnhealthyThreshold,
		"httpsHealthCheck": map[string]any{"port": a.HTTPS.Port, "requestPath": a.HTTPS.RequestPath,
			"portSpecification": a.HTTPS.PortSpecification, "proxyHeader": "NONE"}}, nil
}

// backendServiceRequest is the body of regionBackendServices.insert, as far as it is understood here.
type backendServiceRequest struct {
	Name         string           `json:"name"`
	Description  string           `json:"description"`
	Scheme       string           `json:"loadBalancingScheme"`
	Protocol     string           `json:"protocol"`
	HealthChecks []string         `json:"healthChecks"`
	Backends     []backendRequest `json:"backends"`
	Draining     drainingRequest  `json:"connectionDraining"`
}

type backendRequest struct {
	Group         string `json:"group"`
	BalancingMode string `json:"balancingMode"`
}

type drainingRequest struct {
	TimeoutSec int `json:"drainingTimeoutSec"`
}

func (a backendServiceRequest) name() string { return a.Name }

func (a backendServiceRequest) fields(c *Server, t target) (resource, *refusal) {
	switch {
	case !slices.Contains(schemes, a.Scheme):
		return nil, invalid("loadBalancingScheme", a.Scheme, "localgce knows EXTERNAL and INTERNAL.")
	case a.Protocol != "TCP":
		return nil, invalid("protocol", a.Protocol, "localgce knows TCP.")
	case len(a.HealthChecks) != 1:
		return nil, invalid("healthChecks", fmt.Sprint(len(a.HealthChecks)), "Exactly one health check is required.")
	case a.Draining.TimeoutSec < 0 || a.Draining.TimeoutSec > 3600:
		return nil, invalid("connectionDraining.drainingTimeoutSec", fmt.Sprint(a.Draining.TimeoutSec),
			"Must be between 0 and 3600.")
	}
	check, refused := c.referred("healthChecks[0]", a.HealthChecks[0], "healthChecks", t)
	if refused != nil {
		return nil, refused
	}
	backends := []any{}
	for n, b := range a.Backends {
		if b.BalancingMode != "CONNECTION" {
			return nil, invalid(fmt.Sprintf("backends[%d].balancingMode", n), b.BalancingMode, "Must be CONNECTION.")
		}
		backends = append(backends, map[string]any{"group": fullLink(partial(b.Group)),
			"balancingMode": b.BalancingMode})
	}
	return resource{"description": a.Description, "loadBalancingScheme": a.Scheme, "protocol": a.Protocol,
		"healthChecks": []string{fullLink(check.path())}, "backends": backends, "sessionAffinity": "NONE",
		"connectionDraining": map[string]any{"drainingTimeoutSec": a.Draining.TimeoutSec}}, nil
}

// schemes are those of passthrough load balancers.
var schemes = []string{"EXTERNAL", "INTERNAL"}

// forwardingRuleRequest is the body of forwardingRules.insert, as far as it is understood here.
type forwardingRuleRequest struct {
	Name           string   `json:"name"`
	Description    string   `json:"description"`
	Scheme         string   `json:"loadBalancingScheme"`
	Protocol       string   `json:"IPProtocol"`
	Address        string   `json:"IPAddress"`
	Ports          []string `json:"ports"`
	BackendService string   `json:"backendService"`
	Network        string   `json:"network"`
	Subnetwork     string   `json:"subnetwork"`
	NetworkTier    string   `json:"networkTier"`
}

func (a forwardingRuleRequest) name() string { return a.Name }

func (a forwardingRuleRequest) fields(c *Server, t target) (resource, *refusal) {
	service, refused := c.referred("backendService", a.BackendService, "backendServices", t)
	if refused = firstOf(refused, checkNetwork(a.Network, a.Subnetwork, t)); refused != nil {
		return nil, refused
	}
	switch {
	case service.fields["loadBalancingScheme"] != a.Scheme:
		return nil, invalid("loadBalancingScheme", a.Scheme, "It must be that of the backend service.")
	case a.Protocol != "TCP" || len(a.Ports) != 1 || !isPorts.MatchString(a.Ports[0]):
		return nil, invalid("ports", fmt.Sprint(a.Ports), "localgce forwards one port of TCP.")
	case a.Scheme == "EXTERNAL" && a.Network+a.Subnetwork != "":
		return nil, invalid("network", a.Network, "It is for internal load balancers.")
	}
	if refused := a.checkAddress(c, t); refused != nil {
		return nil, refused
	}
	out := resource{"description": a.Description, "loadBalancingScheme": a.Scheme, "IPProtocol": a.Protocol,
		"IPAddress": a.Address, "ports": a.Ports, "backendService": fullLink(service.path()), "networkTier": "PREMIUM"}
	if a.NetworkTier != "" {
		out["networkTier"] = a.NetworkTier
	}
	if a.Scheme == "INTERNAL" {
		out["network"] = fullLink(networkPath)
		out["subnetwork"] = fullLink("projects/" + instance.ProjectID + "/regions/" + t.region + "/subnetworks/default")
	}
	return out, nil
}

// checkAddress refuses an address that is not reserved, or that another rule has.
func (a forwardingRuleRequest) checkAddress(c *Server, t target) *refusal {
	for _, o := range c.keptOf("addresses", t) {
		kind, _ := o.fields["addressType"].(string)
		if o.fields["address"] != a.Address || (kind == "INTERNAL") != (a.Scheme == "INTERNAL") {
			continue
		}
		return firstOf(c.checkUnused(o), c.checkReady(o.target))
	}
	return invalid("IPAddress", a.Address, "The specified IP address is not reserved.")
}
