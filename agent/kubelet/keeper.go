package kubelet

import (
	"context"
	"reflect"
	"sync"
	"time"

	"github.com/quorate/quorate/internal/replica"
	"github.com/quorate/quorate/internal/waits"
	"github.com/quorate/quorate/systemd/kubeletwatch"
)

// notWatched is the wait for a file that can be read.
const (
	notWatched     = "kubelet-not-watched"
	notWatchedNext = "Delete /run/quorate/kubelet.json and restart the agent; the restarts of this boot are " +
		"forgotten then."
)

// Node is what a watch needs of this machine.
type Node struct {
	Units   Units
	Runtime Runtime
	// Clock is the time since the machine's boot, by the clock of the units' timestamps.
	Clock func() time.Duration
	// Close is called after the last use of the others.
	Close func()
}

// Keeper keeps a Watch as the Cluster document wants it: where that changes it begins anew, with what the one before
// has done. It needs neither the record nor an apiserver. Status may be called at any time.
type Keeper struct {
	cfg   Config
	waits *waits.Phased
	open  func(k replica.Kubelet) Node

	mu    sync.Mutex
	watch *Watch // nil where nothing is watched
}

// NewKeeper is a keeper that has not begun. cfg is what its watches need but for the machine and the document's
// settings; open opens the machine's part, nil: no systemd runs it, and nothing is watched. w takes what it waits for
// itself.
func NewKeeper(cfg Config, w *waits.Phased, open func(k replica.Kubelet) Node) *Keeper {
	return &Keeper{cfg: cfg, waits: w, open: open}
}

// Keep watches until the returned function is called. wanted is what the document says now, changed receives after that
// may have changed.
func (p *Keeper) Keep(ctx context.Context, wanted func() replica.Kubelet, changed <-chan struct{}) (stop func()) {
	if p.open == nil {
		return func() {}
	}
	k := wanted()
	end := p.begin(ctx, k)
	ctx, cancel := context.WithCancel(ctx)
	var following sync.WaitGroup
	following.Go(func() {
		for {
			select {
			case <-ctx.Done():
				end()
				return
			case <-changed:
			}
			next := wanted()
			if reflect.DeepEqual(next, k) {
				continue
			}
			end()
			k, end = next, p.begin(ctx, next)
		}
	})
	return func() { cancel(); following.Wait() }
}

// begin begins with the watch that a document wants. The returned function ends it.
func (p *Keeper) begin(ctx context.Context, k replica.Kubelet) (end func()) {
	p.waits.Release(notWatched)
	if !*k.Watch {
		p.show(nil)
		return func() {}
	}
	node := p.open(k)
	w, err := New(p.config(k, node))
	if err != nil {
		// A watch that does not know what it has done could do it without end.
		p.waits.HoldFor(notWatched, err, notWatchedNext)
		p.show(nil)
		node.Close()
		return func() {}
	}
	p.show(w)
	ctx, cancel := context.WithCancel(ctx)
	var running sync.WaitGroup
	running.Go(func() { w.Run(ctx) })
	return func() { cancel(); running.Wait(); node.Close() }
}

// show says whose status is shown; nil: nothing is watched, and the units wait for nothing.
func (p *Keeper) show(w *Watch) {
	p.mu.Lock()
	p.watch = w
	p.mu.Unlock()
	if w == nil {
		now := time.Now()
		p.cfg.KubeletWaits.Only(nil, now)
		p.cfg.RuntimeWaits.Only(nil, now)
	}
}

func (p *Keeper) config(k replica.Kubelet, node Node) Config {
	cfg := p.cfg
	cfg.KubeletUnit, cfg.RuntimeUnit = k.Unit, k.RuntimeUnit
	cfg.Limits = kubeletwatch.Limits{AnswerWithin: k.AnswerWithin.Duration(), Misses: k.Misses,
		StartWithin: k.StartWithin.Duration()}
	cfg.Units, cfg.Runtime, cfg.Clock = node.Units, node.Runtime, node.Clock
	cfg.Port = HealthPort{Port: k.HealthPort}
	return cfg
}

// Status is what the watch says; nil: nothing is watched.
func (p *Keeper) Status() *Status {
	p.mu.Lock()
	w := p.watch
	p.mu.Unlock()
	if w == nil {
		return nil
	}
	s := w.Status()
	return &s
}
