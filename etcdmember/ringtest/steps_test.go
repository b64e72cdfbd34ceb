package ringtest

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"testing"
	"time"

	"github.com/quorate/quorate/etcdmember/acts"
	"github.com/quorate/quorate/etcdmember/etcdtest"
	"github.com/quorate/quorate/internal/realtest"
	"github.com/quorate/quorate/internal/record"
	"github.com/quorate/quorate/internal/replica"
)

// Case 17 without VMs: a cluster of real members is formed, one of them comes back after a reboot and another with an
// empty disk, and the leader leaves by order. At each step of that the agent that comes to it first ends before it
// takes effect, and the next one after. No acknowledged write is lost, and it is one cluster.
func TestAgentsThatEndAtEachStepMakeAWholeCluster(t *testing.T) {
	realtest.OnlyInCases(t)
	if !etcdtest.InOwnNetwork(t) {
		return
	}
	r := newRing(t, pa, pb, pc)
	all := []replica.Place{pa, pb, pc}
	r.cutAll(slices.Concat(joinSteps, leaderSteps))
	r.begin(all...)
	r.wantCut("the cluster is formed", all...)
	first, err := r.status(pa)
	if err != nil {
		t.Fatal(err)
	}
	w := r.write(all...)

	back := r.otherThanLeader(all)
	before := r.ids(back)
	r.agents[back].end()
	r.agents[back].me.BootID = "boot2"
	r.cutAll(returnSteps)
	r.agents[back].begin()
	r.wantCut("a member is back after a reboot", all...)
	if after := r.ids(back); after[back] != before[back] {
		t.Errorf("%s is member %s, before the reboot %s", back, after[back], before[back])
	}

	r.agents[back].end()
	r.recreate(back, "201")
	r.cutAll([]acts.Step{acts.StepRemoveFormer})
	r.agents[back].begin()
	r.wantCut("a recreated VM has replaced its member", all...)
	if after := r.ids(back); after[back] == before[back] {
		t.Errorf("%s came back as member %s on an empty disk", back, after[back])
	}

	r.cut(acts.After, leaveSteps...)
	r.cut(acts.Before, leaveSteps[1:]...)
	two := r.leaderLeaves(all...)
	r.order(record.Order{Kind: record.OrderReplicas, Replicas: 1})
	r.cut(acts.Before, leaveSteps[0])
	rest := r.leaderLeaves(two...)
	r.await("writes go on", func() error { return r.put(r.client(rest[0]), "after", "x") })
	w.stop()
	if last, err := r.status(rest[0]); err != nil || last.ClusterID != first.ClusterID {
		t.Errorf("cluster %s, at first %s, %v", last.ClusterID, first.ClusterID, err)
	}
	r.wantWrites(rest[0], w)
}

// leaderLeaves lets the leader of the places leave by order, and returns the others.
func (r *ring) leaderLeaves(places ...replica.Place) []replica.Place {
	r.t.Helper()
	leaves := r.settledLeader(places)
	rest := slices.DeleteFunc(slices.Clone(places), func(p replica.Place) bool { return p == leaves })
	r.snapshot()
	r.order(record.Order{Kind: record.OrderLeave, Place: &leaves})
	r.await("the leader has left", func() error {
		v, _ := r.record.Copied()
		if o := v.Orders[len(v.Orders)-1]; o.Done == nil || !slices.Contains(r.blocked(leaves), "left") {
			return fmt.Errorf("it is blocked by %v, the order is %+v", r.blocked(leaves), o)
		}
		return errors.Join(r.allCut(), r.voterCount(len(rest), rest...))
	})
	return rest
}

// settledLeader waits until the places have had the same leader for some seconds: an agent that has just ended and
// comes back moves it.
func (r *ring) settledLeader(places []replica.Place) (leader replica.Place) {
	r.t.Helper()
	since := time.Now()
	r.await("one leads for a while", func() error {
		if now := r.leader(); now != leader || r.voterCount(len(places), places...) != nil {
			leader, since = now, time.Now()
		}
		if leads := time.Since(since); leader == (replica.Place{}) || leads < 5*time.Second {
			return fmt.Errorf("%s leads for %s", leader, leads)
		}
		return nil
	})
	return leader
}

// wantCut waits until an agent has ended at each step that was to be cut, and all places are voters that serve.
func (r *ring) wantCut(what string, places ...replica.Place) {
	r.t.Helper()
	r.await(what, func() error { return errors.Join(r.allCut(), r.voters(places...)) })
}

// otherThanLeader is a place that does not lead.
func (r *ring) otherThanLeader(places []replica.Place) replica.Place {
	leader := r.leader()
	return places[slices.IndexFunc(places, func(p replica.Place) bool { return p != leader })]
}

// recreate is a place's VM made again with an empty disk, while its agent does not run.
func (r *ring) recreate(p replica.Place, instance string) {
	r.t.Helper()
	a := r.agents[p]
	data := a.cluster.Etcd.DataDir
	if err := errors.Join(os.RemoveAll(data), os.Mkdir(data, 0o700)); err != nil {
		r.t.Fatal(err)
	}
	a.me.InstanceID, a.me.BootID = instance, "boot of "+instance
	r.vms = slices.Clone(r.vms)
	r.vms[slices.IndexFunc(r.vms, func(vm replica.VM) bool { return vm.Place == p })].InstanceID = instance
	a.issue()
}
