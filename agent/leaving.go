package agent

import (
	"context"
	"sync"

	"github.com/quorate/quorate/etcdmember"
)

// leave is the first part of a planned stop: etcd's leadership goes to another voter, and leases are freed while there
// is an apiserver to do it through. What fails here only makes the others wait longer.
func (a *Agent) leave(ctx context.Context) {
	if a.startedMember() == nil {
		return
	}
	a.handOver(ctx)
	ctx, cancel := context.WithTimeout(ctx, releaseTimeout)
	defer cancel()
	a.stopElecting(ctx)
}

// leaderless: the member runs and knows of no leader. Nothing can be handed over or written, and the apiserver answers
// nobody.
func (a *Agent) leaderless(ctx context.Context) bool {
	m := a.startedMember()
	if m == nil {
		return false
	}
	s, err := m.Status(ctx)
	return err == nil && s.MemberID != 0 && s.Leader == 0
}

// startedMember is the membership once its member was started; nil before that.
func (a *Agent) startedMember() *etcdmember.Membership {
	a.mu.Lock()
	m := a.membership
	a.mu.Unlock()
	if _, ok := a.supervisor.StatusOf(etcdName); !ok {
		return nil
	}
	return m
}

// giveUp stops a member that the cluster has removed, or that has no quorum, and what uses it, all at the same time:
// there is nothing to hand over, no apiserver here to free leases through, and an etcd that a frozen disk blocks must
// not hold up the end of the others.
func (a *Agent) giveUp(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, giveUpTimeout)
	defer cancel()
	var all sync.WaitGroup
	for _, s := range a.supervisor.Status() {
		limit := orphanTimeout
		if s.Name == etcdName {
			limit = etcdStopTimeout
		}
		all.Go(func() {
			if err := a.supervisor.StopWithin(ctx, s.Name, limit); err != nil {
				a.cfg.Log.Warn("stop component", "component", s.Name, "err", err.Error())
			}
		})
	}
	all.Wait()
}
