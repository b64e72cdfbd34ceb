package nodes

import (
	"context"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"
)

// Break is a watch that ended before it had to.
type Break struct {
	Who    string
	Master string // the address of the master that it was with
	At     time.Time
}

// Watches counts the open watches of many nodes. Its zero value is ready.
type Watches struct {
	mu     sync.Mutex
	open   int
	breaks []Break
}

// Open is how many are open now.
func (w *Watches) Open() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.open
}

// Breaks are those that broke in a span of time.
func (w *Watches) Breaks(from, to time.Time) (out []Break) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, b := range w.breaks {
		if !b.At.Before(from) && b.At.Before(to) {
			out = append(out, b)
		}
	}
	return out
}

// lister and watcher are a typed client's.
type (
	lister[L runtime.Object] func(context.Context, metav1.ListOptions) (L, error)
	watcher                  func(context.Context, metav1.ListOptions) (watch.Interface, error)
)

// counted is a source for an informer that counts its watches.
func counted[L runtime.Object](w *Watches, m *Meter, who, fields string, list lister[L],
	start watcher) cache.ListerWatcher {
	return &cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
			o.FieldSelector = fields
			return list(ctx, o)
		},
		WatchFuncWithContext: func(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
			o.FieldSelector = fields
			began := time.Now()
			inner, err := start(ctx, o)
			if err != nil {
				return nil, err
			}
			until := began
			if o.TimeoutSeconds != nil {
				until = began.Add(time.Duration(*o.TimeoutSeconds) * time.Second)
			}
			return w.follow(ctx, inner, Break{Who: who, Master: m.Master(who)}, until), nil
		},
	}
}

// follow counts a watch as open until its events end. One that ends more than a second before the time that it asked
// for has broken, unless whoever holds it has ended.
func (w *Watches) follow(ctx context.Context, inner watch.Interface, b Break, until time.Time) watch.Interface {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.open++
	out := &followed{Interface: inner, events: make(chan watch.Event), stopped: make(chan struct{})}
	go func() {
		defer close(out.events)
		for e := range inner.ResultChan() {
			select {
			case out.events <- e:
			case <-out.stopped:
			}
		}
		w.mu.Lock()
		defer w.mu.Unlock()
		w.open--
		if now := time.Now(); ctx.Err() == nil && now.Before(until.Add(-time.Second)) {
			b.At = now
			w.breaks = append(w.breaks, b)
		}
	}()
	return out
}

type followed struct {
	watch.Interface
	events  chan watch.Event
	once    sync.Once
	stopped chan struct{}
}

// ResultChan has the events of the watch that is followed.
func (f *followed) ResultChan() <-chan watch.Event { return f.events }

// Stop ends it.
func (f *followed) Stop() {
	f.once.Do(func() { close(f.stopped) })
	f.Interface.Stop()
}
