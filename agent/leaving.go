package agent

import (
	"context"
	"sync"

	"github.com/quorate/quorate/etcdmember"
	"github.com/quorate/quorate/etcdmember/member"
	"github.com/quorate/quorate/etcdmember/table"
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
	a.leaders.Stop(ctx)
}

// handOver moves etcd's leadership to another voter, where there is a member here and it has it.
func (a *Agent) handOver(ctx context.Context) {
	m := a.startedMember()
	if m == nil {
		return
	}
	if err := member.HandOver(ctx, m.StatusSocket()); err != nil && ctx.Err() == nil {
		a.cfg.Log.Info("leadership stays here", "reason", err.Error())
	}
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
	m := a.opened()
	if _, ok := a.supervisor.StatusOf(etcdName); !ok {
		return nil
	}
	return m
}

// memberStatus is how the own member sees itself and the others; nothing before there is one.
func (a *Agent) memberStatus(ctx context.Context) (table.MemberStatus, error) {
	m := a.opened()
	if m == nil {
		return table.MemberStatus{}, nil
	}
	return m.Status(ctx)
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
