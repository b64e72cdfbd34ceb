// Package ringtest has the tests of the membership that need real members. Each runs in a network namespace of its own:
// real etcd members, each in a process, and their real agents, which share a record and a Compute API in memory. There
// is no VM and no control plane. The tests wait for conditions, and most of what they take is waiting.
package ringtest
