package agent

import (
	"math/rand/v2"
	"time"
)

// backoff is the pause between the tries of one thing: it doubles from first to most. Up to half of it is taken off by
// chance, so that replicas that fail for one cause do not come back in step.
type backoff struct {
	first, most time.Duration
	last        time.Duration
}

// next is the pause after a try that failed.
func (b *backoff) next() time.Duration {
	b.last = min(max(b.first, 2*b.last), b.most)
	return b.last/2 + rand.N(b.last/2+1)
}

// reset begins anew after a try that went well.
func (b *backoff) reset() { b.last = 0 }
