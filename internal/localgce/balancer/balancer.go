// Package balancer is the project's passthrough load balancers: the health checks, and what the fabric's kernel does
// with the packets that they let through.
//
//	forwarding rules, endpoints ── pool: who is asked, who is in, who drains ──▶ nft: a mark for each new connection
//	                                 ▲                                              ip: a route for each mark
//	                                 └── prober: HTTPS to the balanced address
//	a VM's external address ──▶ nft: translated to the VM's own
//
// It does to connections what Google's does. Packets keep their addresses. A new connection goes to one of the
// endpoints that pass their check, or if none does to any that runs, and it stays there: also while the endpoint fails
// its check, and for the draining time-out after it has left. Nobody says that an endpoint is off: its clients hear
// nothing until the draining ends.
package balancer

import (
	"context"
	"fmt"
	"net/netip"
	"slices"
	"sync"
	"time"

	"github.com/quorate/quorate/internal/localgce/instance"
	"github.com/quorate/quorate/internal/localgce/network"
)

// period is the time between two comparisons of what there is with what the kernel has, and retryPause that after a
// failure.
const period, retryPause = 100 * time.Millisecond, time.Second

// Service is what serves one address.
type Service struct {
	instance.Forwarding
	// Backends are those of its endpoints that there are.
	Backends []Backend
	// Settle is how long a change takes until new connections feel it.
	Settle time.Duration
}

// External is an address that leads to one VM, which hears of it as of its own.
type External struct{ Address, To netip.Addr }

// Backend is a VM as the balancer sees it.
type Backend struct {
	ID      uint64
	Name    string
	Address netip.Addr
	Running bool
}

// key is what a service is known by.
type key struct {
	address netip.Addr
	port    int
}

// Balancer keeps the fabric's kernel as the services say. Its methods may be called concurrently.
type Balancer struct {
	namespace string // the fabric's
	prober    prober
	waiting   chan chan<- struct{} // who wants to know of the next comparison's end
	over      chan struct{}        // closed when Run ends

	mu     sync.Mutex
	pools  map[key]*pool
	routed map[netip.Addr]bool // the backends whose marks have a route
	script string              // what the kernel has; empty: it is not known
	retry  time.Time           // not before
}

// New balances in the fabric's network namespace. Nothing is balanced before Run.
func New(namespace string) *Balancer {
	return &Balancer{namespace: namespace, prober: prober{namespace: namespace}, waiting: make(chan chan<- struct{}),
		over: make(chan struct{}), pools: map[key]*pool{}, routed: map[netip.Addr]bool{}}
}

// Run probes and balances what services returns, and leads what external returns, until the context ends.
func (b *Balancer) Run(ctx context.Context, services func() []Service, external func() []External,
	report func(error)) {
	defer close(b.over)
	var probes sync.WaitGroup
	defer probes.Wait()
	tick := time.NewTicker(period)
	defer tick.Stop()
	var done chan<- struct{}
	for {
		now := services()
		b.ask(ctx, &probes, now)
		if err := b.apply(ctx, now, external()); err != nil && ctx.Err() == nil {
			report(err)
		}
		if done != nil {
			close(done)
			done = nil
		}
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		case done = <-b.waiting:
		}
	}
}

// Apply returns when the kernel has been told what Run's functions return from now on, or could not be (Run reports
// why), or Run has ended.
func (b *Balancer) Apply() {
	done := make(chan struct{})
	select {
	case b.waiting <- done:
	case <-b.over:
		return
	}
	select {
	case <-done:
	case <-b.over:
	}
}

// ask brings the pools in line, and begins the probes that are due.
func (b *Balancer) ask(ctx context.Context, probes *sync.WaitGroup, services []Service) {
	b.mu.Lock()
	defer b.mu.Unlock()
	former := b.pools
	b.pools = map[key]*pool{}
	for _, s := range services {
		k := key{s.Address, s.Port}
		p := former[k]
		if p == nil {
			p = newPool()
		}
		b.pools[k] = p
		for _, due := range p.update(time.Now(), s) {
			probes.Go(func() {
				ok := due.Running && b.prober.ask(ctx, s, due.Address)
				b.mu.Lock()
				defer b.mu.Unlock()
				p.observe(due.ID, ok)
			})
		}
	}
}

// apply brings the kernel to what the pools say, if it differs.
func (b *Balancer) apply(ctx context.Context, services []Service, external []External) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	now := time.Now()
	var tables []table
	for _, s := range services {
		k := key{s.Address, s.Port}
		tables = append(tables, b.pools[k].inForce(now, s).of(k))
	}
	script := render(tables, external)
	if script == b.script || now.Before(b.retry) {
		return nil
	}
	err := b.route(ctx, tables)
	if err == nil {
		err = network.NFT(ctx, b.namespace, script)
	}
	if err != nil {
		b.script, b.retry = "", now.Add(retryPause)
		return fmt.Errorf("balance: %w", err)
	}
	b.script = script
	return nil
}

// route makes the marks of new backends lead to them. A mark is its address's for good, so none is taken away. b.mu is
// held.
func (b *Balancer) route(ctx context.Context, tables []table) error {
	for _, t := range tables {
		for _, a := range t.kept {
			if b.routed[a] {
				continue
			}
			if err := network.IP(ctx, b.namespace, routes(a)...); err != nil {
				return err
			}
			b.routed[a] = true
		}
	}
	return nil
}

// Members are the names of the VMs that get an address's new connections now, and whether that is because none is
// ready.
func (b *Balancer) Members(address netip.Addr) (list []string, open bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for k, p := range b.pools {
		if k.address == address && b.script != "" {
			list, open = slices.Sorted(slices.Values(p.now.names)), p.now.open
		}
	}
	return list, open
}

// Healthy says whether an instance passes the health check of a service.
func (b *Balancer) Healthy(id uint64) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, p := range b.pools {
		if e := p.endpoints[id]; e != nil && e.left.IsZero() && e.ready {
			return true
		}
	}
	return false
}
