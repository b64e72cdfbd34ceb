package localgce

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

// balancer is a passthrough load balancer: the endpoint's packets keep their addresses and go to one of the members by
// a hash.
type balancer struct {
	fabric  fabric
	client  *http.Client
	health  *health
	mu      sync.Mutex
	current []target // what the kernel has
	open    bool
}

// target is a VM as the balancer sees it.
type target struct {
	index   int
	name    string
	address netip.Addr
	running bool
}

func newBalancer(f fabric) *balancer {
	dial := func(ctx context.Context, network, address string) (conn net.Conn, err error) {
		err = inNamespace(f.names.fabric(), func() error {
			conn, err = (&net.Dialer{}).DialContext(ctx, network, address)
			return err
		})
		return conn, err
	}
	return &balancer{fabric: f, health: newHealth(), client: &http.Client{
		Timeout: probeTimeout,
		Transport: &http.Transport{
			DialContext: dial, DisableKeepAlives: true,
			// GCE's health checks do not verify certificates either.
			TLSClientConfig: &tls.Config{InsecureSkipVerify: true},
		},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}}
}

// run probes until the context ends.
func (b *balancer) run(ctx context.Context, targets func() []target, report func(error)) {
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
func (b *balancer) probe(ctx context.Context, targets []target) {
	ok := make([]bool, len(targets))
	var wait sync.WaitGroup
	for i, t := range targets {
		if t.running {
			wait.Go(func() { ok[i] = b.ask(ctx, t.address) })
		}
	}
	wait.Wait()
	for i, t := range targets {
		b.health.observe(t.index, ok[i])
	}
}

func (b *balancer) ask(ctx context.Context, a netip.Addr) bool {
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
func (b *balancer) apply(ctx context.Context, targets []target) error {
	var all, running []int
	for _, t := range targets {
		all = append(all, t.index)
		if t.running {
			running = append(running, t.index)
		}
	}
	members, open := b.health.members(all, running)
	var want []target
	for _, t := range targets {
		if slices.Contains(members, t.index) {
			t.running = true // compared below by who and where only
			want = append(want, t)
		}
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if slices.Equal(want, b.current) && open == b.open {
		return nil
	}
	if err := ipBatch(ctx, b.fabric.names.fabric(), b.commands(want, open)...); err != nil {
		b.forget(ctx)
		return fmt.Errorf("balance the endpoint: %w", err)
	}
	b.current, b.open = want, open
	return nil
}

// forget takes out whatever the kernel has, because a batch that failed may have taken effect in part: the next poll
// begins anew. Each may be absent, so errors say nothing. b.mu is held.
func (b *balancer) forget(ctx context.Context) {
	for _, line := range []string{fmt.Sprintf("route del %s/32", b.fabric.conf.Endpoint),
		fmt.Sprintf("nexthop del id %d", groupID)} {
		_ = ipBatch(ctx, b.fabric.names.fabric(), line)
	}
	b.current, b.open = nil, false
}

// commands change the kernel's state from current to want. Where the former members were only guesses the group is made
// anew, and so is balanced at once.
func (b *balancer) commands(want []target, open bool) (lines []string) {
	route := fmt.Sprintf("%s/32 nhid %d", b.fabric.conf.Endpoint, groupID)
	if len(b.current) > 0 && (len(want) == 0 || b.open != open) {
		lines = append(lines, "route del "+route, fmt.Sprintf("nexthop del id %d", groupID))
	}
	if len(want) == 0 {
		return lines
	}
	var ids []string
	for _, t := range want {
		lines = append(lines, fmt.Sprintf("nexthop replace id %d via %s dev br0", t.index, t.address))
		ids = append(ids, fmt.Sprint(t.index))
	}
	return append(lines,
		fmt.Sprintf("nexthop replace id %d group %s type resilient buckets 64 idle_timer %d", groupID,
			strings.Join(ids, "/"), bucketIdle),
		"route replace "+route)
}

// members are the names of the VMs that get connections now, and whether that is because none is ready.
func (b *balancer) members() (list []string, open bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, t := range b.current {
		list = append(list, t.name)
	}
	return list, b.open
}
