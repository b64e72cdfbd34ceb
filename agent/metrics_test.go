package agent

import (
	"context"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/quorate/quorate/agent/status"
	"github.com/quorate/quorate/internal/replica"
	"github.com/quorate/quorate/supervisor"
)

// scraped is what a scrape shows now.
func scraped(t *testing.T, a *Agent) string {
	t.Helper()
	w := httptest.NewRecorder()
	a.answers().ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/metrics", nil))
	if w.Code != http.StatusOK {
		t.Fatalf("%d: %s", w.Code, w.Body)
	}
	return w.Body.String()
}

func TestTheMetricsSayWhatIsWaitedFor(t *testing.T) {
	v := newVM(t)
	a := v.agent()
	a.progress.enter(PhaseIdentity)
	want := func(lines ...string) {
		t.Helper()
		got := scraped(t, a)
		for _, l := range lines {
			if ok, err := regexp.MatchString("(?m)^"+l+"$", got); err != nil || !ok {
				t.Errorf("no line %q in\n%s", l, got)
			}
		}
	}
	want(`quorate_ready 0`, `quorate_phase\{phase="identity"\} 1`, `quorate_member\{state="none"\} 1`,
		`quorate_member\{state="voter"\} 0`)
	if got := scraped(t, a); strings.Contains(got, "quorate_row{") ||
		strings.Contains(got, "quorate_record_age_seconds") {
		t.Errorf("it shows what it cannot know:\n%s", got)
	}
	a, in := v.identified()
	v.established(v.self.Place, "added")
	v.record.err = errBroken
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() { defer close(ended); a.readRecord(ctx, in) }()
	eventually(t, "it waits", func() bool { return strings.Contains(scraped(t, a), "record-unreadable") })
	want(`quorate_wait_seconds\{name="record-unreadable",row="2"\} \S+`, `quorate_row\{row="2",table="replica"\} 1`,
		`quorate_incarnation 1`)
	// the same series from both sides must not fail the scrape
	a.waits.Hold(replica.Wait{Row: "2", Name: "record-unreadable"})
	want(`quorate_wait_seconds\{name="record-unreadable",row="2"\} \S+`)
	cancel()
	<-ended
}

func TestLossesOfLogsAreInStatusAndMetrics(t *testing.T) {
	a := newVM(t).agent()
	lines := `(?m)^quorate_log_lines_dropped_total (\d+)$`
	if s := a.status(t.Context()); s.LogLoss != nil || !regexp.MustCompile(lines).MatchString(scraped(t, a)) {
		t.Errorf("nothing can be lost, and it shows %+v", s.LogLoss)
	}
	loss := status.LogLoss{}
	a.cfg.LogLoss = func() status.LogLoss { return loss }
	if s := a.status(t.Context()); s.LogLoss != nil {
		t.Errorf("nothing was lost, and it shows %+v", s.LogLoss)
	}
	loss = status.LogLoss{Lines: 17, Error: "broken pipe"}
	if s := a.status(t.Context()); s.LogLoss == nil || *s.LogLoss != loss {
		t.Errorf("it shows %+v", s.LogLoss)
	}
	if m := regexp.MustCompile(lines).FindStringSubmatch(scraped(t, a)); m == nil || m[1] != "17" {
		t.Errorf("the metrics say %q", m)
	}

	if err := os.MkdirAll(a.cfg.LogDir, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("/dev/full", filepath.Join(a.cfg.LogDir, "talks.log")); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- a.supervisor.Run(ctx) }()
	talks := supervisor.Spec{Name: "talks", Path: "/bin/sh", Args: []string{"-c", "printf 12345; exec sleep 60"}}
	if err := a.supervisor.Start(talks); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the loss is shown", func() bool {
		return strings.Contains(scraped(t, a), `quorate_output_bytes_dropped_total{component="talks"} 5`)
	})
	cancel()
	if err := <-ended; err != nil {
		t.Error(err)
	}
}
