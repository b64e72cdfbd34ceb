package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"time"

	"github.com/quorate/quorate/internal/localgce"
	"github.com/quorate/quorate/test/bench/proc"
)

// watchReports is how long the agents are watched at least: a report comes each half minute.
const watchReports = 2 * time.Minute

// cost is what agents use of their machines and of the bucket while nothing happens.
type cost struct {
	// CPU are those of the agents, in percent of one core.
	CPU []float64 `json:"cpu"`
	// Requests and Megabytes are of one agent in a day. Bytes are those of bodies, in both directions.
	Requests  float64 `json:"requests"`
	Megabytes float64 `json:"megabytes"`
}

// reportCost is what agents cost that report, and that do not.
type reportCost struct {
	With    cost `json:"with"`
	Without cost `json:"without"`
}

// reportCosts compares the agents of three replicas with those of a program that opens no store for its reports.
func (b *bench) reportCosts(ctx context.Context) (*reportCost, error) {
	silent, err := b.buildSilent(ctx)
	if err != nil {
		return nil, fmt.Errorf("build quorate without reports: %w", err)
	}
	var r reportCost
	for _, side := range []struct {
		name, program string
		of            *cost
	}{{"with", "", &r.With}, {"without", silent, &r.Without}} {
		if *side.of, err = b.costOf(ctx, side.name, side.program); err != nil {
			return nil, fmt.Errorf("agents %s reports: %w", side.name, err)
		}
	}
	return &r, nil
}

// openLine in the file opensReports is what gives an agent the store of its reports. Without it nothing is gathered for
// them, and nothing is written. The quorate without it is built of the same tree, in which Go's overlay replaces the
// file, so the product needs no switch.
const (
	opensReports = "agent/boot.go"
	openLine     = "\ta.reporter.Open(cloud.Reports)\n"
)

func withoutReports(text string) (string, error) {
	if n := strings.Count(text, openLine); n != 1 {
		return "", fmt.Errorf("%s has the line %q %d times, want once", opensReports, strings.TrimSpace(openLine), n)
	}
	return strings.Replace(text, openLine, "", 1), nil
}

// buildSilent builds a quorate without reports, and returns its folder. It works in the repository's root.
func (b *bench) buildSilent(ctx context.Context) (string, error) {
	dir := filepath.Join(b.dir, "silent")
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return "", err
	}
	original, err := filepath.Abs(opensReports)
	if err != nil {
		return "", err
	}
	text, err := os.ReadFile(original)
	if err != nil {
		return "", err
	}
	silent, err := withoutReports(string(text))
	if err != nil {
		return "", err
	}
	replacement, overlay := filepath.Join(dir, "boot.go"), filepath.Join(dir, "overlay.json")
	list, err := json.Marshal(map[string]map[string]string{"Replace": {original: replacement}})
	if err != nil {
		return "", err
	}
	for path, content := range map[string]string{replacement: silent, overlay: string(list)} {
		if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
			return "", err
		}
	}
	build := exec.CommandContext(ctx, "go", "build", "-overlay", overlay, "-ldflags", "-s -w", "-o",
		filepath.Join(dir, "quorate"), "./cmd/quorate")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		return "", fmt.Errorf("%w: %s", err, out)
	}
	return dir, nil
}

// silentDir shows VMs the program that is built without reports.
const silentDir = "/srv/silent"

// costOf boots three replicas, leaves them alone and counts. Program is the folder of another quorate; empty: bin's.
func (b *bench) costOf(ctx context.Context, name, program string) (cost, error) {
	w, err := b.quorateWorld(ctx, 3)
	if err != nil {
		return cost{}, err
	}
	if program != "" {
		w.binds = append(w.binds, localgce.Bind{Host: program, Guest: silentDir, ReadOnly: true})
		w.agent = localgce.Agent{Command: []string{silentDir + "/quorate", "agent"},
			TimerSlack: localgce.TimerSlack}
	}
	var seen traffic
	w.beforeBucket = seen.count
	project, _, err := boot(ctx, w, true)
	if err != nil {
		return cost{}, err
	}
	defer project.Close(context.WithoutCancel(ctx))
	watch := max(b.watch, watchReports)
	b.say("three replicas %s reports settle for %s, then their agents are watched for %s", name, b.settle, watch)
	if err := sleep(ctx, b.settle); err != nil {
		return cost{}, err
	}
	return watchCost(ctx, project, &seen, watch)
}

