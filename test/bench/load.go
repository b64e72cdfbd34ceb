package main

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/klog/v2"

	"github.com/quorate/quorate/certs"
	"github.com/quorate/quorate/internal/localgce"
	"github.com/quorate/quorate/test/bench/nodes"
)

const (
	// loadLimit bounds how long a crowd takes to be up, and how long a master takes to be back.
	loadLimit = 5 * time.Minute
	// loadSteady is how long a crowd is watched while nothing happens.
	loadSteady = time.Minute
	// loadOff is how long a master is away, which a VM of GCE is at least, and loadAfter how long its nodes are watched
	// from then on: what they had with it they miss within 45 s (client-go's ping after 30 s of silence, and 15 s).
	loadOff, loadAfter = 30 * time.Second, time.Minute
	// loadRecent is within which each kubelet has asked something over each of its connections: it renews its lease
	// every 10 s.
	loadRecent = 30 * time.Second
)

// crowd is how many nodes come within which time, how many pods wait for them, and the document's profile of elections.
type crowd struct {
	Nodes    int     `json:"nodes"`
	Pods     int     `json:"pods"`
	Within   seconds `json:"within"`
	Election string  `json:"election"`
	losses   bool    // masters go, one after the other
}

// crowds are a burst, with each profile, and one that comes slowly.
var crowds = []crowd{
	{Nodes: 300, Pods: 1500, Within: 10, Election: "fast", losses: true},
	{Nodes: 300, Pods: 1500, Within: 10, Election: "slow"},
	{Nodes: 1000, Within: 200, Election: "fast"},
}

func (c crowd) String() string {
	return fmt.Sprintf("%d nodes within %.0f s, %s", c.Nodes, c.Within, c.Election)
}

// crowded is what a crowd saw of three masters.
type crowded struct {
	crowd
	// Watching, Ready and Running are how long it took, since the first node came, until each watch was open, each node
	// was Ready and each pod ran.
	Watching seconds `json:"watching"`
	Ready    seconds `json:"ready"`
	Running  seconds `json:"running"`
	Spans    []span  `json:"spans"`
}

// span is what was seen while something happened. A connection is lost with the master that went, or else elsewhere.
type span struct {
	What     string  `json:"what"`
	Took     seconds `json:"took"`
	Requests int     `json:"requests"`
	// Deferred were answered that the client is to ask again soon, which client-go does by itself.
	Deferred int            `json:"deferred"`
	Failed   map[string]int `json:"failed,omitempty"` // by cause
	// FailedElsewhere and BrokenElsewhere are of connections that did not lead to the master that went.
	FailedElsewhere int `json:"failedElsewhere"`
	Broken          int `json:"broken"` // watches that ended early
	BrokenElsewhere int `json:"brokenElsewhere"`
	// Renewal is the longest time between two renewals of one node's lease.
	Renewal          seconds  `json:"renewal"`
	RenewalElsewhere seconds  `json:"renewalElsewhere"`
	NotReady         []string `json:"notReady,omitempty"`
	Restarts         []string `json:"restarts,omitempty"` // on masters that did not go

	Leases latency `json:"leases"`
	Reads  latency `json:"reads"`
	Writes latency `json:"writes"`
	Lists  latency `json:"lists"`
	Agents []usage `json:"agents"`
}

// latency is in milliseconds.
type latency struct {
	P50 float64 `json:"p50"`
	P99 float64 `json:"p99"`
}

// loads measures each crowd, on three masters of its own.
func (b *bench) loads(ctx context.Context) (out []crowded, err error) {
	for _, c := range crowds {
		one, err := b.load(ctx, c)
		if err != nil {
			return out, fmt.Errorf("load, %s: %w", c, err)
		}
		out = append(out, one)
	}
	return out, nil
}

// load boots three masters whose services take the time that Google's take, and lets a crowd come.
func (b *bench) load(ctx context.Context, c crowd) (out crowded, err error) {
	w, err := b.documentedWorld(ctx, 3, "election: "+c.Election+"\n")
	if err != nil {
		return out, err
	}
	w.likeGoogle = true
	klog.SetSlogLogger(slog.New(slog.DiscardHandler)) // what client-go says of what fails is counted
	project, _, err := boot(ctx, w, true)
	if err != nil {
		return out, err
	}
	defer project.Close(context.WithoutCancel(ctx))
	l := &loaded{trial: trial{project: project, hands: byItself{}}, bench: b, crowd: c}
	ctx, cancel := context.WithCancel(ctx)
	defer l.wait.Wait()
	defer cancel()
	if err := l.begin(ctx); err != nil {
		return out, err
	}
	return l.measure(ctx)
}

