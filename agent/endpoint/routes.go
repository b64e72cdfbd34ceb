package endpoint

import (
	"context"
	"log/slog"
	"net/netip"
	"slices"
	"sync"
	"time"

	"github.com/quorate/quorate/internal/replica"
	"github.com/quorate/quorate/internal/waits"
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

// The waits for the local routes. Without a route this VM drops what the load balancer delivers; with one too many it
// takes what it sends to somebody else's address for its own.
const (
	endpointRouteMissing = "endpoint-route-missing"
	endpointRouteLeft    = "endpoint-route-left"
)

// routeChanges are what has to be done to the local routes.
type routeChanges struct {
	add []wantedRoute
	// unnamed are marked, and forwarded no more.
	unnamed []netip.Prefix
}

type wantedRoute struct {
	mac    string
	prefix netip.Prefix
}

// decideRoutes makes local what is forwarded to this VM, and nothing else any more that was marked so. What the
// metadata names for another purpose is left to who looks after it, and so is a route without the mark. Of IPv6 nothing
// goes while the metadata says nothing of it.
func decideRoutes(interfaces []replica.Interface, there []replica.LocalRoute) (c routeChanges) {
	var named []netip.Prefix
	saysIPv6 := false
	for _, i := range interfaces {
		saysIPv6 = saysIPv6 || i.SaysIPv6
		named = slices.Concat(named, i.Forwarded, i.Others)
		for _, p := range i.Forwarded {
			isThere := func(r replica.LocalRoute) bool { return r.Prefix == p }
			if !slices.ContainsFunc(there, isThere) {
				c.add = append(c.add, wantedRoute{i.MAC, p})
			}
		}
	}
	for _, r := range there {
		if r.Marked && !slices.Contains(named, r.Prefix) && (saysIPv6 || r.Prefix.Addr().Is4()) {
			c.unnamed = append(c.unnamed, r.Prefix)
		}
	}
	return c
}

// Interfaces says what is forwarded to this VM.
type Interfaces interface {
	// WatchInterfaces calls changed with the VM's interfaces, and again when they change, until ctx is done. An answer
	// of no use goes to refused, and what was said before holds. It calls one of the two at a time.
	WatchInterfaces(ctx context.Context, changed func([]replica.Interface), refused func(error)) error
}

const (
	// routePeriod is the time between two checks of the local routes: the kernel removes them when the interface loses
	// its address, as it does where networkd configures it anew, and a load balancer takes a VM out after two probes
	// that fail.
	routePeriod = time.Second
	// routeLinger is how long a local route stays whose address is no longer forwarded. A planned drain takes the VM
	// out of the balancer first, while clients' connections are still open: without the route they would break at once.
	routeLinger = time.Minute
)

// Routes has the local routes of what is forwarded to this VM. They are not the agent's to remove when it ends: the
// endpoint's connections last until the apiserver has drained them.
type Routes struct {
	log    *slog.Logger
	waits  *waits.Phased
	kernel LocalRoutes
	// made are the routes that were there once; its goroutine has it to itself.
	made map[netip.Prefix]bool
	// unnamed is since when routes are unnamed; its goroutine has it to itself, too.
	unnamed map[netip.Prefix]time.Time

	mu         sync.Mutex
	interfaces []replica.Interface
	known      bool
	refused    error // why the metadata's last answer is of no use; nil: it is used
	news       chan struct{}
}

// NewRoutes looks after the routes of a kernel.
func NewRoutes(log *slog.Logger, w *waits.Phased, kernel LocalRoutes) *Routes {
	return &Routes{log: log, waits: w, kernel: kernel, made: map[netip.Prefix]bool{},
		unnamed: map[netip.Prefix]time.Time{}, news: make(chan struct{}, 1)}
}

// Run looks after the local routes until ctx is done. It needs no phase of the boot: an endpoint whose route is missing
// has an outage while every apiserver is ready.
func (k *Routes) Run(ctx context.Context, metadata Interfaces) {
	var watch sync.WaitGroup
	defer watch.Wait()
	watch.Go(func() { _ = metadata.WatchInterfaces(ctx, k.learn, k.refuse) }) // it ends with ctx alone
	k.keep(ctx)
}

// learn takes what the metadata says now.
func (k *Routes) learn(interfaces []replica.Interface) {
	k.mu.Lock()
	k.interfaces, k.known, k.refused = interfaces, true, nil
	k.mu.Unlock()
	k.wake()
}

// refuse takes that the metadata's answer is of no use.
func (k *Routes) refuse(why error) {
	k.mu.Lock()
	k.refused = why
	k.mu.Unlock()
	k.wake()
}

func (k *Routes) wake() {
	select {
	case k.news <- struct{}{}:
	default: // it will be read all the same
	}
}

// keep compares the routes with what is forwarded, as soon as that changes and each routePeriod.
func (k *Routes) keep(ctx context.Context) {
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
		interfaces, known, refused := k.interfaces, k.known, k.refused
		k.mu.Unlock()
		var faults routeFaults
		if known { // else it is not known whose routes these are: none is removed
			faults = k.fit(interfaces, time.Now())
		}
		faults.refused = refused
		k.tell(faults)
	}
}

