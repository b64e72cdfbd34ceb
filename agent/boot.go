package agent

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	core "k8s.io/client-go/kubernetes/typed/core/v1"

	"github.com/quorate/quorate/agent/datadisk"
	"github.com/quorate/quorate/certs"
	"github.com/quorate/quorate/controlplane"
	"github.com/quorate/quorate/etcdmember"
	"github.com/quorate/quorate/internal/durable"
	"github.com/quorate/quorate/internal/replica"
)

// ClusterAttribute is the instance attribute that holds the Cluster document.
const ClusterAttribute = "quorate-cluster"

// identified is what the identity phase finds out.
type identified struct {
	self    replica.Identity
	cluster *replica.Cluster
	cloud   Cloud
	// identity is what is remembered of it for the rest of this boot.
	identity identity
}

// identity is what the agent remembers of its identity for the rest of this boot, so that its restart needs no cloud
// service. It is on a tmpfs: another boot asks again.
type identity struct {
	Self     replica.Identity `json:"self"`
	Document string           `json:"document"`
	DiskID   string           `json:"diskID"`
	// ImageDisk is this boot's, for the commands that load the document again.
	ImageDisk datadisk.Image `json:"imageDisk,omitzero"`
}

func (id identity) sameBoot(other identity) bool {
	return id.Self.InstanceID == other.Self.InstanceID && id.Self.BootID == other.Self.BootID
}

// identify asks the metadata server who this is and what it belongs to.
func (a *Agent) identify(ctx context.Context, _ nothing) (identified, error) {
	id, err := a.askIdentity(ctx)
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
	if err := a.remember(in.identity); err != nil {
		a.cfg.Log.Warn("the next start of the agent needs the metadata server", "err", err.Error())
	}
	a.cfg.Log.Info("identified", "replica", id.Self.Place.String(), "instance", id.Self.InstanceID, "cluster",
		in.cluster.Name)
	return in, nil
}

// documentRefused is the wait for a document that can be used.
const (
	documentRefused     = "document-refused"
	documentRefusedNext = "Correct the instance's attribute; it counts from the agent's next start. Until then the " +
		"document before it does, but a reboot knows no other than this one."
)

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
	cluster, err := loadCluster(a.cfg.Baked, id.Document, id.ImageDisk)
	if err != nil {
		return identified{}, err
	}
	cloud, err := a.cfg.Open(ctx, id.Self, cluster)
	if err != nil {
		return identified{}, err
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.self, a.cluster = id.Self, cluster
	a.reporter.Open(cloud.Reports)
	a.backend.Open(cloud.Balancer)
	a.disk.Open(cloud.DataDisk != nil, id.DiskID)
	a.files = certs.Files{Dir: filepath.Join(cluster.Etcd.DataDir, "pki"), Volatile: filepath.Join(a.cfg.RunDir, "pki")}
	files, port := a.files, cluster.Endpoint.Port
	a.nodeEvents.Open(id.Self.Name,
		func() (core.EventsGetter, error) { return core.NewForConfig(localAPI(files, port)) })
	return identified{id.Self, cluster, cloud, id}, nil
}

// askIdentity asks the metadata server, also when it is known who this is: the configuration may have changed, and
// starting again is how a change comes into force. Only where it does not answer, what was remembered holds.
func (a *Agent) askIdentity(ctx context.Context) (identity, error) {
	known, ok := remembered(a.cfg.RunDir)
	if !ok {
		return a.askMetadata(ctx)
	}
	bounded, cancel := context.WithTimeout(ctx, etcdmember.RestartPatience)
	defer cancel()
	id, err := a.askMetadata(bounded)
	switch {
	case err != nil:
		if ctx.Err() != nil {
			return identity{}, err
		}
		a.cfg.Log.Warn("the metadata server does not answer: going on as before the restart", "err", err.Error())
		return known, nil
	case id.sameBoot(known):
		id.DiskID = known.DiskID
	}
	return id, nil
}

func (a *Agent) askMetadata(ctx context.Context) (identity, error) {
	self, err := a.cfg.Metadata.Identity(ctx)
	if err != nil {
		return identity{}, err
	}
	document, _, err := a.cfg.Metadata.Attribute(ctx, ClusterAttribute)
	if err != nil {
		return identity{}, err
	}
	return identity{Self: self, Document: document}, nil
}

