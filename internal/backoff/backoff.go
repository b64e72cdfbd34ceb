// Package backoff says how long to rest between the tries of one thing. It has no clock: who tries also waits.
//
// It does not count tries, and it does not restart processes: the supervisor's rule also asks how long one was well.
package backoff

import (
	"math/rand/v2"
	"time"
)

// Backoff is the pause between the tries of one thing: it doubles from First to Most. Up to half of it is taken off by
// chance, so that replicas that fail for one cause do not come back in step.
type Backoff struct {
	First, Most time.Duration
	last        time.Duration
}

// Next is the pause after a try that failed.
func (b *Backoff) Next() time.Duration {
	b.last = min(max(b.First, 2*b.last), b.Most)
	return b.last/2 + rand.N(b.last/2+1)
}

// Reset begins anew after a try that went well.
func (b *Backoff) Reset() { b.last = 0 }
