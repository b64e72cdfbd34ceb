package etcdmember

import (
	"fmt"
	"net/http"
	"path/filepath"
	"testing"
	"time"

	"github.com/quorate/quorate/certs"
	"github.com/quorate/quorate/etcdmember/etcdtest"
	"github.com/quorate/quorate/etcdmember/hosts"
	"github.com/quorate/quorate/etcdmember/leader"
	"github.com/quorate/quorate/internal/record"
	"github.com/quorate/quorate/internal/replica"
)

func TestALearnerThatHangsKeepsNoOtherFromBeingAsked(t *testing.T) {
	if !etcdtest.InOwnNetwork(t) {
		return
	}
	bundle, err := certs.NewBundle("uid", time.Now())
	if err != nil {
		t.Fatal(err)
	}
	version := func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprint(w, `{"etcdserver":"3.7.3","etcdcluster":"3.7.0"}`)
	}
	var peers []replica.Peer
	var ask certs.Files
	for i, answer := range []http.HandlerFunc{version,
		func(_ http.ResponseWriter, req *http.Request) { <-req.Context().Done() }, version} {
		me := replica.Identity{Place: []replica.Place{pa, pb, pc}[i], InstanceID: fmt.Sprint(101 + i), Project: "p"}
		for j := range etcdtest.Replicas { // on one machine a connection may come from each of them
			me.Addresses = append(me.Addresses, etcdtest.Address((i+j)%etcdtest.Replicas))
		}
		dir := t.TempDir()
		files := certs.Files{Dir: filepath.Join(dir, "pki"), Volatile: filepath.Join(dir, "volatile")}
		etcdtest.Issue(t, files, bundle, me, etcdtest.Cluster(t, testCluster))
		etcdtest.ServePeer(t, files, me.Address(), answer)
		peers = append(peers, replica.Peer{Place: me.Place, Addresses: me.Addresses[:1]})
		if i == 0 {
			ask = files
		}
	}
	names := filepath.Join(t.TempDir(), "hosts")
	if _, err := hosts.Write(names, testCluster, peers); err != nil {
		t.Fatal(err)
	}
	ring := ringOf([]leader.RingMember{voter(pa, "101", 0xa1)},
		[]leader.RingMember{learner(pb, "102", 0xb1), learner(pc, "103", 0xc3)})
	ring.ClusterVersion, ring.Members[1].Version, ring.Members[2].Version = "", "", ""
	versions := learnerVersions{asks: &asker{hosts: names, files: ask}, of: map[record.MemberID]string{}}
	versions.observe(t.Context(), &ring)
	if b, c := ring.Members[1].Version, ring.Members[2].Version; b != "" || c != "3.7.3" ||
		ring.ClusterVersion != "3.7.0" {
		t.Errorf("b %q, c %q, the cluster %q", b, c, ring.ClusterVersion)
	}
}
