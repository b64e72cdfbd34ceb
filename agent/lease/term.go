package lease

import "time"

// killAhead is how long before another may take the lease what runs under it is killed. The kernel needs milliseconds.
// The rest is for clocks that run at different rates, and for an agent that gets no processor.
const killAhead = time.Second

// Times say for how long something may run after the last renewal, counted from when that renewal's request began:
// another replica sees the renewal at that time at the earliest, and waits for the whole duration from then on.
type Times struct {
	// Stop is when it is asked to end, Kill is when it is killed. Both are before the lease's duration is over.
	Stop, Kill time.Duration
}

// TimesOf are those of a lease of that duration, whose holder renews it each retry and gives up after deadline. What
// runs is asked to end when a renewal must have failed for the whole deadline, as client-go would notice it.
func TimesOf(duration, deadline, retry time.Duration) Times {
	return Times{Stop: min(deadline+retry, duration-2*killAhead), Kill: duration - killAhead}
}

// Verdict is what may be done under a lease.
type Verdict int

// The verdicts.
const (
	Run  Verdict = iota // it may be started, and go on
	Stop                // nothing is started, and what runs is asked to end
	Kill                // what still runs is killed
)

// Decide says what may be done at now under a lease whose last successful renewal began at renewed. Both are by one
// clock that nobody sets and that does not stop while the machine is suspended.
func (t Times) Decide(now, renewed time.Duration) Verdict {
	switch age := now - renewed; {
	case age >= t.Kill:
		return Kill
	case age >= t.Stop:
		return Stop
	}
	return Run
}
