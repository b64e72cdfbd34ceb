package replica

import "time"

// ElectionTimes are the three times of every leader election with a Lease, in client-go's words.
type ElectionTimes struct {
	// LeaseDuration is how long the others wait after the last renewal before they take the lease.
	LeaseDuration time.Duration
	// RenewDeadline is how long a leader tries to renew before it gives up. Some programs then try to give the lease
	// back for as long again, and work meanwhile.
	RenewDeadline time.Duration
	// RetryPeriod is the pause between tries.
	RetryPeriod time.Duration
}

// ElectionTimes returns the times of the chosen profile. fast (9/3/1 s) replaces a leader that died without a word in
// about ten seconds; slow (15/5/2 s) is for a control plane whose apiserver stalls for seconds at a time. Validate has
// checked that the profile is one of the two; where it is not given this is fast.
//
// A leader that is cut off has ended its work before another begins, also one that gives its lease back:
// WorksOn is less than the lease.
func (c *Cluster) ElectionTimes() ElectionTimes {
	if c.Election == ElectionSlow {
		return ElectionTimes{LeaseDuration: 15 * time.Second, RenewDeadline: 5 * time.Second,
			RetryPeriod: 2 * time.Second}
	}
	return ElectionTimes{LeaseDuration: 9 * time.Second, RenewDeadline: 3 * time.Second, RetryPeriod: time.Second}
}

// WithoutTimeLimit are the times for a program whose client sets no time limit for a request, as cluster-autoscaler's.
// A renewal's answer may come late by the whole deadline there, so the deadline is half a retry period shorter.
func (t ElectionTimes) WithoutTimeLimit() ElectionTimes {
	t.RenewDeadline -= t.RetryPeriod / 2
	return t
}

// WorksOn is how long a program that elects itself with client-go, and gives its lease back (ReleaseOnCancel), may work
// after its last renewal was written. The answer may take late. The next renewal begins a retry period after it and
// fails for the deadline, and the lease is given back for as long again before the work ends: see renew and release in
// client-go's tools/leaderelection.
func (t ElectionTimes) WorksOn(late time.Duration) time.Duration {
	return late + t.RetryPeriod + 2*t.RenewDeadline
}
