// Package kubeletwatch decides what is done about the kubelet of a master and about its container runtime.
//
//	what systemd says of the two units ──┐
//	the kubelet's pings, port, listener ─┼─► Decide ─► a State with its reason, and at most one Act
//	the runtime's answers (CRI) ─────────┘
//
// systemd starts again what ends, and aborts what stops pinging. This is the second watchdog: for what these two cannot
// see (a runtime that hangs, a start-up that hangs, a process that SIGKILL does not end) and for what they must not be
// left to do for ever.
//
// Guarantees: a kubelet that pings is never restarted, whatever its port says, unless its start-up hangs. A runtime is
// restarted only where its unit keeps the containers. What a person stopped or masked stays so. But for parking,
// no unit is acted on more than four times without half an hour of health in between. A unit is parked only for its
// main process or a former one. No text of a log decides anything.
//
// It is pure: it neither reads nor acts, and times are durations since the VM's boot that the caller gives.
package kubeletwatch
