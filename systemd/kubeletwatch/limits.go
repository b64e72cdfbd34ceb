package kubeletwatch

import "time"

// Limits are what the Cluster document can choose.
type Limits struct {
	// AnswerWithin is how long an answer may take, Misses how many must fail in a row.
	AnswerWithin time.Duration
	Misses       int
	// StartWithin is how long a start-up may take.
	StartWithin time.Duration
}

// patience is how long answers must have failed. Refused connections fail at once, and must not count faster than
// silence does.
func (l Limits) patience() time.Duration { return time.Duration(l.Misses) * l.AnswerWithin * 5 / 6 }

const (
	// killPatience is how long SIGKILL may take. A process that can end does so within milliseconds; one that writes a
	// core takes seconds.
	killPatience = 10 * time.Second
	// loopExits within loopSpan make a crash loop. Fewer may be faults of different kinds.
	loopExits = 5
	loopSpan  = 5 * time.Minute
	// loopOver is how long a process must run for the loop to be over.
	loopOver = 2 * time.Minute
)
