// Package localgce is a Google Compute Engine project on one machine, for the demo and for the tests that span
// replicas.
//
//	host ── one veth, one route ──┐
//	                              │        fabric: a network namespace with the bridge br0
//	   Compute API and bucket ────┤        (subnet's .1, port 8080), the endpoint's balanced route, nft cuts
//	   prober ────────────────────┤
//	                              ├── vm a: net + pid + mount + uts + ipc + cgroup namespace,
//	                              │        169.254.169.254 on its loopback, an overlay as boot disk,
//	                              │        a loop device as data disk
//	                              ├── vm b
//	                              └── vm c
//
// A Project owns all of it. Start makes it, its methods do what the cloud or fate would do to it (StartVM, KillVM,
// FreezeVM, Cut, Partition, RecreateVM ...), Close leaves no trace. Run serves the same as verbs (verbs.go) on a unix
// socket in the state folder, for cmd/localgce (Client). A program that calls Start must call RunInitIfAsked first
// thing in main (or TestMain), because a VM's pid 1 is the same program started again.
//
// This package is the project: what VMs, disks and faults there are, and what befalls them. Its parts know nothing of
// it nor, mostly, of each other: what Google answers (compute, metadata, buckets, settings, resolver; fault is in
// front of each), what is made of the machine (network, balancer, firewall, disk, cgroup, names) and what runs in a VM
// (guest).
//
// There are two kinds of VM (Kind). ProcessVMs have the machine's own tree and localgce's pid 1, which keeps one agent
// as systemd would: they boot in 0.1 s. SystemdVMs have the tree of a baked image and real systemd, which starts the
// image's units: the data disk's, containerd, the kubelet, quorate. What of the image would touch the machine is
// masked, and what a VM without a kernel of its own needs besides is in guest/systemdfiles.go, each line with its
// reason. All faults befall either kind.
//
// Faults are real ones: disks that are full, frozen, torn, copied or corrupt (FillDisk, FreezeDisk, TearDisk,
// TearDiskByCopy, CloneDisk, CorruptDisk ...), VMs that are deleted, or left running behind their successors of another
// (RecreateVM) or the same instance id (HostError), broken links, services that fail or lie.
//
// IAM is in force for what VMs ask of bucket and Compute API: they may do what the policies and roles of the settings
// grant the masters' account, as docs/iam.md has them. Who asks from outside may do anything.
//
// The Compute API makes, stops and deletes VMs and disks as Google's does: by operations that take their time, once for
// each requestId, and not what another operation is changing. It is for what runs outside of the VMs; they only read,
// and attach themselves to endpoint groups and detach themselves where their account's roles allow it. A forwarding
// rule is in force: its address leads to the endpoints of its backend service's groups that pass its health check, some
// seconds after a change (package balancer). Until one has the project's endpoint, that leads to every VM, in a zone
// with an endpoint group to what is attached to it. Firewall rules are in force for what reaches VMs (package
// firewall), from the first that is inserted on; until then everything gets everywhere, whatever the settings show. All
// of these are lost when the project ends.
// A request that asks for what cannot be had here is refused with the field's name: a VM has a boot disk of an image
// (all boot the same), a data disk that is there, the one network and the one service account. Its faults meet one
// request in so many: the nth, its answer alone, its operation (fault.Fault).
//
// Guarantees: every name on the machine (namespaces, links, cgroups) is made of a hash of the state folder, so a
// project that died without a word is swept by the next Start or by Sweep, and two projects with different ranges live
// side by side; nothing is mounted outside the VMs' own mount namespaces (with Config.Reflink one thing is, in no
// namespace at all); a VM dies when its project's process dies; a powered-off VM is silent on the network before its
// processes die.
//
// The network is made by ip and nft commands: a fault can be reproduced by pasting a line. Single processes need no
// verb: `localgce vm exec NAME -- kill -STOP -1` makes all of a VM's stand still while its connections stay, and `--
// pkill -KILL run-etcd` ends one.
//
// The bucket is a fake with its objects as files in the state folder (buckets/record), so that the demo, the cases and
// the benchmarks run on the driver that production runs.
//
// A copy of a disk in use is what a power cut would leave, and what a crash-consistent snapshot of a persistent disk
// holds, where files can be cloned (FICLONE): where the state folder's file system can (XFS, btrfs), or with
// Config.Reflink. What the VM's kernel has handed to the disk is in the copy, also what it was about to sync; what is
// still in its page cache is not. Elsewhere the disk is frozen while it is copied, so the copy also has what was not
// yet synced. A write-back cache of the disk's own, which could lose or reorder writes between two flushes, is not
// emulated.
//
// The Compute API answers after 0.2 to 1.5 s, its operations take 5 to 30 s besides what they do, and the bucket
// answers after 50 to 200 ms, as Google's are said to; with Config.Prompt they do so at once.
//
// It does not emulate quotas but by faults, it does not boot a kernel: all VMs share the machine's kernel
// and clock, and data written but not synced survives a kill (TearDisk and TearDiskByCopy lose it). In SystemdVMs no
// process has a lower OOM score than its parent where the machine gives no CAP_SYS_RESOURCE, and memory limits and
// their ends are those of the machine's cgroup version. On a machine that has cgroup2 alone they have not been tried.
package localgce
