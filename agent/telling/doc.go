// Package telling tells people how this replica is who do not ask it: by a report and events in the record's bucket,
// and by events of this master's Node.
//
//	Status ─► reportOf ─► Outbox ─► report, events        the bucket, for `quorate health` and `quorate why`
//	                        └─────► what is important ──► NodeEvents ─► the apiserver, for kubectl
//	the watch of the kubelet ──────────────────────────►
//
// Guarantees: nobody waits for it, but the agent's end for half a second. What changes is in the bucket within two
// seconds, if that answers. What the report before said is noted before it is overwritten. One master tells at most 120
// events an hour at its Node.
//
// Nothing decides by what it writes: what decides does not know reports. It does not say what is due: report.Outbox
// does.
package telling
