// Package balancer is the passthrough load balancer of the endpoint: the health check, and the kernel's route to those
// that pass it.
package balancer

import (
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/quorate/quorate/internal/localgce/network"
)

const (
	probeInterval = time.Second
	probeTimeout  = time.Second
	// missesOut is the health check's unhealthyThreshold; its healthyThreshold is 1.
	missesOut = 2
	// groupID is the next-hop group; the next hops have the VMs' indexes.
	groupID = 1000
	// bucketIdle is how long a hash bucket must be quiet before a VM that comes back may get it: longer than the 30 s
	// at which client-go pings a quiet connection, because what is moved away breaks.
	bucketIdle = 35
)

// health is what the health check knows of the VMs, by index. Pure: it is told the outcomes.
type health struct {
	ready  map[int]bool
	misses map[int]int
}

func newHealth() *health { return &health{ready: map[int]bool{}, misses: map[int]int{}} }

func (h *health) observe(index int, ok bool) {
	if ok {
		h.ready[index], h.misses[index] = true, 0
		return
	}
	if h.misses[index]++; h.misses[index] >= missesOut {
		h.ready[index] = false
	}
}

// members are the VMs that get connections: the ready ones; if there is none, all that run, as GCE's passthrough load
// balancers fail open.
func (h *health) members(all, running []int) (members []int, open bool) {
	for _, i := range all {
		if h.ready[i] {
			members = append(members, i)
		}
	}
	if len(members) > 0 {
		return members, false
	}
	return slices.Clone(running), len(running) > 0
}

// Balancer is a passthrough load balancer: the endpoint's packets keep their addresses and go to one of the members by
// a hash.
type Balancer struct {
	namespace string // the fabric's
	endpoint  netip.Addr
	client    *http.Client
	health    *health
	mu        sync.Mutex
	current   []Target // what the kernel has
	open      bool
}

// Target is a VM as the balancer sees it.
type Target struct {
	Index   int
	Name    string
	Address netip.Addr
	Running bool
}

// New balances the endpoint in the fabric's network namespace.
func New(namespace string, endpoint netip.Addr) *Balancer {
	dial := func(ctx context.Context, kind, address string) (conn net.Conn, err error) {
		err = network.In(namespace, func() error {
			conn, err = (&net.Dialer{}).DialContext(ctx, kind, address)
			return err
		})
		return conn, err
	}
	return &Balancer{namespace: namespace, endpoint: endpoint, health: newHealth(), client: &http.Client{
		Timeout: probeTimeout,
		Transport: &http.Transport{
			DialContext: dial, DisableKeepAlives: true,
			// GCE's health checks do not verify certificates either.
			TLSClientConfig: &tls.Config{InsecureSkipVerify: true},
		},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}}
}

// Run probes until the context ends.
func (b *Balancer) Run(ctx context.Context, targets func() []Target, report func(error)) {
	tick := time.NewTicker(probeInterval)
	defer tick.Stop()
	for {
		now := targets()
		b.probe(ctx, now)
		if ctx.Err() != nil {
			return
		}
		if err := b.apply(ctx, now); err != nil && ctx.Err() == nil {
			report(err)
		}
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

// probe asks all targets at once.
func (b *Balancer) probe(ctx context.Context, targets []Target) {
	ok := make([]bool, len(targets))
	var wait sync.WaitGroup
	for i, t := range targets {
		if t.Running {
			wait.Go(func() { ok[i] = b.ask(ctx, t.Address) })
		}
	}
	wait.Wait()
	for i, t := range targets {
		b.health.observe(t.Index, ok[i])
	}
}

func (b *Balancer) ask(ctx context.Context, a netip.Addr) bool {
	url := fmt.Sprintf("https://%s/readyz", a)
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return false
	}
	resp, err := b.client.Do(req)
	if err != nil {
		return false
	}
	defer resp.Body.Close()
	_, err = io.Copy(io.Discard, resp.Body)
	return err == nil && resp.StatusCode == http.StatusOK
}

// apply brings the kernel's group to what health says, if it differs.
func (b *Balancer) apply(ctx context.Context, targets []Target) error {
	var all, running []int
	for _, t := range targets {
		all = append(all, t.Index)
		if t.Running {
			running = append(running, t.Index)
		}
	}
	members, open := b.health.members(all, running)
	var want []Target
	for _, t := range targets {
		if slices.Contains(members, t.Index) {
			t.Running = true // compared below by who and where only
			want = append(want, t)
		}
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if slices.Equal(want, b.current) && open == b.open {
		return nil
	}
	if err := network.IP(ctx, b.namespace, b.commands(want, open)...); err != nil {
		b.forget(ctx)
		return fmt.Errorf("balance the endpoint: %w", err)
	}
	b.current, b.open = want, open
	return nil
}

// forget takes out whatever the kernel has, because a batch that failed may have taken effect in part: the next poll
// begins anew. Each may be absent, so errors say nothing. b.mu is held.
func (b *Balancer) forget(ctx context.Context) {
	for _, line := range []string{fmt.Sprintf("route del %s/32", b.endpoint),
		fmt.Sprintf("nexthop del id %d", groupID)} {
		_ = network.IP(ctx, b.namespace, line)
	}
	b.current, b.open = nil, false
}

// commands change the kernel's state from current to want. Where the former members were only guesses the group is made
// anew, and so is balanced at once.
func (b *Balancer) commands(want []Target, open bool) (lines []string) {
	route := fmt.Sprintf("%s/32 nhid %d", b.endpoint, groupID)
	if len(b.current) > 0 && (len(want) == 0 || b.open != open) {
		lines = append(lines, "route del "+route, fmt.Sprintf("nexthop del id %d", groupID))
	}
	if len(want) == 0 {
		return lines
	}
	var ids []string
	for _, t := range want {
		lines = append(lines, fmt.Sprintf("nexthop replace id %d via %s dev br0", t.Index, t.Address))
		ids = append(ids, fmt.Sprint(t.Index))
	}
	return append(lines,
		fmt.Sprintf("nexthop replace id %d group %s type resilient buckets 64 idle_timer %d", groupID,
			strings.Join(ids, "/"), bucketIdle),
		"route replace "+route)
}

// Members are the names of the VMs that get connections now, and whether that is because none is ready.
func (b *Balancer) Members() (list []string, open bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, t := range b.current {
		list = append(list, t.Name)
	}
	return list, b.open
}
