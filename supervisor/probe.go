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
	// eagerPeriod is the time between two checks of Ready until it has passed for the first time, unless Period is
	// shorter: others wait for it, and a boot is a chain of such waits. What is not ready after eagerFor waits for
	// something that takes its time, such as a quorum, and is asked at its own Period from then on.
	eagerPeriod = 50 * time.Millisecond
	eagerFor    = 30 * time.Second
)

// result is what one check said.
type result struct {
	question question
	err      error
}

// ask asks the probes of one run until ctx is done: Start, at once and until it passes, then Live and Ready
// independently of each other.
func ask(ctx context.Context, spec Spec, results chan<- result) {
	if spec.Start != nil && !askUntilUp(ctx, *spec.Start, results) {
		return
	}
	var both sync.WaitGroup
	if spec.Live != nil {
		both.Go(func() { askForEver(ctx, *spec.Live, liveQuestion, results) })
	}
	if spec.Ready != nil {
		both.Go(func() { askForEver(ctx, *spec.Ready, readyQuestion, results) })
	}
	both.Wait()
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

// askForEver asks until ctx is done, Ready eagerly at first.
func askForEver(ctx context.Context, probe Probe, q question, results chan<- result) {
	period, eager := probe.period(), q == readyQuestion
	for begin := time.Now(); ; {
		err := probe.ask(ctx)
		if !report(ctx, results, result{q, err}) {
			return
		}
		eager = eager && err != nil && time.Since(begin) < eagerFor
		wait := period
		if eager {
			wait = min(period, eagerPeriod)
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
