package agent

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/quorate/quorate/agent/accounts"
	"github.com/quorate/quorate/agent/leaders"
	"github.com/quorate/quorate/certs"
	"github.com/quorate/quorate/controlplane"
	"github.com/quorate/quorate/etcdmember/member"
	"github.com/quorate/quorate/etcdmember/table"
	"github.com/quorate/quorate/internal/backoff"
	"github.com/quorate/quorate/internal/replica"
	"github.com/quorate/quorate/supervisor"
)

// keepControlPlane runs the control plane until the returned function is called. Nothing of it ends the agent, what
// cannot be done is a wait; but for a replica that is called back after it was ordered to leave.
func (a *Agent) keepControlPlane(ctx context.Context, in joined, end context.CancelCauseFunc) (stop func()) {
	home, retires, retired := make(chan struct{}), make(chan struct{}), make(chan struct{})
	c := a.newComponents(in, otherEtcd(ctx, in), home)
	c.elected, c.clash, c.aside, c.retires = a.candidate, a.leaders.Clash, a.standAside, retires
	duties := []func(context.Context){func(ctx context.Context) { defer close(retired); c.keep(ctx) },
		a.leaders.ReleaseExited, a.leaders.Keep}
	for _, duty := range []func(context.Context, joined){a.keepAccess, a.standForElection, a.keepAddons} {
		duties = append(duties, func(ctx context.Context) { duty(ctx, in) })
	}
	duties = append(duties, func(ctx context.Context) {
		a.backend.Run(ctx, a.document.backends, func() (bool, <-chan struct{}) { return apiServerReady(a.supervisor) })
	})
	retire := func() { close(retires); <-retired }
	duties = append(duties, func(ctx context.Context) { a.goOutOfService(ctx, in.membership, retire, end) })
	if len(c.others) > 0 {
		duties = append(duties, func(ctx context.Context) { comeHome(ctx, in, home) })
	}
	return background(ctx, duties...)
}

func (a *Agent) newComponents(in joined, others []string, home <-chan struct{}) *components {
	return &components{
		log: a.cfg.Log, logDir: a.cfg.LogDir, supervisor: a.supervisor, programs: a.programs, waits: a.waits,
		input:            func() controlplane.Input { return a.componentsInput(in.identified) },
		decideEncryption: func() ([]byte, error) { return a.encryption.decide(in.files, *in.cluster.EncryptionAtRest) },
		giveDirs:         a.giveDirs, reader: a.accounts.OwnerOf(replica.APIServer),
		others: others, wanted: a.fitWanted, home: home,
		started: map[string]started{}, down: map[string]down{}, retry: backoff.Backoff{First: firstFitRetry,
			Most: lastFitRetry},
	}
}

// awaitAPIServer waits until the apiserver is ready for the first time. The others come after it by themselves.
func (a *Agent) awaitAPIServer(ctx context.Context, in joined) (joined, error) {
	for {
		ready, changed := apiServerReady(a.supervisor)
		if ready {
			return in, nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return in, errors.New("the apiserver was not ready yet")
		}
	}
}

// apiServerReady says whether the own apiserver is ready, and what closes when that may have changed.
func apiServerReady(children *supervisor.Supervisor) (ready bool, changed <-chan struct{}) {
	changed = children.Changed()
	s, ok := children.StatusOf(replica.APIServer)
	return ok && s.State == supervisor.Ready, changed
}

// access is how the agent reaches its apiserver.
func (a *Agent) access(in joined) clusterAccess {
	return clusterAccess{log: a.cfg.Log, waits: a.waits, files: in.files, port: in.cluster.Endpoint.Port,
		administrator: func(ctx context.Context) (tls.Certificate, error) {
			return a.certificates.Administrator(ctx, in.issued)
		}}
}

// keepAccess sees to what the agent may do in the cluster, once the apiserver is ready.
func (a *Agent) keepAccess(ctx context.Context, in joined) {
	if _, err := a.awaitAPIServer(ctx, in); err == nil { // else the replica stops
		a.access(in).keep(ctx, a.leaders)
	}
}

