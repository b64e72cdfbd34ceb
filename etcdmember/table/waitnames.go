package table

// The names of the waits, as status, metrics, alarms and the runbook know them. They are part of the interface.

// Of the record and of this replica's own disk and place.
const (
	WaitRecordUnreadable = "record-unreadable"
	WaitRecordLost       = "record-lost"
	WaitRecordRolledBack = "record-rolled-back"
	WaitMarkNotWritten   = "mark-not-written"
	WaitSuperseded       = "superseded"
	WaitForeignDisk      = "foreign-disk"
	WaitOlderEpoch       = "older-epoch"
	WaitStoppedID        = "stopped-id"
	WaitRemoved          = "removed"
	WaitNeededButBroken  = "needed-but-broken"
	WaitFault            = "fault"
	WaitHalt             = "halt"
)

// Of a first boot.
const (
	WaitPreflight      = "preflight"
	WaitNoInstanceList = "no-instance-list"
	WaitUnknownCluster = "unknown-cluster"
	WaitSeedInProgress = "seed-in-progress"
)

// Of a join, and of a replica that wants to join.
const (
	WaitNoQuorumEmptyDisk   = "no-quorum-empty-disk"
	WaitPeersDoNotConnect   = "peers-do-not-connect"
	WaitEtcdStarts          = "etcd-starts"
	WaitJoinNotSeenByAll    = "join-not-seen-by-all"
	WaitListNewerThanRecord = "list-newer-than-record"
)

// Of a quorum that is lost, and of the restore that follows.
const (
	WaitNoQuorum             = "no-quorum"
	WaitRestoreOffered       = "restore-offered"
	WaitSurvivorWaitsForDisk = "survivor-waits-for-disk"
	WaitSurvivorsNotEnough   = "survivors-not-enough"
	WaitEpochClosed          = "epoch-closed"
	WaitUnfit                = "restore-unfit"
	WaitRestoreWaits         = "restore-waits"
	WaitSourceGone           = "source-gone"
)

// Of orders.
const (
	WaitPaused              = "paused"
	WaitLeft                = "left"
	WaitLeaveLastVoter      = "leave-last-voter"
	WaitLeaveNeedsQuorum    = "leave-needs-quorum"
	WaitNoSuccessor         = "no-successor"
	WaitSnapshotFirst       = "snapshot-first"
	WaitDrainsFirst         = "drains-first"
	WaitReplicasAboveWanted = "replicas-above-wanted"
)

// Of what was tried before.
const (
	WaitNoRoom        = "no-room"
	WaitDoesNotStayUp = "etcd-does-not-stay-up"
	WaitStepFailed    = "step-failed"
)

// Of the leader's rows.
const (
	WaitCorrupt             = "corrupt"
	WaitCorruptMember       = "corrupt-member"
	WaitMemberDiskLeft      = "member-disk-left"
	WaitMemberUnreachable   = "member-unreachable"
	WaitNoQuorumWithoutIt   = "no-quorum-without-it"
	WaitLearnerNotReady     = "learner-not-ready"
	WaitLearnerOtherVersion = "learner-other-version"
	WaitThirdReplicaMissing = "third-replica-missing"
	WaitNoSpace             = "no-space"
	WaitEvenVoters          = "even-voters"
	WaitManyVoters          = "many-voters"
)
