package test

import (
	"crypto/tls"
	"os"
	"path/filepath"
	"testing"
	"time"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/quorate/quorate/internal/localgce"
)

// onDemandSection asks for a load balancer from the second master on.
const onDemandSection = fleetSection + `
  loadBalancer: {type: external, onDemand: true}
  firewall: {apiSources: [10.251.0.0/16]}`

// moveLimit bounds an outage on localgce: an address moves by two operations, and then the load balancer settles.
const moveLimit = 30 * time.Second

// TestALoadBalancerOnDemand takes a cluster from one master to three and back to one, while clients ask its endpoint
// over connections of their own and new ones. Their address stays the same; what a step costs them is logged. Where the
// address moves nobody is served for a time. No other step fails a request: from three to two the master that stays as
// a copy leaves the load balancer, too, before it gives its vote up.
func TestALoadBalancerOnDemand(t *testing.T) {
	onlyInChaos(t, "five minutes")
	t.Parallel()
	own := t.TempDir()
	if err := os.WriteFile(filepath.Join(own, standInOrder), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	p := onDemandPlan()
	p.programs = own
	bare(t, p).growsAndShrinks(t, func() *tls.Config { return &tls.Config{InsecureSkipVerify: true} })
}

// The same with kube-apiserver itself.
func TestALoadBalancerOnDemandOfKubernetes(t *testing.T) {
	onlyInChaos(t, "ten minutes")
	c := begin(t, onDemandPlan())
	c.growsAndShrinks(t, func() *tls.Config {
		_, err := c.quorate(t, "kubeconfig", "--output", c.kubeconfig())
		c.must(t, err)
		conf, err := clientcmd.BuildConfigFromFlags("", c.kubeconfig())
		c.must(t, err)
		secure, err := rest.TLSConfigFor(conf)
		c.must(t, err)
		return secure
	})
}

// onDemandPlan is an empty project, and a document that wants one master.
func onDemandPlan() plan {
	return plan{replicas: 1, noRecord: true, noAttribute: true, more: onDemandSection,
		images: []localgce.Image{{Name: "quorate-1", Family: "quorate-master"}},
		zones:  []string{"us-central1-a", "us-central1-b", "us-central1-c"}}
}

// growsAndShrinks makes the first master, and goes through the steps. access is how clients ask, once it is there.
func (c *cluster) growsAndShrinks(t *testing.T, access func() *tls.Config) {
	t.Helper()
	c.commanded(t, 0, "create")
	c.vms = namesOf(c.wantFleet(t, 1, 0))
	asks := access()
	for _, step := range []struct {
		name  string
		args  []string
		want  int // masters
		moves bool
		limit time.Duration // nobody is served for so long at most; 0: no request fails
	}{
		{"one to two", []string{"add", "--accept-outage"}, 2, true, moveLimit},
		{"two to three", []string{"add"}, 3, false, 0},
		{"three to two", []string{"remove"}, 2, false, 0},
		{"two to one", []string{"remove", "--accept-outage"}, 1, true, moveLimit},
	} {
		ok := t.Run(step.name, func(t *testing.T) {
			if step.want < len(c.vms) {
				step.args = append(step.args, c.follower(t), "--delete-disk")
			}
			if step.moves {
				c.commanded(t, 2, append(step.args[:1:1], step.args[2:]...)...)
			}
			a := c.startAsking(t, "/api/v1/namespaces/default", asks)
			time.Sleep(2 * time.Second)
			c.commanded(t, 0, step.args...)
			c.vms = namesOf(c.wantFleet(t, step.want, 0))
			if step.want > 1 { // one that is not attached yet is not well: the next command would wait for it
				await(t, "all are balanced", c.balancedOver)
			}
			await(t, "somebody answers again", func() error { return a.answeredSince(time.Now().Add(-time.Second)) })
			if step.limit > 0 {
				a.wantServedWithin(t, step.name, step.limit)
			} else {
				a.wantNoneFailed(t, step.name)
			}
		})
		if !ok {
			t.FailNow()
		}
	}
	c.commanded(t, 0, "delete")
	c.wantEmptyProject(t)
}
