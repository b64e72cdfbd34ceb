package ringtest

import "github.com/quorate/quorate/etcdmember/acts"

// The steps at which tests of this package end an agent, before and after. Each list belongs to one test, which fails
// where no agent came to one of them. The membership's own tests have the others.
var (
	damageSteps = []acts.Step{acts.StepNoteDamage}
	roomSteps   = []acts.Step{acts.StepCompact, acts.StepDefragment, acts.StepDisarm}
	pairSteps   = []acts.Step{acts.StepCompact, acts.StepDefragment, acts.StepDefragmentOwn, acts.StepDisarm}
	joinSteps   = []acts.Step{acts.StepIncarnation, acts.StepIncarnationOnDisk, acts.StepMarkAdding,
		acts.StepAddLearner,
		acts.StepMarkAdded,
		acts.StepConfirm, acts.StepMarkStarted, acts.StepStartJoined}
	returnSteps = []acts.Step{acts.StepIncarnation, acts.StepIncarnationOnDisk, acts.StepConfirm, acts.StepStartOnDisk,
		acts.StepStart}
	leaderSteps = []acts.Step{acts.StepPromote}
	leaveSteps  = []acts.Step{acts.StepMoveLeader, acts.StepRemove, acts.StepCompleteOrder}
)

// cutAt is a moment at which an agent ends: before or after a step takes effect.
type cutAt struct {
	step acts.Step
	when acts.Moment
}

// String is the key of a ring's cuts.
func (c cutAt) String() string { return string(c.when) + " " + string(c.step) }

// cut is the panic by which an agent ends.
type cut struct{}