func identityPath(runDir string) string { return filepath.Join(runDir, "identity.json") }

// remembered is the identity that an earlier agent of this boot found out.
func remembered(runDir string) (id identity, ok bool) {
	b, err := os.ReadFile(identityPath(runDir))
	if err != nil {
		return id, false
	}
	err = json.Unmarshal(b, &id)
	return id, err == nil && id.Self.InstanceID != ""
}

// Remembered is what the agent with this run folder found out in this boot: who the VM is, the cluster's document, and
// the id of the data disk. A command on the VM uses it in place of asking again. ok is false where no agent has come so
// far yet.
func Remembered(runDir, baked string) (self replica.Identity, c *replica.Cluster, diskID string, ok bool, err error) {
	id, ok := remembered(runDir)
	if !ok {
		return self, nil, "", false, nil
	}
	c, err = loadCluster(baked, id.Document, id.ImageDisk)
	return id.Self, c, id.DiskID, true, err
}

func (a *Agent) remember(id identity) error {
	b, err := json.Marshal(id)
	if err != nil {
		return err
	}
	return durable.WriteFile(identityPath(a.cfg.RunDir), b, 0o600)
}

// ErrNoConfiguration says that neither the image nor the instance brings a Cluster document.
var ErrNoConfiguration = errors.New("no configuration")

// loadCluster merges the document that the image brings with the instance's.
func loadCluster(bakedFile, attribute string, disk datadisk.Image) (*replica.Cluster, error) {
	var sources []replica.Source
	baked, err := os.ReadFile(bakedFile)
	switch {
	case err == nil:
		sources = append(sources, replica.Source{Name: bakedFile, Data: baked})
	case !errors.Is(err, fs.ErrNotExist):
		return nil, fmt.Errorf("read configuration: %w", err)
	}
	if attribute != "" {
		sources = append(sources, replica.Source{Name: "instance attribute " + ClusterAttribute,
			Data: []byte(attribute)})
	}
	if len(sources) == 0 {
		return nil, fmt.Errorf("%w: the instance has no attribute %q and there is no %s; set the one or bake the other",
			ErrNoConfiguration, ClusterAttribute, bakedFile)
	}
	c, err := controlplane.Load(sources...)
	if err != nil {
		return nil, err
	}
	return c, disk.Require(c)
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

// learnDisk has the disk's id learned, and remembered for the rest of this boot. It waits for it only a moment.
func (a *Agent) learnDisk(ctx context.Context, in identified) (stop func()) {
	return a.disk.Learn(ctx, in.self.Place, in.cloud.DataDisk, func(id string) error {
		in.identity.DiskID = id
		return a.remember(in.identity)
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
// restart may do without.
func (a *Agent) readRecord(ctx context.Context, in identified) (recorded, error) {
	if err := a.disk.AwaitOneWriter(ctx); err != nil {
		return recorded{}, err
	}
	m := etcdmember.New(a.memberConfig(in))
	a.mu.Lock()
	a.membership = m
	a.mu.Unlock()
	out := recorded{identified: in, membership: m}
	if m.Established() && a.memberCertified(out) == nil {
		return out, nil
	}
	makeBundle, err := m.Claim(ctx)
	return recorded{in, m, makeBundle}, err
}

func (a *Agent) memberConfig(in identified) etcdmember.Config {
	return etcdmember.Config{
		Log: a.cfg.Log, Me: in.self, Cluster: in.cluster, Files: a.files, TLS: a.etcdTLS,
		Waits: a.tracker, RunDir: a.cfg.RunDir, HostsFile: a.cfg.HostsFile, DiskID: a.disk.ID,
		Preflight: func(ctx context.Context) error { return a.preflight(ctx, in) },
		Record:    in.cloud.Record, Compute: in.cloud.Compute, Child: a.etcdChild(),
		StartAnyway: a.saidStartAnyway, MakeDirectory: a.makeDirectory, AtStep: a.cfg.AtStep,
	}
}

// etcdTLS is the agent's client configuration for etcd, nil before there is a certificate that can be used.
func (a *Agent) etcdTLS() *tls.Config {
	if _, err := os.Stat(a.files.Leaf(certs.AgentEtcd)); err != nil {
		return nil
	}
	c, err := certs.EtcdTLS(a.files)
	if err != nil {
		return nil // the phase of the certificates says what is wrong with it
	}
	return c
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
