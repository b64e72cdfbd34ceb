package test

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/quorate/quorate/internal/localgce"
)

// TestThreeReplicas takes one cluster of three through what a cluster meets in its life. The cases build on each other:
// each wants a whole cluster and leaves one behind, and the first that does not ends the test.
func TestThreeReplicas(t *testing.T) {
	c := begin(t, plan{vms: []string{"master-a", "master-b", "master-c"}, always: true})
	for _, scenario := range []struct {
		name string
		long bool // for make cases
		do   func(*testing.T, *cluster)
	}{
		{"three first boots at the same moment give one cluster", false, firstBoots},
		{"any replica serves what another wrote", false, serves},
		{"secrets are encrypted at rest", false, encrypted},
		{"nobody without a certificate gets beyond the health paths", false, anonymous},
		{"status shows what the operator needs", false, statusKeys},
		{"VMs lose their power, and the endpoint goes on", false, powerCuts},
		{"the leader's VM is stopped in order", true, orderlyStop},
		{"each process of each replica is killed, and comes back once", true, kills},
		{"all three VMs lose their power at once", true, blackouts},
		{"a VM is recreated with an empty disk", true,
			func(t *testing.T, c *cluster) { recreate(t, c, "master-b", true) }},
		{"a VM is recreated with its disk kept", true,
			func(t *testing.T, c *cluster) { recreate(t, c, "master-c", false) }},
		{"after all that it is the same cluster", false, sameCluster},
	} {
		if scenario.long && testing.Short() {
			continue
		}
		ok := t.Run(scenario.name, func(t *testing.T) {
			t.Cleanup(func() { c.tell(t) })
			scenario.do(t, c)
		})
		if !ok {
			t.Fatal("the cases after this one need a whole cluster")
		}
	}
}

// powerCuts kills one VM after the other, the leader first, while clients write and read; in `make test` the leader's
// alone.
func powerCuts(t *testing.T, c *cluster) {
	leader := c.leader(t)
	order := append([]string{leader}, slices.DeleteFunc(slices.Clone(c.vms),
		func(vm string) bool { return vm == leader })...)
	if testing.Short() {
		order = order[:1]
	}
	l := c.startLoad(t)
	for _, vm := range order {
		role := "a follower"
		if vm == c.leader(t) {
			role = "the leader"
		}
		l.stalls()
		c.must(t, c.KillVM(t.Context(), vm))
		l.goesOn(t, "the endpoint without "+vm)
		l.wantStalls(t, fmt.Sprintf("the power of %s, %s, is cut", vm, role))
		c.must(t, c.StartVM(t.Context(), vm))
		await(t, vm+" is back", c.whole)
		l.wantStalls(t, vm+" comes back")
	}
	l.end(t, c)
}

// orderlyStop ends the leader's VM as Google does before a planned power-off: leadership and leases are handed over
// before it is off.
func orderlyStop(t *testing.T, c *cluster) {
	vm := c.leader(t)
	others := slices.DeleteFunc(slices.Clone(c.vms), func(name string) bool { return name == vm })
	l := c.startLoad(t)
	time.Sleep(time.Second)
	l.stalls()
	before := len(c.logOf(vm))
	begin := time.Now()
	c.must(t, c.StopVM(t.Context(), vm))
	t.Logf("%s was off after %s", vm, time.Since(begin).Round(10*time.Millisecond))
	log := c.logOf(vm)[before:]
	violent, over := "SIGKILL", "powered off"
	if vmKind == localgce.SystemdVMs { // its last step speaks of SIGKILL whether anybody is left or not
		violent, over = "timed out", "Powering off."
	}
	if strings.Contains(log, "leadership stays here") || strings.Contains(log, violent) {
		t.Errorf("the stop was not in order:\n%s", log)
	}
	if !strings.Contains(log, over) {
		t.Errorf("the init does not say that it powered off:\n%s", log)
	}
	if now := c.leader(t); now == vm {
		t.Errorf("%s still counts as the leader", vm)
	}
	l.goesOn(t, "the endpoint without "+vm)
	l.wantStalls(t, vm+", the leader, is stopped in order")
	await(t, "others hold the leases", func() error { return c.leasesHeldBy(t, others) })
	c.must(t, c.StartVM(t.Context(), vm))
	await(t, vm+" is back", c.whole)
	l.end(t, c)
}

// leasesHeldBy says which lease of the control plane is held by none of the VMs, or not renewed.
func (c *cluster) leasesHeldBy(t *testing.T, vms []string) error {
	t.Helper()
	s, err := c.status(vms[0])
	if err != nil {
		return err
	}
	if len(s.Leases) != 3 { // the scheduler's, the controller-manager's, the agents'
		return fmt.Errorf("leases: %+v", s.Leases)
	}
	for _, lease := range s.Leases {
		held := slices.ContainsFunc(vms, func(vm string) bool { return strings.HasPrefix(lease.Holder, vm) })
		if !held || time.Since(lease.Renewed) > 15*time.Second {
			return fmt.Errorf("lease %s is held by %q, renewed %s ago", lease.Name, lease.Holder,
				time.Since(lease.Renewed))
		}
	}
	return nil
}

