// Package plan decides what the operator's commands do about a cluster's VMs and disks: add, remove, replace, roll,
// create, delete. It is pure: an Inventory and a Wish go in, a Plan of small steps comes out.
//
//	read everything ──▶ Resolve (once: who is meant) ──▶ Make ──▶ take the first step ──┐
//	                                                      ▲                            │
//	                                                      └────── read everything ◀────┘
//
// Only the first step of a plan is taken. Then everything is read again and Make is asked again, until it returns no
// step. So a crash, a time-out after the effect, and a step that somebody else took are all the same: the next plan
// begins with what is left. A resolved Wish names one VM by its numeric id, so a VM that was recreated under the name
// meanwhile is never the one that is removed.
//
// Guarantees:
//
//   - Nothing is removed because something is absent. A VM is deleted once its member has left by order, which etcd's
//     leader checks as it removes it; or for a replacement in its place, while the others are a quorum.
//   - A list that is not whole, or that contradicts the record or the leader, makes no step at all, but waiting.
//   - No step leaves fewer voters in touch than a quorum. What would is refused, and the refusal says why. A cluster of
//     one replica is replaced in its place only where the operator accepts that nobody is served meanwhile.
//   - A data disk is deleted only where the operator asked for it, by its numeric id, and after its VM.
//   - The address of a load balancer on demand is taken from who has it only where the operator accepts the outage.
//     While nobody has it, the next step gives it to who is to have it.
//   - While nobody leads, a VM that was taken away to be made anew comes back first, whoever came to the cluster
//     meanwhile and whoever has the address.
//
// It reads no clock, asks nobody, and knows no load balancer but as resources with fields, and by who has the address.
package plan
