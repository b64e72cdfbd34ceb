package endpoint

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/quorate/quorate/internal/waits"
)

// backends is a load balancer that knows one VM.
type backends struct {
	mu       sync.Mutex
	attached bool
	refused  error
	asked    []string
	// onAttach and onDetach are called before an attachment or a detachment is carried out.
	onAttach func()
	onDetach func(ctx context.Context)
}

// Attach implements Balancer.
func (b *backends) Attach(_ context.Context, group string) (attached bool, err error) {
	if b.onAttach != nil {
		b.onAttach()
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.asked = append(b.asked, "attach "+group)
	if b.refused != nil {
		return false, b.refused
	}
	attached, b.attached = !b.attached, true
	return attached, nil
}

// Detach implements Balancer.
func (b *backends) Detach(ctx context.Context, group string) (detached bool, err error) {
	if b.onDetach != nil {
		b.onDetach(ctx)
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.asked = append(b.asked, "detach "+group)
	if err := ctx.Err(); err != nil {
		return false, err
	}
	detached, b.attached = b.attached, false
	return detached, nil
}

// took is what was asked for since the last call.
func (b *backends) took() []string {
	b.mu.Lock()
	defer b.mu.Unlock()
	out := b.asked
	b.asked = nil
	return out
}

func (b *backends) change(f func()) {
	b.mu.Lock()
	defer b.mu.Unlock()
	f()
}

// kept is a backend that runs on a clock of its own.
type kept struct {
	*backends
	backend *Backend
	tracker *waits.Tracker
	group   string // what the document names
	// onDemand: there may be no such group.
	onDemand bool
	// set says whether the apiserver is ready; nothing but time passes else.
	set func(ready bool)
	// name changes the document.
	name func(group string)
}

func newKept(t *testing.T) *kept {
	t.Helper()
	tracker, source := tracked(slog.New(slog.DiscardHandler))
	k := &kept{backends: &backends{}, tracker: tracker, group: "demo"}
	p := NewBackend(slog.New(slog.DiscardHandler), source)
	p.Open(k.backends)
	k.backend = p
	var mu sync.Mutex
	ready, changed := false, make(chan struct{})
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		wanted := func() Group {
			mu.Lock()
			defer mu.Unlock()
			return Group{k.group, k.onDemand}
		}
		p.Run(ctx, wanted, func() (bool, <-chan struct{}) {
			mu.Lock()
			defer mu.Unlock()
			return ready, changed
		})
	}()
	t.Cleanup(func() { cancel(); <-ended })
	synctest.Wait()
	k.set = func(now bool) {
		mu.Lock()
		ready = now
		close(changed)
		changed = make(chan struct{})
		mu.Unlock()
		synctest.Wait()
	}
	k.name = func(group string) {
		mu.Lock()
		defer mu.Unlock()
		k.group = group
	}
	return k
}

// A VM is attached as soon as its apiserver is ready, and again where it is taken out. An apiserver that fails is no
// reason to do anything.
func TestAVMIsAttachedOnceItsAPIServerIsReady(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newKept(t)
		time.Sleep(5 * time.Minute)
		if got := b.took(); len(got) > 0 {
			t.Errorf("before it is ready: %q", got)
		}
		b.set(true)
		if got := b.took(); !slices.Equal(got, []string{"attach demo"}) || !b.attached {
			t.Errorf("as it gets ready: %q", got)
		}
		b.change(func() { b.attached = false })
		time.Sleep(endpointPeriod)
		synctest.Wait()
		if !b.attached {
			t.Errorf("taken out, it stays out for %s", endpointPeriod)
		}
		b.took()
		time.Sleep(10 * time.Minute)
		if n := len(b.took()); n < 18 || n > 26 {
			t.Errorf("asked %d times in ten minutes", n)
		}
		b.set(false)
		time.Sleep(10 * time.Minute)
		for _, asked := range b.took() {
			if strings.HasPrefix(asked, "detach") {
				t.Error("an apiserver that fails takes its VM out")
			}
		}
		if len(b.tracker.All()) > 0 {
			t.Errorf("waits: %+v", b.tracker.All())
		}
	})
}

// A group that is absent is no wait where the load balancer is made on demand. Whatever else keeps the VM from being
// attached is one.
func TestAGroupOnDemandMayBeAbsent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newKept(t)
		b.onDemand = true
		b.change(func() { b.refused = fmt.Errorf("asked: %w", &NoGroup{errors.New("there is no group demo")}) })
		b.set(true)
		time.Sleep(10 * endpointPeriod)
		if all, n := b.tracker.All(), len(b.took()); len(all) > 0 || n < 9 || n > 15 {
			t.Errorf("waits %+v, asked %d times in five minutes", all, n)
		}
		b.change(func() { b.refused = errors.New("no permission") })
		time.Sleep(endpointPeriod)
		synctest.Wait()
		if len(b.tracker.All()) == 0 {
			t.Error("a permission is missing, and that is no wait")
		}
		b.change(func() { b.refused = nil })
		time.Sleep(2 * endpointPeriod)
		synctest.Wait()
		if !b.attached || len(b.tracker.All()) > 0 {
			t.Errorf("the group is there: attached %t, waits %+v", b.attached, b.tracker.All())
		}
	})
}

