// Package backoff says how long to rest between the tries of one thing, and rests.
//
// It does not count tries, and it does not restart processes: the supervisor's rule also asks how long one was well.
package backoff

import (
	"context"
	"fmt"
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

// Sleep rests for d. It returns an error, with the context's cause, where the context ends before that or has ended.
func Sleep(ctx context.Context, d time.Duration) error {
	if d > 0 {
		t := time.NewTimer(d)
		defer t.Stop()
		select {
		case <-ctx.Done():
		case <-t.C:
			return nil
		}
	}
	if ctx.Err() != nil {
		return fmt.Errorf("interrupted: %w", context.Cause(ctx))
	}
	return nil
}
