// Package table is the membership's table as pure code: what one replica does next about its own etcd member.
// docs/membership.md is the specification, ../DESIGN.md argues why it is safe.
//
//	Facts  --Classify-->  Observation  --Decide-->  Plan, one step             rows 0 to 30
//	PurgeFacts  --DecidePurge-->  one archive that may go
//
// Package leader has the rows of the leader loop, 40 to 49, and package explain says in words what was decided.
//
// The same input gives the same answer: nothing here reads a clock, a file or a server, and test/house keeps it so.
// Package etcdmember gathers the facts, and package acts takes the steps.
package table
