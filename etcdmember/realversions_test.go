package etcdmember

import (
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"go.etcd.io/etcd/client/pkg/v3/transport"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/quorate/quorate/certs"
	"github.com/quorate/quorate/etcdmember/etcdtest"
	"github.com/quorate/quorate/etcdmember/hosts"
	"github.com/quorate/quorate/etcdmember/member"
	"github.com/quorate/quorate/etcdmember/table"
	"github.com/quorate/quorate/internal/record"
	"github.com/quorate/quorate/internal/replica"
)

func TestARemovedMemberThatComesBackWithoutAQuorumWaits(t *testing.T) {
	if !etcdtest.InOwnNetwork(t) {
		return
	}
	r := newRealRing(t, pa, pb, pc)
	r.begin(pa, pb, pc)
	before, err := r.status(pc)
	if err != nil {
		t.Fatal(err)
	}
	r.agents[pc].end()
	c := r.client(pa)
	r.await("c is removed", func() error { _, err := c.MemberRemove(t.Context(), uint64(before.MemberID)); return err })
	r.agents[pb].end()
	r.agents[pc].begin()
	r.await("c is told so by a, which has no quorum", func() error {
		if got := r.blocked(pc); !slices.Contains(got, "removed") {
			return fmt.Errorf("blocked by %v", got)
		}
		return nil
	})
	time.Sleep(3 * time.Second)
	if starts := r.agents[pc].child.starts(); starts != 1 { // the one before it was removed
		t.Errorf("its member was started %d times", starts)
	}
	r.agents[pb].begin()
	r.await("with a quorum it joins again", func() error {
		if s, err := r.status(pc); err != nil || s.MemberID == before.MemberID {
			return fmt.Errorf("%+v, %w", s, err)
		}
		return r.voters(pa, pb, pc)
	})
}

// otherEtcd is a member of another version, in the place of an agent that does not run.
type otherEtcd struct{ agent *realAgent }

// formed is the record of a cluster that b formed.
func (o *otherEtcd) formed(cluster, member record.MemberID) {
	o.agent.record.change(func(v *record.View) {
		v.Bundle = 1
		v.Epochs = []record.Epoch{{Number: 1, Claim: &record.Claim{Token: "t", MaxLearners: table.MaxLearners,
			Seeder: record.Seeder{Place: pb, InstanceID: "102"}, Source: record.Source{Kind: record.SourceEmpty}},
			Outcome: &record.Outcome{Formed: &record.Formed{ClusterID: cluster, MemberID: member}}}}
		v.Replicas[pb] = []record.Incarnation{{Place: pb, Number: 1, InstanceID: "102", BootID: "b", Epoch: 1,
			MemberID:  member,
			Addresses: o.agent.me.Addresses[:1], Started: &record.Started{Epoch: 1, MemberID: member}}}
	})
}

// wantRefused boots a, which must not change anything, and say why.
func wantRefused(t *testing.T, r *realRing, reason string) {
	t.Helper()
	r.agents[pa].begin()
	r.await("a is refused", func() error {
		ms := r.agents[pa].membership()
		if ms == nil {
			return errors.New("it has not begun")
		}
		for _, b := range ms.cfg.Waits.All() {
			if b.Name == "fault" && strings.Contains(b.Reason, reason) {
				return nil
			}
		}
		return fmt.Errorf("blocked: %+v", ms.cfg.Waits.All())
	})
	if v, _ := r.record.copied(); len(v.Replicas[pa]) != 0 {
		t.Errorf("it took an incarnation: %+v", v.Replicas[pa])
	}
}

// says answers what the peer port is asked.
func (o *otherEtcd) says(t *testing.T, answer http.HandlerFunc) {
	t.Helper()
	files := o.agent.files
	info := transport.TLSInfo{CertFile: files.Leaf(certs.EtcdPeerLeaf), KeyFile: files.Leaf(certs.EtcdPeerLeaf),
		TrustedCAFile: files.CA(certs.EtcdPeer), ClientCertAuth: true}
	tlsConfig, err := info.ServerConfig()
	if err != nil {
		t.Fatal(err)
	}
	tlsConfig.NextProtos = nil
	peers, err := net.Listen("tcp", netip.AddrPortFrom(o.agent.me.Address(), table.PeerPort).String())
	if err != nil {
		t.Fatal(err)
	}
	server := &http.Server{Handler: answer}
	go server.Serve(tls.NewListener(peers, tlsConfig))
	t.Cleanup(func() { server.Close() })
}

func TestAJoinerIsRefusedByAPeerThatSaysANewerVersion(t *testing.T) {
	if !etcdtest.InOwnNetwork(t) {
		return
	}
	r := newRealRing(t, pa, pb)
	b := &otherEtcd{agent: r.agents[pb]}
	b.formed(0xc1, 0xb1)
	b.says(t, func(w http.ResponseWriter, req *http.Request) {
		if req.URL.Path != "/version" {
			t.Errorf("asked %s", req.URL.Path)
		}
		fmt.Fprint(w, `{"etcdserver":"3.8.1","etcdcluster":"3.8.0"}`)
	})
	clients, err := net.Listen("tcp", netip.AddrPortFrom(b.agent.me.Address(), member.ClientPort).String())
	if err != nil {
		t.Fatal(err)
	}
	defer clients.Close()
	wantRefused(t, r, "the cluster's version is 3.8.0: this image is too old")
}

