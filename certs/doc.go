// Package certs makes and keeps the certificates of one replica: the bundle of CA keys and shared secrets that the
// whole cluster has in common, and the leaves that each replica issues for itself.
//
//	NewBundle ──► Encode ──► sealed in the record ──► DecodeBundle
//	                                                       │
//	identity + cluster ──► Leaves (the table) ──► Ensure ──┤  found on disk ──► Decide ──► keep, renew or replace
//	                                                       ▼
//	                             policy ──► cfssl ──► read back, compared ──► one PEM file, replaced by rename
//
// Guarantees:
//   - A leaf's key is made on the replica and never leaves it; the four CA keys are never written but for the one that
//     the controller-manager signs with, and that one to the volatile folder.
//   - A leaf file holds a key and the certificate that fits it, after a crash at any step: one file, one rename.
//   - Nothing is issued to a replica that is not in the table for it, whatever cfssl makes of it: the policy checks the
//     form of what goes in, and what comes out is parsed again and compared.
//   - Ensure can be run again after any error and any crash. It writes nothing where nothing has to change. A replica
//     whose leaves have all expired heals itself when the bundle is at hand.
//   - A bundle older than the one that the disk has seen, of another cluster, or with other CAs in the same generation
//     is refused. So is a newer one with which masters on the former one could not go on. Where the disk has lost the
//     file that says what it has seen, the other files in its folder say so.
//   - What cannot be read counts neither as missing nor as damaged. What is damaged is put aside, and nothing put aside
//     before is lost by it.
//   - Keys do not reach logs: Bundle prints as its generation and nothing more.
//   - An escrow (Escrow, OpenEscrow) is the whole bundle under a passphrase. What comes back is decoded as strictly,
//     and proved by issuing every leaf from it (Prove) before anything is written.
//
// It does not fetch, seal or store the bundle (internal/record/bucket), does not watch the clock (the agent calls
// Ensure again), and restarts nobody: every reader of the leaf files takes a renewed certificate from the file. A
// changed trust bundle or service-account key is read only at a process's start; Report names it so that the agent can
// act.
//
// This is the only package that imports cfssl, whose own policy checks neither addresses nor organizations nor the CA's
// lifetime. cfssl_test.go documents, against the pinned version, each behaviour that the policy layer exists for.
package certs
