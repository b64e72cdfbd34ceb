// Package setup judges whether a GCE project is set up as quorate needs it: the bucket of the record, the key, who may
// do what, the masters' VMs and disks, the network. It is the one list of checks of `quorate gce check` and `quorate
// record check`.
//
//	internal/gce, internal/record/bucket       this package                   cmd/quorate
//	   ask Google's APIs            Facts  →   Judge, JudgeBucket  →  Findings   print
//
// It is pure: facts in, findings out. What could not be asked is a finding of its own and never counts as whole. What
// only a master can see (its metadata, routes, clock) is not judged here.
package setup