// routeFaults are why the routes are not as they have to be, or cannot be known to be.
type routeFaults struct{ refused, list, add, remove error }

// tell says what is wrong, and what a person can do about just that.
func (k *Routes) tell(f routeFaults) {
	const again = "It is tried again by itself. "
	missing := waits.OneLine([]error{f.refused, f.list, f.add})
	next := again + "Until then this VM may drop what the load balancer sends to it."
	switch {
	case f.add != nil:
		next = again + "Until then this VM drops what the load balancer sends to it. By hand: ip route add to local " +
			"ADDRESS dev NIC proto 66."
	case f.refused != nil:
		next = again + "Until then the routes stay as the metadata had them before."
	}
	k.waits.HoldWhile(endpointRouteMissing, missing, next)
	k.waits.HoldWhile(endpointRouteLeft, f.remove, again+"Until then this VM takes what it sends to that address for its "+
		"own. By hand: ip route del to local ADDRESS proto 66 table local.")
}

// fit makes and removes routes. What of them cannot be done keeps nothing else from being done.
func (k *Routes) fit(interfaces []replica.Interface, now time.Time) routeFaults {
	there, err := k.kernel.List()
	if err != nil {
		return routeFaults{list: err}
	}
	for _, r := range there {
		k.made[r.Prefix] = true
	}
	changes := decideRoutes(interfaces, there)
	var notAdded, notRemoved []error
	for _, w := range changes.add {
		if err := k.kernel.Add(w.mac, w.prefix); err != nil {
			notAdded = append(notAdded, err)
			continue
		}
		if k.made[w.prefix] {
			k.log.Warn("put back the local route of the endpoint, which somebody had removed", "address",
				w.prefix.String())
		} else {
			k.log.Info("made the local route of the endpoint", "address", w.prefix.String())
		}
	}
	for _, p := range k.expired(changes.unnamed, now) {
		if err := k.kernel.Remove(p); err != nil {
			notRemoved = append(notRemoved, err)
			continue
		}
		delete(k.made, p)
		k.log.Info("removed the local route of an address that is no longer forwarded", "address", p.String())
	}
	return routeFaults{add: waits.OneLine(notAdded), remove: waits.OneLine(notRemoved)}
}

// expired are those of the unnamed routes that have been so for routeLinger.
func (k *Routes) expired(unnamed []netip.Prefix, now time.Time) (out []netip.Prefix) {
	since := map[netip.Prefix]time.Time{}
	for _, p := range unnamed {
		begin, ok := k.unnamed[p]
		if !ok {
			begin = now
		}
		if since[p] = begin; now.Sub(begin) >= routeLinger {
			out = append(out, p)
		}
	}
	k.unnamed = since
	return out
}
