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

// warning says what a list's warning means to us. That a zone has nothing is no problem; any other word is one.
func warning(scope, code, message string) []string {
	if code == "NO_RESULTS_ON_PAGE" {
		return nil
	}
	return []string{fmt.Sprintf("%s: %s %q", scope, code, shorten(message))}
}

func unreachable(scopes []string) []string {
	if len(scopes) == 0 {
		return nil
	}
	return []string{"unreachable: " + strings.Join(scopes, ", ")}
}

func sortedKeys[V any](m map[string]V) []string {
	keys := make([]string, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return keys
}
