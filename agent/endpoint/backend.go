package endpoint

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

	"github.com/quorate/quorate/internal/backoff"
	"github.com/quorate/quorate/internal/waits"
)

// Balancer is this VM's place among the backends of the endpoint's load balancer. group is what the document calls them
// by. The calls try again for a while; what they return as an error may pass all the same.
type Balancer interface {
	// Attach makes sure that this VM is a backend, and says whether it was not. Nothing is done about others. Where
	// there is no such group, the error is a *NoGroup.
	Attach(ctx context.Context, group string) (attached bool, err error)
	// Detach makes sure that it is none, and says whether it was. It returns once new connections go elsewhere. Without
	// the group it is none.
	Detach(ctx context.Context, group string) (detached bool, err error)
}

// NoGroup says that the group is not there.
type NoGroup struct{ Err error }

// Error implements error.
func (n *NoGroup) Error() string { return n.Err.Error() }

// Unwrap is why that is known.
func (n *NoGroup) Unwrap() error { return n.Err }

// Group is what the document calls the backends by; without a name it has none.
type Group struct {
	Name string
	// OnDemand: there is no group while there is one master, and nothing is wrong then.
	OnDemand bool
}

// endpointNotAttached is the wait for this VM to be a backend.
const endpointNotAttached = "endpoint-not-attached"

const (
	// endpointPeriod is about the time between two questions whether this VM is a backend, and the longest pause after
	// a failure. A VM that a person took out, or whose group was made anew, is back within it.
	endpointPeriod = 30 * time.Second
	// firstAttachRetry is the pause after the first failure; the call itself has been repeated by then.
	firstAttachRetry = time.Second
	// attachTimeout bounds one try: a list, and an operation that takes Google up to half a minute.
	attachTimeout = 90 * time.Second
)

// Backend is this VM's place among the backends: whom to ask, and where it is attached. Several may use it at once.
type Backend struct {
	log   *slog.Logger
	waits *waits.Phased

	// turn is held by the one call that is under way: an attachment that began before a detachment must not end after
	// it.
	turn chan struct{}

	mu       sync.Mutex
	balancer Balancer // nil until the document is known, and where there is none
	// group is what this VM was last found in or attached to; empty: it was not.
	group string
	// out is how many want this VM out on purpose: it stays so until all have said that it returns.
	out int
}

// NewBackend is a VM of which nothing is known yet.
func NewBackend(log *slog.Logger, w *waits.Phased) *Backend {
	return &Backend{log: log, waits: w, turn: make(chan struct{}, 1)}
}

// Open notes whom to ask.
func (p *Backend) Open(b Balancer) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.balancer = b
}

// in notes where this VM is attached.
func (p *Backend) in(group string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.group = group
}

// known is whom to ask, and where this VM is attached as far as it is known.
func (p *Backend) known() (b Balancer, group string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.balancer, p.group
}

// wantedOut notes one more who wants this VM out, or one less.
func (p *Backend) wantedOut(by int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.out += by
}

// isOut says whether this VM stays out on purpose.
func (p *Backend) isOut() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.out > 0
}

// alone makes one call, once no other is under way.
func (p *Backend) alone(ctx context.Context, call func() (bool, error)) (changed bool, err error) {
	select {
	case p.turn <- struct{}{}:
		defer func() { <-p.turn }()
		return call()
	case <-ctx.Done():
		return false, ctx.Err()
	}
}

// Run makes this VM a backend of the load balancer as soon as its apiserver is ready, and again where somebody took it
// out or made the VM anew, until ctx is done. wanted is the group that the document names now, serves says whether the
// apiserver is ready, and what closes when that may have changed. That it is not ready is no reason to take the VM out:
// the load balancer's health check knows, and where all are so it sends clients to each of them.
func (p *Backend) Run(ctx context.Context, wanted func() Group, serves func() (bool, <-chan struct{})) {
	balancer, _ := p.known()
	if balancer == nil {
		return
	}
	pause := backoff.Backoff{First: firstAttachRetry, Most: endpointPeriod}
	for {
		ready, changed := serves()
		ready = ready && !p.isOut()
		group := wanted()
		rest := jittered(endpointPeriod)
		switch {
		case group.Name == "":
			p.waits.Release(endpointNotAttached)
			p.in("")
		case ready && !p.attach(ctx, balancer, group):
			rest = pause.Next()
		case ready:
			pause.Reset()
		}
		if ready {
			changed = nil // what a component does is of no interest now
		}
		select {
		case <-ctx.Done():
			return
		case <-changed:
		case <-time.After(rest):
		}
	}
}

// jittered is a period of which up to a tenth is taken off by chance: three masters that were started together do not
// ask together for ever.
func jittered(period time.Duration) time.Duration {
	b := backoff.Backoff{First: period / 5, Most: period / 5}
	return period - period/5 + b.Next()
}

// attach says whether all is as it should be: this VM is a backend now, or there is no group on demand.
func (p *Backend) attach(ctx context.Context, b Balancer, wanted Group) bool {
	group := wanted.Name
	bounded, cancel := context.WithTimeout(ctx, attachTimeout)
	defer cancel()
	attached, err := p.alone(bounded, func() (bool, error) {
		if p.isOut() { // since it was asked for
			return false, nil
		}
		return b.Attach(bounded, group)
	})
	if ctx.Err() != nil || p.isOut() {
		return false
	}
	if absent := new(NoGroup); wanted.OnDemand && errors.As(err, &absent) {
		p.waits.Release(endpointNotAttached)
		p.in("")
		return true
	}
	if err != nil {
		p.waits.HoldFor(endpointNotAttached, err, "It is tried again by itself, within half a minute. Until then the load "+
			"balancer sends no clients to this master. quorate gce check names what is missing.")
		return false
	}
	p.waits.Release(endpointNotAttached)
	_, before := p.known()
	p.in(group)
	switch {
	case attached && before == group:
		p.log.Warn("attached this VM to the load balancer again: somebody had taken it out", "group", group)
	case attached:
		p.log.Info("attached this VM to the load balancer", "group", group)
	}
	return true
}

// Leave begins to take this VM out of the load balancer before what serves its clients stops, and keeps it out until
// Return was called as often: a replica may leave for good while a restart is under way. wanted is the group that the
// document names now; nothing: none. wait returns so long after the detachment, and after limit in any case: the health
// check does it then.
func (p *Backend) Leave(ctx context.Context, wanted string, limit time.Duration) (wait func(settle time.Duration)) {
	p.wantedOut(1)
	balancer, group := p.known()
	// A former agent may have attached it, and this one may not have got as far.
	group = cmp.Or(wanted, group)
	if balancer == nil || group == "" {
		return func(time.Duration) {}
	}
	ctx, cancel := context.WithTimeout(ctx, limit)
	done := make(chan bool, 1)
	go func() {
		detached, err := p.alone(ctx, func() (bool, error) { return balancer.Detach(ctx, group) })
		defer func() { done <- detached }()
		switch {
		case err != nil && !errors.Is(err, context.Canceled):
			p.log.Warn("the load balancer has this VM still: its health check takes it out", "group", group, "err",
				err.Error())
		case detached:
			p.log.Info("detached this VM from the load balancer", "group", group)
		}
	}()
	return func(settle time.Duration) {
		defer cancel()
		if <-done {
			_ = backoff.Sleep(ctx, settle)
		}
	}
}

// Return takes one Leave back. After the last Run attaches this VM again once its apiserver is ready.
func (p *Backend) Return() { p.wantedOut(-1) }
