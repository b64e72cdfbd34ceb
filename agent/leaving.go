package agent

import (
	"context"
	"os"
	"sync"
	"time"

	"github.com/quorate/quorate/controlplane"
	"github.com/quorate/quorate/etcdmember/member"
)

// leave is the first part of a planned stop: etcd's leadership goes to another voter, and leases are freed while there
// is an apiserver to do it through. What fails here only makes the others wait longer.
func (a *Agent) leave(ctx context.Context) {
	a.mu.Lock()
	m := a.membership
	a.mu.Unlock()
	if _, ok := find(a.supervisor, etcdName); m == nil || !ok {
		return // nothing was ever started
	}
	if err := member.HandOver(ctx, m.StatusSocket()); err != nil {
		a.cfg.Log.Info("leadership stays here", "reason", err.Error())
	}
	ctx, cancel := context.WithTimeout(ctx, releaseTimeout)
	defer cancel()
	a.releaseLeases(ctx)
}

// releaseLeases stops the components that elect themselves and frees the leases that they left behind.
func (a *Agent) releaseLeases(ctx context.Context) {
	a.mu.Lock()
	cluster := a.cluster
	a.mu.Unlock()
	for _, l := range controlplane.Leases(cluster) {
		if _, ok := find(a.supervisor, l.Component); !ok {
			continue
		}
		if err := a.supervisor.Stop(ctx, l.Component); err != nil {
			a.cfg.Log.Warn("stop component", "component", l.Component, "err", err.Error())
			continue
		}
		a.releaseLease(ctx, l.Name, time.Now())
	}
}

// releaseLease frees a lease whose process on this machine had exited at a time, so that nobody waits for it to run
// out. What fails here only makes the others wait.
func (a *Agent) releaseLease(ctx context.Context, name string, exited time.Time) {
	a.mu.Lock()
	leases := a.leases
	a.mu.Unlock()
	if leases == nil {
		return // no apiserver was ready yet
	}
	host, err := os.Hostname()
	released := false
	if err == nil {
		released, err = leases.release(ctx, name, host, exited)
	}
	switch {
	case err != nil:
		a.cfg.Log.Warn("release lease", "lease", name, "err", err.Error())
	case released:
		a.cfg.Log.Info("released lease", "lease", name)
	}
}

// leaderless: the member runs and knows of no leader. Nothing can be handed over or written, and the apiserver answers
// nobody.
func (a *Agent) leaderless(ctx context.Context) bool {
	a.mu.Lock()
	m := a.membership
	a.mu.Unlock()
	if _, ok := find(a.supervisor, etcdName); m == nil || !ok {
		return false
	}
	s, err := m.Status(ctx)
	return err == nil && s.MemberID != 0 && s.Leader == 0
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
