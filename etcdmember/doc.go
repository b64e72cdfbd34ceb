// Package etcdmember looks after one replica's place in the etcd cluster: whether to seed it, join it, go on from the
// disk or stay away, and, on the leader's node, who is promoted and who is removed. docs/membership.md is the
// specification, DESIGN.md argues why that is safe.
//
//	observe (disk, record, peers, Compute API)  ->  table.Facts
//	table.Classify(Facts)                       ->  Observation, the words of the membership table
//	table.Decide(now, Observation)              ->  Plan, one step
//	acts.Actor.Take(Plan)                       ->  and observe again, whatever came of it
//
// What decides is package table, which is pure. This package observes what that needs, with datadir for the disk, and
// has the step taken by acts.
//
// The member itself is a child process that embeds etcd (member.Run): etcd's code may exit its process at any time, and
// what repairs it must outlive that.
//
// Guarantees: a new cluster forms only with an inception in the record and the newest claim in hand; a member id starts
// only on the directory that holds all it ever acknowledged; a voter is removed only by its own successor, by order, or
// once it is proven gone; no directory is deleted that may be needed, it is archived; every wait has a row, a name and
// a reason.
//
// It does not issue certificates, run the apiserver, or talk to GCE: what it needs of those are interfaces (Record,
// ComputeAPI, Child).
package etcdmember
