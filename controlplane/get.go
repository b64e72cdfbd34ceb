package controlplane

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
)

// answerLimit is how much of an answer is read: a failing health check lists what failed in it.
const answerLimit = 4 << 10

// get returns a check that a Kubernetes component answers with 2xx. Of another answer the error holds the checks that
// failed: /readyz lists some 40, and supervisor.HTTPGet, which knows nothing of Kubernetes, shows an answer's
// beginning.
func get(client *http.Client, url string) check {
	return func(ctx context.Context) error {
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
		if err != nil {
			return err
		}
		resp, err := client.Do(req)
		if err != nil {
			if cause := context.Cause(ctx); cause != nil {
				return fmt.Errorf("get %s: %w", url, cause)
			}
			return err // a *url.Error names the method and the address
		}
		defer resp.Body.Close()
		body, err := io.ReadAll(io.LimitReader(resp.Body, answerLimit))
		if err != nil {
			return fmt.Errorf("get %s: read the answer: %w", url, err)
		}
		if resp.StatusCode < 200 || resp.StatusCode > 299 {
			return fmt.Errorf("get %s: %s: %s", url, resp.Status, failed(string(body)))
		}
		return nil
	}
}

// failed picks out of a health answer the lines of the checks that failed ("[-]etcd failed: ..."); without any it is
// the answer's beginning.
func failed(body string) string {
	var lines []string
	for line := range strings.Lines(body) {
		if name, ok := strings.CutPrefix(line, "[-]"); ok {
			lines = append(lines, strings.TrimSpace(name))
		}
	}
	if len(lines) > 0 {
		return strings.Join(lines, ", ")
	}
	return fmt.Sprintf("%.200s", strings.TrimSpace(body))
}
