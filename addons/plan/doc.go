// Package plan decides what the add-on manager does next, from three things that others have read: the set in the
// folder, the inventory in the cluster, and the live objects.
//
//	folder ────► Set ───────┐
//	ConfigMap ─► Inventory ─┼─► Stand: may this manager write at all?
//	                        │
//	cluster ───► Live ──────┼─► Decide, of each object of the set: create, check, keep, leave,
//	                        │           refuse, pause, fail, yield, wait
//	                        │
//	                        └─► Leftovers and Judge, of what the set has no more: delete, release, forget, stay
//
// Guarantees:
//   - Only the newest set writes. An older one, and another one of the same version, change nothing.
//   - Only what bears this manager's mark and its field owner, and stands in the inventory, is ever deleted.
//   - Nothing is deleted for what is missing: a set that is empty, has faults or is not in place yet deletes nothing.
//   - Namespaces and CustomResourceDefinitions are never deleted: that would take what others have made with them.
//
// It is pure: it cannot ask the cluster or the clock.
package plan