func TestALearnerThatHangsKeepsNoOtherFromBeingAsked(t *testing.T) {
	if !etcdtest.InOwnNetwork(t) {
		return
	}
	r := newRealRing(t, pa, pb, pc)
	version := func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprint(w, `{"etcdserver":"3.7.3","etcdcluster":"3.7.0"}`)
	}
	a, b, c := &otherEtcd{r.agents[pa]}, &otherEtcd{r.agents[pb]}, &otherEtcd{r.agents[pc]}
	a.says(t, version)
	b.says(t, func(_ http.ResponseWriter, req *http.Request) { <-req.Context().Done() })
	c.says(t, version)
	ring := ringOf([]table.RingMember{voter(pa, "101", 0xa1)},
		[]table.RingMember{learner(pb, "102", 0xb1), learner(pc, "103", 0xc3)})
	ring.ClusterVersion, ring.Members[1].Version, ring.Members[2].Version = "", "", ""
	versions := learnerVersions{asks: &asker{hosts: a.hosts(t), files: a.agent.files},
		of: map[record.MemberID]string{}}
	versions.observe(t.Context(), &ring)
	if b, c := ring.Members[1].Version, ring.Members[2].Version; b != "" || c != "3.7.3" ||
		ring.ClusterVersion != "3.7.0" {
		t.Errorf("b %q, c %q, the cluster %q", b, c, ring.ClusterVersion)
	}
}

// formerEtcd is etcd of the minor version before ours, which `make etcd-former` builds.
var formerEtcd = filepath.Join("..", "bin", "former", "etcd")

func needFormerEtcd(t *testing.T) {
	t.Helper()
	if _, err := os.Stat(formerEtcd); err != nil {
		t.Skipf("needs %s: run `make etcd-former` first", formerEtcd)
	}
}

// run starts etcd of the former version in its place, with the names that the others' agents keep as its /etc/hosts.
func (o *otherEtcd) run(t *testing.T, args ...string) *exec.Cmd {
	t.Helper()
	a := o.agent
	name, address := a.me.DNSName(testCluster), a.me.Address().String()
	args = append([]string{"--name", a.me.MemberName(), "--data-dir", a.etcdDir(),
		"--listen-peer-urls", "https://" + address + ":2380", "--listen-client-urls", "https://" + address + ":2379",
		"--initial-advertise-peer-urls", table.PeerURL(name), "--advertise-client-urls", member.ClientURL(name),
		"--cert-file", a.files.Leaf(certs.EtcdServer), "--key-file", a.files.Leaf(certs.EtcdServer),
		"--trusted-ca-file",
		a.files.CA(certs.EtcdClient), "--client-cert-auth",
		"--peer-cert-file", a.files.Leaf(certs.EtcdPeerLeaf), "--peer-key-file", a.files.Leaf(certs.EtcdPeerLeaf),
		"--peer-trusted-ca-file",
		a.files.CA(certs.EtcdPeer), "--peer-client-cert-auth",
	}, args...)
	cmd := exec.Command("sh", append([]string{"-c", `mount --bind "$0" /etc/hosts && exec "$@"`, o.hosts(t),
		formerEtcd}, args...)...)
	log, err := os.Create(filepath.Join(a.dir, "etcd.log"))
	if err != nil {
		t.Fatal(err)
	}
	defer log.Close()
	cmd.Stdout, cmd.Stderr, cmd.SysProcAttr = log, log, &syscall.SysProcAttr{Setpgid: true,
		Unshareflags: syscall.CLONE_NEWNS}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { cmd.Process.Kill(); cmd.Wait() })
	return cmd
}

// hosts is a file with the names of all replicas of the ring.
func (o *otherEtcd) hosts(t *testing.T) string {
	t.Helper()
	var peers []replica.Peer
	for p, a := range o.agent.ring.agents {
		peers = append(peers, replica.Peer{Place: p, Addresses: a.me.Addresses[:1]})
	}
	path := filepath.Join(o.agent.dir, "hosts")
	if _, err := hosts.Write(path, testCluster, peers); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestAJoinerIsRefusedByAnOlderCluster(t *testing.T) {
	needFormerEtcd(t)
	if !etcdtest.InOwnNetwork(t) {
		return
	}
	r := newRealRing(t, pa, pb)
	b := &otherEtcd{agent: r.agents[pb]}
	b.run(t, "--initial-cluster", b.agent.me.MemberName()+"="+table.PeerURL(b.agent.me.DNSName(testCluster)),
		"--initial-cluster-state", "new")
	c := r.client(pb)
	var list *clientv3.MemberListResponse
	r.await("etcd 3.6 serves",
		func() (err error) { list, err = c.MemberList(clientv3.WithRequireLeader(t.Context())); return err })
	b.formed(record.MemberID(list.Header.ClusterId), record.MemberID(list.Header.MemberId))
	wantRefused(t, r, "an empty replica joins with the version of the others")
	if list, err := c.MemberList(t.Context()); err != nil || len(list.Members) != 1 {
		t.Errorf("members: %v, %v", list, err)
	}
}
