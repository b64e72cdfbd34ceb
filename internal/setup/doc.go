// Package setup judges whether a GCE project is set up as quorate needs it: the bucket of the record, the key, who may
// do what, the masters' VMs and disks, the network. It is the one list of checks of `quorate gce check`, `quorate
// record check`, and of `quorate create` and `quorate add` before they make anything.
//
//	wanted.go      a document -> what the project has to have, and the masters that are to be made
//	operator.go    what who runs a command may do
//	rights.go      what the masters' service account may do
//	the others     the subjects that they are named for
//
//	internal/gce, internal/record/bucket       this package                   cmd/quorate
//	   ask Google's APIs            Facts  →   Judge, JudgeBucket  →  Findings   print
//
// It is pure: facts in, findings out. What could not be asked is a finding of its own and never counts as whole. What
// only a master can see (its metadata, routes, clock) is not judged here.
package setup
