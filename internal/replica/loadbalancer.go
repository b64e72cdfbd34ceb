package replica

import "time"

// How the load balancer that commands make asks a master whether it is ready, and what a master that stops has to
// reckon with. Two misses and the time that a change takes are what a stop waits for, so each of its steps is derived
// from these.
const (
	// CheckInterval and CheckTimeout are the health check's; Google allows no shorter ones.
	CheckInterval, CheckTimeout = time.Second, time.Second
	// HealthyAfter successes in a row take a master in, UnhealthyAfter misses in a row take it out.
	HealthyAfter, UnhealthyAfter = 1, 2
	// DrainTimeout is how long connections go on of a master that has left its endpoint group.
	DrainTimeout = 60 * time.Second
	// SettleTime is how long new connections may still come to a master after the operation that took it out is over,
	// or after the health check has found it ill. Google names no figure: others saw 5 to 10 s.
	SettleTime = 10 * time.Second
)
