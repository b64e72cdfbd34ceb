package etcdmember

import (
	"testing"

	"github.com/quorate/quorate/etcdmember/acts"
)

// cutAt is a moment at which an agent ended: before or after a step took effect.
type cutAt struct {
	step acts.Step
	when acts.Moment
}

func (c cutAt) String() string { return string(c.when) + " " + string(c.step) }

// cutLog is where agents have ended in a test.
type cutLog map[cutAt]bool

// want fails for each of the steps at which no agent ended, before it and after it.
func (l cutLog) want(t *testing.T, steps []acts.Step) {
	t.Helper()
	for _, s := range steps {
		for _, when := range []acts.Moment{acts.Before, acts.After} {
			if !l[cutAt{s, when}] {
				t.Errorf("no agent ended %s", cutAt{s, when})
			}
		}
	}
}

// The steps at which tests end the agent, before and after. Each list belongs to one test, which fails where it did not
// come to one of them. Every step has to be in some list: TestEveryStepIsCut in the repository's test folder.
var (
	seedSteps = []acts.Step{acts.StepClaim, acts.StepIncarnation, acts.StepIncarnationOnDisk, acts.StepSeedOnDisk,
		acts.StepSeedStart, acts.StepSeedMarker,
		acts.StepConfirm, acts.StepFormed, acts.StepSeedDone,
		acts.StepNoteNewestEpoch}
	abandonSteps = []acts.Step{acts.StepAbandon}
	archiveSteps = []acts.Step{acts.StepArchiveOnDisk, acts.StepArchive}
	joinSteps    = []acts.Step{acts.StepIncarnation, acts.StepIncarnationOnDisk, acts.StepRemoveFormer,
		acts.StepMarkAdding,
		acts.StepAddLearner,
		acts.StepMarkAdded, acts.StepConfirm, acts.StepMarkStarted, acts.StepStartJoined}
	restoreSteps = []acts.Step{acts.StepAccept, acts.StepStoppedOnDisk, acts.StepStopped, acts.StepSettle,
		acts.StepClose, acts.StepClaim, acts.StepRestoreMake,
		acts.StepArchiveOnDisk, acts.StepArchive, acts.StepIncarnation,
		acts.StepIncarnationOnDisk, acts.StepRestoreOnDisk, acts.StepRestoreMarker, acts.StepRestoreRename,
		acts.StepSeedStart, acts.StepConfirm,
		acts.StepFormed, acts.StepSeedDone, acts.StepCompleteOrder}
	purgeSteps    = []acts.Step{acts.StepPurgeMark, acts.StepPurgeRemove}
	survivorSteps = []acts.Step{acts.StepHandOver, acts.StepStopEtcd, acts.StepOrder}
)
