// Package fleet carries out what package plan decides: the operator's commands that make, delete and replace masters'
// VMs.
//
//	inventory.go      reads everything there is: the record, the Compute API's lists, the replicas' reports
//	record.go         the record -> plan.Record
//	members.go        the reports -> plan.Members: who is believed
//	run.go            read, plan, ask, take the first step, read again
//	turn.go           what follows from one reading: a step, a wait, the end
//	act.go            one step: a call of the Compute API, or an order in the record
//	spec.go           what a VM and its data disk are made of
//	surroundings.go   what the document asks for around the masters: load balancer, firewall rules
//
// Nobody outside can ask etcd, so who the members are is known from a report: that of the replica whose member leads.
// An agent reports within two seconds of a change and at least each 30 s.
//
//   - A report of the leader that is not older than health.SilentAfter is enough to plan by, and to show.
//   - A step that takes something away (an order to leave, a VM, a disk) needs more: a report that the leader wrote
//     after the step before it ended, or, for the first, after the operator has agreed. Before and after are by the
//     store's times of one and the same object, and by nobody's clock. Such a report is waited for, for 45 s. Then
//     everything is read and planned again, and the step is taken only if it is still the first.
//   - If two replicas say that they lead, or none does, nobody is believed. One that led before does not count where
//     the one that leads now has reported since, and does not hear of it.
//   - A replica is ready if its own report says so, of the VM that the Compute API lists and of the member that the
//     leader lists, and package health finds it well by it.
//
// Guarantees: a command that stopped, wherever, is completed by running it again. A step is never taken by a list of
// VMs that is not whole. Interrupted, a command ends the step that is under way, and takes no other.
//
// What surrounds the masters is made by create and deleted by delete, where the document asks for it. The service
// account, the bucket and the key are made by hand.
package fleet
