package agent

import (
	"context"
	"crypto/tls"
	"fmt"
	"os"
	"path/filepath"
	"time"

	core "k8s.io/client-go/kubernetes/typed/core/v1"

	"github.com/quorate/quorate/agent/certificates"
	"github.com/quorate/quorate/agent/leaders"
	"github.com/quorate/quorate/certs"
	"github.com/quorate/quorate/etcdmember"
	"github.com/quorate/quorate/internal/replica"
)

// identified is what the identity phase finds out.
type identified struct {
	self    replica.Identity
	cluster *replica.Cluster
	cloud   Cloud
	files   certs.Files
	// identity is what is remembered of it for the rest of this boot.
	identity identity
}

func (a *Agent) memory() memory { return memory{a.cfg.Log, a.cfg.Metadata, a.cfg.RunDir} }

// identify asks the metadata server who this is and what it belongs to.
func (a *Agent) identify(ctx context.Context, _ nothing) (identified, error) {
	id, err := a.memory().ask(ctx)
	if err != nil {
		return identified{}, err
	}
	in, err := a.open(ctx, id)
	if err != nil {
		in, err = a.openFormer(ctx, id, err)
	}
	if err != nil {
		return identified{}, err
	}
	if err := a.memory().keep(in.identity); err != nil {
		a.cfg.Log.Warn("the next start of the agent needs the metadata server", "err", err.Error())
	}
	a.cfg.Log.Info("identified", "replica", id.Self.Place.String(), "instance", id.Self.InstanceID, "cluster",
		in.cluster.Name)
	return in, nil
}

// openFormer goes on with the document that an earlier agent of this boot used, where the one of now cannot be used: a
// mistake in it must not keep a voter from voting because its agent was started again. why is what is wrong with it.
func (a *Agent) openFormer(ctx context.Context, id identity, why error) (identified, error) {
	known, ok := remembered(a.cfg.RunDir)
	if !ok || !known.sameBoot(id) || known.Document == id.Document {
		return identified{}, why
	}
	in, err := a.open(ctx, known)
	if err != nil {
		return identified{}, why
	}
	a.waits.HoldFor(documentRefused, why, documentRefusedNext)
	return in, nil
}

// open reads the configuration and opens what lies outside the VM. It writes nothing.
func (a *Agent) open(ctx context.Context, id identity) (identified, error) {
	id.ImageDisk = a.cfg.ImageDisk
	cluster, err := a.document.load(id.Document)
	if err != nil {
		return identified{}, err
	}
	cloud, err := a.cfg.Open(ctx, id.Self, cluster)
	if err != nil {
		return identified{}, err
	}
	files := certs.Files{Dir: filepath.Join(cluster.Etcd.DataDir, "pki"), Volatile: filepath.Join(a.cfg.RunDir, "pki")}
	a.mu.Lock()
	a.self, a.cluster = id.Self, cluster
	a.mu.Unlock()
	a.document.open(cluster)
	a.reporter.Open(cloud.Reports)
	a.backend.Open(cloud.Balancer)
	a.disk.Open(cloud.DataDisk != nil, id.DiskID)
	a.leaders.Join(leaders.Replica{Self: id.Self, Cluster: cluster, Members: a.memberStatus})
	port := cluster.Endpoint.Port
	a.nodeEvents.Open(id.Self.Name,
		func() (core.EventsGetter, error) { return core.NewForConfig(localAPI(files, port)) })
	return identified{id.Self, cluster, cloud, files, id}, nil
}

// awaitDisk waits until the data disk can be used, and makes the data directory.
func (a *Agent) awaitDisk(ctx context.Context, in identified) (identified, error) {
	if name := in.cluster.Etcd.DataDisk; name != "" {
		if err := a.disk.AwaitMount(ctx, name, in.cluster.Etcd.DataDir); err != nil {
			return in, err
		}
	}
	if err := os.MkdirAll(in.cluster.Etcd.DataDir, 0o700); err != nil {
		return in, fmt.Errorf("make the data directory: %w", err)
	}
	return in, a.accounts.OpenFolders(in.cluster.Etcd.DataDir)
}

