package main

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"

	"github.com/quorate/quorate/internal/localgce"
	"github.com/quorate/quorate/test/bench/nodes"
	"github.com/quorate/quorate/test/bench/proc"
)

// span watches while something is done; vm is the master that goes, if one does.
func (l *loaded) span(ctx context.Context, what string, vm *localgce.VMStatus, do func(context.Context) error) (span,
	error) {
	s := span{What: what}
	lost := map[string]bool{} // clients that have a connection to the master that goes
	if vm != nil {
		for _, who := range l.connections() {
			lost[who] = l.meter.Master(who) == vm.Address
		}
		for _, r := range l.meter.Requests(time.Now().Add(-loadRecent), time.Now()) {
			lost[r.Who] = lost[r.Who] || r.Master == vm.Address
		}
	}
	restarts, err := l.restarts(ctx, vm)
	if err != nil {
		return s, err
	}
	agents, err := l.agents(vm)
	if err != nil {
		return s, err
	}
	from := time.Now()
	if err := do(ctx); err != nil {
		return s, err
	}
	to := time.Now()
	s.Took = seconds(to.Sub(from).Seconds())
	for _, a := range agents {
		used, err := a.until(to)
		if err != nil {
			return s, err
		}
		s.Agents = append(s.Agents, used)
	}
	now, err := l.restarts(ctx, vm)
	if err != nil {
		return s, err
	}
	for name, n := range now {
		if n != restarts[name] {
			s.Restarts = append(s.Restarts, fmt.Sprintf("%s %d times", name, n-restarts[name]))
		}
	}
	slices.Sort(s.Restarts)
	for _, b := range l.watches.Breaks(from, to) {
		s.Broken++
		// A connection that is closed in order keeps its watches. One that answers no heartbeat makes its client close
		// all that it has, as a kubelet does, and with them the watches that it has begun elsewhere by then.
		if vm == nil || b.Master != vm.Address && !lost[b.Who] {
			s.BrokenElsewhere++
		}
	}
	s.count(l.meter.Requests(from, to), lost)
	s.renewals(l.all, l.meter.Requests(from.Add(-time.Minute), to), lost, from, to)
	s.NotReady = l.seen.notReady(from, to)
	s.Reads, s.Writes, s.Lists = l.probes.of("read", from, to), l.probes.of("write", from, to),
		l.probes.of("list", from, to)
	return s, nil
}

func (l *loaded) connections() (out []string) {
	for _, one := range l.all {
		out = append(out, one.Connections()...)
	}
	return append(out, "operator", "probe/read", "probe/write", "probe/list")
}

// count sorts requests by what became of them.
func (s *span) count(all []nodes.Request, lost map[string]bool) {
	var leases []time.Duration
	s.Failed = map[string]int{}
	for _, r := range all {
		s.Requests++
		switch {
		case r.Deferred:
			s.Deferred++
		case r.Cause != "":
			s.Failed[fmt.Sprintf("%s: %s", r.Kind, r.Cause)]++
			if !lost[r.Who] {
				s.FailedElsewhere++
			}
		case r.Kind == nodes.Lease:
			leases = append(leases, r.Took)
		}
	}
	s.Leases = latencyOf(leases)
}

// renewals finds the longest time between two renewals of one node's lease that reaches into the span. Where there is
// none, it counts from the node's begin, or the span's.
func (s *span) renewals(all []*nodes.One, requests []nodes.Request, lost map[string]bool, from, to time.Time) {
	renewed := map[string][]time.Time{}
	for _, r := range requests {
		if r.Kind == nodes.Lease && r.Write && r.Cause == "" && !r.Deferred {
			renewed[r.Who] = append(renewed[r.Who], r.Began.Add(r.Took))
		}
	}
	for _, one := range all {
		at := renewed[one.Name]
		if len(at) == 0 {
			if one.Began().IsZero() {
				continue
			}
			at = []time.Time{latest(from, one.Began())}
		}
		slices.SortFunc(at, time.Time.Compare)
		longest := seconds(0)
		for i, t := range append(at[1:], to) {
			if t.After(from) {
				longest = max(longest, seconds(t.Sub(at[i]).Seconds()))
			}
		}
		s.Renewal = max(s.Renewal, longest)
		if !lost[one.Name] {
			s.RenewalElsewhere = max(s.RenewalElsewhere, longest)
		}
	}
}

