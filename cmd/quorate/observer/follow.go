package observer

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/quorate/quorate/internal/health"
)

// endpointPeriod is the time between two questions to the endpoint of --watch.
const endpointPeriod = time.Second

// Follow prints a verdict, and then what changes, until ctx is done, and returns how it was at last. The endpoint is
// asked each second, also while the bucket does not answer.
func (o *Observer) Follow(ctx context.Context, out io.Writer) health.State {
	now := o.Read(ctx)
	now.Endpoint = o.Endpoint.Ask(ctx)
	v := now.Judge()
	Show(out, v, time.Now())
	fmt.Fprintln(out)
	stall, said := stall{since: time.Now(), served: v.Endpoint == nil || v.Endpoint.Serves()}, digest(v)
	readings, again := make(chan Reading), make(chan struct{}, 1)
	ctx, cancel := context.WithCancel(ctx)
	var reader sync.WaitGroup
	reader.Go(func() { o.keepReading(ctx, readings, again) })
	defer reader.Wait()
	defer cancel()
	tick := time.NewTicker(endpointPeriod)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return v.State
		case next := <-readings:
			next.Endpoint = now.Endpoint
			now = next
		case <-tick.C:
			answer := o.Endpoint.Ask(ctx)
			if ctx.Err() != nil {
				continue
			}
			now.Endpoint = answer
		}
		now.Now = time.Now()
		if text := stall.note(now.Endpoint, now.Now); text != "" {
			fmt.Fprintf(out, "%s  %s\n", clockText(now.Now), text)
			select {
			case again <- struct{}{}:
			default:
			}
		}
		v = now.Judge()
		for _, line := range digest(v) {
			if !slices.Contains(said, line) {
				fmt.Fprintf(out, "%s  %s\n", clockText(now.Now), line)
			}
		}
		said = digest(v)
	}
}

// keepReading reads the bucket each two seconds, and at once when the endpoint's answer has changed, until ctx is done.
func (o *Observer) keepReading(ctx context.Context, readings chan<- Reading, again <-chan struct{}) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-again:
		case <-time.After(Period):
		}
		r := o.Read(ctx)
		select {
		case <-ctx.Done():
			return
		case readings <- r:
		}
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

func clockText(t time.Time) string { return t.UTC().Format("15:04:05 UTC") }
