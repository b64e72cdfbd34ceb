package agent

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/quorate/quorate/internal/replica"
	"github.com/quorate/quorate/supervisor"
)

// backends is a load balancer that knows one VM.
type backends struct {
	mu       sync.Mutex
	attached bool
	refused  error
	asked    []string
	// onDetach is called before a detachment is carried out.
	onDetach func(ctx context.Context)
}

// Attach implements Balancer.
func (b *backends) Attach(_ context.Context, group string) (attached bool, err error) {
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

const withBalancer = "\ngce: {project: example, region: us-central1, zones: [us-central1-a], image: quorate-master, " +
	"serviceAccount: m@example.iam.gserviceaccount.com, loadBalancer: {type: external}}\n"

// balanced is an agent behind its first phases whose document has a load balancer.
func balanced(t *testing.T) (*backends, *Agent, identified) {
	t.Helper()
	v, b := newVM(t), &backends{}
	v.balancer = b
	v.metadata.attributes[ClusterAttribute] += withBalancer
	a, in := v.identified()
	return b, a, in
}

// keptEndpoint runs keepEndpoint on a clock of its own. set says whether the apiserver is ready; nothing but time
// passes else.
func keptEndpoint(t *testing.T, a *Agent, in identified) (set func(ready bool)) {
	t.Helper()
	var mu sync.Mutex
	ready, changed := false, make(chan struct{})
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		a.keepEndpoint(ctx, in, func() (bool, <-chan struct{}) {
			mu.Lock()
			defer mu.Unlock()
			return ready, changed
		})
	}()
	t.Cleanup(func() { cancel(); <-ended })
	synctest.Wait()
	return func(now bool) {
		mu.Lock()
		ready = now
		close(changed)
		changed = make(chan struct{})
		mu.Unlock()
		synctest.Wait()
	}
}

// A VM is attached as soon as its apiserver is ready, and again where it is taken out. An apiserver that fails is no
// reason to do anything.
func TestAVMIsAttachedOnceItsAPIServerIsReady(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b, a, in := balanced(t)
		set := keptEndpoint(t, a, in)
		time.Sleep(5 * time.Minute)
		if got := b.took(); len(got) > 0 {
			t.Errorf("before it is ready: %q", got)
		}
		set(true)
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
		set(false)
		time.Sleep(10 * time.Minute)
		for _, asked := range b.took() {
			if strings.HasPrefix(asked, "detach") {
				t.Error("an apiserver that fails takes its VM out")
			}
		}
		if len(a.tracker.All()) > 0 {
			t.Errorf("waits: %+v", a.tracker.All())
		}
	})
}

// What keeps a VM from being attached is a wait, which ends with its cause, or with the load balancer.
func TestAVMThatCannotBeAttachedSaysSo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b, a, in := balanced(t)
		set := keptEndpoint(t, a, in)
		b.change(func() { b.refused = errors.New("there is no group demo in us-central1-a") })
		set(true)
		wait := func() string {
			all := a.tracker.All()
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
		a.mu.Lock()
		a.atOnce = &atOnce{}
		a.mu.Unlock()
		time.Sleep(endpointPeriod)
		synctest.Wait()
		b.took()
		time.Sleep(10 * time.Minute)
		if got := wait(); got != "" || len(b.took()) > 0 {
			t.Errorf("without a load balancer it waits for %q", got)
		}
	})
}

// A planned stop leaves the load balancer while the apiserver still serves.
func TestAPlannedStopLeavesTheLoadBalancerFirst(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*Agent)
		want   []string
	}{
		"a load balancer": {func(*Agent) {}, []string{"detach demo"}},
		"none any more": {func(a *Agent) { a.atOnce = &atOnce{}; a.endpoint.in("former") },
			[]string{"detach former"}},
		"none":                       {func(a *Agent) { a.atOnce = &atOnce{} }, nil},
		"nothing to be reached with": {func(a *Agent) { a.endpoint.open(nil) }, nil},
	} {
		t.Run(name, func(t *testing.T) {
			b, a, in := balanced(t)
			b.attached = true
			c.change(a)
			stop := a.superviseChildren(t.Context())
			newMember(t, a, in, threeOf(nil))
			for _, name := range []string{etcdName, replica.APIServer} {
				if err := a.supervisor.Start(sleeper(name)); err != nil {
					t.Fatal(err)
				}
			}
			eventually(t, "it runs",
				func() bool { s, _ := find(a.supervisor, replica.APIServer); return s.State == supervisor.Ready })
			var apiserver supervisor.Status
			b.onDetach = func(context.Context) {
				time.Sleep(time.Second) // as an operation takes
				apiserver, _ = find(a.supervisor, replica.APIServer)
			}
			if err := stop(nil); err != nil {
				t.Error(err)
			}
			if got := b.took(); !slices.Equal(got, c.want) || c.want != nil && apiserver.State != supervisor.Ready {
				t.Errorf("asked %q; the apiserver was %q a second later", got, apiserver.State)
			}
		})
	}
}

// A load balancer that does not answer holds a stop up for so long and no longer.
func TestALoadBalancerThatHangsHoldsNoStopUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b, a, _ := balanced(t)
		b.onDetach = func(ctx context.Context) { <-ctx.Done() }
		begin := time.Now()
		a.leaveBalancer(t.Context())()
		if took := time.Since(begin); took != detachTimeout {
			t.Errorf("it takes %s", took)
		}
	})
}
