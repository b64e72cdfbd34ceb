package agent

import (
	"context"
	"strings"

	"github.com/quorate/quorate/internal/replica"
)

// keepDocument watches the instance's document until the returned function is called. What has changed counts from the
// agent's next start, and is shown until then: all of a replica is built on its document, and a change that took all
// masters at once could take all apiservers at once. A document that cannot be used changes nothing.
func (a *Agent) keepDocument(ctx context.Context, in identified) (stop func()) {
	ctx, cancel := context.WithCancel(ctx)
	done := make(chan struct{})
	go func() {
		defer close(done)
		// its only error is ctx's
		_ = a.cfg.Metadata.Watch(ctx, ClusterAttribute,
			func(document string, _ bool) { a.takeNote(in.cluster, document) })
	}()
	return func() { cancel(); <-done }
}

// takeNote compares the instance's document with the one in force.
func (a *Agent) takeNote(inForce *replica.Cluster, document string) {
	next, err := loadCluster(a.cfg.Baked, document, a.cfg.ImageDisk)
	if err != nil {
		a.mu.Lock()
		a.pending = nil // the next start refuses this document too
		a.mu.Unlock()
		a.waits.hold(documentRefused, err, documentRefusedNext)
		return
	}
	a.waits.Release(documentRefused)
	pending := replica.Changes(inForce, next)
	a.mu.Lock()
	before := a.pending
	a.pending = pending
	a.mu.Unlock()
	switch {
	case len(pending) > 0:
		var texts []string
		for _, c := range pending {
			texts = append(texts, c.String())
		}
		a.cfg.Log.Warn("the document has changed: it counts from the agent's next start", "changes",
			strings.Join(texts, "; "))
	case len(before) > 0:
		a.cfg.Log.Info("the document is again the one that is in force")
	}
}
