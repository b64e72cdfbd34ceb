// Package endpoint keeps this VM reachable at the cluster's endpoint, in both ways in which a load balancer needs it.
//
//	Routes ── the kernel takes what is forwarded to this VM for its own   from the agent's start on
//	Backend ─ the load balancer has this VM among its backends            once the apiserver is ready, until a stop
//
// Guarantees: what somebody takes away is put back. What another has made is left alone: a route without the mark, and
// every other backend. Nothing waits for either of the two; what cannot be done is a wait for people, with what they
// can do about it.
//
// It does not judge whether the apiserver serves clients: the load balancer's health check does. It makes no load
// balancer: package fleet does.
package endpoint
