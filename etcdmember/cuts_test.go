package etcdmember

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"strconv"
	"strings"
	"testing"
)

// cutAt is a moment at which an agent ended: before or after a step took effect.
type cutAt struct {
	step Step
	when Moment
}

// String is also the key of a realRing's cuts.
func (c cutAt) String() string { return string(c.when) + " " + string(c.step) }

// cutLog is where agents have ended in a test.
type cutLog map[cutAt]bool

// want fails for each of the steps at which no agent ended, before it and after it.
func (l cutLog) want(t *testing.T, steps []Step) {
	t.Helper()
	for _, s := range steps {
		for _, when := range []Moment{Before, After} {
			if !l[cutAt{s, when}] {
				t.Errorf("no agent ended %s", cutAt{s, when})
			}
		}
	}
}

// The steps at which tests end the agent, before and after. Each list belongs to one test, which fails where it did not
// come to one of them.
var (
	seedSteps = []Step{StepClaim, StepIncarnation, StepTenureOnDisk, StepSeedOnDisk, StepSeedStart, StepSeedMarker,
		StepConfirm, StepFormed, StepSeedDone,
		StepNoteNewestEpoch}
	abandonSteps = []Step{StepAbandon}
	archiveSteps = []Step{StepArchiveOnDisk, StepArchive}
	joinSteps    = []Step{StepIncarnation, StepTenureOnDisk, StepRemoveFormer, StepMarkAdding, StepAddLearner,
		StepMarkAdded, StepConfirm, StepMarkStarted, StepStartJoined}
	restoreSteps = []Step{StepAccept, StepStoppedOnDisk, StepStopped, StepSettle, StepClose, StepClaim, StepRestoreMake,
		StepArchiveOnDisk, StepArchive, StepIncarnation,
		StepTenureOnDisk, StepRestoreOnDisk, StepRestoreMarker, StepRestoreRename, StepSeedStart, StepConfirm,
		StepFormed, StepSeedDone, StepCompleteOrder}
	purgeSteps    = []Step{StepPurgeMark, StepPurgeRemove}
	survivorSteps = []Step{StepHandOver, StepStopEtcd, StepOrder}
	// Of real members and their agents in a ring.
	damageSteps   = []Step{StepNoteDamage}
	roomSteps     = []Step{StepCompact, StepDefragment, StepDisarm}
	realJoinSteps = []Step{StepIncarnation, StepTenureOnDisk, StepMarkAdding, StepAddLearner, StepMarkAdded,
		StepConfirm, StepMarkStarted, StepStartJoined}
	returnSteps = []Step{StepIncarnation, StepTenureOnDisk, StepConfirm, StepStartOnDisk, StepStart}
	leaderSteps = []Step{StepPromote}
	leaveSteps  = []Step{StepMoveLeader, StepRemove, StepCompleteOrder}
)

// cutElsewhere are the steps that are not the membership's, with the file whose test ends the agent at them.
var cutElsewhere = map[Step]string{StepBundle: "../agent/bundle_test.go"}

// A step that is new needs a test that ends the agent there.
func TestEveryStepIsCut(t *testing.T) {
	cut := map[Step]bool{}
	for _, list := range [][]Step{seedSteps, abandonSteps, archiveSteps, joinSteps, restoreSteps, survivorSteps,
		purgeSteps, damageSteps, roomSteps, realJoinSteps, returnSteps, leaderSteps, leaveSteps} {
		for _, s := range list {
			cut[s] = true
		}
	}
	names := stepNames(t)
	for name, step := range names {
		if file := cutElsewhere[step]; file != "" {
			b, err := os.ReadFile(file)
			cut[step] = err == nil && strings.Contains(string(b), "etcdmember."+name)
		}
		if !cut[step] {
			t.Errorf("no test ends the agent at %s (%s)", name, step)
		}
	}
	if len(names) < 40 {
		t.Errorf("only %d steps were found", len(names))
	}
}

// stepNames are the steps of steps.go by the names of their constants.
func stepNames(t *testing.T) map[string]Step {
	t.Helper()
	file, err := parser.ParseFile(token.NewFileSet(), "steps.go", nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]Step{}
	ast.Inspect(file, func(n ast.Node) bool {
		v, ok := n.(*ast.ValueSpec)
		if !ok || len(v.Values) != 1 {
			return true
		}
		if kind, ok := v.Type.(*ast.Ident); !ok || kind.Name != "Step" {
			return true
		}
		text, err := strconv.Unquote(v.Values[0].(*ast.BasicLit).Value)
		if err != nil {
			t.Fatal(err)
		}
		out[v.Names[0].Name] = Step(text)
		return true
	})
	return out
}
