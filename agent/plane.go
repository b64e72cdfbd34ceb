package agent

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"sync"
	"time"

	"github.com/quorate/quorate/certs"
	"github.com/quorate/quorate/controlplane"
	"github.com/quorate/quorate/etcdmember"
	"github.com/quorate/quorate/internal/durable"
	"github.com/quorate/quorate/internal/replica"
	"github.com/quorate/quorate/supervisor"
)

// running is a replica whose control plane runs.
type running struct {
	joined
	// apart says that the apiserver also uses another replica's member, because its own was not a voter at the start.
	apart bool
}

// plane is what the control plane was started with last.
type plane struct {
	mu        sync.Mutex // held while it is changed
	specs     map[string]supervisor.Spec
	otherEtcd []string
	// encryption is the apiserver's EncryptionConfiguration, which holds keys; nil until it is decided.
	encryption []byte
}

// startPlane starts the components and waits until the apiserver is ready. The others come after it by themselves.
func (a *Agent) startPlane(ctx context.Context, in joined) (running, error) {
	out := running{joined: in}
	if err := a.binaries(); err != nil {
		return out, err
	}
	others := a.otherEtcd(ctx, in)
	out.apart = len(others) > 0
	a.plane.mu.Lock()
	a.plane.otherEtcd = others
	a.plane.mu.Unlock()
	if err := a.fitPlane(ctx, in); err != nil {
		return out, err
	}
	if err := a.supervisor.WaitReady(ctx, replica.APIServer); err != nil {
		return out, fmt.Errorf("wait for the apiserver: %w", err)
	}
	return out, a.openLeases(ctx, in)
}

// fitPlane brings the components in line with what the replica is now: which members its apiserver uses, and whether its
// controller-manager may sign. What runs as it should already is left alone.
func (a *Agent) fitPlane(ctx context.Context, in joined) error {
	a.plane.mu.Lock()
	defer a.plane.mu.Unlock()
	if err := a.decideEncryption(in.cluster); err != nil {
		return err
	}
	specs, files, err := controlplane.Components(controlplane.Input{
		Identity: in.self, Cluster: in.cluster, Files: a.files, OtherEtcd: a.plane.otherEtcd, Encryption: a.plane.encryption,
		Signing: a.canSign(), LogDir: a.cfg.LogDir, RunDir: a.cfg.RunDir,
	})
	if err != nil {
		return err
	}
	for _, f := range files {
		if err := durable.WriteFile(f.Path, f.Data, 0o600); err != nil {
			return err
		}
	}
	for i, spec := range specs {
		if i == 0 {
			spec.After = append(slices.Clone(spec.After), etcdName)
		}
		if err := a.startComponent(ctx, spec); err != nil {
			return err
		}
	}
	return nil
}

// planeBegun reports whether the components were started in this life of the agent.
func (a *Agent) planeBegun() bool {
	a.plane.mu.Lock()
	defer a.plane.mu.Unlock()
	return a.plane.specs != nil
}

// startComponent starts a component, in place of the one that runs otherwise than it should. plane.mu is held.
func (a *Agent) startComponent(ctx context.Context, spec supervisor.Spec) error {
	if before, ok := a.plane.specs[spec.Name]; ok {
		if sameProcess(before, spec) {
			return nil
		}
		if err := a.supervisor.Stop(ctx, spec.Name); err != nil {
			return err
		}
		delete(a.plane.specs, spec.Name)
	}
	if err := a.supervisor.Start(spec); err != nil {
		return err
	}
	if a.plane.specs == nil {
		a.plane.specs = map[string]supervisor.Spec{}
	}
	a.plane.specs[spec.Name] = spec
	return nil
}

// sameProcess: the same program is run in the same way. Probes follow from the rest.
func sameProcess(a, b supervisor.Spec) bool {
	return a.Path == b.Path && slices.Equal(a.Args, b.Args) && slices.Equal(a.Env, b.Env) && slices.Equal(a.After, b.After)
}

// otherEtcd names other replicas' members for an apiserver whose own member cannot serve it alone: a learner refuses
// what is not its own, and a member whose client port is late would make the boot wait. A voter's apiserver uses its own
// member alone, because a member that dies silently stalls every request that went to it.
func (a *Agent) otherEtcd(ctx context.Context, in joined) (urls []string) {
	s, err := in.membership.Status(ctx)
	if err == nil && !s.Learner && s.Ready {
		return nil
	}
	for _, m := range s.Members {
		place, _, ok := etcdmember.ParseMemberName(m.Name)
		if !ok || m.Learner || m.ID == s.MemberID {
			continue
		}
		url := etcdmember.ClientURL(place.DNSName(in.cluster.Name))
		if m.ID == s.Leader {
			urls = slices.Insert(urls, 0, url)
		} else {
			urls = append(urls, url)
		}
	}
	return urls
}

