package bucket

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"

	"google.golang.org/api/googleapi"

	"github.com/quorate/quorate/internal/backoff"
)

// pace bounds the tries of one call.
type pace struct {
	tries   int
	timeout time.Duration // of one try
	first   time.Duration // pause after the first try; it doubles up to timeout
}

// normalPace gives up on a server that refuses after about 3 s and on one that does not answer after about 20 s: an
// agent asks again every 10 s in any case, and must be able to say meanwhile that the record is unreadable. A small
// object takes GCS well under a second; 4 s is what a cold connection with a token fetch may need.
var normalPace = pace{tries: 5, timeout: 4 * time.Second, first: 200 * time.Millisecond}

// retry calls do until it succeeds, fails for good, has been tried often enough, or ctx ends. Google's client sends
// each request once, so this is the only such loop but that of an upload's parts.
func retry[T any](ctx context.Context, p pace, do func(context.Context) (T, error)) (T, error) {
	pause := backoff.Backoff{First: p.first, Most: p.timeout}
	for n := 1; ; n++ {
		v, err := try(ctx, p.timeout, do)
		if err == nil || !transient(err) {
			return v, err
		}
		if n == p.tries {
			return v, fmt.Errorf("%w (tried %d times)", err, n)
		}
		select {
		case <-ctx.Done():
			if cause := context.Cause(ctx); !errors.Is(err, cause) {
				err = fmt.Errorf("%w (last failure: %w)", cause, err)
			}
			return v, err
		case <-time.After(pause.Next()):
		}
	}
}

// try is one call of do, within its time.
func try[T any](ctx context.Context, timeout time.Duration, do func(context.Context) (T, error)) (T, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, timeout, fmt.Errorf("no answer within %s", timeout))
	defer cancel()
	v, err := do(ctx)
	if ended := ctx.Err(); ended != nil && errors.Is(err, ended) {
		return v, context.Cause(ctx)
	}
	return v, err
}

// transient reports whether another try may not meet the failure: whatever a network does, and what Google says to try
// again after. Other answers of the store are final, and so is what is no answer of its own, and what the client calls
// final: that there are no credentials.
func transient(err error) bool {
	var answered *googleapi.Error
	var syntax *json.SyntaxError
	var shape *json.UnmarshalTypeError
	var final interface{ Final() }
	switch {
	case err == nil, err == io.EOF:
		return false
	case errors.As(err, &answered):
		c := answered.Code
		return c == http.StatusRequestTimeout || c == http.StatusTooManyRequests || c >= 500
	case errors.Is(err, errAbsent), errors.Is(err, errExists), errors.Is(err, errTooLarge):
		return false
	}
	return !errors.As(err, &syntax) && !errors.As(err, &shape) && !errors.As(err, &final)
}

// status is the HTTP status of an answer that is an error; 0: it is no answer.
func status(err error) int {
	var answered *googleapi.Error
	if errors.As(err, &answered) {
		return answered.Code
	}
	return 0
}
