// Package kubelet keeps watch over this master's kubelet and its container runtime, which are units of systemd.
//
//	Units, Runtime, Port ─► observe ─► Decide ─► act ─► Records: log, status, metrics, Node events
//
// Decide is kubeletwatch's: what is decided, and what never happens, stands there. This package asks the questions,
// each in a goroutine that may hang alone, and carries the decision out: it writes down that it will act, has the
// process write its stacks, acts, and follows what comes of it.
//
// What is written down lies on a tmpfs. It counts for one boot of the VM, also for the next agent.
package kubelet
