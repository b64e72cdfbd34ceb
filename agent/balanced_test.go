package agent

import (
	"context"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/quorate/quorate/internal/replica"
	"github.com/quorate/quorate/supervisor"
)

// backends is a load balancer that notes what it is asked for, until the agent has stopped.
type backends struct {
	asked []string
	// onDetach is called before a detachment is carried out.
	onDetach func(ctx context.Context)
}

// Attach implements endpoint.Balancer.
func (b *backends) Attach(_ context.Context, group string) (attached bool, err error) {
	b.asked = append(b.asked, "attach "+group)
	return true, nil
}

// Detach implements endpoint.Balancer.
func (b *backends) Detach(ctx context.Context, group string) (detached bool, err error) {
	if b.onDetach != nil {
		b.onDetach(ctx)
	}
	b.asked = append(b.asked, "detach "+group)
	return true, ctx.Err()
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

// A planned stop leaves the load balancer while the apiserver still serves.
func TestAPlannedStopLeavesTheLoadBalancerFirst(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		change func(*Agent)
		want   []string
	}{
		"a load balancer":            {func(*Agent) {}, []string{"detach demo"}},
		"none":                       {func(a *Agent) { a.document.atOnce = &atOnce{} }, nil},
		"nothing to be reached with": {func(a *Agent) { a.backend.Open(nil) }, nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b, a, in := balanced(t)
			c.change(a)
			stop := a.superviseChildren(t.Context())
			newMember(t, a, in, threeOf(nil))
			for _, name := range []string{etcdName, replica.APIServer} {
				if err := a.supervisor.Start(sleeper(name)); err != nil {
					t.Fatal(err)
				}
			}
			eventually(t, "it runs",
				func() bool { s, _ := a.supervisor.StatusOf(replica.APIServer); return s.State == supervisor.Ready })
			var apiserver supervisor.Status
			begin := time.Now()
			b.onDetach = func(context.Context) {
				time.Sleep(time.Second) // as an operation takes
				apiserver, _ = a.supervisor.StatusOf(replica.APIServer)
			}
			if err := stop(nil); err != nil {
				t.Error(err)
			}
			if took := time.Since(begin); c.want != nil && took < time.Second+detachSettles {
				t.Errorf("all has stopped after %s: new connections may still come", took)
			}
			if got := b.asked; !slices.Equal(got, c.want) || c.want != nil && apiserver.State != supervisor.Ready {
				t.Errorf("asked %q; the apiserver was %q a second later", got, apiserver.State)
			}
		})
	}
}

// A load balancer that does not answer holds a stop up for detachTimeout and no longer.
func TestALoadBalancerThatHangsHoldsNoStopUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b, a, _ := balanced(t)
		b.onDetach = func(ctx context.Context) { <-ctx.Done() }
		stop := a.superviseChildren(t.Context())
		begin := time.Now()
		if err := stop(nil); err != nil {
			t.Error(err)
		}
		if took := time.Since(begin); took != detachTimeout {
			t.Errorf("it takes %s", took)
		}
	})
}
