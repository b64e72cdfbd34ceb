package test

import (
	"context"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/quorate/quorate/internal/localgce"
)

// This file holds the cases in which more is lost than a quorum bears for a while, and those in which what stands
// around the cluster is away.

// wipe recreates a VM with an empty disk; keep does so with its disk kept.
func wipe(c *cluster) act {
	return func(ctx context.Context, vm string) error {
		return c.RecreateVM(ctx, vm, localgce.Recreation{Wipe: true})
	}
}

func keep(c *cluster) act {
	return func(ctx context.Context, vm string) error { return c.RecreateVM(ctx, vm, localgce.Recreation{}) }
}

func TestCase21TwoOfThreeDieAndReturn(t *testing.T) {
	t.Parallel()
	c, l := threeMembers(t)
	type back struct {
		name          string
		first, second func(*cluster) act
	}
	ways := []back{{"both with their disks", keep, keep}, {"the first with an empty disk", wipe, keep}}
	if chaos {
		ways = append(ways, back{"the second with an empty disk", keep, wipe})
		ways = append(ways, ways...) // in both orders
	}
	for i, way := range ways {
		x, y := c.leader(t), c.follower(t)
		if i >= len(ways)/2 {
			x, y = y, x
		}
		c.together(t, []string{x, y}, c.KillVM)
		third := c.others(x, y)[0]
		if i == 0 {
			await(t, third+" says that there is no quorum", func() error { return c.blocked(third, "no-quorum") })
		}
		c.must(t, way.first(c)(t.Context(), x))
		time.Sleep(2 * time.Second)
		c.must(t, way.second(c)(t.Context(), y))
		await(t, fmt.Sprintf("%s and %s are back, %s", x, y, way.name), c.membersWhole)
	}
	c.invariants(t, l)
}

func TestCase21TwoOfThreeReturnWithEmptyDisksAndNobodySeeds(t *testing.T) {
	t.Parallel()
	c, l := threeMembers(t)
	x, y := c.leader(t), c.follower(t)
	third := c.others(x, y)[0]
	l.stop()
	c.together(t, []string{x, y}, wipe(c))
	for _, vm := range []string{x, y} {
		await(t, vm+" waits", func() error { return c.blocked(vm, "no-quorum-empty-disk") })
	}
	await(t, third+" waits", func() error { return c.blocked(third, "survivors-not-enough") })
	time.Sleep(12 * time.Second) // more than one read of the record
	if epoch, _ := c.newestEpoch(t); epoch != 1 {
		t.Errorf("epoch %d was begun", epoch)
	}
	if _, err := os.Stat(c.diskOf(third, "etcd/member")); err != nil {
		t.Errorf("the survivor's data: %v", err)
	}
	for _, vm := range []string{x, y} {
		if n := len(c.processes(vm)["etcd"]); n != 0 {
			t.Errorf("%d etcd processes on the empty disk of %s", n, vm)
		}
	}
}

// A member of the ended epoch was off while the others were lost and restored: its disk is put away, and it joins.
func TestCase22AStaleMemberReturnsAfterARestore(t *testing.T) {
	t.Parallel()
	onlyInChaos(t, "a minute")
	c, l := threeMembers(t)
	stale, lost, survivor := c.vms[0], c.vms[1], c.vms[2]
	c.must(t, c.StopVM(t.Context(), stale))
	time.Sleep(2 * time.Second)
	l.stop()
	c.must(t, wipe(c)(t.Context(), lost))
	await(t, lost+" waits", func() error { return c.blocked(lost, "no-quorum-empty-disk") })
	out, err := c.quorate(t, "restore", "--yes", "--end-living-cluster", "--from", "directory="+survivor)
	t.Logf("%s", out)
	c.must(t, err)
	c.must(t, c.StartVM(t.Context(), stale))
	await(t, "whole, with the one that was away", c.membersWhole)
	c.archived(t, stale, 1)
	c.wantOne(t, c.vms...)
	c.check(t, l, c.vms...)
	if epoch, _ := c.newestEpoch(t); epoch != 2 {
		t.Errorf("epoch %d", epoch)
	}
}

