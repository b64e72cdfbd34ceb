package agent

import (
	"context"
	"strings"

	"github.com/quorate/quorate/internal/replica"
)

// keepDocument watches the instance's document until the returned function is called. What of it counts at once takes
// effect. The rest counts from the agent's next start, and is shown until then: most of a replica is built on its
// document, and a change that took all masters at once could take all apiservers at once. A document that cannot be
// used changes nothing.
func (a *Agent) keepDocument(ctx context.Context, in identified) (stop func()) {
	return background(ctx, func(ctx context.Context) {
		// its only error is ctx's
		_ = a.cfg.Metadata.Watch(ctx, ClusterAttribute,
			func(document string, _ bool) { a.takeNote(in.cluster, document) })
	})
}

// atOnce is what of the document counts as soon as it changes: nothing that runs is built on it.
type atOnce struct {
	// kubelet is how the kubelet and its runtime are watched, snapshots the time between two of them.
	kubelet   replica.Kubelet
	snapshots replica.Duration
	// balancer is the load balancer that this replica attaches itself to.
	balancer replica.LoadBalancer
}

// atOnceIn is that part of a document.
func atOnceIn(c *replica.Cluster) atOnce {
	return atOnce{c.Kubelet, c.Etcd.Snapshots.Interval, c.LoadBalancer()}
}

// with is a document with that part in place of its own.
func (o atOnce) with(c *replica.Cluster) *replica.Cluster {
	out := *ofAgents(c)
	out.Kubelet, out.Etcd.Snapshots.Interval, out.GCE.LoadBalancer = o.kubelet, o.snapshots, o.balancer
	return &out
}

// inForce is what is in force of it. started is the document that the agent has started with.
func (a *Agent) inForce(started *replica.Cluster) atOnce {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.atOnce == nil {
		return atOnceIn(started)
	}
	return *a.atOnce
}

// wantedGroup is the group of backends that the document names now; empty: it names none, or is not known yet.
func (a *Agent) wantedGroup() string {
	a.mu.Lock()
	started := a.cluster
	a.mu.Unlock()
	if started == nil {
		return ""
	}
	return a.inForce(started).balancer.Name
}

// takeNote compares the instance's document with the one in force.
func (a *Agent) takeNote(started *replica.Cluster, document string) {
	next, err := loadCluster(a.cfg.Baked, document, a.cfg.ImageDisk)
	if err != nil {
		a.mu.Lock()
		a.pending = nil // the next start refuses this document too
		a.mu.Unlock()
		a.waits.HoldFor(documentRefused, err, documentRefusedNext)
		return
	}
	a.waits.Release(documentRefused)
	inForce := a.takeAtOnce(started, atOnceIn(next))
	pending := replica.Changes(ofAgents(inForce), ofAgents(next))
	a.mu.Lock()
	before := a.pending
	a.pending = pending
	a.mu.Unlock()
	switch {
	case len(pending) > 0:
		a.cfg.Log.Warn("the document has changed: it counts from the agent's next start", "changes", texts(pending))
	case len(before) > 0:
		a.cfg.Log.Info("the document is again the one that is in force")
	}
}

// takeAtOnce puts in force what counts at once, and returns the document that is in force then.
func (a *Agent) takeAtOnce(started *replica.Cluster, next atOnce) *replica.Cluster {
	inForce := a.inForce(started).with(started)
	changed := next.with(started)
	changes := replica.Changes(inForce, changed)
	if len(changes) == 0 {
		return inForce
	}
	a.mu.Lock()
	a.atOnce = &next
	a.mu.Unlock()
	a.cfg.Log.Info("the document has changed: it counts at once", "changes", texts(changes))
	select {
	case a.documentChanged <- struct{}{}:
	default: // it is to be read anyway
	}
	return changed
}

func texts(changes []replica.Change) string {
	var all []string
	for _, c := range changes {
		all = append(all, c.String())
	}
	return strings.Join(all, "; ")
}

// ofAgents is the part of a document that an agent reads: what VMs are made of is for the operator's commands.
func ofAgents(c *replica.Cluster) *replica.Cluster {
	part := *c
	part.GCE = &replica.GCE{LoadBalancer: c.LoadBalancer()}
	return &part
}
