// Package lease decides about the leases by which the control plane elects its leaders: whose lease an agent may
// release, which leader hangs, and what may run under a lease that the agent holds itself.
//
//	a component ended ─────────────► MayRelease ──► its lease is freed, or runs out
//	a lease as it was seen ─► Watch ─► Judge ─────► a leader that hangs is started again
//	the agent's own renewals ──────► Times.Decide ► what runs under its lease goes on, stops, is killed
//
// Guarantees: a lease is released only if what held it has ended on this machine. No clock of another machine counts:
// how old a lease is follows from when this agent saw it change.
//
// It is pure: package election and the agent do what it says.
package lease