// keepAddons sees to the add-on manager, where the document has add-ons.
func (a *Agent) keepAddons(ctx context.Context, in joined) {
	folder := controlplane.AddonsFolder(in.cluster, a.cfg.RunDir)
	if folder == "" {
		return
	}
	if _, err := a.awaitAPIServer(ctx, in); err == nil { // else the replica stops
		a.addons.keep(ctx, a.access(in), folder, controlplane.AddonsSocket(a.cfg.RunDir))
	}
}

// standForElection takes part in the agents' election once the agent may use leases. Its holder has what runs under the
// Lease started, and does what one replica at a time does.
func (a *Agent) standForElection(ctx context.Context, in joined) {
	select {
	case <-ctx.Done():
		return
	case <-a.leaders.Opened():
	}
	me := leaders.Replica{Self: in.self, Cluster: in.cluster, Members: in.membership.Status}
	a.candidate.Stand(ctx, me, localAPI(in.files, in.cluster.Endpoint.Port), a.fitWanted.give,
		func(ctx context.Context) { a.access(in).doDuties(ctx, in.membership.Departed) })
}

// standAside takes this VM out of the load balancer before its apiserver is started in place, and returns once no new
// connection comes. Nobody waits for the power to be cut, so it is given the time that Google takes.
func (a *Agent) standAside(ctx context.Context) (back func()) {
	a.backend.Leave(ctx, a.document.group(), asideTimeout)(detachSettles)
	return a.backend.Return
}

// componentsInput says how the control plane has to run, as far as the disk and the configuration say it.
func (a *Agent) componentsInput(in identified) controlplane.Input {
	return controlplane.Input{
		Identity: in.self, Cluster: in.cluster, Files: in.files, Signing: canSign(in.files),
		LogDir: auditDir(a.cfg.AuditDir), RunDir: a.cfg.RunDir, Self: a.cfg.Self, Accounts: a.accounts.For(in.cluster),
	}
}

// auditDir is where the apiserver writes its audit log, and turns it over.
func auditDir(parent string) string { return filepath.Join(parent, "audit") }

// giveDirs makes the folders in which components write.
func (a *Agent) giveDirs() error {
	return errors.Join(giveAuditDir(a.accounts, a.cfg.AuditDir), giveAddonsDir(a.accounts, a.cfg.RunDir))
}

// giveAuditDir makes the folder of the audit log, the apiserver's own.
func giveAuditDir(to *accounts.Accounts, parent string) error {
	if err := to.OpenFolders(parent); err != nil {
		return err
	}
	dir := auditDir(parent)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return fmt.Errorf("make the folder of the audit log: %w", err)
	}
	return to.Give(replica.APIServer, dir)
}

// giveAddonsDir makes the folder in which the add-on manager answers, its own.
func giveAddonsDir(to *accounts.Accounts, runDir string) error {
	dir := filepath.Dir(controlplane.AddonsSocket(runDir))
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return fmt.Errorf("make the add-on manager's folder: %w", err)
	}
	return to.Give(replica.AddonManager, dir)
}

// canSign reports whether the authority's key is at hand for the controller-manager.
func canSign(files certs.Files) bool {
	_, err := os.Stat(files.CASignerKey(certs.Kubernetes))
	return err == nil
}

// otherEtcd names other replicas' members for an apiserver whose own member cannot serve it alone: a learner refuses
// what is not its own, and a member whose client port is late would make the boot wait. A voter's apiserver uses its
// own member alone, because a member that dies silently stalls every request that went to it.
func otherEtcd(ctx context.Context, in joined) (urls []string) {
	s, err := in.membership.Status(ctx)
	if err == nil && !s.Learner && s.Ready {
		return nil
	}
	for _, m := range s.Members {
		place, _, ok := table.ParseMemberName(m.Name)
		if !ok || m.Learner || m.ID == s.MemberID {
			continue
		}
		url := member.ClientURL(place.DNSName(in.cluster.Name))
		if m.ID == s.Leader {
			urls = slices.Insert(urls, 0, url)
		} else {
			urls = append(urls, url)
		}
	}
	return urls
}

// comeHome says so once the own member is a voter: another's silent death would stall an apiserver that uses it.
func comeHome(ctx context.Context, in joined, home chan<- struct{}) {
	for !in.membership.WaitVoter(ctx, time.Minute) {
		if ctx.Err() != nil {
			return
		}
	}
	close(home)
}
