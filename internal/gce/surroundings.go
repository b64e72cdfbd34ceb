package gce

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"google.golang.org/api/compute/v1"

	"github.com/quorate/quorate/internal/replica"
)

// ResourceKind is a kind of resource that surrounds the masters. Its text is how errors and plans name it.
type ResourceKind string

// The kinds.
const (
	FirewallRule   ResourceKind = "firewall rule"
	Address        ResourceKind = "address"
	HealthCheck    ResourceKind = "health check"
	EndpointGroup  ResourceKind = "endpoint group"
	BackendService ResourceKind = "backend service"
	ForwardingRule ResourceKind = "forwarding rule"
	// Instance is that of a VM which has an address. No VM is among the surroundings.
	Instance ResourceKind = "instance"
)

// Resource is one that surrounds the masters, as it is wanted or as it was found.
type Resource struct {
	Kind ResourceKind
	// Zone is that of an endpoint group; others are of the region or of the project.
	Zone, Name string
	// ID is the numeric id of one that was found.
	ID string
	// Made: a command made it for this cluster. Of one that is wanted: commands make it; otherwise somebody has to.
	Made bool
	// Fields are those that have to be as wanted, in an order of their own. Links begin with projects/.
	Fields []Field
	// Users are what has an address that was found.
	Users []User
	// body is what is inserted.
	body any
	// tier is the network tier of an address.
	tier string
}

// Field is a field by its name in the Compute API, with its value in words.
type Field struct{ Name, Value string }

// Surroundings are what masters need of a project besides VMs and disks. Links are partial, as in VMSpec.
type Surroundings struct {
	// Project and Cluster are whose they are; Name is what all names begin with.
	Project, Cluster, Region, Name string
	Network, Subnetwork            string
	// Account is the masters' service account: firewall rules know masters by it.
	Account string
	Port    int
	// Scheme is EXTERNAL or INTERNAL; empty: no load balancer, so neither Address nor Zones are used.
	Scheme, Address string
	// Zones are those with an endpoint group.
	Zones []string
	// Sources are the ranges from which clients reach the API, Probes those of health checks; without Sources there are
	// no firewall rules.
	Sources, Probes []string
}

// madeBy marks what a command has made for a cluster.
func madeBy(cluster string) string { return "Made by quorate for cluster " + cluster + "." }

// Resources are those that are wanted, in the order in which they can be made.
func (s Surroundings) Resources() (out []Resource) {
	if len(s.Sources) > 0 {
		for _, f := range s.firewalls() {
			out = append(out, Resource{Kind: FirewallRule, Name: f.Name, Made: true, Fields: firewallFields(f),
				body: f})
		}
	}
	if s.Scheme == "" {
		return out
	}
	a := &compute.Address{Name: s.Name, Address: s.Address, AddressType: s.Scheme, Description: madeBy(s.Cluster)}
	internal := s.Scheme == "INTERNAL"
	if internal {
		a.Subnetwork = s.subnetwork()
	}
	out = append(out, Resource{Kind: Address, Name: a.Name, Made: internal, Fields: addressFields(a), body: a})
	h := &compute.HealthCheck{Name: s.Name, Description: madeBy(s.Cluster), Type: "HTTPS",
		CheckIntervalSec: seconds(replica.CheckInterval), TimeoutSec: seconds(replica.CheckTimeout),
		HealthyThreshold: replica.HealthyAfter, UnhealthyThreshold: replica.UnhealthyAfter,
		HttpsHealthCheck: &compute.HTTPSHealthCheck{Port: int64(s.Port), PortSpecification: "USE_FIXED_PORT",
			RequestPath: "/readyz"}}
	out = append(out, Resource{Kind: HealthCheck, Name: h.Name, Made: true, Fields: healthCheckFields(h), body: h})
	b := &compute.BackendService{Name: s.Name, Description: madeBy(s.Cluster), LoadBalancingScheme: s.Scheme,
		Protocol: "TCP", HealthChecks: []string{s.inRegion("healthChecks")},
		ConnectionDraining: &compute.ConnectionDraining{DrainingTimeoutSec: seconds(replica.DrainTimeout)}}
	for _, zone := range s.Zones {
		g := &compute.NetworkEndpointGroup{Name: s.Name, Description: madeBy(s.Cluster),
			NetworkEndpointType: "GCE_VM_IP", Network: s.Network, Subnetwork: s.Subnetwork}
		out = append(out, Resource{Kind: EndpointGroup, Zone: zone, Name: g.Name, Made: true,
			Fields: endpointGroupFields(g), body: g})
		b.Backends = append(b.Backends, &compute.Backend{BalancingMode: "CONNECTION",
			Group: fmt.Sprintf("projects/%s/zones/%s/networkEndpointGroups/%s", s.Project, zone, g.Name)})
	}
	out = append(out, Resource{Kind: BackendService, Name: b.Name, Made: true, Fields: backendServiceFields(b),
		body: b})
	f := &compute.ForwardingRule{Name: s.Name, Description: madeBy(s.Cluster), LoadBalancingScheme: s.Scheme,
		IPProtocol: "TCP", IPAddress: s.Address, Ports: []string{strconv.Itoa(s.Port)},
		BackendService: s.inRegion("backendServices")}
	if internal {
		f.Network, f.Subnetwork = s.Network, s.subnetwork()
	}
	return append(out, Resource{Kind: ForwardingRule, Name: f.Name, Made: true, Fields: forwardingRuleFields(f),
		body: f})
}