// loaded is a crowd at three masters.
type loaded struct {
	trial
	bench *bench
	crowd crowd

	meter   *nodes.Meter
	watches nodes.Watches
	cluster *nodes.Cluster
	client  kubernetes.Interface // an operator's
	all     []*nodes.One
	seen    *observed
	probes  probes
	wait    sync.WaitGroup
}

// begin connects as an operator, and makes the pods that are to run.
func (l *loaded) begin(ctx context.Context) error {
	vms := l.project.Status().VMs
	var addresses []string
	for _, vm := range vms {
		addresses = append(addresses, vm.Address)
	}
	l.meter = nodes.NewMeter(addresses)
	files := l.files(vms[0])
	files.Volatile = fmt.Sprintf("/proc/%d/root%s/pki", vms[0].InitPID, runDir)
	var err error
	l.cluster, err = nodes.NewCluster("https://"+endpointIn(subnet).String(), files.CA(certs.Kubernetes),
		files.CASigner(certs.Kubernetes), files.CASignerKey(certs.Kubernetes), l.meter)
	if err != nil {
		return err
	}
	if l.client, err = l.operator("operator"); err != nil {
		return err
	}
	if err := l.await(ctx, "the namespace's service account", func() bool {
		_, err := l.client.CoreV1().ServiceAccounts("default").Get(ctx, "default", metav1.GetOptions{})
		return err == nil
	}); err != nil {
		return err
	}
	makers, gctx := errgroup.WithContext(ctx)
	makers.SetLimit(20)
	for n := range l.crowd.Pods {
		makers.Go(func() error {
			_, err := l.client.CoreV1().Pods("default").Create(gctx, pod(n), metav1.CreateOptions{})
			return err
		})
	}
	if err := makers.Wait(); err != nil {
		return fmt.Errorf("make the pods: %w", err)
	}
	for n := range l.crowd.Nodes {
		one, err := nodes.New(l.cluster, &l.watches, n)
		if err != nil {
			return err
		}
		l.all = append(l.all, one)
	}
	l.seen = observe(ctx, l.client, &l.wait)
	return l.probe(ctx)
}

// operator is a connection of somebody who may do everything.
func (l *loaded) operator(who string) (kubernetes.Interface, error) {
	c, err := l.cluster.Connect(who, who, "system:masters", 1000)
	if err != nil {
		return nil, err
	}
	return c.Long, nil
}

func pod(n int) *corev1.Pod {
	return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("pod-%05d", n)},
		Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "c", Image: "none"}}}}
}

// measure lets the nodes come and, where that is asked for, takes one master after the other away.
func (l *loaded) measure(ctx context.Context) (out crowded, err error) {
	out.crowd = l.crowd
	began := time.Now()
	first, err := l.span(ctx, "they come", nil,
		func(ctx context.Context) error { return l.come(ctx, began, &out) })
	if err != nil {
		return out, err
	}
	l.bench.say("load, %s: watches %.1f s, Ready %.1f s, %d pods run %.1f s; %s", l.crowd, out.Watching, out.Ready,
		l.crowd.Pods, out.Running, first.words())
	out.Spans = append(out.Spans, first)
	steady, err := l.span(ctx, "nothing happens", nil,
		func(ctx context.Context) error { return sleep(ctx, loadSteady) })
	if err != nil {
		return out, err
	}
	l.bench.say("load, %s, %s: %s", l.crowd, steady.What, steady.words())
	out.Spans = append(out.Spans, steady)
	if !l.crowd.losses {
		return out, nil
	}
	// Connections do not come back to a master that was away, so the one that has most of them is wiped.
	busiest := func(_ int, followers []int) int {
		vms, had := l.project.Status().VMs, map[string]int{}
		for _, who := range l.connections() {
			had[l.meter.Master(who)]++
		}
		return slices.MaxFunc(followers, func(i, j int) int {
			return cmp.Compare(had[vms[i].Address], had[vms[j].Address])
		})
	}
	for _, loss := range []struct {
		what string
		who  func(leader int, followers []int) int
		do   func(context.Context, string) error
	}{
		{"the leader is stopped as planned", theLeader, gone(l.project.StopVM, l.project.StartVM)},
		{"the leader is killed", theLeader, gone(l.project.KillVM, l.project.StartVM)},
		{"a follower is wiped", busiest, gone(l.project.KillVM, l.anew)},
	} {
		vm, err := l.choose(ctx, loss.who)
		if err != nil {
			return out, err
		}
		s, err := l.span(ctx, loss.what, vm, func(ctx context.Context) error { return l.away(ctx, *vm, loss.do) })
		if err != nil {
			return out, fmt.Errorf("%s: %w", loss.what, err)
		}
		l.bench.say("load, %s, %s: %s", l.crowd, loss.what, s.words())
		out.Spans = append(out.Spans, s)
	}
	return out, nil
}

