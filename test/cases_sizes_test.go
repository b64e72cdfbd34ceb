package test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/quorate/quorate/internal/health"
	"github.com/quorate/quorate/internal/localgce"
)

// Case 25, the sizes: an operator says by orders how many replicas there are to be, makes the VMs, tells those that are
// to go to leave, and deletes their VMs, while clients write.

func TestCase25FromOneReplicaToThreeAndBack(t *testing.T) {
	t.Parallel()
	c := bare(t, plan{vms: threeVMs[:1], replicas: 1})
	c.resize(t, threeVMs[1:])
}

func TestCase25FromThreeReplicasToFiveAndBack(t *testing.T) {
	t.Parallel()
	onlyInChaos(t, "a minute and a half")
	c := bare(t, plan{vms: threeVMs})
	c.resize(t, []string{"master-d", "master-e"})
}

// resize adds replicas to a whole cluster and takes as many away, the leader first: those that are left are others than
// those it began with.
func (c *cluster) resize(t *testing.T, more []string) {
	t.Helper()
	await(t, "whole", c.membersWhole)
	l := c.startWriters(t)
	_, id := c.newestEpoch(t)
	few := len(c.vms)
	c.order(t, "orders", "give", "replicas", fmt.Sprint(few+len(more)))
	for _, vm := range more {
		zone := "us-central1-" + vm[len(vm)-1:]
		c.must(t, c.CreateVM(t.Context(), localgce.VMConfig{Name: vm, Zone: zone}, ""))
		c.vms = append(slices.Clone(c.vms), vm)
	}
	await(t, fmt.Sprintf("%d replicas", len(c.vms)), c.membersWhole)
	await(t, "each wants so many", func() error { return c.allWant(len(c.vms)) })
	t.Logf("writes stalled %s", l.stall())
	c.order(t, "orders", "give", "replicas", fmt.Sprint(few))
	for range more {
		c.dismiss(t, c.leader(t))
		t.Logf("writes stalled %s", l.stall())
	}
	await(t, "each wants as few as at first", func() error { return c.allWant(few) })
	await(t, "nobody is missed", func() error {
		text, err := c.quorate(t, "health")
		if text == "" || strings.Contains(text, health.ReplicasMissing) ||
			strings.Contains(text, health.ReplicaIsStopped) {
			return fmt.Errorf("%v: %s", err, text)
		}
		return nil
	})
	c.invariants(t, l)
	if epoch, now := c.newestEpoch(t); epoch != 1 || now != id {
		t.Errorf("epoch %d of cluster %s, at first 1 of %s", epoch, now, id)
	}
}

// allWant says whether a replica that is there does not want so many: what was ordered counts, and not what its
// document says.
func (c *cluster) allWant(replicas int) error {
	for _, vm := range c.vms {
		s, err := c.status(vm)
		if err != nil || s.Replica.Wanted != replicas {
			return fmt.Errorf("%s wants %d: %v", vm, s.Replica.Wanted, err)
		}
	}
	return nil
}

// dismiss tells a replica to leave, and deletes its VM with its disk once it is out.
func (c *cluster) dismiss(t *testing.T, vm string) {
	t.Helper()
	leave := c.order(t, "orders", "give", "leave", vm, "--yes")
	await(t, vm+" has left", func() error {
		if err := c.blocked(vm, "left"); err != nil {
			return err
		}
		return c.orderState(t, leave, "done")
	})
	c.must(t, c.DeleteVM(t.Context(), vm, true))
	c.vms = c.others(vm)
}