// learnDisk has the disk's id learned, and remembered for the rest of this boot. The record is read meanwhile.
func (a *Agent) learnDisk(ctx context.Context, in identified) (stop func()) {
	return a.disk.Learn(ctx, in.self.Place, in.cloud.DataDisk, func(id string) error {
		in.identity.DiskID = id
		return a.memory().keep(in.identity)
	})
}

// recorded is what the record phase finds out: a bundle exists, or this replica is the one to make it.
type recorded struct {
	identified
	membership *etcdmember.Membership
	makeBundle bool
}

// readRecord opens the membership and goes as far as is possible without certificates. A disk on which this replica's
// etcd has run, with certificates that work, has all that it takes: the record is read when etcd is decided on, and a
// restart may do without. Nothing is written to a disk that others may write to, not even certificates.
func (a *Agent) readRecord(ctx context.Context, in identified) (recorded, error) {
	m := etcdmember.New(a.memberConfig(in))
	a.mu.Lock()
	a.membership = m
	a.mu.Unlock()
	a.openCertificates(in, m)
	makeBundle := false
	if !m.Established() || a.certificates.Member() != nil {
		var err error
		if makeBundle, err = m.Claim(ctx); err != nil {
			return recorded{}, err
		}
	}
	return recorded{in, m, makeBundle}, a.disk.AwaitOneWriter(ctx)
}

// openCertificates says whose certificates they are.
func (a *Agent) openCertificates(in identified, m *etcdmember.Membership) {
	a.certificates.Open(certificates.Replica{Self: in.self, Cluster: in.cluster, Files: in.files,
		Bundles: in.cloud.Bundles, ClusterUID: m.ClusterUID})
}

func (a *Agent) memberConfig(in identified) etcdmember.Config {
	sessions := certs.NewEtcdSessions(in.files)
	return etcdmember.Config{
		Log: a.cfg.Log, Me: in.self, Cluster: in.cluster, Files: in.files,
		TLS:   func() *tls.Config { return etcdTLS(sessions) },
		Waits: a.tracker, RunDir: a.cfg.RunDir, HostsFile: a.cfg.HostsFile, DiskID: a.disk.ID,
		Preflight: func(ctx context.Context) error { return a.preflight(ctx, in) },
		Record:    in.cloud.Record, Compute: in.cloud.Compute, Child: a.etcdChild(),
		StartAnyway: a.startAnyway.given, MakeDirectory: a.makeDirectory, AtStep: a.cfg.AtStep,
	}
}

// etcdTLS is the agent's client configuration for etcd, nil before there is a certificate that can be used.
func etcdTLS(s *certs.EtcdSessions) *tls.Config {
	c, err := s.TLS()
	if err != nil {
		return nil // the phase of the certificates says what is wrong with it
	}
	return c
}

// certified is a replica with certificates.
type certified struct {
	recorded
	issued certificates.Issued
}

// certify makes sure that the disk has every leaf of this replica.
func (a *Agent) certify(ctx context.Context, in recorded) (certified, error) {
	issued, err := a.certificates.Certify(ctx, in.makeBundle)
	return certified{in, issued}, err
}

// joined is a replica whose member runs.
type joined struct{ certified }

// settle takes this replica's place in etcd.
func (a *Agent) settle(ctx context.Context, in certified) (joined, error) {
	if err := a.disk.AwaitOneWriter(ctx); err != nil { // the answer may have come since the record was read
		return joined{}, err
	}
	if err := in.membership.Settle(ctx); err != nil {
		return joined{}, err
	}
	a.askPrograms(ctx, in.identified)
	in.membership.WaitVoter(ctx, awaitPromotion(in.cluster.Replicas))
	return joined{in}, nil
}

// awaitPromotion is how long a new member waits to be a voter. The second of a pair stays a learner.
func awaitPromotion(replicas int) time.Duration {
	if replicas > 2 {
		return promotionPatience
	}
	return 0
}
