// Package gce asks Google Compute Engine: the metadata server about this VM (Metadata), the Compute API about all VMs and
// disks of the cluster (Compute). Both only read.
//
// The adapters translate and retry, and hold no policy. What they promise to those who decide by their answers:
//
//   - An answer is whole or it is an error. A list with a zone that did not answer, a page that is missing, a web page
//     in place of metadata: errors, never a shorter answer. "Absent" is said only by the server that knows.
//   - Every question ends: it is retried for their Wait (30 s where it is not given) and no longer, each try gets a
//     sixth of that, and the error says which server, which question, how long and the last thing that went wrong.
//   - The caller does not retry again.
//
// The metadata client ignores GCE_METADATA_HOST, proxies and redirects: whoever could set those would decide who this
// replica is. Only MetadataConfig.Host, which cmd sets, leads it elsewhere. The Compute client takes its token from the
// same place; without a Metadata, on an operator's machine, from Google's default credentials; and sends none at all
// where an endpoint is given.
package gce
