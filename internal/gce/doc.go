// Package gce asks Google Compute Engine: the metadata server about this VM (Metadata), the Compute API about all VMs
// and disks of the cluster (Compute; Operator also makes and deletes them). It also has the two ways to be somebody for
// Google's services: the VM's service account (Metadata.Client) for an agent, the default credentials (UserClient) for
// an operator's command.
//
// The adapters translate and retry, and hold no policy. What they promise to those who decide by their answers:
//
//   - An answer is whole or it is an error. A list with a zone that did not answer, a page that is missing, a web page
//     in place of metadata: errors, never a shorter answer. "Absent" is said only by the server that knows.
//   - Every question ends: it is retried for their Wait (30 s where it is not given) and no longer, each try gets a
//     sixth of that, and the error says which server, which question, how long and the last thing that went wrong.
//   - The caller does not retry again.
//
// What changes a project (InsertDisk, InsertVM, DeleteVM, DeleteDisk, StopInstance, Attach, Detach) begins an operation
// and waits for it. Each can be repeated after whatever happened: what is done is found done. What is deleted is named
// by its numeric id, so a successor under its name is never meant. A failure that an operator can do something about is
// a *Refused.
//
// The metadata client ignores GCE_METADATA_HOST, proxies and redirects: whoever could set those would decide who this
// replica is. Only MetadataConfig.Host, which cmd sets, leads it elsewhere. Which of the two clients is used follows
// from who calls, and is never found out by asking whether there is a metadata server.
package gce
