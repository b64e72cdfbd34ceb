package agent

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/quorate/quorate/internal/backoff"
	"github.com/quorate/quorate/internal/replica"
	"github.com/quorate/quorate/supervisor"
)

// Balancer is this VM's place among the backends of the endpoint's load balancer. group is what the document calls them
// by. The calls try again for a while; what they return as an error may pass all the same.
type Balancer interface {
	// Attach makes sure that this VM is a backend, and says whether it was not. Nothing is done about others.
	Attach(ctx context.Context, group string) (attached bool, err error)
	// Detach makes sure that it is none, and says whether it was. It returns once new connections go elsewhere. Without
	// the group it is none.
	Detach(ctx context.Context, group string) (detached bool, err error)
}

// endpointNotAttached is the wait for this VM to be a backend.
const endpointNotAttached = "endpoint-not-attached"

// endpointPlace is what the agent knows of its place among the backends: whom to ask, and by what to stop.
type endpointPlace struct {
	mu       sync.Mutex
	balancer Balancer // nil until the document is known, and where there is none
	// group is what this VM was last found in or attached to; empty: it was not.
	group string
}

// open notes whom to ask.
func (p *endpointPlace) open(b Balancer) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.balancer = b
}

// in notes where this VM is attached.
func (p *endpointPlace) in(group string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.group = group
}

// known is whom to ask, and where this VM is attached as far as it is known.
func (p *endpointPlace) known() (b Balancer, group string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.balancer, p.group
}

// apiServerReady says whether the own apiserver is ready, and what closes when that may have changed.
func (a *Agent) apiServerReady() (ready bool, changed <-chan struct{}) {
	changed = a.supervisor.Changed()
	s, ok := find(a.supervisor, replica.APIServer)
	return ok && s.State == supervisor.Ready, changed
}

// keepEndpoint makes this VM a backend of the load balancer as soon as its apiserver is ready, and again where somebody
// took it out or made the VM anew, until ctx is done. That the apiserver is not ready is no reason to take it out: the
// load balancer's health check knows, and where all are so it sends clients to each of them. Nothing waits for it.
func (a *Agent) keepEndpoint(ctx context.Context, in identified, serves func() (bool, <-chan struct{})) {
	balancer, _ := a.endpoint.known()
	if balancer == nil {
		return
	}
	pause := backoff.Backoff{First: firstAttachRetry, Most: endpointPeriod}
	for {
		ready, changed := serves()
		group := a.inForce(in.cluster).balancer.Name
		rest := jittered(endpointPeriod)
		switch {
		case group == "":
			a.waits.Release(endpointNotAttached)
			a.endpoint.in("")
		case ready && !a.attach(ctx, balancer, group):
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

// attach says whether this VM is a backend now.
func (a *Agent) attach(ctx context.Context, b Balancer, group string) bool {
	bounded, cancel := context.WithTimeout(ctx, attachTimeout)
	defer cancel()
	attached, err := b.Attach(bounded, group)
	if ctx.Err() != nil {
		return false
	}
	if err != nil {
		a.waits.hold(endpointNotAttached, err, "It is tried again by itself, within half a minute. Until then the load "+
			"balancer sends no clients to this master. quorate gce check names what is missing.")
		return false
	}
	a.waits.Release(endpointNotAttached)
	_, before := a.endpoint.known()
	a.endpoint.in(group)
	switch {
	case attached && before == group:
		a.cfg.Log.Warn("attached this VM to the load balancer again: somebody had taken it out", "group", group)
	case attached:
		a.cfg.Log.Info("attached this VM to the load balancer", "group", group)
	}
	return true
}

// leaveBalancer begins to take this VM out of the load balancer before what serves its clients stops. wait returns when
// new connections go elsewhere, and after detachTimeout in any case: the health check does it then.
func (a *Agent) leaveBalancer(ctx context.Context) (wait func()) {
	a.mu.Lock()
	cluster := a.cluster
	a.mu.Unlock()
	balancer, group := a.endpoint.known()
	if balancer == nil || cluster == nil {
		return func() {}
	}
	// A former agent may have attached it, and this one may not have got as far.
	if wanted := a.inForce(cluster).balancer.Name; wanted != "" {
		group = wanted
	}
	if group == "" {
		return func() {}
	}
	ctx, cancel := context.WithTimeout(ctx, detachTimeout)
	done := make(chan struct{})
	go func() {
		defer close(done)
		detached, err := balancer.Detach(ctx, group)
		switch {
		case err != nil && !errors.Is(err, context.Canceled):
			a.cfg.Log.Warn("the load balancer has this VM still: its health check takes it out", "group", group, "err",
				err.Error())
		case detached:
			a.cfg.Log.Info("detached this VM from the load balancer", "group", group)
		}
	}()
	return func() {
		defer cancel()
		<-done
	}
}
