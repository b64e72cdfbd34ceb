package main

import (
	"context"
	"fmt"
	"os"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"golang.org/x/sync/errgroup"

	"github.com/quorate/quorate/certs"
	"github.com/quorate/quorate/internal/localgce"
)

// repairSettle is how long three members are left alone: etcd refuses changes of the membership until its members have
// been connected for 5 s (HealthInterval), and the clusters that are repaired have been up for longer.
const repairSettle = 6 * time.Second

// pauseBetween is between two losses. No loss touches a member that the change after it counts on: it is the same
// follower that goes.
const pauseBetween = time.Second

// repair is one round: what it took one cluster to get over each kind of loss. Repairs count from the start of the
// recreated VM's agent.
type repair struct {
	EmptyVoter    seconds `json:"emptyVoter"`
	EmptyReady    seconds `json:"emptyReady"`
	KeptVoter     seconds `json:"keptVoter"`
	KeptReady     seconds `json:"keptReady"`
	FollowerLost  seconds `json:"followerLost"`
	LeaderLost    seconds `json:"leaderLost"`
	LeaderStopped seconds `json:"leaderStopped"`
	Busy          float64 `json:"busy"`
}

// repairs are the rounds of both sides. LikeGoogle are quorate's where the Compute API and the bucket take the time
// that Google's take; in its other rounds they answer at once. Nobody asks either of them by hand.
type repairs struct {
	Quorate    []repair `json:"quorate"`
	LikeGoogle []repair `json:"likeGoogle"`
	Floor      []repair `json:"floor"`
}

// hands do what nobody does by himself on this side; quorate's do nothing.
type hands interface {
	// files are the certificates of a VM, as the host sees them. peerURL is what the member list has for it.
	files(vm localgce.VMStatus) certs.Files
	peerURL(vm localgce.VMStatus) string
	// replace prepares the members for an empty disk and says how long that took; promote ends it.
	replace(ctx context.Context, c *clientv3.Client, vm localgce.VMStatus, former uint64) (time.Duration, error)
	promote(ctx context.Context, c *clientv3.Client, vm localgce.VMStatus) error
	// handOver is done before the leader is stopped as planned.
	handOver(ctx context.Context, m members, leader int) error
}

// repairs measures rounds of quorate and of the floor in turns.
func (b *bench) repairs(ctx context.Context) (*repairs, error) {
	out := &repairs{}
	for i := range b.rounds {
		q, err := b.repairByItself(ctx, false)
		if err != nil {
			return nil, fmt.Errorf("repair, quorate, round %d: %w", i+1, err)
		}
		late, err := b.repairByItself(ctx, true)
		if err != nil {
			return nil, fmt.Errorf("repair, quorate, services like Google's, round %d: %w", i+1, err)
		}
		w, err := b.floorWorld(ctx, 3)
		if err != nil {
			return nil, err
		}
		f, err := b.repairOnce(ctx, w, byHand{w}, false)
		if err != nil {
			return nil, fmt.Errorf("repair, by hand, round %d: %w", i+1, err)
		}
		out.Quorate, out.Floor = append(out.Quorate, q), append(out.Floor, f)
		out.LikeGoogle = append(out.LikeGoogle, late)
		b.say("repair, round %d of %d: empty disk %.2f/%.2f s, with services like Google's %.2f/%.2f s, by hand "+
			"%.2f/%.2f s; stalls %.2f %.2f %.2f s, by hand %.2f %.2f %.2f s", i+1, b.rounds,
			q.EmptyVoter, q.EmptyReady, late.EmptyVoter, late.EmptyReady, f.EmptyVoter, f.EmptyReady, q.FollowerLost,
			q.LeaderLost, q.LeaderStopped, f.FollowerLost, f.LeaderLost, f.LeaderStopped)
	}
	return out, nil
}

// repairByItself is a round of quorate.
func (b *bench) repairByItself(ctx context.Context, likeGoogle bool) (repair, error) {
	w, err := b.quorateWorld(ctx, 3)
	if err != nil {
		return repair{}, err
	}
	w.likeGoogle = likeGoogle
	return b.repairOnce(ctx, w, byItself{}, true)
}

