package controlplane

import (
	"maps"
	"slices"

	"github.com/quorate/quorate/certs"
	"github.com/quorate/quorate/internal/replica"
)

// Lease names the Lease by which a component elects its leader.
type Lease struct {
	Component, Namespace, Name string
	// HolderIsHost says that the holder's identity is the bare host name, so that a second process on the same host
	// would count as the same leader. Otherwise it is the host name, "_" and a random part that is new at every start.
	HolderIsHost bool
	// Leaf is the certificate with which the component renews it.
	Leaf certs.Leaf
}

// Leases are those of the enabled components that elect themselves, for who shows them, checks that they are fresh, and
// releases one whose process has ended.
func Leases(c *replica.Cluster) []Lease {
	var out []Lease
	for _, l := range []Lease{
		{Component: replica.Scheduler, Namespace: "kube-system", Name: "kube-scheduler", Leaf: certs.Scheduler},
		{Component: replica.ControllerManager, Namespace: "kube-system", Name: "kube-controller-manager",
			Leaf: certs.ControllerManager},
		{Component: replica.Autoscaler, Namespace: "kube-system", Name: "cluster-autoscaler", HolderIsHost: true,
			Leaf: certs.Autoscaler},
	} {
		if enabled(c, l.Component) {
			out = append(out, l)
		}
	}
	return out
}

// Elected are the names of the enabled components that run only while the agent holds its Lease, sorted.
func Elected(c *replica.Cluster) []string {
	var out []string
	for _, name := range slices.Sorted(maps.Keys(c.Components)) {
		if c.Components[name].Elect == replica.ElectAgent && enabled(c, name) {
			out = append(out, name)
		}
	}
	return out
}
