package health

import "slices"

// Level is how bad a finding is.
type Level string

// The levels. Note is what a person should know and need not do anything about: it passes by itself, or was wanted.
const (
	Broken Level = "broken" // nobody is served, or data are at risk
	Warn   Level = "warning"
	Note   Level = "note"
)

// The findings that no replica's wait names. The others have the names of waits.
const (
	VMMissing          = "vm-missing"
	VMNotRunning       = "vm-not-running"
	ReplicaNotHeard    = "replica-not-heard"
	ReplicaIsStopped   = "replica-stopped"
	ReplicaIsCutOff    = "replica-cut-off"
	ReplicaIsBooting   = "replica-booting"
	ReplicaHasNoReport = "replica-without-report"
	ReplicasMissing    = "replicas-missing"
	NoReports          = "no-reports"
	RecordUnreadHere   = "record-unreadable-here"
	VMsUnreadHere      = "vms-unreadable-here"
	NoLeader           = "no-leader"
	EtcdEnded          = "etcd-ended"
	ComponentDown      = "component-down"
	CertificateExpires = "certificate-expires"
	EndpointNotReady   = "endpoint-not-ready"
	EndpointSilent     = "endpoint-silent"
	Paused             = "membership-paused"
)

// Own are the findings that no replica's wait names.
var Own = []string{VMMissing, VMNotRunning, ReplicaNotHeard, ReplicaIsStopped, ReplicaIsCutOff, ReplicaIsBooting,
	ReplicaHasNoReport, ReplicasMissing, NoReports, RecordUnreadHere, VMsUnreadHere, NoLeader, EtcdEnded,
	ComponentDown, CertificateExpires, EndpointNotReady, EndpointSilent, Paused}

// entry is what is known of a finding by its name.
type entry struct {
	name  string
	level Level
	// here are the causes on the same replica, anywhere those on any replica or of the cluster, that it follows from.
	// They stand above it in the catalog.
	here, anywhere []string
}

// Groups of causes.
var (
	// What keeps a replica from running as it should.
	noDisk   = []string{"data-disk-missing", "data-disk-damaged", "data-disk-hangs", "data-disk-shared"}
	badDisk  = join(noDisk, []string{"no-room"})
	badPlace = []string{"superseded", "foreign-disk", "older-epoch", "stopped-id", "removed", "fault", "halt", "left"}
	noBundle = []string{"clock-wrong", "bundle-unreadable", "bundle-refused"}
	oldKeys  = join(noBundle, []string{"certificates-not-renewed"})
	badKeys  = join(oldKeys, []string{CertificateExpires})
	noRecord = []string{"record-lost", "record-rolled-back", "record-unreadable"}
	absent   = []string{VMMissing, VMNotRunning, ReplicaIsStopped, ReplicaNotHeard, ReplicaHasNoReport}
	apart    = []string{"peers-do-not-connect", ReplicaIsCutOff, EtcdEnded, "etcd-starts"}
	// How an epoch ends, and what keeps etcd from having a leader.
	restoring  = []string{"restore-unfit", "source-gone", "restore-waits"}
	ending     = join(restoring, []string{"epoch-closed"})
	noQuorum   = []string{"no-quorum"}
	survivors  = []string{"survivor-waits-for-disk", "survivors-not-enough", "restore-offered"}
	quorumless = join(noQuorum, []string{"no-quorum-empty-disk"}, survivors)
	noVotes    = join(quorumless, []string{NoLeader})
	noBackend  = []string{"endpoint-route-missing", "endpoint-not-attached"}
	// What keeps the members from serving, and the components.
	badMember = []string{"etcd-does-not-stay-up", "needed-but-broken", "step-failed"}
	badData   = []string{"corrupt", "corrupt-member", "no-space"}
	noServer  = []string{"program-unusable", "component-not-ready", "control-plane-not-fitted", ComponentDown}
)