// repairOnce brings a cluster up, breaks it in each way, and takes it away.
func (b *bench) repairOnce(ctx context.Context, w *world, h hands, voters bool) (r repair, err error) {
	project, _, err := boot(ctx, w, voters)
	if err != nil {
		return r, err
	}
	defer func() {
		if closeErr := project.Close(context.WithoutCancel(ctx)); err == nil {
			err = closeErr
		}
		if !b.keep {
			os.RemoveAll(w.dir)
		}
	}()
	t := trial{project: project, hands: h}
	if err := t.settle(ctx, repairSettle); err != nil {
		return r, err
	}
	if r.Busy, err = awaitQuiet(ctx); err != nil {
		return r, err
	}
	for _, step := range []func(context.Context, *repair) error{t.keptDisk, t.emptyDisk, t.followerLost, t.leaderLost,
		t.leaderStopped} {
		if err := step(ctx, &r); err != nil {
			return r, fmt.Errorf("%w; the logs are in %s", err, w.dir)
		}
		if err := t.settle(ctx, pauseBetween); err != nil {
			return r, err
		}
	}
	return r, nil
}

// trial is one cluster that is being broken.
type trial struct {
	project *localgce.Project
	hands
}

// connect dials all members with the files of a VM that is not lost.
func (t trial) connect() (members, error) {
	vms := t.project.Status().VMs
	c, err := clientTLS(t.files(vms[0]))
	if err != nil {
		return members{}, err
	}
	return dialAll(vms, c)
}

// settle waits until all members serve, and leaves them alone for a while.
func (t trial) settle(ctx context.Context, pause time.Duration) error {
	ctx, cancel := context.WithTimeoutCause(ctx, roundLimit, fmt.Errorf("not whole within %s", roundLimit))
	defer cancel()
	for _, vm := range t.project.Status().VMs {
		if _, err := awaitReady(ctx, vm.Address); err != nil {
			return err
		}
	}
	m, err := t.connect()
	if err != nil {
		return err
	}
	defer m.close()
	for _, c := range m.clients {
		if _, err := awaitServing(ctx, c); err != nil {
			return err
		}
	}
	return sleep(ctx, pause)
}

// roles are the index of the leader's VM and of two followers.
func (t trial) roles(ctx context.Context, m members) (leader int, followers []int, err error) {
	leader, err = m.leader(ctx)
	for i := range m.clients {
		if i != leader {
			followers = append(followers, i)
		}
	}
	return leader, followers, err
}

// recreate makes a follower's VM anew and measures until its member is a voter that serves, and until its apiserver is
// ready.
func (t trial) recreate(ctx context.Context, wipe bool) (voter, ready seconds, err error) {
	m, err := t.connect()
	if err != nil {
		return 0, 0, err
	}
	defer m.close()
	leader, followers, err := t.roles(ctx, m)
	if err != nil {
		return 0, 0, err
	}
	if wipe {
		return t.replaceFollower(ctx, m, leader, followers[0])
	}
	vm := m.vms[followers[0]]
	if err := t.project.KillVM(ctx, vm.Name); err != nil {
		return 0, 0, err
	}
	if err := t.project.RecreateVM(ctx, vm.Name, localgce.Recreation{}); err != nil {
		return 0, 0, err
	}
	begin, err := t.began(ctx, vm.Name)
	if err != nil {
		return 0, 0, err
	}
	at, readyAt, err := t.awaitBack(ctx, m.vms[followers[0]], func(ctx context.Context) (time.Time, error) {
		return t.awaitServing(ctx, vm, m.vms[leader])
	})
	return seconds(at.Sub(begin).Seconds()), seconds(readyAt.Sub(begin).Seconds()), err
}

// replaceFollower gives a follower a new VM with an empty disk.
func (t trial) replaceFollower(ctx context.Context, m members, leader, i int) (voter, ready seconds, err error) {
	vm, other := m.vms[i], m.clients[leader]
	s, err := m.clients[i].Status(ctx, m.clients[i].Endpoints()[0])
	if err != nil {
		return 0, 0, err
	}
	former := s.Header.GetMemberId()
	if err := t.project.KillVM(ctx, vm.Name); err != nil {
		return 0, 0, err
	}
	before, err := t.replace(ctx, other, vm, former)
	if err != nil {
		return 0, 0, err
	}
	if err := t.project.RecreateVM(ctx, vm.Name, localgce.Recreation{Wipe: true}); err != nil {
		return 0, 0, err
	}
	begin, err := t.began(ctx, vm.Name)
	if err != nil {
		return 0, 0, err
	}
	begin = begin.Add(-before)
	at, readyAt, err := t.awaitBack(ctx, vm, func(ctx context.Context) (time.Time, error) {
		if err := t.promote(ctx, other, vm); err != nil {
			return time.Time{}, err
		}
		return awaitPromoted(ctx, other, t.peerURL(vm), former)
	})
	return seconds(at.Sub(begin).Seconds()), seconds(readyAt.Sub(begin).Seconds()), err
}

