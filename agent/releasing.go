package agent

import (
	"context"
	"fmt"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/quorate/quorate/agent/lease"
	"github.com/quorate/quorate/controlplane"
	"github.com/quorate/quorate/etcdmember/table"
	"github.com/quorate/quorate/internal/backoff"
	"github.com/quorate/quorate/supervisor"
)

// releaseExited frees the lease of each component that has exited, so that nobody waits for it to run out.
func (a *Agent) releaseExited(ctx context.Context) {
	var releases sync.WaitGroup
	defer releases.Wait()
	released := map[string]time.Time{}
	begin := time.Now()
	for {
		changed := a.supervisor.Changed()
		for _, l := range controlplane.Leases(a.cluster) {
			exit, ok := a.supervisor.Exited(l.Component)
			if !ok || !exit.At.After(begin) || exit.At.Equal(released[l.Component]) {
				continue
			}
			released[l.Component] = exit.At
			releases.Go(func() { a.releaseLease(ctx, l, exit) })
		}
		select {
		case <-ctx.Done():
			return
		case <-changed:
		}
	}
}

// stopElecting is part of a planned stop: the components that elect themselves end, and their leases are freed.
func (a *Agent) stopElecting(ctx context.Context) {
	a.mu.Lock()
	cluster := a.cluster
	a.mu.Unlock()
	var all sync.WaitGroup
	for _, l := range controlplane.Leases(cluster) {
		if _, ok := a.supervisor.StatusOf(l.Component); !ok {
			continue
		}
		all.Go(func() {
			begin := time.Now()
			if err := a.supervisor.Stop(ctx, l.Component); err != nil {
				a.cfg.Log.Warn("stop component", "component", l.Component, "err", err.Error())
				return
			}
			if exit, ok := a.supervisor.Exited(l.Component); ok && exit.At.After(begin) {
				a.releaseLease(ctx, l, exit)
			}
		})
	}
	all.Wait()
}

// releaseLease frees the lease that a component's process left behind when it exited. It is tried again until the
// lease has run out by itself: what crashes together with the apiserver is released once that answers.
func (a *Agent) releaseLease(ctx context.Context, l controlplane.Lease, exit supervisor.Exit) {
	a.mu.Lock()
	leases, lasts := a.leases, a.cluster.ElectionTimes().LeaseDuration
	a.mu.Unlock()
	host, err := os.Hostname()
	if leases == nil || err != nil {
		return // no apiserver was ready yet
	}
	judge := func(s lease.Seen) (bool, string) {
		now, _ := a.supervisor.StatusOf(l.Component)
		return lease.MayRelease(lease.Ended{Host: host, HolderIsHost: l.HolderIsHost, HostShared: a.sharesHost(ctx),
			Launched: exit.Launched, Exited: exit.At,
			RunsAgain: now.PID != 0 || now.State == supervisor.Starting}, s)
	}
	retry := backoff.Backoff{First: firstReleaseRetry, Most: lastReleaseRetry}
	for {
		released, why, err := leases.release(ctx, l.Name, judge)
		switch {
		case released:
			a.cfg.Log.Info("released lease", "lease", l.Name, "after", time.Since(exit.At).String())
			return
		case err == nil:
			a.cfg.Log.Info("left the lease alone", "lease", l.Name, "reason", why)
			return
		}
		rest := retry.Next()
		if time.Since(exit.At)+rest > lasts || backoff.Sleep(ctx, rest) != nil {
			a.cfg.Log.Warn("release lease", "lease", l.Name, "err", err.Error())
			return
		}
	}
}

// sharesHost says that another replica of the cluster may have this machine's host name: its VM has the same name in
// another zone. Where nobody can tell, it may.
func (a *Agent) sharesHost(ctx context.Context) bool {
	namesake, err := a.namesake(ctx)
	return err != nil || namesake != ""
}

// namesake is another member whose VM has this VM's name; empty: there is none.
func (a *Agent) namesake(ctx context.Context) (string, error) {
	a.mu.Lock()
	m, self := a.membership, a.self
	a.mu.Unlock()
	if m == nil {
		return "", nil
	}
	s, err := m.Status(ctx)
	if err != nil {
		return "", err
	}
	for _, other := range s.Members {
		place, _, ok := table.ParseMemberName(other.Name)
		if ok && place != self.Place && strings.EqualFold(place.Name, self.Place.Name) {
			return place.String(), nil
		}
	}
	return "", nil
}

// hostClash says why a component may not run here: it takes whoever has this host name for itself, and another replica
// may have it.
func (a *Agent) hostClash(ctx context.Context, component string) error {
	for _, l := range controlplane.Leases(a.cluster) {
		if l.Component != component || !l.HolderIsHost {
			continue
		}
		if other, err := a.namesake(ctx); err == nil && other != "" {
			return fmt.Errorf("%s takes every process with its host name for itself, and the VM of %s has the same "+
				"name: give one of them another", component, other)
		}
	}
	return nil
}
