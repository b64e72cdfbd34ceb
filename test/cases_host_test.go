package test

import (
	"fmt"
	"os"
	"strings"
	"testing"
	"time"
)

// This file holds what Google does to a VM by its host and its guest agent.

// Before a host is maintained its VM is told. Who leads hands over in that minute, and is back as a follower.
func TestAHostMaintenanceMovesTheLeadership(t *testing.T) {
	t.Parallel()
	c, l := threeMembers(t)
	vm := c.leader(t)
	c.must(t, c.SetMaintenance(vm, "MIGRATE_ON_HOST_MAINTENANCE"))
	await(t, vm+" hands over", func() error {
		if leader := c.leader(t); leader == vm {
			return fmt.Errorf("%s leads", leader)
		}
		return nil
	})
	c.must(t, c.FreezeVM(t.Context(), vm)) // as while it is moved
	time.Sleep(2 * time.Second)
	c.must(t, c.ThawVM(t.Context(), vm))
	c.must(t, c.SetMaintenance(vm, "NONE"))
	await(t, "whole", c.membersWhole)
	c.invariants(t, l)
}

// A Spot VM is no master's, and says so. Taken away, it stops in order within its 30 s, and the others serve on.
func TestASpotVMSaysSoAndStopsInItsTime(t *testing.T) {
	t.Parallel()
	const spot = "master-c"
	c := bare(t, plan{vms: threeVMs, spot: spot})
	await(t, "three voters, and the Spot VM says what it is", func() error {
		for _, vm := range c.vms {
			if s, err := c.status(vm); err != nil || !s.Replica.Ready || len(voters(s)) != 3 {
				return fmt.Errorf("%s: phase %s, voters %v, %w", vm, s.Replica.Phase, voters(s), err)
			}
		}
		return c.waitSays(spot, "spot-vm", "Spot")
	})
	l := c.startWriters(t)
	since := time.Now()
	c.must(t, c.StopVM(t.Context(), spot))
	if took := time.Since(since); took > 25*time.Second {
		t.Errorf("it stopped after %s: its power was cut", took)
	}
	since = time.Now()
	await(t, "clients go on", func() error { return l.goOn(since.Add(time.Second)) })
	l.stop()
}

// Google's guest agent writes the hosts file anew from what it has read before. The names of the peers are back before
// anything needs them.
func TestAHostsFileThatIsRewrittenHasTheNamesAgain(t *testing.T) {
	t.Parallel()
	c, l := threeMembers(t)
	vm := c.follower(t)
	has := func() error {
		text, err := os.ReadFile(c.guest(vm, "/etc/hosts"))
		for _, other := range c.others(vm) {
			if address := c.vm(other).Address; err == nil && !strings.Contains(string(text), address) {
				err = fmt.Errorf("%s is not in:\n%s", address, text)
			}
		}
		return err
	}
	c.must(t, has())
	lease := fmt.Sprintf("127.0.0.1 localhost\n%s %s.c.demo.internal %s # Added by Google\n", c.vm(vm).Address, vm, vm)
	for range 3 {
		c.must(t, os.WriteFile(c.guest(vm, "/etc/hosts"), []byte(lease), 0o644))
		awaitWithin(t, 5*time.Second, "the names are back", has)
	}
	other := c.others(vm)[0]
	c.must(t, c.KillVM(t.Context(), other))
	c.must(t, c.StartVM(t.Context(), other))
	await(t, "whole", c.membersWhole)
	c.invariants(t, l)
}
