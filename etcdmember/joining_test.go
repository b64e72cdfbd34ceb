package etcdmember

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"log/slog"
	"math/big"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/quorate/quorate/certs"
	"github.com/quorate/quorate/etcdmember/etcdtest"
	"github.com/quorate/quorate/etcdmember/member"
	"github.com/quorate/quorate/etcdmember/table"
	"github.com/quorate/quorate/internal/record"
	"github.com/quorate/quorate/internal/replica"
)

// founder is a real member, alone in its cluster, that others join: place b of the world, on an address of loopback.
type founder struct {
	cfg   member.Config
	files certs.Files
	// joiners are those who call from loopback, of which no leaf of ours may speak, and a peer refuses a leaf that is
	// not of its caller's address.
	joiners certs.Files
	tls     *tls.Config
	status  table.MemberStatus
}

// testMember is the configuration of a member that seeds, and its certificates.
func testMember(t *testing.T) (member.Config, certs.Files) {
	t.Helper()
	r := etcdtest.NewReplica(t)
	cfg := member.ConfigFor(r.Me, r.Cluster, r.Files, r.RunDir)
	cfg.New, cfg.Token = true, "token"
	return cfg, r.Files
}

// awaitReady waits until a member serves.
func awaitReady(t *testing.T, socket string) (s table.MemberStatus) {
	t.Helper()
	etcdtest.Eventually(t, "the member serves", func() bool {
		var err error
		s, err = member.ReadStatus(t.Context(), socket)
		return err == nil && s.Ready
	})
	return s
}

