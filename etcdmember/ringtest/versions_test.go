package ringtest

import (
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

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/quorate/quorate/certs"
	"github.com/quorate/quorate/etcdmember/etcdtest"
	"github.com/quorate/quorate/etcdmember/hosts"
	"github.com/quorate/quorate/etcdmember/member"
	"github.com/quorate/quorate/etcdmember/table"
	"github.com/quorate/quorate/internal/realtest"
	"github.com/quorate/quorate/internal/record"
	"github.com/quorate/quorate/internal/replica"
)

func TestARemovedMemberThatComesBackWithoutAQuorumWaits(t *testing.T) {
	realtest.OnlyInCases(t)
	if !etcdtest.InOwnNetwork(t) {
		return
	}
	r := newRing(t, pa, pb, pc)
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
	r.stays("its member is not started", pc, 3, func() error {
		if starts := r.agents[pc].child.starts(); starts != 1 { // the one before it was removed
			return fmt.Errorf("it was started %d times", starts)
		}
		return nil
	})
	r.agents[pb].begin()
	r.await("with a quorum it joins again", func() error {
		if s, err := r.status(pc); err != nil || s.MemberID == before.MemberID {
			return fmt.Errorf("%+v, %w", s, err)
		}
		return r.voters(pa, pb, pc)
	})
}

// otherEtcd is a member of another version, in the place of an agent that does not run.
type otherEtcd struct{ agent *agent }

// formed is the record of a cluster that b formed.
func (o *otherEtcd) formed(cluster, member record.MemberID) {
	o.agent.ring.record.Change(func(v *record.View) {
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
func wantRefused(t *testing.T, r *ring, reason string) {
	t.Helper()
	r.agents[pa].begin()
	r.await("a is refused", func() error {
		ms := r.agents[pa].membership()
		if ms == nil {
			return errors.New("it has not begun")
		}
		for _, b := range ms.waits.All() {
			if b.Name == "fault" && strings.Contains(b.Reason, reason) {
				return nil
			}
		}
		return fmt.Errorf("blocked: %+v", ms.waits.All())
	})
	if v, _ := r.record.Copied(); len(v.Replicas[pa]) != 0 {
		t.Errorf("it took an incarnation: %+v", v.Replicas[pa])
	}
}

func TestAJoinerIsRefusedByAPeerThatSaysANewerVersion(t *testing.T) {
	if !etcdtest.InOwnNetwork(t) {
		return
	}
	r := newRing(t, pa, pb)
	b := &otherEtcd{agent: r.agents[pb]}
	b.formed(0xc1, 0xb1)
	etcdtest.ServePeer(t, b.agent.files, b.agent.me.Address(), func(w http.ResponseWriter, req *http.Request) {
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

// formerEtcd is etcd of the minor version before ours, which `make etcd-former` builds.
var formerEtcd = filepath.Join("..", "..", "bin", "former", "etcd")

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
	r := newRing(t, pa, pb)
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