// kills ends each process of each replica by SIGKILL.
func kills(t *testing.T, c *cluster) {
	l := c.startLoad(t)
	end := c.watchDuplicates(t)
	for _, vm := range c.vms {
		for _, kind := range slices.Backward(kinds) { // the agent last: its death takes the others with it
			c.killOne(t, vm, kind)
		}
	}
	end()
	l.wantStalls(t, "processes are killed")
	l.end(t, c)
}

// bystanders are the processes that must not notice another's death. A component that elects itself exits when it loses
// its lease, so it may not outlive the apiserver, or the member that this works on.
func bystanders(killed string) (kinds []string) {
	switch killed {
	case "agent":
		return nil
	case "etcd", "kube-apiserver":
		return slices.DeleteFunc([]string{"agent", "etcd", "kube-apiserver"},
			func(k string) bool { return k == killed })
	}
	return slices.DeleteFunc([]string{"agent", "etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler"},
		func(k string) bool { return k == killed })
}

func (c *cluster) killOne(t *testing.T, vm, kind string) {
	t.Helper()
	before := c.processes(vm)
	c.must(t, c.one(vm))
	c.kill(t, vm, before[kind][0])
	await(t, fmt.Sprintf("%s of %s was killed and is back", kind, vm), func() error {
		if now := c.processes(vm)[kind]; len(now) != 1 || now[0] == before[kind][0] {
			return fmt.Errorf("%s on %s: pids %v, before %v", kind, vm, now, before[kind])
		}
		return c.whole()
	})
	c.must(t, c.one(vm))
	after := c.processes(vm)
	for _, other := range bystanders(kind) {
		if after[other][0] != before[other][0] {
			t.Errorf("%s on %s died, and %s came back as pid %s, before %s", kind, vm, other, after[other][0],
				before[other][0])
		}
	}
	for _, other := range kinds {
		if kind == "agent" && after[other][0] == before[other][0] {
			t.Errorf("%s on %s outlived its agent", other, vm)
		}
	}
}

// blackouts cut the power of all VMs at once, and start them in turns one after the other and all together.
func blackouts(t *testing.T, c *cluster) {
	x, y, z := c.vms[0], c.vms[1], c.vms[2]
	orders := [][]string{{z, x, y}, {y, z, x}}
	if chaos {
		orders = append(orders, []string{x, y, z}, []string{x, z, y}, []string{y, x, z}, []string{z, y, x})
	}
	for i, order := range orders {
		l := c.startLoad(t)
		time.Sleep(2 * time.Second)
		c.together(t, c.vms, c.KillVM)
		l.stop()
		l.wait.Wait()
		if i%2 == 0 {
			for _, vm := range order {
				c.must(t, c.StartVM(t.Context(), vm))
				time.Sleep(time.Second)
			}
		} else {
			// what took the power took them, too
			c.must(t, c.SetNameServerFault(t.Context(), "", localgce.NameServerSilent))
			c.together(t, order, c.StartVM)
		}
		await(t, "whole again", c.whole)
		c.must(t, c.SetNameServerFault(t.Context(), "", ""))
		l.end(t, c)
	}
}

// recreate deletes a VM and creates one of the same name. The former member goes, the new one joins and is promoted,
// without a hand; with its disk kept it stays the same member.
func recreate(t *testing.T, c *cluster, vm string, wipe bool) {
	before, instance := c.member(t, vm), c.vm(vm).InstanceID
	l := c.startLoad(t)
	time.Sleep(time.Second)
	c.must(t, c.RecreateVM(t.Context(), vm, localgce.Recreation{Wipe: wipe}))
	await(t, vm+" is recreated", c.whole)
	if now := c.vm(vm).InstanceID; now == instance {
		t.Fatalf("%s has instance id %s as before: nothing was recreated", vm, now)
	}
	if after := c.member(t, vm); (after == before) == wipe {
		t.Errorf("member %s before, %s after; wiped: %t", before, after, wipe)
	}
	s, err := c.status(vm)
	c.must(t, err)
	if wipe && slices.ContainsFunc(s.Etcd.Members, func(m agentMember) bool { return m.ID == before }) {
		t.Errorf("the former member %s is still there: %+v", before, s.Etcd.Members)
	}
	l.wantStalls(t, vm+" is recreated")
	l.end(t, c)
}

// together does the same to several VMs at the same moment.
func (c *cluster) together(t *testing.T, vms []string, do act) {
	t.Helper()
	var wait sync.WaitGroup
	errs := make([]error, len(vms))
	for i, vm := range vms {
		wait.Go(func() { errs[i] = do(t.Context(), vm) })
	}
	wait.Wait()
	for _, err := range errs {
		c.must(t, err)
	}
}