func newFounder(t *testing.T) *founder {
	t.Helper()
	cfg, files := testMember(t)
	b := replica.Identity{Place: pb, InstanceID: "102"}
	cfg.Name, cfg.DNSName = b.MemberName(), pb.DNSName(testCluster)
	f := &founder{cfg: cfg, files: files}
	f.issue(t, b)
	ctx, stop := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- member.Run(ctx, f.cfg, slog.New(slog.DiscardHandler)) }()
	t.Cleanup(func() {
		stop()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
	f.status = awaitReady(t, f.cfg.StatusSocket)
	var err error
	if f.tls, err = certs.EtcdTLS(f.files); err != nil {
		t.Fatal(err)
	}
	return f
}

// issue replaces the leaves of the test member by those of another place in the cluster of the world.
func (f *founder) issue(t *testing.T, id replica.Identity) {
	t.Helper()
	dir := t.TempDir()
	f.files = certs.Files{Dir: filepath.Join(dir, "pki"), Volatile: filepath.Join(dir, "volatile")}
	bundle, err := certs.NewBundle("uid", time.Now())
	if err != nil {
		t.Fatal(err)
	}
	id.Project, id.Addresses = "p", []netip.Addr{netip.MustParseAddr("10.240.0.9")}
	etcdtest.Issue(t, f.files, bundle, id, etcdtest.Cluster(t, testCluster))
	f.joiners = withPeerLeaf(t, f.files, anywhere(t, f.files.CA(certs.EtcdPeer)))
	f.cfg.PeerLeaf, f.cfg.ServerLeaf = f.files.Leaf(certs.EtcdPeerLeaf), f.files.Leaf(certs.EtcdServer)
	f.cfg.PeerCA, f.cfg.ClientCA = f.files.CA(certs.EtcdPeer), f.files.CA(certs.EtcdClient)
}

// anywhere makes a leaf for callers from any address, as one that names none is for, and adds it to those that an
// authority's file trusts.
func anywhere(t *testing.T, ca string) []byte {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	cert := &x509.Certificate{SerialNumber: big.NewInt(1), NotBefore: time.Now().Add(-time.Hour),
		NotAfter: time.Now().Add(time.Hour),
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}}
	der, err := x509.CreateCertificate(rand.Reader, cert, cert, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	private, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	public := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
	trusted, err := os.ReadFile(ca)
	if err == nil {
		err = os.WriteFile(ca, append(trusted, public...), 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	return append(public, pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: private})...)
}

// withPeerLeaf are the files of another with a peer leaf of its own.
func withPeerLeaf(t *testing.T, of certs.Files, leaf []byte) certs.Files {
	t.Helper()
	files := certs.Files{Dir: t.TempDir(), Volatile: of.Volatile}
	if err := os.CopyFS(files.Dir, os.DirFS(of.Dir)); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(files.Leaf(certs.EtcdPeerLeaf), leaf, 0o600); err != nil {
		t.Fatal(err)
	}
	return files
}

// record is what the founder's agent has written.
func (f *founder) record() *etcdtest.Record {
	r := etcdtest.NewRecord(testCluster)
	r.Change(func(v *record.View) {
		v.Bundle = 1
		v.Epochs = []record.Epoch{{Number: 1, Claim: &record.Claim{Token: f.cfg.Token, MaxLearners: table.MaxLearners,
			Seeder: record.Seeder{Place: pb, InstanceID: "102"}, Source: record.Source{Kind: record.SourceEmpty}},
			Outcome: &record.Outcome{Formed: &record.Formed{ClusterID: f.status.ClusterID,
				MemberID: f.status.MemberID}}}}
		v.Replicas[pb] = []record.Incarnation{{Place: pb, Number: 1, InstanceID: "102", BootID: "b", Epoch: 1,
			MemberID:  f.status.MemberID,
			Addresses: []netip.Addr{f.cfg.Address}, Started: &record.Started{Epoch: 1, MemberID: f.status.MemberID}}}
	})
	return r
}

// list is the founder's member list without itself.
func (f *founder) list(t *testing.T) []table.Member {
	t.Helper()
	c, err := member.Dial(f.cfg.DNSName, f.cfg.Address, f.tls)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	ctx, cancel := context.WithTimeout(t.Context(), callTimeout)
	defer cancel()
	_, all, err := member.List(ctx, c)
	if err != nil {
		t.Fatal(err)
	}
	var out []table.Member
	for _, m := range all {
		if m.ID != f.status.MemberID {
			out = append(out, m)
		}
	}
	return out
}

// clear removes all that joined.
func (f *founder) clear(t *testing.T) {
	t.Helper()
	c, err := member.Dial(f.cfg.DNSName, f.cfg.Address, f.tls)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	for _, m := range f.list(t) {
		ctx, cancel := context.WithTimeout(t.Context(), callTimeout)
		if _, err := c.MemberRemove(ctx, uint64(m.ID)); err != nil {
			t.Fatal(err)
		}
		cancel()
	}
}

// joiner is a VM that may join the founder.
func (f *founder) joiner(t *testing.T, p replica.Place) *machine {
	m := newMachine(t, p, f.record())
	m.config = func(c *Config) { c.Files, c.TLS = f.joiners, func() *tls.Config { return f.tls } }
	return m
}

// joinedOnce is the one good end of a join.
func (f *founder) joinedOnce(t *testing.T, m *machine, ms *Membership) {
	t.Helper()
	list := f.list(t)
	a := ms.disk.agent.File
	if len(list) != 1 || list[0].ID != a.MemberID || !list[0].Learner ||
		list[0].PeerURLs[0] != table.PeerURL(m.me.Place.DNSName(testCluster)) {
		t.Fatalf("the list holds %+v, agent.json says %+v", list, a)
	}
	incarnations := m.record.Seen.Replicas[m.me.Place]
	last := incarnations[len(incarnations)-1]
	if a.Phase != table.PhaseStarted || a.Epoch != 1 || last.Number != a.Incarnation || last.Started == nil ||
		last.Started.MemberID != a.MemberID {
		t.Errorf("agent.json %+v, newest incarnation %+v", a, last)
	}
	if s, err := ms.Status(t.Context()); err != nil || s.MemberID != a.MemberID {
		t.Errorf("member %s runs, %v", s.MemberID, err)
	}
}

// Every step of a join is one at which the power may go, those on etcd, too; what follows is a restart of the agent or
// a boot of the VM. The list is a real member's, and holds the entry of the VM that was here before.
func TestAJoinSurvivesEveryPowerCut(t *testing.T) {
	if !etcdtest.InOwnNetwork(t) {
		return
	}
	f := newFounder(t)
	cuts := cutLog{}
	for _, after := range []bool{false, true} {
		for when := 1; ; when++ {
			// Each in a place of its own: an id is a hash of the URL and the second, and a removed one never comes
			// back.
			p := replica.Place{Zone: "us-central1-a", Name: fmt.Sprintf("m-%d-%t", when, after)}
			m := f.joiner(t, p)
			f.former(t, m)
			m.power.when, m.power.after = when, after
			wasCut, err := m.boot(m.open())
			if err != nil {
				t.Fatalf("step %d: %v", when, err)
			}
			if !wasCut {
				break
			}
			cuts[m.power.moment()] = true
			m.power.when = 0
			if when%2 == 0 {
				m.me.BootID = "boot2"
			}
			ms := m.open()
			if _, err := m.boot(ms); err != nil {
				t.Fatalf("cut %d, %s: %v", when, m.power.moment(), err)
			}
			f.joinedOnce(t, m, ms)
			if t.Failed() {
				t.Fatalf("cut %d, %s", when, m.power.moment())
			}
			m.child.Stop(t.Context())
			f.clear(t)
		}
		f.clear(t)
	}
	cuts.want(t, joinSteps)
}

// Case 18, seven first boots: as many learners as etcd takes are on their way. The next replica says so, goes on
// asking, and is the next as soon as there is room.
func TestAJoinWaitsWhileThereAreTooManyLearners(t *testing.T) {
	if !etcdtest.InOwnNetwork(t) {
		return
	}
	f := newFounder(t)
	for i := range table.MaxLearners {
		f.former(t, f.joiner(t, replica.Place{Zone: "us-central1-a", Name: fmt.Sprintf("other-%d", i)}))
	}
	m := f.joiner(t, pa)
	ms := m.open()
	booted := boots(t, ms)
	refused := func() bool {
		b := ms.cfg.Waits.All()
		return len(b) == 1 && b[0].Name == "step-failed" &&
			strings.Contains(b[0].Reason, "too many learner members in cluster")
	}
	etcdtest.Eventually(t, "it is refused as one learner too many", refused)
	if list := f.list(t); len(list) != table.MaxLearners {
		t.Errorf("the list holds %+v", list)
	}
	f.clear(t)
	if err := booted(); err != nil {
		t.Fatal(err)
	}
	f.joinedOnce(t, m, ms)
}

// Each try of a join that comes to nothing leaves an incarnation in the record for ever: none is taken where no peer
// port answers, nor before the member that does not stay up may be started again. What a restore that another replica
// made instead has left on this disk goes first.
func TestAJoinThatCannotStartTakesNoIncarnations(t *testing.T) {
	if !etcdtest.InOwnNetwork(t) {
		return
	}
	f := newFounder(t)
	m := f.joiner(t, pa)
	other := *f
	other.issue(t, m.me) // of another CA, which the peers refuse
	m.config = func(c *Config) { c.Files, c.TLS = other.joiners, func() *tls.Config { return f.tls } }
	ms := m.open()
	end := inBackground(t, ms.Settle)
	etcdtest.Eventually(t, "it says that the peers do not answer",
		func() bool { return blockedName(ms) == "peers-do-not-connect" })
	end()
	if n, list := len(m.record.Incarnations(pa)), f.list(t); n > 0 || len(list) > 0 {
		t.Errorf("%d incarnations, and the list has %+v", n, list)
	}

	m = f.joiner(t, pa)
	m.child.dead = true
	ms = m.open()
	if err := os.MkdirAll(filepath.Join(ms.cfg.dir().Scratch(), "etcd"), 0o700); err != nil {
		t.Fatal(err)
	}
	end = inBackground(t, ms.Settle)
	etcdtest.Eventually(t, "it is started thrice, and waits", func() bool {
		return blockedName(ms) == "etcd-does-not-stay-up" &&
			m.child.started() == 3
	})
	end()
	if n := len(m.record.Incarnations(pa)); n != m.child.starts {
		t.Errorf("%d incarnations for %d starts", n, m.child.starts)
	}
	if _, err := os.Stat(ms.cfg.dir().Scratch()); !os.IsNotExist(err) {
		t.Errorf("the scratch folder of a restore: %v", err)
	}
}

// former adds the entry of the VM that had a machine's place before it. A second URL gives it an id that the machine
// itself is not given within the same second.
func (f *founder) former(t *testing.T, m *machine) {
	t.Helper()
	c, err := member.Dial(f.cfg.DNSName, f.cfg.Address, f.tls)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	ctx, cancel := context.WithTimeout(t.Context(), callTimeout)
	defer cancel()
	p := m.me.Place
	resp, err := c.MemberAddAsLearner(ctx, []string{table.PeerURL(p.DNSName(testCluster)), "https://former." + p.Name +
		".invalid:2380"})
	if err != nil {
		t.Fatal(err)
	}
	id := record.MemberID(resp.Member.ID)
	m.record.Change(func(v *record.View) {
		v.Replicas[p] = []record.Incarnation{{Place: p, Number: 1, InstanceID: "99", BootID: "b", Epoch: 1,
			MemberID: id, Started: &record.Started{Epoch: 1, MemberID: id}}}
	})
}

// A VM that was made again with an empty disk removes its former member at once and joins under a new id.
func TestARecreatedVMReplacesItsMember(t *testing.T) {
	if !etcdtest.InOwnNetwork(t) {
		return
	}
	f := newFounder(t)
	first := f.joiner(t, pa)
	ms := first.open()
	if _, err := first.boot(ms); err != nil {
		t.Fatal(err)
	}
	former := ms.disk.agent.File.MemberID
	first.child.Stop(t.Context())
	second := f.joiner(t, pa)
	second.record = first.record
	second.me.InstanceID, second.me.BootID = "201", "boot2"
	ms = second.open()
	begin := time.Now()
	if _, err := second.boot(ms); err != nil {
		t.Fatal(err)
	}
	t.Logf("replaced within %s", time.Since(begin))
	f.joinedOnce(t, second, ms)
	if ms.disk.agent.File.MemberID == former || ms.disk.agent.File.Incarnation != 2 {
		t.Errorf("it came back as %+v, was %s", ms.disk.agent.File, former)
	}
	// The former VM, should it still run, finds that it was superseded, and touches nothing.
	old := first.open()
	end := inBackground(t, old.Settle)
	etcdtest.Eventually(t, "superseded", func() bool { return blockedName(old) == "superseded" })
	end()
	if first.child.starts != 1 {
		t.Error("a superseded instance started its member")
	}
	f.joinedOnce(t, second, ms)
}
