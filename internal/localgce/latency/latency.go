// Package latency makes Google's services take the time that they take at Google. What they answer is not its business.
package latency

import (
	"math/rand/v2"
	"net/http"
	"time"

	"github.com/quorate/quorate/internal/backoff"
)

// Range is how long something takes: any time from Least to Most, with the same chance.
type Range struct{ Least, Most time.Duration }

// Any is a time of the range.
func (r Range) Any() time.Duration {
	if r.Most <= r.Least {
		return r.Least
	}
	return r.Least + rand.N(r.Most-r.Least)
}

// Times are how long the services take. The zero value is none at all.
type Times struct {
	// Compute and Storage are from a request to its answer. Operation is from the beginning of an operation of the
	// Compute API to its end, besides what is really done meanwhile.
	Compute, Storage, Operation Range
}

// Google is what masters see of Compute Engine and Cloud Storage in their region. No project was measured: the ranges
// are of facts that others have published, and the first contact (docs/first-contact.md) puts them right.
var Google = Times{
	Compute:   Range{200 * time.Millisecond, 1500 * time.Millisecond},
	Storage:   Range{50 * time.Millisecond, 200 * time.Millisecond},
	Operation: Range{5 * time.Second, 30 * time.Second},
}

// Before lets each request wait before the service gets it. One whose caller has gone meanwhile is passed on all the
// same: what was sent may take effect.
func (r Range) Before(next http.Handler) http.Handler {
	if r == (Range{}) {
		return next
	}
	return http.HandlerFunc(func(w http.ResponseWriter, request *http.Request) {
		_ = backoff.Sleep(request.Context(), r.Any())
		next.ServeHTTP(w, request)
	})
}
