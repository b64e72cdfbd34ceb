package supervisor

import (
	"context"
	"sync"
	"time"
)

// request is what a caller wants of a process. Its goroutine carries requests out one after the other.
type request struct {
	kind   kind
	spec   Spec   // for askStart
	reason string // for the others
	// for askStop: the process is killed this much later, if that is earlier than its spec says; 0: as the spec says
	within time.Duration
	// answered gets whether the request is valid; it has room, so that the process never waits for the caller.
	answered chan error
	// gone is closed once nothing of the run that there was lives any more.
	gone chan struct{}
}

type kind int

const (
	askStart kind = iota
	askStop
	askRestart
	askEnd // stop, and refuse all that comes later
)

func newRequest(k kind, reason string) request {
	return request{kind: k, reason: reason, answered: make(chan error, 1), gone: make(chan struct{})}
}

// inbox holds what was asked of a process until its goroutine takes it. Nobody waits to put something in: that
// goroutine may be inside a launch that hangs, and a request must outlive the caller who has no time for that.
type inbox struct {
	mu       sync.Mutex
	requests []request
	filled   chan struct{} // has room for one
}

func newInbox() *inbox { return &inbox{filled: make(chan struct{}, 1)} }

func (b *inbox) put(r request) {
	b.mu.Lock()
	b.requests = append(b.requests, r)
	b.mu.Unlock()
	select {
	case b.filled <- struct{}{}:
	default:
	}
}

func (b *inbox) take() []request {
	b.mu.Lock()
	defer b.mu.Unlock()
	taken := b.requests
	b.requests = nil
	return taken
}

// ask hands the request over and returns whether it is valid. That something is gone is said by request.gone. When ctx
// is done first the request is carried out without the caller.
func (p *process) ask(ctx context.Context, r request) error {
	p.inbox.put(r)
	select {
	case err := <-r.answered:
		return err
	case <-p.ended:
		return ErrEnded
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// answer carries out a request. The caller is told when the board shows the outcome.
func (p *process) answer(r request) {
	err := p.obey(r)
	if err == nil && r.kind != askStart {
		p.waiters = append(p.waiters, r.gone)
	}
	p.publish()
	r.answered <- err
}

func (p *process) obey(r request) error {
	now := time.Now()
	switch {
	case r.kind == askEnd || r.kind == askStop:
		p.final = p.final || r.kind == askEnd
		p.do(p.machine.stop(now, r.reason))
		p.machine.hurry(now, r.within)
	case p.final:
		return ErrEnded
	case r.kind == askStart:
		return p.machine.start(now, r.spec)
	case r.kind == askRestart:
		act, err := p.machine.restart(now, r.reason)
		p.do(act)
		return err
	}
	return nil
}
