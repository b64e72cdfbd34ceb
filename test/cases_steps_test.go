package test

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/quorate/quorate/etcdmember/acts"
	"github.com/quorate/quorate/internal/localgce"
)

// This file holds the cases in which an agent ends in the middle of what it does.

// formedAt are the moments of a seed from which on the record says that the epoch was formed: who loses the only disk
// then has lost what may have been acknowledged, and nobody may begin anew.
var formedAt = []moment{
	{acts.StepFormed, acts.After}, {acts.StepSeedDone, acts.Before},
	{acts.StepSeedDone, acts.After},
}

func TestCase02SeederKilledAtEachStepDiskKeptAndLost(t *testing.T) {
	t.Parallel()
	type round struct {
		moment
		wipe bool
	}
	rounds := []round{
		{moment{acts.StepSeedStart, acts.After}, false}, {moment{acts.StepFormed, acts.Before},
			false},
		{moment{acts.StepClaim, acts.After}, true}, {moment{acts.StepBundle, acts.After}, true},
		{moment{acts.StepSeedMarker, acts.After}, true},
		{moment{acts.StepFormed, acts.After}, true},
	}
	if chaos {
		rounds = nil
		for _, step := range []acts.Step{acts.StepClaim, acts.StepBundle, acts.StepSeedOnDisk,
			acts.StepSeedStart,
			acts.StepSeedMarker, acts.StepFormed, acts.StepSeedDone} {
			for _, when := range []acts.Moment{acts.Before, acts.After} {
				rounds = append(rounds, round{moment{step, when}, false}, round{moment{step, when}, true})
			}
		}
	}
	for _, r := range rounds {
		t.Run(fmt.Sprintf("%s, disk lost: %t", r.moment, r.wipe),
			func(t *testing.T) { seederKilled(t, r.moment, r.wipe) })
	}
}

// seederKilled lets three VMs boot and cuts the power of the one that comes to the moment first.
func seederKilled(t *testing.T, m moment, wipe bool) {
	c := bare(t, plan{vms: threeVMs, noAttribute: true})
	for _, vm := range c.vms {
		c.arm(t, vm, m)
	}
	c.setDocument(t, c.document)
	seeder := c.awaitEnd(t, m, c.vms...)
	if wipe {
		c.must(t, c.RecreateVM(t.Context(), seeder, localgce.Recreation{Wipe: true}))
	} else {
		c.must(t, c.KillVM(t.Context(), seeder))
		c.must(t, c.StartVM(t.Context(), seeder))
	}
	if wipe && slices.Contains(formedAt, m) {
		await(t, "the seeder waits", func() error { return c.blocked(seeder, "no-quorum-empty-disk") })
		if epoch, _ := c.newestEpoch(t); epoch != 1 {
			t.Errorf("a second history was begun: epoch %d", epoch)
		}
		return
	}
	await(t, "whole", c.membersWhole)
	c.invariants(t, c.startWriters(t))
}

// blocked says whether a replica does not wait under a name.
func (c *cluster) blocked(vm, name string) error {
	s, err := c.status(vm)
	if err == nil && !names(s, name) {
		err = fmt.Errorf("%s is in phase %s, blocked %+v", vm, s.Replica.Phase, s.Blocked)
	}
	return err
}

func TestCase17AgentKilledWhileAMemberIsReplaced(t *testing.T) {
	t.Parallel()
	joiner := []moment{
		{acts.StepRemoveFormer, acts.After}, {acts.StepAddLearner, acts.After},
		{acts.StepStartJoined, acts.After}, // while the copy of the state is on its way
	}
	leader := []moment{{acts.StepPromote, acts.Before}, {acts.StepPromote, acts.After}}
	if chaos {
		joiner = nil
		for _, step := range []acts.Step{acts.StepIncarnation, acts.StepIncarnationOnDisk,
			acts.StepRemoveFormer, acts.StepMarkAdding,
			acts.StepAddLearner, acts.StepMarkAdded, acts.StepConfirm, acts.StepMarkStarted,
			acts.StepStartJoined} {
			joiner = append(joiner, moment{step, acts.Before}, moment{step, acts.After})
		}
	}
	c, l := threeMembers(t)
	replace := func(m moment, armed func(vm, leader string) string) {
		t.Helper()
		vm := c.follower(t)
		before := c.member(t, vm)
		ended := c.awaitEnd(t, m, armed(vm, c.leader(t)))
		await(t, fmt.Sprintf("%s ended at %s, and it is whole again", ended, m), c.membersWhole)
		c.wantMember(t, vm, before, false)
	}
	for _, m := range joiner {
		replace(m, func(vm, _ string) string { c.recreateArmed(t, vm, localgce.Recreation{Wipe: true}, m); return vm })
	}
	for _, m := range leader {
		replace(m, func(vm, leader string) string {
			c.arm(t, leader, m)
			c.must(t, c.RecreateVM(t.Context(), vm, localgce.Recreation{Wipe: true}))
			return leader
		})
	}
	c.invariants(t, l)
}

func TestCase17AgentKilledWhileAReturningMemberIsStarted(t *testing.T) {
	t.Parallel()
	c, l := threeMembers(t)
	moments := []moment{{acts.StepStartOnDisk, acts.After}, {acts.StepStart, acts.After}}
	if chaos {
		moments = nil
		for _, step := range []acts.Step{acts.StepIncarnation, acts.StepIncarnationOnDisk,
			acts.StepConfirm,
			acts.StepStartOnDisk, acts.StepStart} {
			moments = append(moments, moment{step, acts.Before}, moment{step, acts.After})
		}
	}
	for _, m := range moments {
		vm := c.leader(t)
		before := c.member(t, vm)
		c.recreateArmed(t, vm, localgce.Recreation{}, m)
		c.awaitEnd(t, m, vm)
		await(t, fmt.Sprintf("%s ended at %s, and it is whole again", vm, m), c.membersWhole)
		c.wantMember(t, vm, before, true)
	}
	c.invariants(t, l)
}

func TestCase17AgentKilledWhileARemovedDirectoryIsArchived(t *testing.T) {
	t.Parallel()
	c, l := threeMembers(t)
	moments := []moment{{acts.StepArchiveOnDisk, acts.After}}
	if chaos {
		moments = append(moments, moment{acts.StepArchiveOnDisk, acts.Before},
			moment{acts.StepArchive, acts.Before},
			moment{acts.StepArchive, acts.After})
	}
	for i, m := range moments {
		vm := c.vms[2]
		leader := c.others(vm)[0]
		before := c.member(t, vm)
		c.arm(t, vm, m)
		await(t, "it is removed", func() error { return c.removeMember(t, leader, vm) })
		c.awaitEnd(t, m, vm)
		await(t, fmt.Sprintf("%s ended at %s, and it is whole again", vm, m), c.membersWhole)
		c.wantMember(t, vm, before, false)
		if list, err := filepath.Glob(c.diskOf(vm, "archive/*")); err != nil || len(list) != i+1 {
			t.Errorf("archived after %d rounds: %q, %v", i+1, list, err)
		}
		if _, err := os.Stat(c.diskOf(vm, "etcd/member")); err != nil {
			t.Error(err)
		}
	}
	c.invariants(t, l)
}
