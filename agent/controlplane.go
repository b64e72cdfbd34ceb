package agent

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/quorate/quorate/certs"
	"github.com/quorate/quorate/controlplane"
	"github.com/quorate/quorate/etcdmember/member"
	"github.com/quorate/quorate/etcdmember/table"
	"github.com/quorate/quorate/internal/backoff"
	"github.com/quorate/quorate/internal/replica"
	"github.com/quorate/quorate/supervisor"
)

// keepControlPlane runs the control plane until the returned function is called. Nothing of it ends the agent: what
// cannot be done is a wait.
func (a *Agent) keepControlPlane(ctx context.Context, in joined) (stop func()) {
	home := make(chan struct{})
	c := a.newComponents(in, a.otherEtcd(ctx, in), home)
	c.elected, c.clash = &a.elected, a.hostClash
	duties := []func(context.Context){c.keep, a.releaseExited, a.keepLeaders}
	for _, duty := range []func(context.Context, joined){a.keepAccess, a.standForElection, a.keepAddons} {
		duties = append(duties, func(ctx context.Context) { duty(ctx, in) })
	}
	duties = append(duties, func(ctx context.Context) { a.backend.Run(ctx, a.wantedGroup, a.apiServerReady) })
	if len(c.others) > 0 {
		duties = append(duties, func(ctx context.Context) { comeHome(ctx, in, home) })
	}
	return background(ctx, duties...)
}

func (a *Agent) newComponents(in joined, others []string, home <-chan struct{}) *components {
	return &components{
		log: a.cfg.Log, logDir: a.cfg.LogDir, supervisor: a.supervisor, programs: &a.programs, waits: a.waits,
		input:            func() controlplane.Input { return a.componentsInput(in.identified) },
		decideEncryption: func() ([]byte, error) { return a.decideEncryption(in.cluster) },
		giveDirs:         a.giveDirs, reader: a.accounts.OwnerOf(replica.APIServer),
		others: others, wanted: a.fitWanted, home: home,
		started: map[string]started{}, down: map[string]down{}, retry: backoff.Backoff{First: firstFitRetry,
			Most: lastFitRetry},
	}
}

// awaitAPIServer waits until the apiserver is ready for the first time. The others come after it by themselves.
func (a *Agent) awaitAPIServer(ctx context.Context, in joined) (joined, error) {
	for {
		changed := a.supervisor.Changed()
		if s, ok := a.supervisor.StatusOf(replica.APIServer); ok && s.State == supervisor.Ready {
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
func (a *Agent) apiServerReady() (ready bool, changed <-chan struct{}) {
	changed = a.supervisor.Changed()
	s, ok := a.supervisor.StatusOf(replica.APIServer)
	return ok && s.State == supervisor.Ready, changed
}

// componentsInput says how the control plane has to run, as far as the disk and the configuration say it.
func (a *Agent) componentsInput(in identified) controlplane.Input {
	return controlplane.Input{
		Identity: in.self, Cluster: in.cluster, Files: a.files, Signing: a.canSign(), LogDir: a.auditDir(),
		RunDir: a.cfg.RunDir, Self: a.cfg.Self, Accounts: a.accounts.For(in.cluster),
	}
}

// auditDir is where the apiserver writes its audit log, and turns it over.
func (a *Agent) auditDir() string { return filepath.Join(a.cfg.AuditDir, "audit") }

// giveDirs makes the folders in which components write.
func (a *Agent) giveDirs() error { return errors.Join(a.giveAuditDir(), a.giveAddonsDir()) }

// giveAuditDir makes the folder of the audit log, the apiserver's own.
func (a *Agent) giveAuditDir() error {
	if err := a.accounts.OpenFolders(a.cfg.AuditDir); err != nil {
		return err
	}
	if err := os.MkdirAll(a.auditDir(), 0o700); err != nil {
		return fmt.Errorf("make the folder of the audit log: %w", err)
	}
	return a.accounts.Give(replica.APIServer, a.auditDir())
}

// giveAddonsDir makes the folder in which the add-on manager answers, its own.
func (a *Agent) giveAddonsDir() error {
	dir := filepath.Dir(controlplane.AddonsSocket(a.cfg.RunDir))
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return fmt.Errorf("make the add-on manager's folder: %w", err)
	}
	return a.accounts.Give(replica.AddonManager, dir)
}

// canSign reports whether the authority's key is at hand for the controller-manager.
func (a *Agent) canSign() bool {
	_, err := os.Stat(a.files.CASignerKey(certs.Kubernetes))
	return err == nil
}

// wantFit has the components compared with what they have to be, if they run.
func (a *Agent) wantFit() {
	select {
	case a.fitWanted <- struct{}{}:
	default: // one is wanted already
	}
}

// otherEtcd names other replicas' members for an apiserver whose own member cannot serve it alone: a learner refuses
// what is not its own, and a member whose client port is late would make the boot wait. A voter's apiserver uses its
// own member alone, because a member that dies silently stalls every request that went to it.
func (a *Agent) otherEtcd(ctx context.Context, in joined) (urls []string) {
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
