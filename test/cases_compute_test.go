package test

import (
	"fmt"
	"testing"
	"time"

	"github.com/quorate/quorate/internal/localgce"
)

// A first boot asks the Compute API whom there is to ask, and a zone on the other side of the Earth has no say in that.
func TestAZoneOfAnotherRegionHoldsUpNoFirstBoot(t *testing.T) {
	t.Parallel()
	c := bare(t, plan{vms: threeVMs, noRecord: true})
	c.must(t, c.SetFault(localgce.Compute, localgce.Fault{Kind: "unreachable", Zone: "europe-west1-d"}))
	c.initRecord(t)
	await(t, "whole", c.membersWhole)
}

// A disk that two VMs may write to is found before etcd is started: that replica waits, and the others form a cluster.
// A member that runs by the time of the answer goes on.
func TestADataDiskOfTwoWriters(t *testing.T) {
	t.Parallel()
	c := bare(t, plan{vms: threeVMs, noRecord: true})
	vm := c.vms[2]
	shared := func() error { return c.blocked(vm, "data-disk-shared") }
	c.must(t, c.KillVM(t.Context(), vm))
	c.must(t, c.SetFault(localgce.Compute, localgce.Fault{Who: vm, Kind: "shared", VMs: []string{vm}}))
	c.must(t, c.StartVM(t.Context(), vm))
	c.initRecord(t)
	await(t, "two members, of which one votes until the third is there", func() error {
		for _, other := range c.others(vm) {
			if s, err := c.status(other); err != nil || len(s.Etcd.Members) != 2 {
				return fmt.Errorf("%s sees %+v, %w", other, s.Etcd.Members, err)
			}
		}
		return nil
	})
	await(t, vm+" waits", shared)
	if s, err := c.status(vm); err != nil || component(s, "etcd") != "absent" {
		t.Errorf("%s runs etcd on a disk of two: %+v, %v", vm, s.Components, err)
	}
	c.must(t, c.SetFault(localgce.Compute, localgce.Fault{Who: vm}))
	await(t, "whole", c.membersWhole)

	c.must(t, c.SetFault(localgce.Compute, localgce.Fault{Who: vm, Kind: "multiwriter", VMs: []string{vm},
		Delay: 4 * time.Second}))
	c.must(t, c.KillVM(t.Context(), vm))
	c.must(t, c.StartVM(t.Context(), vm))
	await(t, "it runs, and says so", func() error {
		s, err := c.status(vm)
		if err != nil || component(s, "etcd") != "ready" {
			return fmt.Errorf("%+v, %w", s.Components, err)
		}
		return shared()
	})
	time.Sleep(3 * time.Second)
	if s, err := c.status(vm); err != nil || component(s, "etcd") != "ready" || len(voters(s)) != 3 {
		t.Errorf("the member that ran: %+v, %v", s.Etcd.Members, err)
	}
	c.must(t, c.SetFault(localgce.Compute, localgce.Fault{Who: vm}))
	await(t, "whole, without a hand", c.membersWhole)
}