// awaitBack waits for the voter and for the apiserver at the same time: the one does not wait for the other's clock.
func (t trial) awaitBack(ctx context.Context, vm localgce.VMStatus, awaitVoter func(context.Context) (time.Time,
	error)) (voter, ready time.Time, err error) {
	ctx, cancel := context.WithTimeoutCause(ctx, backLimit, fmt.Errorf("not back within %s", backLimit))
	defer cancel()
	g, ctx := errgroup.WithContext(ctx)
	g.Go(func() (err error) {
		ready, err = awaitReady(ctx, vm.Address)
		return err
	})
	g.Go(func() (err error) {
		voter, err = awaitVoter(ctx)
		return err
	})
	err = g.Wait()
	return voter, ready, err
}

// backLimit bounds a repair: a copy of 8 GB takes a minute.
const backLimit = 10 * time.Minute

// awaitServing asks over a connection of its own: those from before the VM was lost are dead and nobody says so.
func (t trial) awaitServing(ctx context.Context, vm, other localgce.VMStatus) (time.Time, error) {
	conf, err := clientTLS(t.files(other))
	if err != nil {
		return time.Time{}, err
	}
	c, err := dialMember(vm, conf)
	if err != nil {
		return time.Time{}, err
	}
	defer c.Close()
	return awaitServing(ctx, c)
}

// began is when the agent of a VM that was just made anew was started.
func (t trial) began(ctx context.Context, name string) (time.Time, error) {
	for {
		for _, vm := range t.project.Status().VMs {
			switch {
			case vm.Name != name || vm.Agent.State == "":
			case vm.Agent.State != "starting":
				return time.Time{}, fmt.Errorf("the agent of %s is %s already: its start was missed", name,
					vm.Agent.State)
			default:
				return vm.Agent.Since, nil
			}
		}
		if err := sleep(ctx, time.Millisecond); err != nil {
			return time.Time{}, err
		}
	}
}

func (t trial) keptDisk(ctx context.Context, r *repair) (err error) {
	r.KeptVoter, r.KeptReady, err = t.recreate(ctx, false)
	return err
}

func (t trial) emptyDisk(ctx context.Context, r *repair) (err error) {
	r.EmptyVoter, r.EmptyReady, err = t.recreate(ctx, true)
	return err
}

// lose measures the stall while the VM that choose names goes, and starts it again.
func (t trial) lose(ctx context.Context, choose func(leader int, followers []int) int,
	how func(ctx context.Context, m members, i int) error) (seconds, error) {
	m, err := t.connect()
	if err != nil {
		return 0, err
	}
	defer m.close()
	leader, followers, err := t.roles(ctx, m)
	if err != nil {
		return 0, err
	}
	i := choose(leader, followers)
	took, err := stall(ctx, m, func(ctx context.Context) error { return how(ctx, m, i) })
	if err != nil {
		return took, err
	}
	return took, t.project.StartVM(ctx, m.vms[i].Name)
}

func firstFollower(_ int, followers []int) int { return followers[0] }
func theLeader(leader int, _ []int) int        { return leader }

func (t trial) kill(ctx context.Context, m members, i int) error {
	return t.project.KillVM(ctx, m.vms[i].Name)
}

func (t trial) followerLost(ctx context.Context, r *repair) (err error) {
	r.FollowerLost, err = t.lose(ctx, firstFollower, t.kill)
	return err
}

func (t trial) leaderLost(ctx context.Context, r *repair) (err error) {
	r.LeaderLost, err = t.lose(ctx, theLeader, t.kill)
	return err
}

func (t trial) leaderStopped(ctx context.Context, r *repair) (err error) {
	r.LeaderStopped, err = t.lose(ctx, theLeader, func(ctx context.Context, m members, i int) error {
		if err := t.handOver(ctx, m, i); err != nil {
			return err
		}
		return t.project.StopVM(ctx, m.vms[i].Name)
	})
	return err
}
