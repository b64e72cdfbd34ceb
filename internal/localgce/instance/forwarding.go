package instance

import (
	"net/netip"
	"slices"
	"time"
)

// Forwarding is what a forwarding rule leads to: the endpoints of its backend service's groups, and how they are asked
// whether they are ready.
type Forwarding struct {
	Address netip.Addr
	// Port is the one that is forwarded; 0: all.
	Port int
	// Internal: the load balancer is for the network alone.
	Internal bool
	Check    HealthCheck
	// Drain is how long the connections go on of an endpoint that was taken out.
	Drain time.Duration
	// Endpoints are the ids of instances. One may be gone.
	Endpoints []uint64
}

// HealthCheck asks by HTTPS.
type HealthCheck struct {
	Port              int
	Path              string
	Interval, Timeout time.Duration
	// Healthy successes in a row take an endpoint in, Unhealthy misses in a row take it out.
	Healthy, Unhealthy int
}

// The addresses from which health checks come, one of each range that Google has them in: those of load balancers for
// the network alone, and those of others.
var (
	internalProbers = []netip.Addr{netip.MustParseAddr("35.191.0.1"), netip.MustParseAddr("130.211.0.1")}
	externalProbers = []netip.Addr{internalProbers[0], netip.MustParseAddr("209.85.152.1"),
		netip.MustParseAddr("209.85.204.1")}
)

// Probers are the addresses from which an endpoint is asked, in turn.
func (f Forwarding) Probers() []netip.Addr {
	if f.Internal {
		return internalProbers
	}
	return externalProbers
}

// AllProbers are the addresses of all probers.
func AllProbers() []netip.Addr { return append(slices.Clone(externalProbers), internalProbers[1]) }
