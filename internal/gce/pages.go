package gce

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"google.golang.org/api/compute/v1"
)

// page is one page of a list. take adds its items; it is called only once the page is known to be whole, because a page
// that is asked for again must not be counted twice.
type page struct {
	next     string
	problems []string
	take     func()
}

// pages asks for one page after the other, each retried by itself. A page with a problem is asked for again like any
// passing error, since a zone that is away comes back; one that stays so fails the list.
func (c *Compute) pages(ctx context.Context, asked string, get func(ctx context.Context, api *compute.Service, token string) (page, error)) error {
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
			return err
		}
		p.take()
		if p.next == "" {
			return nil
		}
		if seen[p.next] {
			return fmt.Errorf("ask %s for %s: found pages that lead in a circle", c.server(), asked)
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
