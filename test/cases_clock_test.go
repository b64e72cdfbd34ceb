package test

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/quorate/quorate/internal/localgce"
)

// Case 16, the clocks: the deciders are tested with clocks that are wrong in etcdmember; here it is a real agent, on a
// kernel of its own.

const (
	// wrongBy is how wrong the clock is, in either direction.
	wrongBy = time.Hour
	// machinePatience is how long an emulated machine may take for what a VM does within patience: it boots in half a
	// minute, and in minutes where the tests' machine is busy.
	machinePatience = 8 * time.Minute
	offVM           = "master-c"
)

func TestCase16AReplicaWhoseClockIsAnHourOff(t *testing.T) {
	onlyInChaos(t, "ten minutes: a machine with a clock of its own is emulated")
	t.Run("it is behind and joins the others", func(t *testing.T) {
		c := bare(t, plan{vms: threeVMs, machine: newMachine(t, offVM, -wrongBy), age: 2 * wrongBy})
		wrongClock(t, c, -wrongBy)
	})
	t.Run("it is ahead and the others join it", func(t *testing.T) {
		c := bare(t, plan{vms: []string{offVM}, replicas: 3, machine: newMachine(t, offVM, wrongBy)})
		awaitWithin(t, machinePatience, "the machine has seeded", c.membersWhole)
		for _, vm := range threeVMs[:2] {
			c.must(t, c.CreateVM(t.Context(), localgce.VMConfig{Name: vm, Zone: "us-central1-" + vm[len(vm)-1:]}, ""))
		}
		c.vms = threeVMs
		wrongClock(t, c, wrongBy)
	})
}

// wrongClock takes a cluster, one of whose replicas has a clock that is wrong, through the losses that this replica,
// and another while this one leads, can have.
func wrongClock(t *testing.T, c *cluster, offset time.Duration) {
	t.Helper()
	awaitWithin(t, machinePatience, "whole, with a clock that is wrong", c.membersWhole)
	l := c.startWriters(t)
	c.wantClock(t, offset)

	before := c.member(t, offVM)
	c.cutMachine(t)
	awaitWithin(t, machinePatience, "its power was cut, and it is whole again", c.membersWhole)
	c.wantMember(t, offVM, before, true)
	c.wantClock(t, offset)

	c.must(t, c.RecreateVM(t.Context(), offVM, localgce.Recreation{Wipe: true}))
	awaitWithin(t, machinePatience, "its VM was recreated with an empty disk, and it is whole again", c.membersWhole)
	c.wantMember(t, offVM, before, false)
	c.wantClock(t, offset)

	c.lead(t, offVM)
	other := c.others(offVM)[1]
	before = c.member(t, other)
	c.must(t, c.RecreateVM(t.Context(), other, localgce.Recreation{Wipe: true}))
	awaitWithin(t, machinePatience, "another was recreated while it led, and is whole again", c.membersWhole)
	c.wantMember(t, other, before, false)
	t.Logf("the leader at the end: %s; writes stalled %s", c.leader(t), l.stall())
	c.invariants(t, l)
}

// cutMachine cuts the power of the machine: its process is killed, and the VM's init starts it again on its disk.
func (c *cluster) cutMachine(t *testing.T) {
	t.Helper()
	agent := c.vm(offVM).Agent
	c.kill(t, offVM, strconv.Itoa(agent.PID))
	await(t, "the machine is powered on again", func() error {
		if now := c.vm(offVM).Agent; now.Restarts == agent.Restarts || now.State != "starting" {
			return fmt.Errorf("%+v", now)
		}
		return nil
	})
}

// lead makes a VM's member the leader.
func (c *cluster) lead(t *testing.T, vm string) {
	t.Helper()
	id, err := strconv.ParseUint(c.member(t, vm), 16, 64)
	c.must(t, err)
	await(t, vm+" leads", func() error {
		leader := c.leader(t)
		if leader == vm {
			return nil
		}
		c.withMember(t, leader, func(ctx context.Context, client *clientv3.Client) error {
			_, err := client.MoveLeader(ctx, id)
			return err
		})
		return fmt.Errorf("%s leads", leader)
	})
}

// wantClock wants the clock of the machine to be wrong by so much, as its kernel said when it booted, and as its agent
// writes it into the record.
func (c *cluster) wantClock(t *testing.T, offset time.Duration) {
	t.Helper()
	b, err := os.ReadFile(c.newestIncarnation(t, offVM))
	c.must(t, err)
	var taken struct{ Time time.Time }
	c.must(t, json.Unmarshal(b, &taken))
	log := strings.Split(c.logOf(offVM), "guest: the clock says ")
	said, _, _ := strings.Cut(log[len(log)-1], "\n")
	seconds, err := strconv.ParseInt(strings.TrimSpace(said), 10, 64)
	c.must(t, err)
	booted := c.vm(offVM).Agent.Since.Add(offset)
	for what, at := range map[string]time.Time{"kernel": time.Unix(seconds, 0), "agent": taken.Time} {
		if at.Before(booted.Add(-time.Minute)) || at.After(time.Now().Add(offset).Add(time.Minute)) {
			t.Errorf("the machine was powered on at %s; its %s says %s, which is not %s off", booted.Add(-offset).UTC(),
				what, at.UTC(), offset)
		}
	}
}
