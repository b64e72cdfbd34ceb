package supervisor

import "time"

const (
	// firstDelay is the distance to the next start after a failure; each further one doubles it up to maxDelay, at
	// which a fault that somebody repairs is noticed within a minute and one that nobody repairs costs little.
	firstDelay = time.Second
	maxDelay   = time.Minute
	// jitterPart is how much of a delay may be taken off by chance, so that replicas that fail for one cause do not
	// come back in step. It is taken off and not added: the first restart stays within a second.
	jitterPart = 0.2
	// healthyAfter is how long a process must be ready in one piece for its past to be forgotten.
	healthyAfter = 10 * time.Minute
	// provenAfter is how long it must have been ready to have one quick restart: what was ready for that long has a
	// good configuration and was struck by something from outside, most often a kill.
	provenAfter = 10 * time.Second
	// quickDelay is that restart's delay: below what a client notices, and enough for sockets and locks of the former
	// run to be let go by whoever it talked to.
	quickDelay = 100 * time.Millisecond
	// expectedDistance is the least time between two starts around an expected exit, so that one which is always
	// expected does not spin.
	expectedDistance = time.Second
)

// backoff remembers failures. It has no clock: the machine says how long the run was good.
type backoff struct {
	last      time.Duration // the delay before chance took a part of it, since it was last healthy; no quick one
	quickUsed bool          // since it was last healthy
}

// next is how long to wait after a failure of a run that was ready for goodFor in one piece. jitter is in [0, 1).
func (b *backoff) next(goodFor time.Duration, jitter float64) time.Duration {
	if goodFor >= healthyAfter {
		*b = backoff{}
	}
	if goodFor >= provenAfter && !b.quickUsed {
		b.quickUsed = true
		return quickDelay
	}
	b.last = min(max(firstDelay, 2*b.last), maxDelay)
	return b.last - time.Duration(jitter*jitterPart*float64(b.last))
}

// expected is how long to wait after an expected exit of a run that lasted ranFor. Nothing grows.
func (b *backoff) expected(ranFor time.Duration) time.Duration {
	return max(0, expectedDistance-ranFor)
}
