// Package controlplane turns who a replica is, and the files that its certificates are in, into the processes of its
// Kubernetes control plane: programs, flags, probes, and the small configuration files that the flags name.
//
//	Identity, Cluster, Files, other members ──> Components ──> []supervisor.Spec, []File
//
//	kube-apiserver ──┬─> kube-scheduler
//	                 ├─> kube-controller-manager
//	                 ├─> cluster-autoscaler            (where it is enabled)
//	                 └─> what the configuration declares
//
// Components is pure: the same input gives the same command lines, byte for byte, so that the agent can compare two of
// them and know whether a process must be restarted. It writes nothing; the agent writes the files before it starts the
// processes. CheckBinary alone touches the machine.
//
// Guarantees: nobody anonymous reaches more than /livez, /readyz and /healthz of the apiserver; every connection is TLS
// 1.2 or newer; every component has a client certificate of its own; no private key is on a command line; an extra
// argument of the configuration cannot take away what quorate's own work rests on (Validate names it and says why).
//
// The package does not issue certificates or write kubeconfigs (certs), run processes (supervisor), or decide which
// etcd members an apiserver talks to (agent).
package controlplane
