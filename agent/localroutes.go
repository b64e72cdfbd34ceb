package agent

import (
	"context"
	"net/netip"
	"slices"
	"sync"
	"time"

	"github.com/quorate/quorate/internal/replica"
)

// LocalRoutes is the kernel's table of what this VM takes for its own. Its calls return at once.
type LocalRoutes interface {
	// List are all routes, whoever made them.
	List() ([]replica.LocalRoute, error)
	// Add makes a marked route at the interface with a hardware address, and Remove removes one. That there is one
	// already, or none any more, is no error.
	Add(mac string, prefix netip.Prefix) error
	Remove(prefix netip.Prefix) error
}

// endpointRouteMissing is the wait for a route without which this VM drops what the load balancer delivers.
const endpointRouteMissing = "endpoint-route-missing"

// routeChanges are what has to be done to the local routes.
type routeChanges struct {
	add    []wantedRoute
	remove []netip.Prefix
}

type wantedRoute struct {
	mac    string
	prefix netip.Prefix
}

// decideRoutes makes local what is forwarded to this VM, and nothing else any more that was marked so. What the
// metadata names for another purpose is left to who looks after it, and so is a route without the mark.
func decideRoutes(interfaces []replica.Interface, there []replica.LocalRoute) (c routeChanges) {
	var named []netip.Prefix
	for _, i := range interfaces {
		named = slices.Concat(named, i.Forwarded, i.Others)
		for _, p := range i.Forwarded {
			isThere := func(r replica.LocalRoute) bool { return r.Prefix == p }
			if !slices.ContainsFunc(there, isThere) {
				c.add = append(c.add, wantedRoute{i.MAC, p})
			}
		}
	}
	for _, r := range there {
		if r.Marked && !slices.Contains(named, r.Prefix) {
			c.remove = append(c.remove, r.Prefix)
		}
	}
	return c
}

// routeKeeper has the local routes of what is forwarded to this VM. They are not the agent's to remove when it ends:
// the endpoint's connections last until the apiserver has drained them.
type routeKeeper struct {
	a      *Agent
	routes LocalRoutes
	// made are the routes that were there once; its goroutine has it to itself.
	made map[netip.Prefix]bool

	mu         sync.Mutex
	interfaces []replica.Interface
	known      bool
	news       chan struct{}
}

// keepRoutes looks after the local routes until the returned function is called. It needs no phase of the boot: an
// endpoint whose route is missing has an outage while every apiserver is ready.
func (a *Agent) keepRoutes(ctx context.Context) (stop func()) {
	ctx, cancel := context.WithCancel(ctx)
	k := &routeKeeper{a: a, routes: a.cfg.LocalRoutes, made: map[netip.Prefix]bool{}, news: make(chan struct{}, 1)}
	var duties sync.WaitGroup
	duties.Go(func() { _ = a.cfg.Metadata.WatchInterfaces(ctx, k.learn) }) // it ends with ctx alone
	duties.Go(func() { k.keep(ctx) })
	return func() { cancel(); duties.Wait() }
}

// learn takes what the metadata says now.
func (k *routeKeeper) learn(interfaces []replica.Interface) {
	k.mu.Lock()
	k.interfaces, k.known = interfaces, true
	k.mu.Unlock()
	select {
	case k.news <- struct{}{}:
	default: // it will be read all the same
	}
}

// keep compares the routes with what is forwarded, as soon as that changes and each routePeriod.
func (k *routeKeeper) keep(ctx context.Context) {
	tick := time.NewTicker(routePeriod)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-k.news:
		case <-tick.C:
		}
		k.mu.Lock()
		interfaces, known := k.interfaces, k.known
		k.mu.Unlock()
		if !known { // whose routes these are is not known: none is removed
			continue
		}
		if err := k.fit(interfaces); err != nil {
			k.a.waits.hold(endpointRouteMissing, err, "It is tried again every "+routePeriod.String()+". Until then "+
				"this VM drops what the load balancer sends to it. By hand: ip route add to local ADDRESS dev NIC "+
				"proto 66.")
			continue
		}
		k.a.waits.Release(endpointRouteMissing)
	}
}

// fit makes and removes routes. What of them cannot be done keeps nothing else from being done.
func (k *routeKeeper) fit(interfaces []replica.Interface) error {
	there, err := k.routes.List()
	if err != nil {
		return err
	}
	for _, r := range there {
		k.made[r.Prefix] = true
	}
	changes := decideRoutes(interfaces, there)
	var faults []error
	for _, w := range changes.add {
		if err := k.routes.Add(w.mac, w.prefix); err != nil {
			faults = append(faults, err)
			continue
		}
		if k.made[w.prefix] {
			k.a.cfg.Log.Warn("put back the local route of the endpoint, which somebody had removed", "address",
				w.prefix.String())
		} else {
			k.a.cfg.Log.Info("made the local route of the endpoint", "address", w.prefix.String())
		}
	}
	for _, p := range changes.remove {
		if err := k.routes.Remove(p); err != nil {
			faults = append(faults, err)
			continue
		}
		delete(k.made, p)
		k.a.cfg.Log.Info("removed the local route of an address that is no longer forwarded", "address", p.String())
	}
	return oneLine(faults)
}
