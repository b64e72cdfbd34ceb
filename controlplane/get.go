package controlplane

import (
	"net/http"
	"strings"

	"github.com/quorate/quorate/supervisor"
)

// get returns a check that a Kubernetes component answers with 2xx. Of another answer the error holds the checks that
// failed: /readyz lists some 40.
func get(client *http.Client, url string) check { return supervisor.HTTPGet(client, url, failed) }

// failed picks out of a health answer the lines of the checks that failed ("[-]etcd failed: ...").
func failed(body string) string {
	var lines []string
	for line := range strings.Lines(body) {
		if name, ok := strings.CutPrefix(line, "[-]"); ok {
			lines = append(lines, strings.TrimSpace(name))
		}
	}
	return strings.Join(lines, ", ")
}
