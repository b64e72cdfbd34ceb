package supervisor

import (
	"context"
	"fmt"
	"sync"
	"time"
)

const (
	defaultPeriod  = time.Second
	defaultTimeout = time.Second
	defaultLimit   = 2 * time.Second
	// eagerPeriod is the time between two checks of Ready until it has passed for the first time, unless its own is
	// shorter: others wait for it, and a boot is a chain of such waits. What is not ready after eagerFor waits for
	// something that takes its time, such as a quorum, and is asked as its probe says from then on.
	eagerPeriod = 50 * time.Millisecond
	eagerFor    = 30 * time.Second
)

// result is what one check said.
type result struct {
	question question
	err      error
}

// ask asks the probes of one run until ctx is done: Start, at once and until it passes, then Ready, and Live while
// Ready does not pass.
func ask(ctx context.Context, spec Spec, results chan<- result) {
	if spec.Start != nil && !askUntilUp(ctx, *spec.Start, results) {
		return
	}
	var both sync.WaitGroup
	ready := &readiness{}
	if spec.Live != nil {
		both.Go(func() { askLive(ctx, *spec.Live, ready, results) })
	}
	if spec.Ready != nil {
		both.Go(func() { askReady(ctx, *spec.Ready, ready, results) })
	}
	both.Wait()
}

// readiness is what the last check of Ready said. Both goroutines of a run use it.
type readiness struct {
	mu   sync.Mutex
	lost chan struct{} // closed by the next check that fails; nil: Ready does not pass, or there is none
}

// note takes the outcome of a check.
func (r *readiness) note(passes bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	switch {
	case passes && r.lost == nil:
		r.lost = make(chan struct{})
	case !passes && r.lost != nil:
		close(r.lost)
		r.lost = nil
	}
}

// waitLost returns once Ready does not pass, and false if ctx was done first.
func (r *readiness) waitLost(ctx context.Context) bool {
	r.mu.Lock()
	lost := r.lost
	r.mu.Unlock()
	if lost == nil {
		return ctx.Err() == nil
	}
	select {
	case <-lost:
		return true
	case <-ctx.Done():
		return false
	}
}

func askUntilUp(ctx context.Context, probe Probe, results chan<- result) bool {
	for {
		err := probe.ask(ctx)
		if !report(ctx, results, result{startQuestion, err}) {
			return false
		}
		if err == nil {
			return true
		}
		if !pause(ctx, probe.period()) {
			return false
		}
	}
}

// askLive asks while Ready does not pass, until ctx is done.
func askLive(ctx context.Context, probe Probe, ready *readiness, results chan<- result) {
	for ready.waitLost(ctx) {
		err := probe.ask(ctx)
		if !report(ctx, results, result{liveQuestion, err}) || !pause(ctx, probe.period()) {
			return
		}
	}
}

// askReady asks until ctx is done, eagerly at first.
func askReady(ctx context.Context, probe Probe, ready *readiness, results chan<- result) {
	eager := true
	for begin := time.Now(); ; {
		err := probe.ask(ctx)
		ready.note(err == nil)
		if !report(ctx, results, result{readyQuestion, err}) {
			return
		}
		eager = eager && err != nil && time.Since(begin) < eagerFor
		wait := probe.period()
		if err != nil && probe.Retry != 0 {
			wait = probe.Retry
		}
		if eager {
			wait = min(wait, eagerPeriod)
		}
		if !pause(ctx, wait) {
			return
		}
	}
}

// ask makes one check.
func (probe Probe) ask(ctx context.Context) error {
	timeout := probe.Timeout
	if timeout == 0 {
		timeout = defaultTimeout
	}
	ctx, cancel := context.WithTimeoutCause(ctx, timeout, fmt.Errorf("no answer in %s", timeout))
	defer cancel()
	return probe.Check(ctx)
}

func (probe Probe) period() time.Duration {
	if probe.Period == 0 {
		return defaultPeriod
	}
	return probe.Period
}

func (probe Probe) limit() time.Duration {
	if probe.Limit == 0 {
		return defaultLimit
	}
	return probe.Limit
}

// report hands the result over unless the run has ended: a check that was cut off says nothing about the process.
func report(ctx context.Context, results chan<- result, r result) bool {
	if ctx.Err() != nil {
		return false
	}
	select {
	case results <- r:
		return true
	case <-ctx.Done():
		return false
	}
}

// pause waits for d and returns false if ctx was done first.
func pause(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}