// What keeps a VM from being attached is a wait, which ends with its cause, or with the load balancer.
func TestAVMThatCannotBeAttachedSaysSo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newKept(t)
		b.change(func() { b.refused = errors.New("there is no group demo in us-central1-a") })
		b.set(true)
		wait := func() string {
			all := b.tracker.All()
			if len(all) == 0 {
				return ""
			}
			return all[0].Name + ": " + all[0].Reason
		}
		const want = endpointNotAttached + ": there is no group demo in us-central1-a"
		if got := wait(); got != want {
			t.Errorf("the wait is %q", got)
		}
		time.Sleep(10 * time.Minute)
		if n := len(b.took()); n < 20 || n > 50 {
			t.Errorf("tried %d times in ten minutes", n)
		}
		b.change(func() { b.refused = nil })
		time.Sleep(endpointPeriod)
		synctest.Wait()
		if got := wait(); got != "" || !b.attached {
			t.Errorf("the wait is %q after its cause is gone", got)
		}
		b.change(func() { b.refused = errors.New("no permission") })
		time.Sleep(endpointPeriod)
		synctest.Wait()
		if wait() == "" {
			t.Error("it does not say that it cannot know")
		}
		b.name("")
		time.Sleep(endpointPeriod)
		synctest.Wait()
		b.took()
		time.Sleep(10 * time.Minute)
		if got := wait(); got != "" || len(b.took()) > 0 {
			t.Errorf("without a load balancer it waits for %q", got)
		}
	})
}

// A stop leaves the group that the document names, or the one that this VM is known to be in.
func TestAStopLeavesWhereTheVMIs(t *testing.T) {
	for name, c := range map[string]struct {
		in, wanted string
		want       []string
	}{
		"a load balancer":               {"", "demo", []string{"detach demo"}},
		"another since it was attached": {"former", "demo", []string{"detach demo"}},
		"none any more":                 {"former", "", []string{"detach former"}},
		"none":                          {"", "", nil},
	} {
		b := &backends{attached: true}
		_, source := tracked(slog.New(slog.DiscardHandler))
		p := NewBackend(slog.New(slog.DiscardHandler), source)
		p.Leave(t.Context(), c.wanted, time.Second)(0) // there is nothing to be reached with
		p.Open(b)
		p.in(c.in)
		p.Leave(t.Context(), c.wanted, time.Second)(0)
		if got := b.took(); !slices.Equal(got, c.want) {
			t.Errorf("%s: asked %q", name, got)
		}
	}
}

// A load balancer that does not answer holds a stop up for so long and no longer.
func TestALoadBalancerThatHangsHoldsNoStopUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := &backends{onDetach: func(ctx context.Context) { <-ctx.Done() }}
		_, source := tracked(slog.New(slog.DiscardHandler))
		p := NewBackend(slog.New(slog.DiscardHandler), source)
		p.Open(b)
		begin := time.Now()
		p.Leave(t.Context(), "demo", 12*time.Second)(time.Second)
		if took := time.Since(begin); took != 12*time.Second {
			t.Errorf("it takes %s", took)
		}
	})
}

// A VM that was taken out on purpose stays out, whatever was under way, until it returns.
func TestAVMThatWasTakenOutStaysOutUntilItReturns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newKept(t)
		b.set(true)
		b.took()
		begin := time.Now()
		b.backend.Leave(t.Context(), "demo", time.Minute)(10 * time.Second)
		if took := time.Since(begin); took != 10*time.Second || b.attached {
			t.Errorf("out after %s: %t", took, !b.attached)
		}
		time.Sleep(10 * time.Minute)
		if got := b.took(); !slices.Equal(got, []string{"detach demo"}) || b.attached {
			t.Errorf("while it is out: %q", got)
		}
		b.set(false) // the apiserver is started in place
		b.backend.Return()
		time.Sleep(10 * time.Minute)
		if b.attached {
			t.Error("it is attached before its apiserver is ready")
		}
		b.set(true)
		if got := b.took(); !slices.Equal(got, []string{"attach demo"}) {
			t.Errorf("as it is ready again: %q", got)
		}
	})
}

// A restart of the apiserver that ends does not bring a VM back that leaves for another reason meanwhile.
func TestAVMStaysOutUntilAllWantItBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newKept(t)
		b.set(true)
		b.backend.Leave(t.Context(), "demo", time.Minute)(0)
		b.backend.Leave(t.Context(), "demo", time.Minute)(0)
		b.took()
		b.backend.Return()
		time.Sleep(10 * time.Minute)
		if got := b.took(); len(got) > 0 || b.attached {
			t.Errorf("one of two wants it back: %q", got)
		}
		b.backend.Return()
		time.Sleep(time.Minute)
		if !b.attached {
			t.Error("all want it back")
		}
	})
}

// An attachment that takes long ends before the detachment begins, and is not made again.
func TestADetachmentComesAfterTheAttachmentThatIsUnderWay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newKept(t)
		b.onAttach = func() { time.Sleep(20 * time.Second) }
		b.set(true)
		b.backend.Leave(t.Context(), "demo", time.Minute)(time.Second)
		if got := b.took(); !slices.Equal(got, []string{"attach demo", "detach demo"}) || b.attached {
			t.Errorf("asked %q; attached: %t", got, b.attached)
		}
	})
}