// canSign reports whether the authority's key is at hand for the controller-manager.
func (a *Agent) canSign() bool {
	_, err := os.Stat(a.files.CASignerKey(certs.Kubernetes))
	return err == nil
}

// openLeases grants the agent its role in the cluster and opens the leases. Only the grant needs the bundle; without it the role
// of an earlier start holds.
func (a *Agent) openLeases(ctx context.Context, in joined) error {
	port := in.cluster.Endpoint.Port
	if in.bundle != nil {
		cert, err := certs.BootstrapClient(in.bundle, time.Now())
		if err != nil {
			return err
		}
		if err := grantAgent(ctx, a.files, port, cert); err != nil {
			a.cfg.Log.Warn("grant the agent its role", "err", err.Error())
		}
	}
	l, err := newLeases(a.files, port)
	if err != nil {
		return err
	}
	a.mu.Lock()
	a.leases = l
	a.mu.Unlock()
	return nil
}

// stopPlane stops all that uses etcd on this replica: the components that elect, whose leases are released once they have
// certainly exited, then the others and the apiserver last.
func (a *Agent) stopPlane(ctx context.Context) error {
	a.releaseLeases(ctx)
	var errs []error
	status := a.supervisor.Status()
	for _, s := range slices.Backward(status) {
		if s.Name != etcdName {
			errs = append(errs, a.supervisor.Stop(ctx, s.Name))
		}
	}
	return errors.Join(errs...)
}

// releaseLeases stops the components that elect themselves and frees the leases that they left behind.
func (a *Agent) releaseLeases(ctx context.Context) {
	a.mu.Lock()
	cluster, leases := a.cluster, a.leases
	a.mu.Unlock()
	if cluster == nil || leases == nil {
		return
	}
	for _, l := range controlplane.Leases(cluster) {
		if _, ok := find(a.supervisor, l.Component); !ok {
			continue
		}
		if err := a.supervisor.Stop(ctx, l.Component); err != nil {
			a.cfg.Log.Warn("stop component", "component", l.Component, "err", err.Error())
			continue
		}
		a.releaseLease(ctx, leases, l.Name, time.Now())
	}
}

// releaseLease frees a lease whose process on this machine had exited at a time, so that nobody waits for it to run out. What fails here
// only makes the others wait.
func (a *Agent) releaseLease(ctx context.Context, leases *leases, name string, exited time.Time) {
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

// The limits of a planned stop. GCE cuts the power about 90 s after it asked.
const (
	handOverTimeout = 2 * time.Second
	releaseTimeout  = 10 * time.Second
)

// leave is the first part of a planned stop: etcd's leadership goes to another voter, and leases are freed while there is an
// apiserver to do it through. What fails here only makes the others wait longer.
func (a *Agent) leave(ctx context.Context) {
	a.mu.Lock()
	m := a.membership
	a.mu.Unlock()
	if _, ok := find(a.supervisor, etcdName); m == nil || !ok {
		return // nothing was ever started
	}
	handOver, cancel := context.WithTimeout(ctx, handOverTimeout)
	defer cancel()
	if err := etcdmember.HandOver(handOver, m.StatusSocket()); err != nil {
		a.cfg.Log.Info("leadership stays here", "reason", err.Error())
	}
	release, cancelRelease := context.WithTimeout(ctx, releaseTimeout)
	defer cancelRelease()
	a.releaseLeases(release)
}

// orphanTimeout is how long an apiserver may take to stop whose member was removed or has no quorum: it can answer nobody any more, and waits in vain for etcd
// until its own limit of 35 s. Within this much load balancers see that it is not ready.
const orphanTimeout = 6 * time.Second

// leaderless: the member runs and knows of no leader. Nothing can be handed over or written, and the apiserver answers nobody.
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

// giveUpPlane stops what uses a member that the cluster has removed, or that has no quorum. There is nothing to hand over, and no apiserver
// here to free leases through.
func (a *Agent) giveUpPlane(ctx context.Context) {
	if err := a.supervisor.Stop(ctx, etcdName); err != nil {
		a.cfg.Log.Warn("stop component", "component", etcdName, "err", err.Error())
	}
	var all sync.WaitGroup
	for _, s := range a.supervisor.Status() {
		if s.Name == etcdName {
			continue
		}
		all.Go(func() {
			if err := a.supervisor.StopWithin(ctx, s.Name, orphanTimeout); err != nil {
				a.cfg.Log.Warn("stop component", "component", s.Name, "err", err.Error())
			}
		})
	}
	all.Wait()
}
