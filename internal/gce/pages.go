package gce

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"google.golang.org/api/compute/v1"
	"google.golang.org/api/googleapi"

	"github.com/quorate/quorate/internal/replica"
)

// page is one page of a list. take adds its items; it is called only once the page is known to be whole, because a page
// that is asked for again must not be counted twice.
type page struct {
	next     string
	problems []string
	take     func()
	// at is when the server says that it answered; zero: it does not say.
	at time.Time
}

// answeredAt reads the Date header of an answer. What it does not say, or not in HTTP's form, is zero and never
// guessed.
func answeredAt(r googleapi.ServerResponse) time.Time {
	at, err := http.ParseTime(r.Header.Get("Date"))
	if err != nil {
		return time.Time{}
	}
	return at
}

// pages asks for one page after the other, each retried by itself. A page with a problem is asked for again like any
// passing error, since a zone that is away comes back; one that stays so fails the list. oldest is when the server
// answered with the first of them; zero where one of the pages does not say.
func (c *Compute) pages(ctx context.Context, asked string,
	get func(ctx context.Context, api *compute.Service, token string) (page, error),
) (oldest time.Time, err error) {
	seen := map[string]bool{}
	for token := ""; ; {
		var p page
		err := c.ask(ctx, asked, func(ctx context.Context, api *compute.Service) error {
			var err error
			p, err = get(ctx, api, token)
			if err == nil && len(p.problems) > 0 {
				err = fmt.Errorf("found only part of the list: %s", strings.Join(p.problems, "; "))
			}
			return err
		})
		if err != nil {
			return time.Time{}, err
		}
		p.take()
		if token == "" || p.at.Before(oldest) { // zero is before all others, and stays
			oldest = p.at
		}
		if p.next == "" {
			return oldest, nil
		}
		if seen[p.next] {
			return time.Time{}, fmt.Errorf("ask %s for %s: found pages that lead in a circle", c.server(), asked)
		}
		seen[p.next], token = true, p.next
	}
}

// ofKind refuses JSON of something else, which would decode into an empty list.
func ofKind(kind, want string) error {
	if kind == want {
		return nil
	}
	return finalError{fmt.Errorf("found an answer of kind %q; allowed: %s", shorten(kind), want)}
}

// partialSuccess asks for what the reachable zones have, where others are not: without it one zone that is away,
// anywhere on Earth, fails the list. The client has no method for it.
var partialSuccess = googleapi.QueryParameter("returnPartialSuccess", "true")

// holes are what one page lacks.
type holes struct {
	region   string // what is missing elsewhere does not matter; empty: everything matters
	problems []string
	// elsewhere: the page names something that is missing and does not matter.
	elsewhere bool
}

// inScope notes the warning of one scope, as zones/ZONE. That it has nothing is no hole; any other word is one.
func (h *holes) inScope(scope, code, message string) {
	switch {
	case code == "NO_RESULTS_ON_PAGE":
	case h.matters(scope):
		h.problems = append(h.problems, fmt.Sprintf("%s: %s %q", scope, code, shorten(message)))
	default:
		h.elsewhere = true
	}
}

// unreachable notes the scopes that did not answer.
func (h *holes) unreachable(scopes []string) {
	var own []string
	for _, scope := range scopes {
		if h.matters(scope) {
			own = append(own, scope)
		} else {
			h.elsewhere = true
		}
	}
	if len(own) > 0 {
		h.problems = append(h.problems, "unreachable: "+strings.Join(own, ", "))
	}
}

// inAll notes the warning on the whole page, after all others: a part that is missing is one of those that the page
// names, if it names any.
func (h *holes) inAll(code, message string) {
	partial := code == "UNREACHABLE" || code == "PARTIAL_SUCCESS"
	if code == "NO_RESULTS_ON_PAGE" || partial && h.elsewhere {
		return
	}
	h.problems = append(h.problems, fmt.Sprintf("all zones: %s %q", code, shorten(message)))
}

// matters: the scope may have something of the cluster, whose masters are in one region. A scope that is of no region,
// or whose name cannot be read, may.
func (h *holes) matters(scope string) bool {
	parts := strings.Split(scope, "/")
	if len(parts) < 2 || h.region == "" {
		return true
	}
	switch kind, name := parts[len(parts)-2], parts[len(parts)-1]; kind {
	case "zones":
		return replica.RegionOf(name) == h.region
	case "regions":
		return name == h.region
	}
	return true
}

func sortedKeys[V any](m map[string]V) []string {
	keys := make([]string, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return keys
}
