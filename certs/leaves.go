package certs

import (
	"fmt"
	"net/netip"
	"time"

	"github.com/quorate/quorate/internal/replica"
)

// LeafLifetime is how long a leaf lives. At two thirds of it, a month is left to notice that renewal does not work.
const LeafLifetime = 90 * 24 * time.Hour

// Usage says which side of a connection a leaf may be: one side only, but for etcd's peers.
type Usage string

// The usages.
const (
	UsageServer Usage = "server"
	UsageClient Usage = "client"
	UsagePeer   Usage = "peer"
)

// Spec is one leaf as it must be: what Leaves says, Decide compares with, and issue makes.
type Spec struct {
	Leaf      Leaf
	Authority Authority
	// CommonName is the user for Kubernetes and the name of the member for etcd; empty on serving certificates that no
	// one authenticates as.
	CommonName string
	// Organization is the group for Kubernetes; empty for none.
	Organization string
	Usage        Usage
	// Names and Addresses are the subject alternative names; none on leaves that are clients only.
	Names     []string
	Addresses []netip.Addr
	Lifetime  time.Duration
}

// subject says how a row's common name is made.
type subject func(id replica.Identity, c *replica.Cluster) string

func named(cn string) subject { return func(replica.Identity, *replica.Cluster) string { return cn } }

func memberName(id replica.Identity, c *replica.Cluster) string { return id.DNSName(c.Name) }

func nodeName(id replica.Identity, _ *replica.Cluster) string { return "system:node:" + id.Name }

// nodesGroup is the group that the Node authorizer expects of kubelets. No other leaf has a group: what the others may
// do is bound to their user names.
const nodesGroup = "system:nodes"

// row is a line of the table. kubeconfig says that the leaf's user reaches the apiserver through one.
type row struct {
	leaf       Leaf
	authority  Authority
	cn         subject
	o          string
	usage      Usage
	sans       sans
	kubeconfig bool
}

// table is the only list of leaves. etcd's server has no client usage because its gRPC gateway, which would dial its
// own port with it, is off. The serving leaves of kubelet, controller-manager and scheduler hold loopback because the
// agent's probes reach them there.
var table = []row{
	{EtcdServer, EtcdClient, memberName, "", UsageServer, replicaAndLoopback, false},
	{EtcdPeerLeaf, EtcdPeer, memberName, "", UsagePeer, replicaOnly, false},
	{APIServerEtcd, EtcdClient, named("kube-apiserver-etcd-client"), "", UsageClient, noSANs, false},
	{AgentEtcd, EtcdClient, named("quorate-agent-etcd-client"), "", UsageClient, noSANs, false},
	{APIServer, Kubernetes, named("kube-apiserver"), "", UsageServer, replicaAndCluster, false},
	{APIServerKubelet, Kubernetes, named("kube-apiserver-kubelet-client"), "", UsageClient, noSANs, false},
	{FrontProxyClient, FrontProxy, named("front-proxy-client"), "", UsageClient, noSANs, false},
	{ControllerManager, Kubernetes, named("system:kube-controller-manager"), "", UsageClient, noSANs, true},
	{Scheduler, Kubernetes, named("system:kube-scheduler"), "", UsageClient, noSANs, true},
	{Autoscaler, Kubernetes, named("cluster-autoscaler"), "", UsageClient, noSANs, true},
	{Addons, Kubernetes, named("quorate:addons"), "", UsageClient, noSANs, true},
	{Agent, Kubernetes, named("quorate:agent"), "", UsageClient, noSANs, true},
	{Kubelet, Kubernetes, nodeName, nodesGroup, UsageClient, noSANs, true},
	{KubeletServing, Kubernetes, named(""), "", UsageServer, replicaAndLoopback, false},
	{ControllerManagerServing, Kubernetes, named(""), "", UsageServer, replicaAndLoopback, false},
	{SchedulerServing, Kubernetes, named(""), "", UsageServer, replicaAndLoopback, false},
}

// Leaves is the table for one replica of one cluster: every certificate that it may have, in the order in which they
// are issued. The cluster must have its defaults and be valid; a range that does not parse, or a line for which nothing
// may be issued, is an error.
func Leaves(id replica.Identity, c *replica.Cluster) ([]Spec, error) {
	out := make([]Spec, 0, len(table))
	for _, r := range table {
		names, addresses, err := r.sans(id, c)
		if err != nil {
			return nil, fmt.Errorf("leaf %s: %w", r.leaf, err)
		}
		s := Spec{Leaf: r.leaf, Authority: r.authority, CommonName: r.cn(id, c), Organization: r.o,
			Usage: r.usage, Names: names, Addresses: addresses, Lifetime: LeafLifetime}
		if err := s.wellFormed(); err != nil {
			return nil, fmt.Errorf("leaf %s: %w", s.Leaf, err)
		}
		out = append(out, s)
	}
	return out, nil
}

// Kubeconfigs lists the leaves that also have a kubeconfig (Files.Kubeconfig).
func Kubeconfigs() []Leaf {
	var out []Leaf
	for _, r := range table {
		if r.kubeconfig {
			out = append(out, r.leaf)
		}
	}
	return out
}