// watchCost counts for a while.
func watchCost(ctx context.Context, project *localgce.Project, seen *traffic, watch time.Duration) (cost, error) {
	before, err := agentsCPU(project)
	if err != nil {
		return cost{}, err
	}
	requests, bytes, begin := seen.requests.Load(), seen.bytes.Load(), time.Now()
	if err := sleep(ctx, watch); err != nil {
		return cost{}, err
	}
	after, err := agentsCPU(project)
	if err != nil {
		return cost{}, err
	}
	took := time.Since(begin)
	days := float64(len(after)) * took.Hours() / 24
	out := cost{Requests: float64(seen.requests.Load()-requests) / days,
		Megabytes: float64(seen.bytes.Load()-bytes) / days / 1e6}
	for i := range after {
		out.CPU = append(out.CPU, 100*(after[i]-before[i]).Seconds()/took.Seconds())
	}
	return out, nil
}

// agentsCPU is the time that each agent has had a core.
func agentsCPU(project *localgce.Project) (out []time.Duration, err error) {
	for _, vm := range project.Status().VMs {
		pid, err := proc.Find(vm.InitPID, "quorate", "agent")
		if err != nil {
			return nil, fmt.Errorf("find the agent of %s: %w", vm.Name, err)
		}
		used, err := proc.CPU(pid)
		if err != nil {
			return nil, err
		}
		out = append(out, used)
	}
	return out, nil
}

// traffic is what was asked of a bucket.
type traffic struct{ requests, bytes atomic.Int64 }

// count counts what goes to the bucket, and what comes back.
func (t *traffic) count(bucket http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		t.requests.Add(1)
		r.Body = countingBody{r.Body, &t.bytes} // an upload does not say how long it is
		bucket.ServeHTTP(countingWriter{w, &t.bytes}, r)
	})
}

// countingBody counts the bytes of a request.
type countingBody struct {
	io.ReadCloser
	bytes *atomic.Int64
}

// Read implements io.Reader.
func (b countingBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	b.bytes.Add(int64(n))
	return n, err
}

// countingWriter counts the bytes of an answer.
type countingWriter struct {
	http.ResponseWriter
	bytes *atomic.Int64
}

// Write implements io.Writer.
func (w countingWriter) Write(p []byte) (int, error) {
	n, err := w.ResponseWriter.Write(p)
	w.bytes.Add(int64(n))
	return n, err
}

// Unwrap gives http.ResponseController the writer below.
func (w countingWriter) Unwrap() http.ResponseWriter { return w.ResponseWriter }

// rows are those of the summary.
func (r *reportCost) rows() (out []row) {
	if r == nil {
		return nil
	}
	for _, c := range []struct {
		what, unit string
		of         func(cost) []float64
	}{
		{"idle agent's CPU, with reports and without", "% of a core", func(c cost) []float64 { return c.CPU }},
		{"idle agent's requests to the bucket, the same", "a day",
			func(c cost) []float64 { return []float64{c.Requests} }},
		{"idle agent's bytes to and from the bucket, the same", "MB a day",
			func(c cost) []float64 { return []float64{c.Megabytes} }},
	} {
		with, without := spreadOf(c.of(r.With)), spreadOf(c.of(r.Without))
		out = append(out, row{What: c.what, Unit: c.unit, Quorate: with, Floor: &without, OK: true})
	}
	return out
}
