package gce

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net/http"
	"sync"
	"time"

	"google.golang.org/api/googleapi"

	"github.com/quorate/quorate/internal/backoff"
)

const (
	// rateSpread is how far callers that were refused together are apart when they ask again.
	rateSpread = 2 * time.Second
	// rateMinutes is how often a question is asked that each time is over the limit.
	rateMinutes = 3
)

// rateLimited is a refusal for the number of questions.
type rateLimited struct{ refusal }

// overRate: the project has asked more than it may in this minute. A 429 counts like it.
func overRate(status *googleapi.Error) bool {
	for _, item := range status.Errors {
		if item.Reason == "rateLimitExceeded" || item.Reason == "userRateLimitExceeded" {
			return true
		}
	}
	return status.Code == http.StatusTooManyRequests
}

// rateLimit keeps a client from asking while each answer would be the same: Google counts questions by the minute, and
// refuses all until it is over. Its methods may be called concurrently.
type rateLimit struct {
	mu    sync.Mutex
	until time.Time
	why   error
}

// reached notes that a question was refused. The minute is the server's, where it says what time it is.
func (l *rateLimit) reached(why rateLimited, now time.Time) {
	at := now
	if date, err := http.ParseTime(why.status.Header.Get("Date")); err == nil {
		at = date
	}
	rest := at.Truncate(time.Minute).Add(time.Minute).Sub(at) + rand.N(rateSpread)
	l.mu.Lock()
	defer l.mu.Unlock()
	l.until, l.why = now.Add(rest), why
}

// await waits until questions are answered again. Where that is later than the caller's time, it fails at once.
func (l *rateLimit) await(ctx context.Context) error {
	l.mu.Lock()
	rest, why := time.Until(l.until), l.why
	l.mu.Unlock()
	if rest <= 0 {
		return nil
	}
	if end, ok := ctx.Deadline(); ok && time.Until(end) < rest {
		return fmt.Errorf("not asked for another %d s, because of %w", int(rest/time.Second)+1, why)
	}
	return backoff.Sleep(ctx, rest)
}