// come begins one node after the other, and waits until all are whole.
func (l *loaded) come(ctx context.Context, began time.Time, out *crowded) error {
	each := time.Duration(float64(l.crowd.Within) * float64(time.Second) / float64(len(l.all)))
	for i, one := range l.all {
		if err := sleep(ctx, time.Until(began.Add(time.Duration(i)*each))); err != nil {
			return err
		}
		l.wait.Go(func() { one.Run(ctx) })
	}
	since := func() seconds { return seconds(time.Since(began).Seconds()) }
	g, all := errgroup.WithContext(ctx)
	g.Go(func() error {
		err := l.await(all, "every watch", func() bool {
			return l.watches.Open() == nodes.WatchesEach*len(l.all) &&
				!slices.ContainsFunc(l.all, func(o *nodes.One) bool { return !o.Synced() })
		})
		out.Watching = since()
		return err
	})
	g.Go(func() error {
		err := l.await(all, "every node", func() bool { return l.seen.ready() == len(l.all) })
		out.Ready = since()
		return err
	})
	g.Go(func() error {
		err := l.await(all, "every pod", func() bool { return l.seen.running() == l.crowd.Pods })
		out.Running = since()
		return err
	})
	return g.Wait()
}

// await polls until something is so.
func (l *loaded) await(ctx context.Context, what string, so func() bool) error {
	ctx, cancel := context.WithTimeoutCause(ctx, loadLimit, fmt.Errorf("no %s within %s", what, loadLimit))
	defer cancel()
	for !so() {
		if err := sleep(ctx, 100*time.Millisecond); err != nil {
			return err
		}
	}
	return nil
}

func (l *loaded) choose(ctx context.Context, who func(leader int, followers []int) int) (*localgce.VMStatus, error) {
	m, err := l.connect()
	if err != nil {
		return nil, err
	}
	defer m.close()
	leader, followers, err := l.roles(ctx, m)
	if err != nil {
		return nil, err
	}
	return &m.vms[who(leader, followers)], nil
}

// away takes a master away, waits until it is back, and watches for long enough that each client has noticed.
func (l *loaded) away(ctx context.Context, vm localgce.VMStatus, how func(context.Context, string) error) error {
	if err := how(ctx, vm.Name); err != nil {
		return err
	}
	after := time.Now().Add(loadAfter)
	ctx, cancel := context.WithTimeoutCause(ctx, loadLimit, fmt.Errorf("%s is not back within %s", vm.Name, loadLimit))
	defer cancel()
	if _, err := awaitReady(ctx, vm.Address); err != nil {
		return err
	}
	return sleep(ctx, time.Until(after))
}

// gone is a way to be away: a VM goes, is off for a while, and comes back.
func gone(leave, back func(context.Context, string) error) func(context.Context, string) error {
	return func(ctx context.Context, vm string) error {
		if err := leave(ctx, vm); err != nil {
			return err
		}
		if err := sleep(ctx, loadOff); err != nil {
			return err
		}
		return back(ctx, vm)
	}
}

// anew creates a VM anew with an empty disk.
func (l *loaded) anew(ctx context.Context, vm string) error {
	return l.project.RecreateVM(ctx, vm, localgce.Recreation{Wipe: true})
}

// restarts are how often each component of each master but one was started anew.
func (l *loaded) restarts(ctx context.Context, but *localgce.VMStatus) (map[string]int, error) {
	out := map[string]int{}
	for _, vm := range l.project.Status().VMs {
		if but != nil && vm.Name == but.Name {
			continue
		}
		var status struct {
			Components []struct {
				Name     string
				Restarts int
			}
		}
		if err := askStatus(ctx, vm.InitPID, &status); err != nil {
			return nil, err
		}
		for _, c := range status.Components {
			out[vm.Name+" "+c.Name] = c.Restarts
		}
	}
	return out, nil
}

// words say the most of a span in one line.
func (s span) words() string {
	return fmt.Sprintf("%d of %d requests failed, %d of them elsewhere, %d were deferred; %d watches broke, %d "+
		"elsewhere; %d nodes not Ready; longest renewal %.1f s, elsewhere %.1f s; restarts %s", s.failures(),
		s.Requests, s.FailedElsewhere, s.Deferred, s.Broken, s.BrokenElsewhere, len(s.NotReady), s.Renewal,
		s.RenewalElsewhere, cmp.Or(strings.Join(s.Restarts, ", "), "none"))
}

func (s span) failures() (n int) {
	for _, count := range s.Failed {
		n += count
	}
	return n
}
