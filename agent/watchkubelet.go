package agent

import (
	"context"
	"path/filepath"
	"reflect"
	"time"

	"github.com/quorate/quorate/agent/kubelet"
	"github.com/quorate/quorate/internal/replica"
	"github.com/quorate/quorate/supervisor"
	"github.com/quorate/quorate/systemd/kubeletwatch"
)

// kubeletNotWatched is the wait for a file that can be read.
const (
	kubeletNotWatched     = "kubelet-not-watched"
	kubeletNotWatchedNext = "Delete /run/quorate/kubelet.json and restart the agent; the restarts of this boot are " +
		"forgotten then."
)

// NodeUnits is what the watch of the kubelet needs of this machine.
type NodeUnits struct {
	Units   kubelet.Units
	Runtime kubelet.Runtime
	// Clock is the time since the machine's boot, by the clock of the units' timestamps.
	Clock func() time.Duration
	// Close is called after the last use of the others.
	Close func()
}

// watchKubelet watches the kubelet and its runtime until the returned function is called. It needs neither the record
// nor an apiserver, so it begins as soon as the document is known. Where the document changes it begins anew, with what
// it has done before.
func (a *Agent) watchKubelet(ctx context.Context, in identified) (stop func()) {
	if a.cfg.OpenNode == nil {
		return func() {}
	}
	k := a.inForce(in.cluster).kubelet
	end := a.beginWatch(ctx, k)
	return background(ctx, func(ctx context.Context) {
		for {
			select {
			case <-ctx.Done():
				end()
				return
			case <-a.documentChanged:
			}
			next := a.inForce(in.cluster).kubelet
			if reflect.DeepEqual(next, k) {
				continue
			}
			end()
			k, end = next, a.beginWatch(ctx, next)
		}
	})
}

// beginWatch begins with the watch that a document wants. The returned function ends it.
func (a *Agent) beginWatch(ctx context.Context, k replica.Kubelet) (end func()) {
	a.waits.Release(kubeletNotWatched)
	if !*k.Watch {
		a.showWatch(nil)
		return func() {}
	}
	node := a.cfg.OpenNode(k)
	w, err := kubelet.New(a.kubeletConfig(k, node))
	if err != nil {
		// A watch that does not know what it has done could do it without end.
		a.waits.HoldFor(kubeletNotWatched, err, kubeletNotWatchedNext)
		a.showWatch(nil)
		node.Close()
		return func() {}
	}
	a.showWatch(w)
	stop := background(ctx, w.Run)
	return func() { stop(); node.Close() }
}

// showWatch says whose status is shown; nil: nothing is watched, and the units wait for nothing.
func (a *Agent) showWatch(w *kubelet.Watch) {
	a.mu.Lock()
	a.kubelet = w
	a.mu.Unlock()
	if w == nil {
		now := time.Now()
		a.kubeletWaits.Only(nil, now)
		a.runtimeWaits.Only(nil, now)
	}
}

func (a *Agent) kubeletConfig(k replica.Kubelet, node NodeUnits) kubelet.Config {
	return kubelet.Config{
		Log: a.cfg.Log, KubeletUnit: k.Unit, RuntimeUnit: k.RuntimeUnit,
		Limits: kubeletwatch.Limits{AnswerWithin: k.AnswerWithin.Duration(), Misses: k.Misses,
			StartWithin: k.StartWithin.Duration()},
		Units: node.Units, Runtime: node.Runtime, Port: kubelet.HealthPort{Port: k.HealthPort}, Clock: node.Clock,
		APIServer: func() bool {
			s, ok := a.supervisor.StatusOf(replica.APIServer)
			return ok && s.State == supervisor.Ready
		},
		StatePath:    filepath.Join(a.cfg.RunDir, "kubelet.json"),
		KubeletWaits: a.kubeletWaits, RuntimeWaits: a.runtimeWaits, Tell: a.nodeEvents.TellUnit,
	}
}

// kubeletStatus is what the watch says; nil: nothing is watched.
func (a *Agent) kubeletStatus() *kubelet.Status {
	a.mu.Lock()
	w := a.kubelet
	a.mu.Unlock()
	if w == nil {
		return nil
	}
	s := w.Status()
	return &s
}