// One of three is off and its disk lost, another's host hangs: it is RUNNING and says nothing, so the third's restore
// waits for it until the command stops it. Once it is started again it joins like any other.
func TestARestoreStopsAVMThatHangs(t *testing.T) {
	t.Parallel()
	onlyInChaos(t, "a minute")
	c, l := threeMembers(t)
	off, hangs, survivor := c.vms[0], c.vms[1], c.vms[2]
	l.stop()
	c.must(t, c.FreezeVM(t.Context(), hangs))
	c.must(t, c.KillVM(t.Context(), off))
	c.must(t, c.SetFault(localgce.Compute, localgce.Fault{Kind: "forbidden"}))
	if out, err := c.quorate(t, "restore", "--yes", "--stop-vms", "--end-living-cluster", "--from",
		"directory="+survivor); err == nil || !strings.Contains(err.Error(), "--stop-vms: ") ||
		!strings.Contains(err.Error(), "nothing was written") {
		t.Errorf("a restore that may not stop VMs: %v\n%s", err, out)
	}
	c.must(t, c.SetFault(localgce.Compute, localgce.Fault{}))
	out, err := c.quorate(t, "restore", "--yes", "--stop-vms", "--end-living-cluster", "--from", "directory="+survivor)
	t.Logf("%s", out)
	c.must(t, err)
	if text := strings.Join(strings.Fields(out), " "); strings.Count(text, "Stopping ") != 1 ||
		!strings.Contains(text, hangs+" (instance "+c.vm(hangs).InstanceID+") is stopped.") {
		t.Errorf("stopped are not %s alone", hangs)
	}
	if is := c.vm(hangs).Status; is != "TERMINATED" {
		t.Errorf("%s is %s", hangs, is)
	}
	c.must(t, c.StartVM(t.Context(), hangs))
	c.must(t, c.RecreateVM(t.Context(), off, localgce.Recreation{Wipe: true}))
	await(t, "whole, the one that hung among them", c.membersWhole)
	c.archived(t, hangs, 1)
	c.wantOne(t, c.vms...)
	c.check(t, l, c.vms...)
}

func TestCase24RepairsWhileTheCloudIsAway(t *testing.T) {
	t.Parallel()
	c, l := threeMembers(t)
	kinds := []string{"empty", "stale"}
	if chaos {
		kinds = append(kinds, "unavailable", "forbidden")
	}
	for _, kind := range kinds {
		c.must(t, c.SetFault(localgce.Compute, localgce.Fault{Kind: kind}))
		vm := c.leader(t)
		before := c.member(t, vm)
		c.must(t, wipe(c)(t.Context(), vm))
		await(t, fmt.Sprintf("%s is replaced while the Compute API is %s", vm, kind), c.membersWhole)
		c.wantMember(t, vm, before, false)
	}
	c.must(t, c.SetFault(localgce.Compute, localgce.Fault{}))

	vm := c.follower(t)
	c.must(t, c.SetFault(localgce.Metadata, localgce.Fault{Who: vm, Kind: "away"}))
	c.must(t, wipe(c)(t.Context(), vm))
	time.Sleep(2 * time.Second)
	c.must(t, c.SetFault(localgce.Metadata, localgce.Fault{Who: vm}))
	await(t, "replaced once metadata is back", c.membersWhole)

	c.must(t, c.SetNameServerFault(t.Context(), "", localgce.NameServerSilent))
	before := c.member(t, vm)
	c.must(t, wipe(c)(t.Context(), vm))
	await(t, "replaced while no name server answers", c.membersWhole)
	c.wantMember(t, vm, before, false)
	c.must(t, c.SetNameServerFault(t.Context(), "", ""))

	c.hideRecord(t)
	c.must(t, wipe(c)(t.Context(), vm))
	await(t, "without the record it waits", func() error { return c.blocked(vm, "record-unreadable") })
	since := time.Now()
	await(t, "clients go on", func() error { return l.goOn(since) })
	c.showRecord(t)
	await(t, "replaced once the record is back", c.membersWhole)
	c.invariants(t, l)
}

func TestCase24AnUnreachableVMIsNeverRemovedOnAListThatLies(t *testing.T) {
	t.Parallel()
	onlyInChaos(t, "9 minutes")
	c, l := threeMembers(t)
	vm := c.follower(t)
	before := c.member(t, vm)
	// Two of them look like a proof: all that there is is denied, or a list has everybody but a VM whose label is gone.
	for _, fault := range []localgce.Fault{{Kind: "empty"}, {Kind: "forbidden"}, {Kind: "notfound"},
		{Kind: "unlisted", VMs: []string{vm}}, {}} {
		c.must(t, c.SetFault(localgce.Compute, fault))
		c.must(t, c.Cut(t.Context(), vm))
		time.Sleep(90 * time.Second) // a voter may be removed after 60 s, if it is proven gone
		s, err := c.status(c.leader(t))
		c.must(t, err)
		if n := len(voters(s)); n != 3 {
			t.Errorf("with the Compute API %q and %s cut off there are %d voters", fault.Kind, vm, n)
		}
		c.must(t, c.Heal(t.Context(), vm))
		await(t, "whole", c.membersWhole)
	}
	c.wantMember(t, vm, before, true)
	c.invariants(t, l)
}
