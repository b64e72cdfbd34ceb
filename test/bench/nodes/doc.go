// Package nodes imitates the nodes of a cluster, as far as the API sees them: each has the kubelet's connection and
// kube-proxy's, with the identities, rights, time-outs and request limits of these; it registers, renews its lease each
// 10 s, posts its status each five minutes, holds six watches, and runs the pods that the scheduler gives it. What such
// a node does after a fault is done by the code that does it in a real one: client-go's informers and transports, and
// the lease controller that the kubelet has. There are no containers, no Events and no images behind it.
//
// Sources: Kubernetes 1.36's pkg/kubelet (kubelet.go, kubelet_node_status.go), cmd/kubelet/app/server.go (its clients'
// time-outs) and cmd/kube-proxy.
package nodes
