package agent

import (
	"context"
	"log/slog"
	"sync"

	"github.com/quorate/quorate/agent/leaders"
	"github.com/quorate/quorate/etcdmember"
	"github.com/quorate/quorate/etcdmember/member"
	"github.com/quorate/quorate/internal/replica"
	"github.com/quorate/quorate/supervisor"
)

// leaving is how a replica stops: what it hands over, and what it stops in which order.
type leaving struct {
	log        *slog.Logger
	supervisor *supervisor.Supervisor
	leaders    *leaders.Leaders
	found      *found
}

// leave is the first part of a planned stop: etcd's leadership goes to another voter, and leases are freed while there
// is an apiserver to do it through. What fails here only makes the others wait longer.
func (l *leaving) leave(ctx context.Context) {
	if l.startedMember() == nil {
		return
	}
	l.handOver(ctx)
	ctx, cancel := context.WithTimeout(ctx, releaseTimeout)
	defer cancel()
	l.leaders.Stop(ctx)
}

// handOver moves etcd's leadership to another voter, where there is a member here and it has it.
func (l *leaving) handOver(ctx context.Context) {
	m := l.startedMember()
	if m == nil {
		return
	}
	if err := member.HandOver(ctx, m.StatusSocket()); err != nil && ctx.Err() == nil {
		l.log.Info("leadership stays here", "reason", err.Error())
	}
}

// unable: the member has ended, or knows of no leader. Nothing can be handed over or written, and the apiserver
// answers nobody, but that of a learner whose etcd crashes: it uses other members, and is stopped as soon.
func (l *leaving) unable(ctx context.Context) bool {
	m := l.startedMember()
	if m == nil {
		return false
	}
	if exit, ended := l.supervisor.Exited(etcdName); ended && !exit.Asked && !etcdRuns(l.supervisor) {
		return true // one that is being started for the first time is on its way
	}
	s, err := m.Status(ctx)
	return err == nil && s.MemberID != 0 && s.Leader == 0
}

// startedMember is the membership once its member was started; nil before that.
func (l *leaving) startedMember() *etcdmember.Membership {
	m := l.found.opened()
	if _, ok := l.supervisor.StatusOf(etcdName); !ok {
		return nil
	}
	return m
}

// giveUp stops a member that the cluster has removed, that has no quorum or does not run, and what uses it, all at the
// same time: there is nothing to hand over, no apiserver here to free leases through, and an etcd that a frozen disk
// blocks must not hold up the end of the others.
func (l *leaving) giveUp(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, giveUpTimeout)
	defer cancel()
	var all sync.WaitGroup
	for _, s := range l.supervisor.Status() {
		limit := orphanTimeout
		if s.Name == etcdName {
			limit = etcdStopTimeout
		}
		all.Go(func() {
			if err := l.supervisor.StopWithin(ctx, s.Name, limit); err != nil {
				l.log.Warn("stop component", "component", s.Name, "err", err.Error())
			}
		})
	}
	all.Wait()
}

// stopControlPlane stops everything but etcd, the apiserver last.
func (l *leaving) stopControlPlane(ctx context.Context) {
	stop := func(name string) {
		if err := l.supervisor.Stop(ctx, name); err != nil && ctx.Err() == nil {
			l.log.Warn("stop component", "component", name, "err", err.Error())
		}
	}
	serves := false
	for _, s := range l.supervisor.Status() {
		switch s.Name {
		case etcdName:
		case replica.APIServer:
			serves = true
		default:
			stop(s.Name)
		}
	}
	if serves {
		stop(replica.APIServer)
	}
}
