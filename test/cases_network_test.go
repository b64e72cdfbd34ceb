package test

import (
	"context"
	"fmt"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/quorate/quorate/internal/localgce"
)

// This file holds the cases in which members do not hear each other, or not in time.

// inChaos is a duration for CI, and a longer one for chaos.
func inChaos(ci, long time.Duration) time.Duration {
	if chaos {
		return long
	}
	return ci
}

// cutCatchUp is how soon after a cut its follower has what it missed, however long the cut was. It took 43 s after one
// of 30 s when a stream that a cut had silenced was dialled again only once TCP gave up
// (etcdmember/member/keepalive.go).
const cutCatchUp = 15 * time.Second

// applied is how much of the log the member of one VM has applied, by its own word.
func (c *cluster) applied(t *testing.T, vm string) (index uint64) {
	t.Helper()
	c.withMember(t, vm, func(ctx context.Context, client *clientv3.Client) error {
		status, err := client.Status(ctx, client.Endpoints()[0])
		if err == nil {
			index = status.RaftAppliedIndex
		}
		return err
	})
	return index
}

func TestCase15OneWayPartitionsBetweenPeers(t *testing.T) {
	t.Parallel()
	c, l := threeMembers(t)
	leader, follower := c.leader(t), c.follower(t)
	for _, way := range [][2]string{{leader, follower}, {follower, leader}} {
		l.stall()
		c.must(t, c.Partition(t.Context(), way[0], way[1], true))
		time.Sleep(inChaos(5*time.Second, 30*time.Second))
		c.must(t, c.Heal(t.Context(), ""))
		since := time.Now()
		missed := c.applied(t, leader)
		awaitWithin(t, cutCatchUp, "the follower has caught up", func() error {
			if has := c.applied(t, follower); has < missed {
				return fmt.Errorf("%s has applied %d entries of the %d that %s had when the cut healed", follower, has,
					missed, leader)
			}
			return nil
		})
		await(t, "clients go on", func() error { return l.goOn(since) })
		await(t, "whole", c.membersWhole)
		t.Logf("what %s sends did not reach %s: writes stalled %s", way[0], way[1], l.stall())
	}
	c.invariants(t, l)
}

func TestCase15FullPartitionOfTheLeaderDuringAMembershipChange(t *testing.T) {
	t.Parallel()
	c, l := threeMembers(t)
	leader, vm := c.leader(t), c.follower(t)
	before := c.member(t, vm)
	c.must(t, c.RecreateVM(t.Context(), vm, localgce.Recreation{Wipe: true}))
	await(t, "the former member is removed", func() error {
		s, err := c.status(leader)
		if err != nil {
			return err
		}
		for _, m := range s.Etcd.Members {
			if m.ID == before {
				return fmt.Errorf("%+v", s.Etcd.Members)
			}
		}
		return nil
	})
	for _, other := range c.others(leader) {
		c.must(t, c.Partition(t.Context(), leader, other, false))
	}
	time.Sleep(inChaos(5*time.Second, 30*time.Second))
	c.must(t, c.Heal(t.Context(), ""))
	await(t, "whole", c.membersWhole)
	c.wantMember(t, vm, before, false)
	c.invariants(t, l)
}

func TestCase16TheLeadersVMStandsStill(t *testing.T) {
	t.Parallel()
	c, l := threeMembers(t)
	for range 2 {
		vm := c.leader(t)
		before := c.member(t, vm)
		l.stall()
		c.must(t, c.FreezeVM(t.Context(), vm))
		time.Sleep(inChaos(6*time.Second, 30*time.Second))
		since := time.Now()
		await(t, "clients go on without it", func() error { return l.goOn(since) })
		c.must(t, c.ThawVM(t.Context(), vm))
		await(t, "whole", c.membersWhole)
		c.wantMember(t, vm, before, true)
		t.Logf("%s, the leader, stood still: writes stalled %s", vm, l.stall())
	}
	c.invariants(t, l)
}

func TestCase18SevenFirstBootsWithFourLearnersAtMost(t *testing.T) {
	t.Parallel()
	c := bare(t, plan{vms: []string{"master-a", "master-b", "master-c", "master-d", "master-e", "master-f",
		"master-g"}})
	l := c.startWriters(t)
	await(t, "whole", c.membersWhole)
	c.invariants(t, l)
}

func TestCase19TheLeadersVMIsLostDuringAnothersJoin(t *testing.T) {
	t.Parallel()
	c, l := membersOf(t, plan{vms: []string{"master-a", "master-b", "master-c", "master-d", "master-e"}})
	leader, vm := c.leader(t), c.follower(t)
	c.together(t, []string{vm, leader}, wipe(c))
	await(t, "two of five with empty disks, the leader among them", c.membersWhole)
	leader, vm = c.leader(t), c.follower(t)
	c.must(t, c.RecreateVM(t.Context(), vm, localgce.Recreation{Wipe: true}))
	time.Sleep(300 * time.Millisecond)
	c.must(t, c.RecreateVM(t.Context(), leader, localgce.Recreation{Wipe: true}))
	await(t, "the leader with an empty disk a moment after a follower", c.membersWhole)
	c.invariants(t, l)
}
