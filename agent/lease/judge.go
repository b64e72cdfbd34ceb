package lease

import (
	"fmt"
	"time"
)

const (
	// stalePatience is what a lease may be overdue, beyond its duration. It is what upstream's own health checks give.
	stalePatience = 20 * time.Second
	// restartDistance is the least time between two restarts of one component for its lease, and restartWindow the time
	// in which there are at most restartsPerWindow. What a restart does not help is told to a person.
	restartDistance   = 5 * time.Minute
	restartWindow     = time.Hour
	restartsPerWindow = 3
)

// DryRun is what became of writing the lease without effect.
type DryRun int

// The outcomes.
const (
	NotTried DryRun = iota
	// Accepted: the apiserver would have written it, and it was still as observed.
	Accepted
	// Refused: a write is refused, by admission for one, so the leader cannot be blamed. Why says by whom.
	Refused
)

// Facts are what is known of a component that elects itself, on this machine.
type Facts struct {
	// Duration is the profile's.
	Duration time.Duration
	// Ready: the process is up and its health is green. Runs is since when.
	Ready bool
	Runs  time.Duration
	// Holds: the lease's holder is the process. Unchanged is how long the lease was not renewed.
	Holds     bool
	Unchanged time.Duration
	// Lost: the process held the lease, another replica's has taken it, this long ago.
	Lost      bool
	LostSince time.Duration
	DryRun    DryRun
	Why       string
	// Restarts are how long ago the component was started again for its lease.
	Restarts []time.Duration
}

// Act is what is done about a leader.
type Act int

// The acts.
const (
	Nothing Act = iota
	// Try to write the lease without effect, and judge again.
	Try
	// Restart the component.
	Restart
	// Tell a person: the lease is not renewed, and a restart would not help.
	Tell
)

// Judge says what is done about a component, and why. A leader hangs if its lease is not renewed although its health
// is green and the lease can be written; so does a process that goes on although another has taken its lease.
func Judge(f Facts) (Act, string) {
	limit := f.Duration + stalePatience
	switch {
	case !f.Ready || f.Runs < limit:
		return Nothing, "" // its own probes decide, or it has only begun
	case f.Lost && f.LostSince >= f.Duration:
		return budgeted(f.Restarts, fmt.Sprintf("another replica took the lease %s ago, and it runs on",
			f.LostSince.Round(time.Second)))
	case !f.Holds || f.Unchanged < limit:
		return Nothing, ""
	case f.DryRun == NotTried:
		return Try, ""
	}
	stale := fmt.Sprintf("it holds the lease and has not renewed it for %s", f.Unchanged.Round(time.Second))
	if f.DryRun == Refused {
		return Tell, stale + ", which nobody could: " + f.Why
	}
	return budgeted(f.Restarts, stale)
}

func budgeted(restarts []time.Duration, why string) (Act, string) {
	recent := 0
	for _, ago := range restarts {
		if ago < restartDistance {
			return Tell, fmt.Sprintf("%s; it was started again for that %s ago", why, ago.Round(time.Second))
		}
		if ago < restartWindow {
			recent++
		}
	}
	if recent >= restartsPerWindow {
		return Tell, fmt.Sprintf("%s; it was started again for that %d times within %s", why, recent, restartWindow)
	}
	return Restart, why
}
