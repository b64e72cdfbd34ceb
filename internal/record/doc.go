// Package record is what a record says: the few facts about a cluster that must outlive its etcd. They are that it was
// created on purpose, who may form which epoch of it, which incarnation of a replica is current, what the operator
// ordered, and how the members have last been seen. membership.md lists them; the agent decides nothing dangerous
// without reading them.
//
//	objects.go, snapshot.go    the objects
//	key.go                     their names
//	content.go                 what makes an object unfit to decide anything
//	View, Remains              all of them, as one listing found them
//	questions.go               what is asked of a View in more than one place
//	damage.go                  by what a View shows that objects of it are lost
//
// The package is values only: it reads no clock and asks no server. Package bucket keeps the objects.
package record
