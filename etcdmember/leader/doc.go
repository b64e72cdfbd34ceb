// Package leader is what the leader's agent does about the other members, as pure code: rows 40 to 49 of the
// membership's table. docs/membership.md is the specification.
//
//	Ring, and the one before  --Decide-->  Plan, one step
//
// What a record says of orders, incarnations and VMs that are gone, it takes from package table, which decides about
// this replica's own member. The same input gives the same answer, and test/house/pure_test.go keeps it so.
package leader
