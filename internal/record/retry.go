package record

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync/atomic"
	"time"
)

// pace bounds the tries of one call.
type pace struct {
	tries   int
	timeout time.Duration // of one try
	first   time.Duration // wait after the first try; doubles, jittered
	longest time.Duration
}

// normalPace gives up on a server that refuses after about 3 s and on one that does not answer after about 20 s: an agent
// looks again every 10 s in any case, and must be able to say meanwhile that the record is unreadable. A small object
// takes GCS well under a second; 4 s is what a cold connection with a token fetch may need.
var normalPace = pace{tries: 5, timeout: 4 * time.Second, first: 200 * time.Millisecond, longest: 2 * time.Second}

// transientError marks a failure that another try may not meet.
type transientError struct{ err error }

func (e *transientError) Error() string { return e.err.Error() }
func (e *transientError) Unwrap() error { return e.err }

// attempt is what the transport tells the retry loop about the try that a context belongs to.
type attempt struct {
	// fail ends the try. Google's client would retry for as long as the context lives, with waits of its own: an ended
	// context is the one thing that stops it, so that there is one retry loop and not two.
	fail func(error)
	// status is the last answer's HTTP status. gocloud's codes do not serve: it calls a 403 NotFound.
	status atomic.Int32
	// retriesItself leaves the tries to Google's client: a transfer of parts cannot begin again from its start.
	retriesItself bool
}

type attemptKey struct{}

// retry calls do until it succeeds, fails for good, has been tried often enough, or ctx ends.
func retry[T any](ctx context.Context, p pace, do func(context.Context, *attempt) (T, error)) (T, error) {
	wait := p.first
	for n := 1; ; n++ {
		v, err := try(ctx, p.timeout, do)
		var transient *transientError
		if err == nil || !errors.As(err, &transient) {
			return v, err
		}
		if n == p.tries {
			return v, fmt.Errorf("%w (tried %d times)", err, n)
		}
		select {
		case <-ctx.Done():
			return v, fmt.Errorf("%w (last failure: %w)", context.Cause(ctx), err)
		case <-time.After(wait/2 + rand.N(wait/2+1)):
		}
		wait = min(2*wait, p.longest)
	}
}

// try is one call of do. If the transport ended it, the transport's reason is the error.
func try[T any](ctx context.Context, timeout time.Duration, do func(context.Context, *attempt) (T, error)) (T, error) {
	tooLate := &transientError{fmt.Errorf("no answer within %s", timeout)}
	ctx, cancel := context.WithTimeoutCause(ctx, timeout, tooLate)
	defer cancel()
	ctx, end := context.WithCancelCause(ctx)
	defer end(nil)
	a := &attempt{fail: func(err error) { end(&transientError{err}) }}
	v, err := do(context.WithValue(ctx, attemptKey{}, a), a)
	var transient *transientError
	if err != nil && errors.As(context.Cause(ctx), &transient) {
		return v, transient
	}
	return v, err
}
