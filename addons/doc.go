// Package addons keeps a folder of manifests applied to the cluster. Every replica runs one manager, in a process of
// its own (`quorate addons run`), which knows nothing of the others: they agree by an inventory in the cluster.
//
//	folder ──► set: version, digest, objects ─┐
//	                                          ├─► plan.Stand ──► older, or another set: write nothing, and say so
//	cluster ─► inventory ─────────────────────┘      │
//	                                                 ▼ newest, or the same set
//	        for each stage (definitions, access and configuration, workloads, webhooks):
//	           observe its objects ──► plan.Decide ──► inventory, then server-side apply of what differs
//	                                                 │
//	                                                 ▼ all in place
//	           leftovers of former sets ──► plan.Judge ──► delete, or leave
//
// What is decided, and what is never done, is in package plan, which is pure. This package reads and writes.
//
// In the steady state it writes nothing and dry-runs nothing: it lists what bears its mark, and an object whose
// fingerprint is the one that was found to be right is left alone. What differs is first applied as a dry run, and only
// a difference is written. So managers that come to the same object at the same time do not fight: what the first has
// written is no difference to the second.
//
// Who else writes an object: a newer set is noticed right before each write, by the inventory (fence). Somebody who
// changes it back each time is given way to, with a pause that grows (plan.Contest).
//
// Guarantees: an apiserver that fails is one fault. Otherwise each object fails by itself, with its own back-off, and
// is told of as an Event and in the status. A pass that is broken off anywhere is repaired by the next one. Nothing is
// remembered between two processes.
//
// It does not elect a leader, render templates of its own, fetch anything but from the folder, or pull images.
package addons
