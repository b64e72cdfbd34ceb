package agent

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/quorate/quorate/agent/datadisk"
	"github.com/quorate/quorate/agent/endpoint"
	"github.com/quorate/quorate/controlplane"
	"github.com/quorate/quorate/internal/replica"
	"github.com/quorate/quorate/internal/waits"
)

// ClusterAttribute is the instance attribute that holds the Cluster document.
const ClusterAttribute = "quorate-cluster"

// documentRefused is the wait for a document that can be used.
const (
	documentRefused     = "document-refused"
	documentRefusedNext = "Correct the instance's attribute; it counts from the agent's next start. Until then the " +
		"document before it does, but a reboot knows no other than this one."
)

// document is the Cluster document of this replica while it runs: what of it is in force, and what the instance's says
// otherwise. What of a change counts at once takes effect. The rest counts from the agent's next start, and is shown
// until then: most of a replica is built on its document, and a change that took all masters at once could take all
// apiservers at once. A document that cannot be used changes nothing. Several may use it at once.
type document struct {
	log   *slog.Logger
	waits *waits.Phased
	// load reads the document that an instance's attribute makes.
	load func(attribute string) (*replica.Cluster, error)
	// changed is given when atOnce is to be read again.
	changed nudge

	mu sync.Mutex
	// started is the one that the agent has started with; nil: it is not known yet.
	started *replica.Cluster
	// atOnce is what of the newest one counts at once; nil: as at the agent's start.
	atOnce *atOnce
	// pending is what the newest one says otherwise than the one in force; never written into again.
	pending []replica.Change
}

func newDocument(cfg Config, w *waits.Phased) *document {
	load := func(attribute string) (*replica.Cluster, error) {
		return loadCluster(cfg.Baked, attribute, cfg.ImageDisk)
	}
	return &document{log: cfg.Log, waits: w, load: load, changed: newNudge()}
}

// open notes what the agent has started with.
func (d *document) open(started *replica.Cluster) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.started = started
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

// keep watches the instance's document until ctx is done.
func (d *document) keep(ctx context.Context, m Metadata) {
	// its only error is ctx's
	_ = m.Watch(ctx, ClusterAttribute, func(attribute string, _ bool) { d.take(attribute) })
}

// inForce is what is in force of it.
func (d *document) inForce() atOnce {
	d.mu.Lock()
	defer d.mu.Unlock()
	switch {
	case d.atOnce != nil:
		return *d.atOnce
	case d.started == nil:
		return atOnce{}
	}
	return atOnceIn(d.started)
}

// kubelet is how the kubelet is watched now.
func (d *document) kubelet() replica.Kubelet { return d.inForce().kubelet }

// group is the group of backends that the document names now; empty: it names none, or is not known yet.
func (d *document) group() string { return d.inForce().balancer.Name }

// backends is that group, and whether it may be absent.
func (d *document) backends() endpoint.Group {
	b := d.inForce().balancer
	return endpoint.Group{Name: b.Name, OnDemand: b.OnDemand}
}

// snapshotInterval is the time between two snapshots.
func (d *document) snapshotInterval() time.Duration { return d.inForce().snapshots.Duration() }

// changes are what counts from the agent's next start.
func (d *document) changes() []replica.Change {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.pending
}

// postpone keeps what counts from the agent's next start, and returns what did before.
func (d *document) postpone(pending []replica.Change) (before []replica.Change) {
	d.mu.Lock()
	defer d.mu.Unlock()
	before, d.pending = d.pending, pending
	return before
}

// take compares the instance's document with the one in force.
func (d *document) take(attribute string) {
	next, err := d.load(attribute)
	if err != nil {
		d.postpone(nil) // the next start refuses this document too
		d.waits.HoldFor(documentRefused, err, documentRefusedNext)
		return
	}
	d.waits.Release(documentRefused)
	inForce := d.takeAtOnce(atOnceIn(next))
	pending := replica.Changes(ofAgents(inForce), ofAgents(next))
	before := d.postpone(pending)
	switch {
	case len(pending) > 0:
		d.log.Warn("the document has changed: it counts from the agent's next start", "changes", texts(pending))
	case len(before) > 0:
		d.log.Info("the document is again the one that is in force")
	}
}

// takeAtOnce puts in force what counts at once, and returns the document that is in force then.
func (d *document) takeAtOnce(next atOnce) *replica.Cluster {
	inForce := d.inForce().with(d.started)
	changed := next.with(d.started)
	changes := replica.Changes(inForce, changed)
	if len(changes) == 0 {
		return inForce
	}
	d.mu.Lock()
	d.atOnce = &next
	d.mu.Unlock()
	d.log.Info("the document has changed: it counts at once", "changes", texts(changes))
	d.changed.give()
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

// ErrNoConfiguration says that neither the image nor the instance brings a Cluster document.
var ErrNoConfiguration = errors.New("no configuration")

// loadCluster merges the document that the image brings with the instance's.
func loadCluster(bakedFile, attribute string, disk datadisk.Image) (*replica.Cluster, error) {
	var sources []replica.Source
	baked, err := os.ReadFile(bakedFile)
	switch {
	case err == nil:
		sources = append(sources, replica.Source{Name: bakedFile, Data: baked})
	case !errors.Is(err, fs.ErrNotExist):
		return nil, fmt.Errorf("read configuration: %w", err)
	}
	if attribute != "" {
		sources = append(sources, replica.Source{Name: "instance attribute " + ClusterAttribute,
			Data: []byte(attribute)})
	}
	if len(sources) == 0 {
		return nil, fmt.Errorf("%w: the instance has no attribute %q and there is no %s; set the one or bake the other",
			ErrNoConfiguration, ClusterAttribute, bakedFile)
	}
	c, err := controlplane.Load(sources...)
	if err != nil {
		return nil, err
	}
	return c, disk.Require(c)
}
