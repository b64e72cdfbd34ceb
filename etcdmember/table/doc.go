// Package table is the membership's table as pure code: what one replica does next about its etcd member, and what the
// leader's agent does about the others. docs/membership.md is the specification, ../DESIGN.md argues why it is safe.
//
//	Facts  --Classify-->  Observation  --Decide-->  Plan, one step             rows 0 to 30
//	Ring, and the one before  --DecideOnLeader-->  Plan, one step          rows 40 to 49
//	PurgeFacts  --DecidePurge-->  one archive that may go
//	Last  --Explain-->  Explanation, for people
//
// The same input gives the same answer: nothing here reads a clock, a file or a server, and test/pure_test.go keeps it
// so. Package etcdmember gathers the facts, and package acts takes the steps.
package table
