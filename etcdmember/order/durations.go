package order

import "time"

// livingFor is how long after a member last came further a cluster counts as living. A member that goes on writes a
// mark each 30 s.
const livingFor = time.Minute

const (
	// StopAfter is how long a VM that a restore waits for may still say itself that it stopped: its agent reads orders
	// within 10 s.
	StopAfter = 20 * time.Second
	// stopAgainAfter is the time between two tries to stop a VM, where the first failed.
	stopAgainAfter = 30 * time.Second
)