func seconds(d time.Duration) int64 { return int64(d / time.Second) }

// inRegion is the partial link of the load balancer's part of a kind.
func (s Surroundings) inRegion(kind string) string {
	return fmt.Sprintf("projects/%s/regions/%s/%s/%s", s.Project, s.Region, kind, s.Name)
}

// subnetwork is the one given, or that of a network which makes its own: it has the network's name.
func (s Surroundings) subnetwork() string {
	return cmp.Or(s.Subnetwork, fmt.Sprintf("projects/%s/regions/%s/subnetworks/%s", s.Project, s.Region,
		lastPart(s.Network)))
}

// kubeletPort is what the API server reaches a kubelet at.
const kubeletPort = "10250"

// firewalls are the rules: among masters etcd, the API and the kubelets; the API from where the document says; the API
// from the health checks. The first two ports are etcd's clients and peers, which nobody else reaches.
func (s Surroundings) firewalls() []*compute.Firewall {
	port, me := strconv.Itoa(s.Port), []string{s.Account}
	rule := func(end string, ports, accounts, ranges []string) *compute.Firewall {
		return &compute.Firewall{Name: s.Name + "-" + end, Description: madeBy(s.Cluster), Network: s.Network,
			Direction: "INGRESS", Priority: 1000, TargetServiceAccounts: me, SourceServiceAccounts: accounts,
			SourceRanges: ranges, Allowed: []*compute.FirewallAllowed{{IPProtocol: "tcp", Ports: ports}}}
	}
	out := []*compute.Firewall{rule("masters", []string{"2379-2380", port, kubeletPort}, me, nil),
		rule("api", []string{port}, nil, s.Sources)}
	if len(s.Probes) > 0 {
		out = append(out, rule("probes", []string{port}, nil, s.Probes))
	}
	return out
}

func firewallFields(f *compute.Firewall) []Field {
	var allowed, denied []string
	for _, a := range f.Allowed {
		allowed = append(allowed, protocols(a.IPProtocol, a.Ports)...)
	}
	for _, d := range f.Denied {
		denied = append(denied, protocols(d.IPProtocol, d.Ports)...)
	}
	return []Field{{"network", linkText(f.Network)}, {"direction", f.Direction},
		{"disabled", strconv.FormatBool(f.Disabled)}, {"allowed", listText(allowed)}, {"denied", listText(denied)},
		{"sourceRanges", listText(f.SourceRanges)}, {"sourceTags", listText(f.SourceTags)},
		{"sourceServiceAccounts", listText(f.SourceServiceAccounts)}, {"targetTags", listText(f.TargetTags)},
		{"targetServiceAccounts", listText(f.TargetServiceAccounts)},
		{"destinationRanges", listText(f.DestinationRanges)}}
}

// protocols are ports as gcloud writes them, such as tcp:443.
func protocols(protocol string, ports []string) (out []string) {
	if len(ports) == 0 {
		return []string{protocol}
	}
	for _, p := range ports {
		out = append(out, protocol+":"+p)
	}
	return out
}

// addressFields: the type of an external address is left out of older answers.
func addressFields(a *compute.Address) []Field {
	return []Field{{"address", a.Address}, {"addressType", cmp.Or(a.AddressType, "EXTERNAL")}}
}

// healthCheckFields: how often it asks is the operator's to tune.
func healthCheckFields(h *compute.HealthCheck) []Field {
	https := h.HttpsHealthCheck
	if https == nil {
		https = &compute.HTTPSHealthCheck{}
	}
	return []Field{{"type", h.Type}, {"httpsHealthCheck.port", strconv.FormatInt(https.Port, 10)},
		{"httpsHealthCheck.requestPath", https.RequestPath}}
}

func endpointGroupFields(g *compute.NetworkEndpointGroup) []Field {
	return []Field{{"networkEndpointType", g.NetworkEndpointType}, {"network", linkText(g.Network)}}
}

func backendServiceFields(b *compute.BackendService) []Field {
	var checks, groups []string
	for _, link := range b.HealthChecks {
		checks = append(checks, linkText(link))
	}
	for _, one := range b.Backends {
		groups = append(groups, linkText(one.Group))
	}
	return []Field{{"loadBalancingScheme", b.LoadBalancingScheme}, {"protocol", b.Protocol},
		{"healthChecks", listText(checks)}, {"backends", listText(groups)}}
}

func forwardingRuleFields(f *compute.ForwardingRule) []Field {
	return []Field{{"loadBalancingScheme", f.LoadBalancingScheme}, {"IPProtocol", f.IPProtocol},
		{"IPAddress", f.IPAddress}, {"ports", listText(f.Ports)}, {"backendService", linkText(f.BackendService)}}
}

// linkText is a link from the project on, whichever way it is written.
func linkText(link string) string {
	if at := strings.Index(link, "projects/"); at >= 0 {
		return link[at:]
	}
	return link
}

// listText is a list in words; its order does not matter.
func listText(list []string) string {
	if len(list) == 0 {
		return "none"
	}
	return strings.Join(slices.Sorted(slices.Values(list)), ", ")
}
