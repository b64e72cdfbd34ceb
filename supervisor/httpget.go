package supervisor

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
)

const (
	// bodyShown is how much of a refusal's body stands in the error: /readyz?verbose names the failing checks in less.
	bodyShown = 200
	// bodyDrained is how much of a body is read so that the connection can be used again; a longer one costs a new
	// connection.
	bodyDrained = 64 << 10
)

// HTTPGet returns a check for a Probe that passes if a GET of the address is answered with a status of 200 to 299. The
// client is the caller's, with the certificates that the process asks for; it should not follow redirects to elsewhere.
// The error holds the status and of the body what tell makes of it, or its first bytes where that is nothing or tell is
// nil.
func HTTPGet(client *http.Client, url string, tell func(body string) string) func(ctx context.Context) error {
	return func(ctx context.Context) error {
		request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
		if err != nil {
			return err
		}
		response, err := client.Do(request)
		if err != nil {
			if cause := context.Cause(ctx); cause != nil {
				return fmt.Errorf("get %s: %w", url, cause)
			}
			return err // a *url.Error names the method and the address
		}
		defer response.Body.Close()
		body, err := io.ReadAll(io.LimitReader(response.Body, bodyDrained))
		if response.StatusCode < 200 || response.StatusCode > 299 {
			shown := ""
			if tell != nil {
				shown = tell(string(body))
			}
			if shown == "" {
				begin := strings.ToValidUTF8(string(body[:min(len(body), bodyShown)]), "")
				shown = strings.Join(strings.Fields(begin), " ")
			}
			return fmt.Errorf("get %s: %s: %s", url, response.Status, shown)
		}
		if err != nil {
			return fmt.Errorf("get %s: read the answer: %w", url, err)
		}
		return nil
	}
}
