package replica

import "time"

// ElectionTimes are the three times of every leader election with a Lease, in client-go's words.
type ElectionTimes struct {
	// LeaseDuration is how long the others wait after the last renewal before they take the lease.
	LeaseDuration time.Duration
	// RenewDeadline is how long a leader tries to renew before it gives up; it must be dead before LeaseDuration ends.
	RenewDeadline time.Duration
	// RetryPeriod is the pause between tries.
	RetryPeriod time.Duration
}

// ElectionTimes returns the times of the chosen profile. fast (8/4/1 s) replaces a leader that died without a word in
// about nine seconds; slow (15/8/2 s) is for a control plane whose apiserver stalls for seconds at a time. Validate has
// checked that the profile is one of the two; where it is not given this is fast.
func (c *Cluster) ElectionTimes() ElectionTimes {
	if c.Election == ElectionSlow {
		return ElectionTimes{LeaseDuration: 15 * time.Second, RenewDeadline: 8 * time.Second,
			RetryPeriod: 2 * time.Second}
	}
	return ElectionTimes{LeaseDuration: 8 * time.Second, RenewDeadline: 4 * time.Second, RetryPeriod: time.Second}
}
