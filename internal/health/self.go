package health

import (
	"slices"

	"github.com/quorate/quorate/internal/replica"
)

// Condition is how one replica is, by what it says of itself.
type Condition struct {
	// Ready: its boot is done.
	Ready bool
	// Down are the components that are not ready, Waits the names of what it waits for.
	Down, Waits []string
	// Other: something else is wrong that nothing waits for, such as a lease that nobody renews.
	Other bool
}

// State is the verdict on the replica, in the words of a cluster's. It serves while its own apiserver is ready.
func (c Condition) State() State {
	switch {
	case !c.Ready, slices.Contains(c.Down, replica.APIServer):
		return NotServing
	case c.Other, len(c.Down) > 0, slices.ContainsFunc(c.Waits, Degrades):
		return Degraded
	}
	return Well
}

// Degrades reports whether a wait or a finding of this name asks for somebody to do something. One that a newer version
// has added does.
func Degrades(name string) bool { return entryOf(name).level != Note }
