package certs

import (
	"math/big"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

// The table as design and operators know it, written out once more by hand.
func TestLeavesAreTheTable(t *testing.T) {
	const member = "master-1.us-central1-a.prod.quorate.internal"
	host := []string{"master-1", "master-1.c.proj.example.com.internal", member,
		"master-1.us-central1-a.c.proj.example.com.internal"}
	local := append([]string{"localhost"}, host...)
	own := []string{"10.128.0.2", "fd20::2"}
	loop := []string{"127.0.0.1", "::1"}
	cluster := []string{"api.prod.example.net", "kubernetes", "kubernetes.default", "kubernetes.default.svc",
		"kubernetes.default.svc.cluster.local"}
	type line struct {
		Leaf  Leaf
		CA    Authority
		CN, O string
		Usage Usage
		SAN   string
	}
	san := func(parts ...[]string) string {
		all := slices.Concat(parts...)
		slices.Sort(all)
		return strings.Join(all, " ")
	}
	want := []line{
		{EtcdServer, EtcdClient, member, "", UsageServer, san(local, own, loop)},
		{EtcdPeerLeaf, EtcdPeer, member, "", UsagePeer, san(host, own)},
		{APIServerEtcd, EtcdClient, "kube-apiserver-etcd-client", "", UsageClient, ""},
		{AgentEtcd, EtcdClient, "quorate-agent-etcd-client", "", UsageClient, ""},
		{APIServer, Kubernetes, "kube-apiserver", "", UsageServer,
			san(local, own, loop, cluster, []string{"203.0.113.7", "10.128.0.100", "10.96.0.1", "fd00:96::1"})},
		{APIServerKubelet, Kubernetes, "kube-apiserver-kubelet-client", "", UsageClient, ""},
		{FrontProxyClient, FrontProxy, "front-proxy-client", "", UsageClient, ""},
		{ControllerManager, Kubernetes, "system:kube-controller-manager", "", UsageClient, ""},
		{Scheduler, Kubernetes, "system:kube-scheduler", "", UsageClient, ""},
		{Autoscaler, Kubernetes, "cluster-autoscaler", "", UsageClient, ""},
		{Addons, Kubernetes, "quorate:addons", "", UsageClient, ""},
		{Agent, Kubernetes, "quorate:agent", "", UsageClient, ""},
		{Kubelet, Kubernetes, "system:node:master-1", "system:nodes", UsageClient, ""},
		{KubeletServing, Kubernetes, "", "", UsageServer, san(local, own, loop)},
		{ControllerManagerServing, Kubernetes, "", "", UsageServer, san(local, own, loop)},
		{SchedulerServing, Kubernetes, "", "", UsageServer, san(local, own, loop)},
	}
	specs := testLeaves(t)
	var got []line
	for _, s := range specs {
		var addresses []string
		for _, a := range s.Addresses {
			addresses = append(addresses, a.String())
		}
		got = append(got, line{s.Leaf, s.Authority, s.CommonName, s.Organization, s.Usage, san(s.Names, addresses)})
		if s.Lifetime != LeafLifetime {
			t.Errorf("%s: lifetime %s", s.Leaf, s.Lifetime)
		}
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("-want +got\n%s", d)
	}
}

func TestEndpointWithoutExternalAddressPutsNoneIntoTheCertificate(t *testing.T) {
	c := testCluster()
	c.Endpoint.ExternalIP = ""
	specs, err := Leaves(testIdentity(), c)
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range specs {
		for _, a := range s.Addresses {
			if !a.IsPrivate() && !a.IsLoopback() {
				t.Errorf("%s vouches for %s", s.Leaf, a)
			}
		}
	}
}

func TestFirstServiceAddressIsBasePlusOneAsAWholeNumber(t *testing.T) {
	for _, cidr := range []string{"10.96.0.0/12", "10.0.0.0/8", "10.0.0.255/31", "10.1.2.254/31", "192.168.255.255/16",
		"fd00:96::/112",
		"fd00::ffff:ffff:ffff:fffe/127", "10.97.3.9/20"} {
		got, err := firstServiceAddress(cidr)
		if err != nil {
			t.Errorf("%s: %v", cidr, err)
			continue
		}
		base := netip.MustParsePrefix(cidr).Masked().Addr().AsSlice()
		sum := new(big.Int).Add(new(big.Int).SetBytes(base), big.NewInt(1))
		dumb, _ := netip.AddrFromSlice(sum.FillBytes(make([]byte, len(base))))
		if got != dumb {
			t.Errorf("%s: found %s, big integers say %s", cidr, got, dumb)
		}
	}
	for _, cidr := range []string{"", "10.96.0.0", "10.0.0.1/32", "255.255.255.255/32", "fd00::1/128", "10.0.0.0/33"} {
		if a, err := firstServiceAddress(cidr); err == nil {
			t.Errorf("%q gave %s", cidr, a)
		}
	}
}

func TestLeavesNeedAnAddressAndValidRanges(t *testing.T) {
	id, c := testIdentity(), testCluster()
	id.Addresses = nil
	if _, err := Leaves(id, c); err == nil || !strings.Contains(err.Error(), "us-central1-a.master-1 has no address") {
		t.Errorf("error %v", err)
	}
	c.Network.ServiceCIDRs[1] = "10.0.0.0/99"
	if _, err := Leaves(testIdentity(), c); err == nil ||
		!strings.Contains(err.Error(), `network.serviceCIDRs[1]: found "10.0.0.0/99"`) {
		t.Errorf("error %v", err)
	}
}

func TestKubeconfigsAreOfTheClientsThatTalkToTheAPIServer(t *testing.T) {
	want := []Leaf{ControllerManager, Scheduler, Autoscaler, Addons, Agent, Kubelet}
	if d := cmp.Diff(want, Kubeconfigs(), cmpopts.SortSlices(func(a, b Leaf) bool { return a < b })); d != "" {
		t.Error(d)
	}
}
