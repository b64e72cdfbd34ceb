package acts

// Step names one write of an act: what it belongs to, its number there, and what it does. A step is the smallest thing
// that can have happened or not have happened when the power goes. Every act is made of steps, and every step can be
// taken again.
type Step string

// The steps, in the order in which an act takes them. Those of a join have the numbers of the membership page. Marks
// and the hosts file have none: each is one write, which is made again at the next observation, and nothing waits for
// it.
const (
	StepClaim             Step = "claim-1-create-claim"
	StepIncarnation       Step = "incarnation-1-create"
	StepIncarnationOnDisk Step = "incarnation-2-write-agent-file"
	StepConfirm           Step = "incarnation-3-confirm"
	StepBundle            Step = "bundle-1-create-first"
	StepSeedOnDisk        Step = "seed-1-write-agent-file"
	StepSeedStart         Step = "seed-2-start-etcd"
	StepSeedMarker        Step = "seed-3-write-marker"
	StepFormed            Step = "seed-4-create-formed"
	StepSeedDone          Step = "seed-5-write-agent-file"
	StepAbandon           Step = "abandon-1-create-abandoned"
	StepRemoveFormer      Step = "join-2-remove-former"
	StepMarkAdding        Step = "join-3-write-adding"
	StepAddLearner        Step = "join-4-add-learner"
	StepMarkAdded         Step = "join-5-write-added"
	StepMarkStarted       Step = "join-8-write-started"
	StepStartJoined       Step = "join-9-start-etcd"
	StepStartOnDisk       Step = "start-1-write-agent-file"
	StepStart             Step = "start-2-start-etcd"
	StepHandOver          Step = "stop-1-hand-over"
	StepStopEtcd          Step = "stop-2-stop-etcd"
	StepOrder             Step = "restore-0-create-order"
	StepAccept            Step = "restore-1-create-accepted"
	StepSettle            Step = "restore-2-create-verdict"
	StepClose             Step = "restore-3-create-closed"
	StepRestoreMake       Step = "restore-4-make-directory"
	StepRestoreOnDisk     Step = "restore-5-write-agent-file"
	StepRestoreMarker     Step = "restore-6-write-marker"
	StepRestoreRename     Step = "restore-7-rename"
	StepStoppedOnDisk     Step = "silence-1-write-agent-file"
	StepStopped           Step = "silence-2-create-stopped"
	StepArchiveOnDisk     Step = "archive-1-reset-agent-file"
	StepArchive           Step = "archive-2-rename"
	StepPurgeMark         Step = "purge-1-rename"
	StepPurgeRemove       Step = "purge-2-remove"
	StepPromote           Step = "leader-1-promote"
	StepRemove            Step = "leader-2-remove"
	StepMoveLeader        Step = "leader-3-move-leader"
	StepCompleteOrder     Step = "order-1-create-done"
	StepDisarm            Step = "leader-4-disarm"
	StepCompact           Step = "leader-5-compact"
	StepDefragment        Step = "leader-6-defragment"
	StepDefragmentOwn     Step = "learner-1-defragment"
	StepNoteNewestEpoch   Step = "note-1-newest-epoch"
	StepNoteDamage        Step = "note-2-write-damage"
)

// Moment says when a hook is called.
type Moment string

// The moments of a step.
const (
	Before Moment = "before"
	After  Moment = "after"
)

// Take takes one step. The hook is nil in production; a test's ends the agent there. After a step that failed it is not
// called: whether it took effect is not known, and both are tested.
func (s Step) Take(hook func(Step, Moment), do func() error) error {
	if hook == nil {
		return do()
	}
	hook(s, Before)
	err := do()
	if err == nil {
		hook(s, After)
	}
	return err
}
