package replica

import "time"

// Wait is one thing that a replica waits for, as people are told it. Its JSON keys are stable.
type Wait struct {
	// Row is the row of the membership's table that holds, or the phase of the boot in which the wait began.
	Row string `json:"row"`
	// Name is the constant word for alarms and the runbook, such as seed-in-progress.
	Name string `json:"name"`
	// Reason says what was found, Next what ends the wait and what a person can do. Full sentences.
	Reason string `json:"reason"`
	// Since is when it began; zero: it is not known here.
	Since time.Time `json:"since,omitzero"`
	Next  string    `json:"next"`
	// Patience is how long it must last before it is told: most often it passes before.
	Patience time.Duration `json:"-"`
}
