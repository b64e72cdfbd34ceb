package leaders

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

// ReleaseExited frees the lease of each component that has exited, so that nobody waits for it to run out,
// until ctx is done.
func (l *Leaders) ReleaseExited(ctx context.Context) {
	var releases sync.WaitGroup
	defer releases.Wait()
	released := map[string]time.Time{}
	begin := time.Now()
	for {
		changed := l.supervisor.Changed()
		for _, of := range controlplane.Leases(l.replica().Cluster) {
			exit, ok := l.supervisor.Exited(of.Component)
			if !ok || !exit.At.After(begin) || exit.At.Equal(released[of.Component]) {
				continue
			}
			released[of.Component] = exit.At
			releases.Go(func() { l.release(ctx, of, exit) })
		}
		select {
		case <-ctx.Done():
			return
		case <-changed:
		}
	}
}

// Stop is part of a planned stop: the components that elect themselves end, and their leases are freed.
func (l *Leaders) Stop(ctx context.Context) {
	var all sync.WaitGroup
	for _, of := range controlplane.Leases(l.replica().Cluster) {
		if _, ok := l.supervisor.StatusOf(of.Component); !ok {
			continue
		}
		all.Go(func() {
			begin := time.Now()
			if err := l.supervisor.Stop(ctx, of.Component); err != nil {
				l.log.Warn("stop component", "component", of.Component, "err", err.Error())
				return
			}
			if exit, ok := l.supervisor.Exited(of.Component); ok && exit.At.After(begin) {
				l.release(ctx, of, exit)
			}
		})
	}
	all.Wait()
}

// release frees the lease that a component's process left behind when it exited. It is tried again until the
// lease has run out by itself: what crashes together with the apiserver is released once that answers.
func (l *Leaders) release(ctx context.Context, of controlplane.Lease, exit supervisor.Exit) {
	leases, lasts := l.open(), l.replica().Cluster.ElectionTimes().LeaseDuration
	host, err := os.Hostname()
	if leases == nil || err != nil {
		return // no apiserver was ready yet
	}
	judge := func(s lease.Seen) (bool, string) {
		now, _ := l.supervisor.StatusOf(of.Component)
		return lease.MayRelease(lease.Ended{Host: host, HolderIsHost: of.HolderIsHost, HostShared: l.sharesHost(ctx),
			Launched: exit.Launched, Exited: exit.At,
			RunsAgain: now.PID != 0 || now.State == supervisor.Starting}, s)
	}
	retry := backoff.Backoff{First: firstReleaseRetry, Most: lastReleaseRetry}
	for {
		released, why, err := leases.release(ctx, of.Name, judge)
		switch {
		case released:
			l.log.Info("released lease", "lease", of.Name, "after", time.Since(exit.At).String())
			return
		case err == nil:
			l.log.Info("left the lease alone", "lease", of.Name, "reason", why)
			return
		}
		rest := retry.Next()
		if time.Since(exit.At)+rest > lasts || backoff.Sleep(ctx, rest) != nil {
			l.log.Warn("release lease", "lease", of.Name, "err", err.Error())
			return
		}
	}
}

// sharesHost says that another replica of the cluster may have this machine's host name: its VM has the same name in
// another zone. Where nobody can tell, it may.
func (l *Leaders) sharesHost(ctx context.Context) bool {
	namesake, err := l.namesake(ctx)
	return err != nil || namesake != ""
}

// namesake is another member whose VM has this VM's name; empty: there is none.
func (l *Leaders) namesake(ctx context.Context) (string, error) {
	me := l.replica()
	s, err := me.Members(ctx)
	if err != nil {
		return "", err
	}
	for _, other := range s.Members {
		place, _, ok := table.ParseMemberName(other.Name)
		if ok && place != me.Self.Place && strings.EqualFold(place.Name, me.Self.Place.Name) {
			return place.String(), nil
		}
	}
	return "", nil
}

// Clash says why a component may not run here: it takes whoever has this host name for itself, and another replica
// may have it.
func (l *Leaders) Clash(ctx context.Context, component string) error {
	for _, of := range controlplane.Leases(l.replica().Cluster) {
		if of.Component != component || !of.HolderIsHost {
			continue
		}
		if other, err := l.namesake(ctx); err == nil && other != "" {
			return fmt.Errorf("%s takes every process with its host name for itself, and the VM of %s has the same "+
				"name: give one of them another", component, other)
		}
	}
	return nil
}
