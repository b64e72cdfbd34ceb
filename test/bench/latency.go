package main

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
)

// latencyPeriod is between two puts of the writer whose latency is measured.
const latencyPeriod = 20 * time.Millisecond

// latency is what a client's puts took, in milliseconds.
type latency struct {
	P50 float64 `json:"p50"`
	P99 float64 `json:"p99"`
	Max float64 `json:"max"`
	// Failed counts puts that were not acknowledged within a second.
	Failed int `json:"failed"`
	// Failure is what the first of them met, and how long after the measurement began.
	Failure string `json:"failure,omitempty"`
}

func (l latency) String() string {
	text := fmt.Sprintf("p50 %.1f p99 %.0f max %.0f ms, %d failed", l.P50, l.P99, l.Max, l.Failed)
	if l.Failed > 0 {
		text += " (the first " + l.Failure + ")"
	}
	return text
}

// latencyWriter puts one small value after the other.
type latencyWriter struct {
	stop context.CancelFunc
	wait sync.WaitGroup

	mu      sync.Mutex
	since   time.Time
	took    []float64
	failed  int
	failure string
}

func startWriter(ctx context.Context, c *clientv3.Client) *latencyWriter {
	ctx, stop := context.WithCancel(ctx)
	w := &latencyWriter{stop: stop, since: time.Now()}
	w.wait.Go(func() {
		for sleep(ctx, latencyPeriod) == nil {
			begin := time.Now()
			call, cancel := context.WithTimeout(ctx, callLimit)
			_, err := c.Put(call, "bench", "x")
			cancel()
			w.note(time.Since(begin), err)
		}
	})
	return w
}

func (w *latencyWriter) note(took time.Duration, err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if err != nil {
		if w.failed == 0 {
			w.failure = fmt.Sprintf("after %.1f s: %v", time.Since(w.since).Seconds(), err)
		}
		w.failed++
		return
	}
	w.took = append(w.took, float64(took.Microseconds())/1000)
}

// cut returns what was measured since it was called last.
func (w *latencyWriter) cut() latency {
	w.mu.Lock()
	defer w.mu.Unlock()
	l := latency{Failed: w.failed, Failure: w.failure}
	if n := len(w.took); n > 0 {
		slices.Sort(w.took)
		l.P50, l.P99, l.Max = w.took[n/2], w.took[n*99/100], w.took[n-1]
	}
	w.since, w.took, w.failed, w.failure = time.Now(), nil, 0, ""
	return l
}

// end stops the writer and waits for it. It may be called again.
func (w *latencyWriter) end() {
	w.stop()
	w.wait.Wait()
}
