package status

import (
	"context"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"regexp"
	"strings"
	"testing"
)

func handler(s Status) http.Handler { return Metrics(func(context.Context) Status { return s }) }

// scraped is what a scrape shows of a status.
func scraped(t *testing.T, s Status) string {
	t.Helper()
	w := httptest.NewRecorder()
	handler(s).ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/metrics", nil))
	if w.Code != http.StatusOK {
		t.Fatalf("%d: %s", w.Code, w.Body)
	}
	return w.Body.String()
}

func TestMetricsAreOnLoopbackAndNothingElseIs(t *testing.T) {
	const address = "127.0.0.1:39271"
	log := slog.New(slog.DiscardHandler)
	defer ServeMetrics(log, address, handler(Status{}))()
	resp, err := http.Get("http://" + address + "/metrics")
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if b, err := io.ReadAll(resp.Body); err != nil || !strings.Contains(string(b), "\nquorate_ready 0\n") {
		t.Errorf("%v\n%s", err, b)
	}
	for _, path := range []string{"/status", "/start-anyway"} {
		if resp, err := http.Get("http://" + address + path); err != nil || resp.StatusCode != http.StatusNotFound {
			t.Errorf("%s is on the network: %v %v", path, resp, err)
		}
	}
	ServeMetrics(log, address, handler(Status{}))() // a port that is taken must not end anything
}

// The runbook lists every metric, and none that there is not.
func TestTheRunbookListsTheMetrics(t *testing.T) {
	b, err := os.ReadFile("../../docs/runbook.md")
	if err != nil {
		t.Fatal(err)
	}
	listed := map[string]bool{}
	for _, m := range regexp.MustCompile("(?m)^\\| `(quorate_[a-z_]+)").FindAllStringSubmatch(string(b), -1) {
		listed[m[1]] = true
	}
	for _, m := range metrics {
		name := regexp.MustCompile(`fqName: "([^"]+)"`).FindStringSubmatch(m.String())[1]
		if !listed[name] {
			t.Errorf("docs/runbook.md does not list %s", name)
		}
		delete(listed, name)
	}
	for name := range listed {
		t.Errorf("docs/runbook.md lists %s, which nothing shows", name)
	}
}
