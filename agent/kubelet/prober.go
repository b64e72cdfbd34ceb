package kubelet

import (
	"context"
	"sync"
	"time"

	"github.com/quorate/quorate/systemd/kubeletwatch"
)

// process is one run of a unit's main process.
type process struct {
	pid     int
	started time.Duration
}

// prober asks a process the same question again and again, in a goroutine of its own: an answer may be long in coming.
type prober struct {
	// ask asks once; within bounds it. period is the time between two questions that are answered.
	ask    func(ctx context.Context) (connected bool, err error)
	within time.Duration
	period time.Duration
	clock  func() time.Duration
	// news receives after answers began or ceased to come.
	news chan struct{}
	// begun receives after there is another process to ask.
	begun chan struct{}

	mu      sync.Mutex
	of      process
	answers kubeletwatch.Answers
}

func newProber(within, period time.Duration, clock func() time.Duration,
	ask func(context.Context) (bool, error)) *prober {
	return &prober{ask: ask, within: within, period: period, clock: clock, news: make(chan struct{}, 1),
		begun: make(chan struct{}, 1)}
}

// answersOf are those of a unit's process. What an earlier process answered does not count.
func (p *prober) answersOf(u kubeletwatch.Unit) kubeletwatch.Answers {
	p.mu.Lock()
	defer p.mu.Unlock()
	if now := (process{u.PID, u.Started}); p.of != now {
		p.of, p.answers = now, kubeletwatch.Answers{}
		note(p.begun)
	}
	return p.answers
}

// run asks until ctx is done.
func (p *prober) run(ctx context.Context) {
	for ctx.Err() == nil {
		p.mu.Lock()
		of := p.of
		p.mu.Unlock()
		rest := p.period
		if of.pid != 0 && !p.once(ctx, of) {
			rest = time.Second
		}
		timer := time.NewTimer(rest)
		select {
		case <-ctx.Done():
		case <-p.begun:
		case <-timer.C:
		}
		timer.Stop()
	}
}

// once asks a process and notes how it went. It reports whether an answer came.
func (p *prober) once(ctx context.Context, of process) bool {
	asked := p.clock()
	bounded, cancel := context.WithTimeout(ctx, p.within)
	defer cancel()
	connected, err := p.ask(bounded)
	if ctx.Err() != nil {
		return false
	}
	answer, text := kubeletwatch.Answered, ""
	if err != nil {
		answer, text = kubeletwatch.Unreachable, err.Error()
		if connected {
			answer = kubeletwatch.Silent
		}
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.of != of {
		return false // it was asked of a process that has gone
	}
	before := p.answers
	p.answers = before.Next(answer, text, asked)
	if before.Last != answer || answer != kubeletwatch.Answered {
		note(p.news)
	}
	return err == nil
}

// note leaves a note in a channel that holds one.
func note(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}