func latest(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

// watchedAgent is an agent whose time on a core is counted.
type watchedAgent struct {
	vm     string
	pid    int
	before time.Duration
	since  time.Time
}

// agents are those of all masters but one.
func (l *loaded) agents(but *localgce.VMStatus) (out []watchedAgent, err error) {
	for _, vm := range l.project.Status().VMs {
		if but != nil && vm.Name == but.Name {
			continue
		}
		a := watchedAgent{vm: vm.Name, since: time.Now()}
		if a.pid, err = proc.Find(vm.InitPID, "quorate", "agent"); err != nil {
			return nil, fmt.Errorf("find the agent of %s: %w", vm.Name, err)
		}
		if a.before, err = proc.CPU(a.pid); err != nil {
			return nil, err
		}
		out = append(out, a)
	}
	return out, nil
}

func (a watchedAgent) until(now time.Time) (usage, error) {
	after, err := proc.CPU(a.pid)
	if err != nil {
		return usage{}, err
	}
	rss, file, err := proc.Memory(a.pid)
	return usage{VM: a.vm, Name: "agent", RSS: mebibytes(rss), File: mebibytes(file),
		CPU: 100 * (after - a.before).Seconds() / now.Sub(a.since).Seconds()}, err
}

// observed is what an operator sees of nodes and pods.
type observed struct {
	mu    sync.Mutex
	nodes map[string]bool // Ready
	pods  map[string]bool // Running
	left  []wasReady
}

type wasReady struct {
	node string
	at   time.Time
}

// observe begins to watch nodes and pods.
func observe(ctx context.Context, c kubernetes.Interface, wait *sync.WaitGroup) *observed {
	o := &observed{nodes: map[string]bool{}, pods: map[string]bool{}}
	factory := informers.NewSharedInformerFactory(c, 0)
	both := func(do func(any)) cache.ResourceEventHandlerFuncs {
		return cache.ResourceEventHandlerFuncs{AddFunc: do, UpdateFunc: func(_, obj any) { do(obj) }}
	}
	factory.Core().V1().Nodes().Informer().AddEventHandler(both(func(obj any) { o.node(obj.(*corev1.Node)) }))
	factory.Core().V1().Pods().Informer().AddEventHandler(both(func(obj any) { o.pod(obj.(*corev1.Pod)) }))
	factory.StartWithContext(ctx)
	wait.Go(func() { <-ctx.Done(); factory.Shutdown() })
	return o
}

func (o *observed) node(n *corev1.Node) {
	ready := slices.ContainsFunc(n.Status.Conditions, func(c corev1.NodeCondition) bool {
		return c.Type == corev1.NodeReady && c.Status == corev1.ConditionTrue
	}) && !slices.ContainsFunc(n.Spec.Taints, func(t corev1.Taint) bool {
		return strings.HasPrefix(t.Key, corev1.TaintNodeNotReady)
	})
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.nodes[n.Name] && !ready {
		o.left = append(o.left, wasReady{n.Name, time.Now()})
	}
	o.nodes[n.Name] = ready
}

func (o *observed) pod(p *corev1.Pod) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.pods[p.Name] = p.Status.Phase == corev1.PodRunning
}

func (o *observed) ready() int   { return o.count(func() map[string]bool { return o.nodes }) }
func (o *observed) running() int { return o.count(func() map[string]bool { return o.pods }) }

func (o *observed) count(of func() map[string]bool) (n int) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, so := range of() {
		if so {
			n++
		}
	}
	return n
}

// notReady are the nodes that stopped being Ready in a span of time.
func (o *observed) notReady(from, to time.Time) (out []string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, l := range o.left {
		if !l.at.Before(from) && l.at.Before(to) && !slices.Contains(out, l.node) {
			out = append(out, l.node)
		}
	}
	slices.Sort(out)
	return out
}
