package instance

import (
	"net/netip"
	"time"
)

// Forwarding is what a forwarding rule leads to: the endpoints of its backend service's groups, and how they are asked
// whether they are ready.
type Forwarding struct {
	Address netip.Addr
	// Port is the one that is forwarded; 0: all.
	Port  int
	Check HealthCheck
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
