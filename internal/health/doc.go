// Package health judges a cluster from outside: whether it serves, how many more failures it survives, and what is
// wrong, the cause before what follows from it.
//
//	facts.go      what was found out: reports with their ages, the endpoint's answer, orders, VMs
//	judge.go      Judge: Facts -> Verdict
//	voters.go     who votes, who is heard of, and what may still be lost
//	replicas.go   how each replica is
//	self.go       how one replica is, by what it says of itself
//	found.go      the findings by themselves
//	catalog.go    each finding's name, how bad it is, and what it follows from
//	fold.go       consequences below their cause
//	remedy.go     commands to paste
//
// Guarantees: the same facts give the same verdict. Reports may be old, wrong or missing. A verdict is for people. No
// agent reads it.
//
// It does not ask anybody, and does not print.
package health
