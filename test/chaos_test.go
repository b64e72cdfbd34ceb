package test

import (
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

// The chaos can be repeated in its choices, though not in its timing: -chaos.seed takes what an earlier run has
// printed.
var (
	chaosSeed   = flag.Uint64("chaos.seed", 0, "the seed of TestChaos; 0 takes one from the clock")
	chaosLosses = flag.Int("chaos.losses", 55, "how many VMs TestChaos loses, with three and again with five replicas")
)

const (
	// segment is after how many losses all is repaired and checked, and a new history begun.
	segment = 10
	// stallFrom is how long no write has to succeed to be reported as a stall.
	stallFrom = 500 * time.Millisecond
)

// TestChaos loses VMs at random under load, on three and on five replicas, the next while the last is still being
// repaired. Never are more disks lost at once than the cluster bears: a lost disk counts until its replica is a voter
// again. VMs whose disks survive may be away all at once.
func TestChaos(t *testing.T) {
	onlyInChaos(t, "20 minutes")
	seed := cmp.Or(*chaosSeed, uint64(time.Now().UnixNano()))
	t.Logf("-chaos.seed=%d", seed)
	for _, vms := range [][]string{threeVMs, {"master-a", "master-b", "master-c", "master-d", "master-e"}} {
		t.Run(fmt.Sprintf("%d replicas", len(vms)), func(t *testing.T) {
			c := begin(t, plan{vms: vms, bare: true, reflink: true})
			await(t, "whole", c.membersWhole)
			u := &unrest{cluster: c, rand: rand.New(rand.NewPCG(seed, uint64(len(vms)))), busy: map[string]bool{},
				lost: map[string]string{}, injected: map[string]int{}}
			for u.losses < *chaosLosses && !t.Failed() {
				u.segment(t, min(segment, *chaosLosses-u.losses))
			}
			u.tell(t)
			if !t.Failed() {
				c.beyond(t)
			}
		})
	}
}

// beyond loses more disks at once than the cluster bears. It ends blocked, every replica with the right row, and one
// command brings it back: with all that was acknowledged while one disk is left, and with all that a snapshot holds
// when none is.
func (c *cluster) beyond(t *testing.T) {
	t.Helper()
	most := c.vms[:len(c.vms)/2+1]
	survivor := c.vms[len(c.vms)-1]
	for _, r := range []struct {
		lost []string
		from []string
	}{{most, []string{"--from", "directory=" + survivor}}, {c.vms, []string{"--from", "snapshot", "--on", survivor}}} {
		l := c.startWriters(t)
		time.Sleep(3 * time.Second)
		l.stop()
		c.in(t, c.leader(t), "quorate snapshot save")
		before, _ := c.newestEpoch(t)
		c.together(t, r.lost, wipe(c))
		for _, vm := range r.lost {
			await(t, vm+" waits", func() error { return c.blocked(vm, "no-quorum-empty-disk") })
		}
		for _, vm := range c.others(r.lost...) {
			await(t, vm+" waits", func() error { return c.blocked(vm, "survivors-not-enough") })
		}
		c.restoreMembers(t, r.from...)
		if now, _ := c.newestEpoch(t); now != before+1 {
			t.Errorf("epoch %d after %d", now, before)
		}
		c.wantOne(t, c.vms...)
		c.check(t, l, c.vms...)
		if r.from[1] == "snapshot" {
			c.again(t, "--from", "snapshot="+c.snapshotBefore(t, before+1), "--on", survivor)
		}
		c.takeBack(t)
		c.blankOnce(t)
	}
}

// snapshotBefore is the newest snapshot of the epochs before one.
func (c *cluster) snapshotBefore(t *testing.T, epoch int) (name string) {
	t.Helper()
	for _, s := range c.snapshots(t) {
		if s.Epoch < uint64(epoch) {
			name = s.Name
		}
	}
	return name
}

// restoreMembers is the one command, and the wait for a whole cluster.
func (c *cluster) restoreMembers(t *testing.T, from ...string) {
	t.Helper()
	begin := time.Now()
	out, err := c.quorate(t, append([]string{"restore", "--yes", "--end-living-cluster"}, from...)...)
	t.Logf("%s", out)
	c.must(t, err)
	t.Logf("the next epoch was formed %s after the command", time.Since(begin).Round(10*time.Millisecond))
	await(t, "whole", c.membersWhole)
}

// unrest is chaos in one cluster.
type unrest struct {
	*cluster
	rand   *rand.Rand
	losses int

	wait     sync.WaitGroup
	mu       sync.Mutex
	busy     map[string]bool   // VMs that are lost, or not yet repaired
	lost     map[string]string // VMs whose disks were lost, with the ids of the members that were on them
	injected map[string]int    // the losses by kind
	absences absences
	stalls   []gap
	errs     []error
}

// segment loses so many VMs under one load, waits until all is repaired, and checks what must hold.
func (u *unrest) segment(t *testing.T, losses int) {
	t.Helper()
	l := u.startWriters(t)
	for range losses {
		u.lose(t)
		time.Sleep(time.Duration(u.rand.Int64N(int64(5 * time.Second))))
	}
	u.wait.Wait()
	u.must(t, errors.Join(u.errs...))
	u.invariants(t, l)
	u.mu.Lock()
	defer u.mu.Unlock()
	clear(u.lost)
	u.stalls = append(u.stalls, l.gaps(stallFrom)...)
}

// lose takes one VM away in a random way and goes on: its return and its repair are waited for in the background.
func (u *unrest) lose(t *testing.T) {
	t.Helper()
	vm, kind := u.choose(t)
	other := u.others(vm)[u.rand.IntN(len(u.vms)-1)]
	hold := time.Duration(0)
	if kind.hold > 0 {
		hold = time.Duration(u.rand.Int64N(int64(kind.hold)))
	}
	u.losses++
	u.injected[kind.name]++
	t.Logf("loss %d: %s: %s, for %s (from %s)", u.losses, vm, kind.name, hold.Round(time.Millisecond), other)
	u.wait.Go(func() {
		ctx := context.WithoutCancel(t.Context())
		a := absence{vm: vm, kind: kind.name, lost: time.Now()}
		err := kind.lose(ctx, u.cluster, vm, other)
		if err == nil {
			time.Sleep(hold)
			err = kind.back(ctx, u.cluster, vm, other)
		}
		a.back = time.Now()
		if err == nil {
			err = u.awaitRepair(vm)
		}
		a.whole = time.Now()
		u.mu.Lock()
		defer u.mu.Unlock()
		u.busy[vm] = false
		u.absences = append(u.absences, a)
		if err != nil {
			u.errs = append(u.errs, fmt.Errorf("%s: %s: %w", vm, kind.name, err))
		}
	})
}

// choose waits until a VM may be lost: mostly only while fewer than the cluster bears are away, sometimes whatever is
// away already.
func (u *unrest) choose(t *testing.T) (vm string, kind lossKind) {
	t.Helper()
	bears := (len(u.vms) - 1) / 2
	if u.rand.IntN(6) == 0 {
		bears = len(u.vms) - 1
	}
	await(t, "a VM to lose", func() error {
		u.mu.Lock()
		defer u.mu.Unlock()
		away := slices.DeleteFunc(slices.Collect(maps.Keys(u.busy)), func(vm string) bool { return !u.busy[vm] })
		if len(away) >= bears {
			return fmt.Errorf("%q are not repaired: %w", away, errors.Join(u.errs...))
		}
		free := u.others(away...)
		vm = free[u.rand.IntN(len(free))]
		return nil
	})
	former, may := u.mayLoseDisk(t, vm)
	kind = pickLoss(u.rand, may)
	u.mu.Lock()
	defer u.mu.Unlock()
	u.busy[vm] = true
	if kind.disk {
		u.lost[vm] = former
	}
	return vm, kind
}

// mayLoseDisk says whether the cluster bears the loss of a VM's disk now, and which member is on it.
func (u *unrest) mayLoseDisk(t *testing.T, vm string) (former string, may bool) {
	list, err := u.members(t.Context())
	if err != nil {
		return "", false // nobody can say who is a voter
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	for _, m := range list {
		place, id := placeName(m.Name), fmt.Sprintf("%x", m.ID)
		if place == vm {
			former = id
		}
		if lost, ok := u.lost[place]; ok && lost != id && !m.IsLearner {
			delete(u.lost, place)
		}
	}
	return former, len(u.lost) < (len(u.vms)-1)/2
}

// awaitRepair waits until the replica on a VM is a voter whose agent waits for nothing.
func (u *unrest) awaitRepair(vm string) error {
	for since := time.Now(); ; time.Sleep(50 * time.Millisecond) {
		s, err := u.status(vm)
		switch {
		case err != nil:
		case !s.Replica.Ready || len(s.Blocked) > 0:
			err = fmt.Errorf("in phase %s, blocked: %+v", s.Replica.Phase, s.Blocked)
		case !slices.ContainsFunc(voters(s), func(name string) bool { return placeName(name) == vm }):
			err = fmt.Errorf("no voter: %+v", s.Etcd.Members)
		default:
			return nil
		}
		if time.Since(since) > patience {
			return fmt.Errorf("not repaired within %s: %w", patience, err)
		}
	}
}

// tell prints what was done and what it cost.
func (u *unrest) tell(t *testing.T) {
	t.Helper()
	var lines []string
	for _, name := range slices.Sorted(maps.Keys(u.injected)) {
		lines = append(lines, fmt.Sprintf("%4d %s", u.injected[name], name))
	}
	t.Logf("%d losses:\n%s\n%s", u.losses, strings.Join(lines, "\n"), u.absences.tell((len(u.vms)-1)/2, u.stalls))
}
