package controlplane

import "github.com/quorate/quorate/internal/replica"

// Lease names the Lease by which a component elects its leader.
type Lease struct {
	Component, Namespace, Name string
	// HolderIsHost says that the holder's identity is the bare host name, so that a second process on the same host
	// would count as the same leader. Otherwise it is the host name, "_" and a random part that is new at every start.
	HolderIsHost bool
}

// Leases are those of the enabled components that elect themselves, for who shows them, checks that they are fresh, and
// releases one whose process has ended.
func Leases(c *replica.Cluster) []Lease {
	var out []Lease
	for _, l := range []Lease{
		{Component: replica.Scheduler, Namespace: "kube-system", Name: "kube-scheduler"},
		{Component: replica.ControllerManager, Namespace: "kube-system", Name: "kube-controller-manager"},
		{Component: replica.Autoscaler, Namespace: "kube-system", Name: "cluster-autoscaler", HolderIsHost: true},
	} {
		if enabled(c, l.Component) {
			out = append(out, l)
		}
	}
	return out
}
