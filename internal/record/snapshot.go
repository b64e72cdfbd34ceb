package record

import "time"

// Snapshot is snapshots/<e>/<revision>-<time>.json: what the compressed database of the same name holds. It is written
// last, and its writer has verified the database before: a database without it does not count, and retention clears it
// away.
type Snapshot struct {
	// Name is <e>/<revision>-<time>, as people and orders name it.
	Name  string `json:"name"`
	Epoch uint64 `json:"epoch"`
	// Revision is the newest key revision in it; Time is before the moment that it shows.
	Revision int64     `json:"revision"`
	Time     time.Time `json:"time"`
	// SHA256 and Size, in bytes, are of the file as etcd sent it, uncompressed and with the hash that etcd appends.
	SHA256 string `json:"sha256"`
	Size   int64  `json:"size"`
	// Stored is the size of the compressed object, in bytes.
	Stored int64 `json:"stored"`
	// Keys is the number of key revisions in it, deletions too: not of living keys.
	Keys int `json:"keys,omitempty"`
	// EtcdVersion is the version of the member that sent it.
	EtcdVersion string `json:"etcdVersion,omitempty"`
	// Bundle is the generation of the bundle whose encryption keys the cluster used then.
	Bundle uint64 `json:"bundle,omitempty"`
	// ClusterID and MemberID are of the member that sent it; Term and Index say how far its log was applied, at the
	// least.
	ClusterID MemberID `json:"clusterID,omitempty"`
	MemberID  MemberID `json:"memberID,omitempty"`
	Term      uint64   `json:"term,omitempty"`
	Index     uint64   `json:"index,omitempty"`
	// By is the replica that saved it, Why what for: "schedule", an order, "by hand".
	By  string `json:"by,omitempty"`
	Why string `json:"why,omitempty"`
	// Written is when the store says that this was written, by its own clock; zero: it does not say. Only Snapshots
	// sets it.
	Written time.Time `json:"-"`
}

// Taken is what the name of a snapshot says.
type Taken struct {
	Name     string
	Epoch    uint64
	Revision int64
	Time     time.Time
}