// catalog is ordered by how deep a cause lies: what stands first explains what follows. A test compares it with the
// names of the waits in the code.
var catalog = []entry{
	// What is wanted.
	{name: Paused, level: Note},
	// What lies outside the replicas.
	{name: RecordUnreadHere, level: Warn},
	{name: VMsUnreadHere, level: Warn},
	{name: NoReports, level: Warn, anywhere: []string{RecordUnreadHere}},
	{name: "record-lost", level: Broken},
	{name: "record-rolled-back", level: Broken},
	{name: "record-unreadable", level: Warn},
	{name: "mark-not-written", level: Warn, here: noRecord},
	{name: "no-instance-list", level: Warn},
	{name: "unknown-cluster", level: Broken},
	{name: VMMissing, level: Warn},
	{name: VMNotRunning, level: Warn},
	// The machine.
	{name: "data-disk-missing", level: Warn},
	{name: "data-disk-damaged", level: Warn},
	{name: "data-disk-hangs", level: Warn},
	{name: "data-disk-shared", level: Broken},
	{name: "no-room", level: Warn, here: noDisk},
	{name: "disk-nearly-full", level: Warn, here: badDisk},
	{name: "clock-wrong", level: Warn},
	{name: "document-refused", level: Warn},
	{name: "spot-vm", level: Warn},
	{name: "program-unusable", level: Warn},
	{name: "bundle-unreadable", level: Warn, here: noRecord},
	{name: "bundle-refused", level: Warn, here: []string{"clock-wrong"}},
	{name: "certificates-not-renewed", level: Warn, here: join(noRecord, badDisk, noBundle,
		[]string{"disk-nearly-full"})},
	{name: CertificateExpires, level: Warn, here: join(badDisk, oldKeys)},
	// The replica's place.
	{name: "superseded", level: Warn},
	{name: "foreign-disk", level: Warn},
	{name: "older-epoch", level: Warn},
	{name: "stopped-id", level: Warn},
	{name: "fault", level: Warn},
	{name: "halt", level: Warn},
	{name: "left", level: Note},
	{name: "removed", level: Warn},
	{name: "preflight", level: Warn, here: join(badDisk, []string{"program-unusable"})},
	// The data.
	{name: "corrupt", level: Broken},
	{name: "corrupt-member", level: Warn, anywhere: []string{"corrupt"}},
	{name: "no-space", level: Broken},
	// Who is away.
	{name: ReplicaIsStopped, level: Note, here: []string{VMMissing, VMNotRunning}},
	{name: ReplicaNotHeard, level: Warn, here: []string{VMMissing, VMNotRunning}},
	{name: ReplicaHasNoReport, level: Warn, here: []string{VMMissing, VMNotRunning}, anywhere: []string{NoReports}},
	{name: "peers-do-not-connect", level: Warn, anywhere: absent},
	{name: "agent-crash-looping", level: Warn, here: join(badDisk, badPlace, badKeys, noRecord,
		[]string{"document-refused", "program-unusable"})},
	// The member.
	{name: "needed-but-broken", level: Warn, here: badDisk},
	{name: "etcd-does-not-stay-up", level: Warn, here: join(badDisk, badPlace, []string{"needed-but-broken"})},
	{name: "step-failed", level: Warn, here: join(badDisk, noRecord, badKeys), anywhere: absent},
	{name: EtcdEnded, level: Warn, here: join(badDisk, badPlace, []string{"agent-crash-looping", "needed-but-broken",
		"etcd-does-not-stay-up"})},
	{name: "etcd-starts", level: Warn, here: join(badDisk, badPlace, badMember, []string{EtcdEnded})},
	// Where etcd has just been started once more, it is not yet heard of either.
	{name: ReplicaIsCutOff, level: Warn, here: []string{"peers-do-not-connect", "no-room", "needed-but-broken",
		"etcd-does-not-stay-up", "etcd-starts"}},
	// An end, and the quorum.
	{name: "restore-unfit", level: Broken},
	{name: "source-gone", level: Broken},
	{name: "restore-waits", level: Broken, anywhere: []string{"restore-unfit", "source-gone"}},
	{name: "epoch-closed", level: Broken, anywhere: restoring},
	{name: "no-quorum", level: Broken, here: badDisk, anywhere: join(absent, apart, badMember, ending, badDisk)},
	{name: "survivor-waits-for-disk", level: Broken, anywhere: join(absent, ending, noQuorum)},
	{name: "survivors-not-enough", level: Broken, anywhere: join(absent, ending, noQuorum)},
	{name: "restore-offered", level: Broken, anywhere: join(ending, noQuorum)},
	{name: "no-quorum-empty-disk", level: Broken, anywhere: join(absent, apart, ending, noQuorum, survivors)},
	{name: NoLeader, level: Broken, anywhere: join(absent, apart, badMember, quorumless, badDisk)},
	// Boots and joins.
	{name: "seed-in-progress", level: Note, anywhere: absent},
	{name: "join-not-seen-by-all", level: Note, anywhere: absent},
	{name: "list-newer-than-record", level: Note},
	{name: "learner-other-version", level: Warn},
	{name: "learner-not-ready", level: Note, anywhere: join(absent, apart)},
	// The control plane.
	{name: "component-not-ready", level: Warn, here: join(badDisk, badKeys, []string{"program-unusable", "etcd-starts"}),
		anywhere: join(noVotes, badData)},
	{name: "control-plane-not-fitted", level: Warn, here: join(badDisk, badKeys, []string{"program-unusable"})},
	{name: ComponentDown, level: Warn, here: join(badDisk, badKeys, apart, badMember, []string{"program-unusable",
		"component-not-ready", "control-plane-not-fitted"}), anywhere: join(noVotes, badData)},
	{name: ReplicaIsBooting, level: Note, here: join(badDisk, badPlace, badKeys, noRecord, badMember, noServer, apart,
		[]string{"preflight", "document-refused", "agent-crash-looping", "seed-in-progress", "learner-not-ready",
			"no-instance-list", "unknown-cluster"}), anywhere: join(noVotes, ending)},
	{name: "role-not-granted", level: Warn, here: noServer, anywhere: join(noVotes, badData)},
	{name: "lease-not-renewed", level: Warn, here: noServer, anywhere: join(noVotes, badData)},
	// The way in.
	{name: "endpoint-route-missing", level: Warn},
	{name: "endpoint-route-left", level: Note},
	{name: "endpoint-not-attached", level: Warn, here: noServer},
	{name: EndpointNotReady, level: Broken, anywhere: join(noVotes, badData, ending, noServer, absent, apart, badDisk,
		badKeys, badMember, noBackend, []string{NoReports, RecordUnreadHere, ReplicaIsBooting})},
	{name: EndpointSilent, level: Broken, anywhere: join(noVotes, badData, ending, noServer, absent, apart, badDisk,
		badKeys, badMember, noBackend, []string{NoReports, RecordUnreadHere, ReplicaIsBooting})},
	// What the leader says of the others.
	{name: "member-unreachable", level: Warn, anywhere: join(absent, apart, badMember, badDisk)},
	{name: "member-disk-left", level: Note, anywhere: absent},
	{name: "no-quorum-without-it", level: Warn, anywhere: join(absent, apart)},
	{name: "leave-last-voter", level: Warn},
	{name: "leave-needs-quorum", level: Warn, anywhere: join(absent, apart, noVotes)},
	{name: "no-successor", level: Warn, anywhere: join(absent, apart)},
	{name: "snapshot-first", level: Note, anywhere: noRecord},
	{name: "drains-first", level: Note, anywhere: noRecord},
	{name: "snapshot-overdue", level: Warn, here: noRecord, anywhere: join(noVotes, badDisk,
		[]string{"disk-nearly-full"})},
	{name: "third-replica-missing", level: Warn, anywhere: join(absent, apart, badDisk, badPlace,
		[]string{ReplicaIsBooting})},
	{name: "paused", level: Note, anywhere: []string{Paused}},
	{name: ReplicasMissing, level: Warn, anywhere: absent},
	{name: "even-voters", level: Note, anywhere: absent},
	{name: "replicas-above-wanted", level: Note},
	{name: "many-voters", level: Note},
	// Add-ons.
	{name: "addons-folder", level: Warn},
	{name: "addons-older", level: Note},
	{name: "addons-differ", level: Warn},
	{name: "addons-role-not-granted", level: Warn, here: noServer, anywhere: join(noVotes, badData)},
	{name: "addons-failing", level: Warn, here: noServer,
		anywhere: join(noVotes, badData, []string{"addons-role-not-granted"})},
	{name: "addons-not-ready", level: Note, here: noServer, anywhere: noVotes},
	{name: "addons-contested", level: Warn},
	{name: "addons-unreachable", level: Warn, here: noServer,
		anywhere: join(noVotes, badData, []string{"addons-role-not-granted"})},
	// The kubelet and its runtime. Nothing of the control plane follows from them.
	{name: "units-unreadable", level: Warn},
	{name: "kubelet-not-watched", level: Warn},
	{name: "runtime-unkillable", level: Warn},
	{name: "runtime-crash-loop", level: Warn},
	{name: "runtime-hung", level: Warn},
	{name: "runtime-not-watched", level: Warn},
	{name: "kubelet-unkillable", level: Warn},
	{name: "kubelet-crash-loop", level: Warn},
	{name: "kubelet-hung", level: Warn},
	{name: "kubelet-no-network", level: Warn, anywhere: noVotes},
	{name: "kubelet-port-blocked", level: Note},
}

func join(lists ...[]string) []string { return slices.Concat(lists...) }

// position is where a name stands in the catalog; behind all others where it is not in it.
func position(name string) int {
	if n := slices.IndexFunc(catalog, func(e entry) bool { return e.name == name }); n >= 0 {
		return n
	}
	return len(catalog)
}

// entryOf is what is known of a name. One that a newer version has added is a warning by itself.
func entryOf(name string) entry {
	if n := position(name); n < len(catalog) {
		return catalog[n]
	}
	return entry{name: name, level: Warn}
}

// Known reports whether the catalog has a name.
func Known(name string) bool { return position(name) < len(catalog) }
