package test

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"
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
	if list, err := filepath.Glob(c.diskOf(vm, "pki/*")); err != nil || len(list) > 0 {
		t.Errorf("%s has written certificates to a disk of two: %q, %v", vm, list, err)
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

// A zone that fails takes its VM, in silence, and its part of the Compute API. The others serve on, and nobody is
// removed on so little; when the zone is back, the same member goes on.
func TestAZoneThatFails(t *testing.T) {
	t.Parallel()
	c, l := threeMembers(t)
	vm := c.leader(t)
	before, err := c.status(vm)
	c.must(t, err)
	c.must(t, c.SetFault(localgce.Compute, localgce.Fault{Kind: "unreachable", Zone: c.vm(vm).Zone}))
	c.must(t, c.FreezeVM(t.Context(), vm))
	since := time.Now()
	await(t, "clients go on", func() error { return l.goOn(since.Add(20 * time.Second)) })
	if s, err := c.status(c.others(vm)[0]); err != nil || len(voters(s)) != 3 {
		t.Errorf("the others see %+v, %v", s.Etcd.Members, err)
	}
	c.must(t, c.ThawVM(t.Context(), vm))
	c.must(t, c.SetFault(localgce.Compute, localgce.Fault{}))
	await(t, "whole", c.membersWhole)
	if after, err := c.status(vm); err != nil || after.Etcd.Member != before.Etcd.Member ||
		after.Replica.Incarnation != before.Replica.Incarnation {
		t.Errorf("after: %+v %+v, %v; before: %+v", after.Replica, after.Etcd, err, before.Replica)
	}
	c.invariants(t, l)
}

// What was granted a minute ago is refused for minutes: a first boot comes too early for the record, says so, and goes
// on by itself.
func TestPermissionsThatAreLateHoldUpAFirstBootAndNoMore(t *testing.T) {
	t.Parallel()
	c := bare(t, plan{vms: threeVMs, noRecord: true})
	for _, vm := range c.vms {
		c.must(t, c.SetFault(localgce.Storage, localgce.Fault{Who: vm, Kind: "forbidden", For: 20 * time.Second}))
	}
	c.initRecord(t)
	for _, vm := range c.vms {
		await(t, vm+" says that a permission may be late", func() error {
			return c.waitSays(vm, "record-unreadable", "access denied (HTTP 403)", "takes effect within 7 minutes")
		})
	}
	await(t, "whole, without a hand", c.membersWhole)
}

// Access scopes cap what IAM grants. A VM that was made with the usual ones reads the record and writes nothing; it
// names them, and is whole again once it has the scope that leaves it to IAM.
func TestAVMWithNarrowScopesNamesThem(t *testing.T) {
	t.Parallel()
	c, l := threeMembers(t)
	vm := c.follower(t)
	restart := func(scopes ...string) {
		c.must(t, c.StopVM(t.Context(), vm))
		c.must(t, c.SetScopes(vm, scopes))
		c.must(t, c.StartVM(t.Context(), vm))
	}
	restart("devstorage.read_only", "logging.write")
	await(t, vm+" names them", func() error {
		return c.waitSays(vm, "", "lack cloud-platform (it has: devstorage.read_only, logging.write)",
			"--scopes=cloud-platform")
	})
	restart("cloud-platform")
	await(t, "whole", c.membersWhole)
	c.invariants(t, l)
}

// A project's quota is counted by the minute. Where it is small, what waits for lists of VMs takes minutes, and comes
// to an end.
func TestASmallQuotaOfRequestsSlowsARepairAndNoMore(t *testing.T) {
	t.Parallel()
	c := bare(t, plan{vms: threeVMs, noRecord: true})
	c.must(t, c.SetFault(localgce.Compute, localgce.Fault{Kind: "ratelimited", Quota: 12}))
	c.initRecord(t)
	awaitWithin(t, 2*patience, "whole", c.membersWhole)
	c.must(t, wipe(c)(t.Context(), c.follower(t)))
	awaitWithin(t, 2*patience, "whole again", c.membersWhole)
	// Who was refused asks again in the next minute, and not sooner.
	if n := c.FaultsMet(localgce.Compute); n == 0 || n > 60 {
		t.Errorf("%d requests were refused", n)
	}
}

// A regional disk is in no zone, and its id is known all the same. It goes with its VM as any other.
func TestARegionalDataDisk(t *testing.T) {
	t.Parallel()
	c := bare(t, plan{vms: threeVMs, noRecord: true})
	c.must(t, c.SetFault(localgce.Compute, localgce.Fault{Kind: "regional", VMs: c.vms}))
	c.initRecord(t)
	known := func() error {
		for _, vm := range c.vms {
			if s, err := c.status(vm); err != nil || s.Replica.DiskIDUnknown || s.Replica.DiskID != c.vm(vm).DiskID {
				return fmt.Errorf("%s has disk %q, unknown %t, want %s, %w", vm, s.Replica.DiskID,
					s.Replica.DiskIDUnknown, c.vm(vm).DiskID, err)
			}
		}
		return c.membersWhole()
	}
	await(t, "whole, and each knows its disk", known)
	c.must(t, wipe(c)(t.Context(), c.follower(t)))
	await(t, "so again", known)
}

// waitSays says what is missing to a VM with a wait of that name, or of any, whose reason has all of the words.
func (c *cluster) waitSays(vm, name string, words ...string) error {
	s, err := c.status(vm)
	if err != nil {
		return err
	}
	for _, b := range s.Blocked {
		missing := slices.DeleteFunc(slices.Clone(words), func(w string) bool { return strings.Contains(b.Reason, w) })
		if (name == "" || b.Name == name) && len(missing) == 0 {
			return nil
		}
	}
	return fmt.Errorf("%s is in phase %s, blocked %+v; want %s with %q", vm, s.Replica.Phase, s.Blocked, name, words)
}
