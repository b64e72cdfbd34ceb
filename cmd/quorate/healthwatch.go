package main

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/quorate/quorate/internal/health"
)

// endpointPeriod is the time between two questions to the endpoint of --watch.
const endpointPeriod = time.Second

// follow prints a verdict, and then what changes, until ctx is done. The endpoint is asked each second; the bucket each
// two, and at once when the endpoint's answer changes.
func (w *watcher) follow(ctx context.Context, out io.Writer) error {
	v := w.judge(ctx)
	showHealth(out, v, time.Now())
	fmt.Fprintln(out)
	stall := stall{since: time.Now(), served: v.Endpoint == nil || v.Endpoint.Serves()}
	said, facts, readAt := digest(v), w.read(ctx), time.Now()
	tick := time.NewTicker(endpointPeriod)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return verdictOf(v)
		case <-tick.C:
		}
		answer := w.endpoint.ask(ctx)
		now := time.Now()
		text := stall.note(answer, now)
		if text != "" || now.Sub(readAt) >= waitPeriod {
			facts, readAt = w.read(ctx), now
		}
		facts.Endpoint, facts.Now = answer, now
		if ctx.Err() != nil {
			continue
		}
		v = health.Judge(facts, w.commands)
		if text != "" {
			fmt.Fprintf(out, "%s  %s\n", clockText(now), text)
		}
		for _, line := range digest(v) {
			if !slices.Contains(said, line) {
				fmt.Fprintf(out, "%s  %s\n", clockText(now), line)
			}
		}
		said = digest(v)
	}
}

// stall is for how long the endpoint has or has not served.
type stall struct {
	served bool
	since  time.Time
}

// note says that the endpoint has stopped serving, or for how long it did not; empty: nothing has changed.
func (s *stall) note(e *health.Endpoint, now time.Time) string {
	if e == nil || e.Serves() == s.served {
		return ""
	}
	lasted := now.Sub(s.since)
	s.served, s.since = e.Serves(), now
	if s.served {
		return fmt.Sprintf("the endpoint serves again, after %s", lasted.Round(100*time.Millisecond))
	}
	return "the endpoint does not serve"
}

// digest is a verdict in lines, of which those are printed that were not there before.
func digest(v health.Verdict) (out []string) {
	out = append(out, v.Headline())
	if v.Leader != "" {
		out = append(out, v.Leader+" leads etcd")
	}
	for _, r := range v.Replicas {
		out = append(out, r.Place.String()+" is "+r.Text())
	}
	for _, f := range v.Findings {
		text := string(f.Level) + ": " + f.Name
		if len(f.Replicas) > 0 {
			text += " on " + strings.Join(f.Replicas, ", ")
		}
		out = append(out, text)
	}
	return out
}

func clockText(t time.Time) string { return t.UTC().Format("15:04:05") }
